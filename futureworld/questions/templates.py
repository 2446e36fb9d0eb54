"""The words and ids of a question. Text never says where the last value stands."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from futureworld.clock import iso
from futureworld.questions.facts import WINDOW
from futureworld.records import Event, Question, QuestionKind, Series, Target, TargetKind, content_id
from futureworld.wording import Operator

EVENT_THRESHOLD = 0.5
"""Between losing (0) and winning (1)."""
DRAW = "Draw"


@dataclass(frozen=True, slots=True)
class Times:
    """When a question is asked, closed and read, and on which day of the run; `world` is the world's id."""

    world: str
    day: date
    asked_at: datetime
    closes_at: datetime
    resolves_at: datetime


@dataclass(frozen=True, slots=True)
class Known:
    """A target's values known when it is asked about, oldest first, and their typical step (> 0)."""

    values: tuple[float, ...]
    step: float


def series_question(
    series: Series, on: date, side: Operator, threshold: Decimal, *, known: Known, times: Times
) -> Question:
    """A threshold question about the series' value (a cumulative one's increase) on `on`."""
    increase = series.kind == "cumulative"
    name = f"the daily increase of {series.title}" if increase else series.title
    limit = f"{threshold.normalize():f}"
    description = (
        f"Yes if the first published value for {on} ({series.zone}) is {side.words} {limit};"
        f" equal counts as {'Yes' if side.on_equality else 'No'}. Source: {series.source}."
        f" Last known value: {known.values[-1]:g}. Typical step: {known.step:g}."
    )
    return _question(
        target=Target(TargetKind.SERIES, series.id, name, on, series.zone),
        domain=series.domain,
        source=series.source,
        family="series.increase" if increase else "series.level",
        text=f"Will {name} on {on} be {side.words} {limit}{_unit(series)}?",
        description=description,
        operator=side,
        threshold=float(threshold),
        known=known,
        times=times,
    )


def event_question(event: Event, option: str, *, known: Known, times: Times, twice: bool = False) -> Question:
    """Whether `option` wins the event; `known` are its earlier results, 1.0 won and 0.0 not.

    `twice`: another event of that day has the same title (a doubleheader), so the start is named.
    """
    start = f", starting {iso(event.scheduled_at)[11:16]} UTC" if twice else ""
    text = f"Will {option_name(option)} win {event.title} ({event.competition}) on {event.date}{start}?"
    if DRAW in event.options:
        text += " A draw counts as No."
    description = (
        f"Yes if {option} is the recorded winner. Void if postponed or moved to another day."
        f" Scheduled {iso(event.scheduled_at)}. Source: {event.source}."
        f" Last known result of {option}: {'won' if known.values[-1] == 1.0 else 'did not win'}."
    )
    return _question(
        # An event's date is as its competition writes it; no zone is recorded.
        target=Target(TargetKind.EVENT, event.id, event.title, event.date, "UTC", option),
        domain=event.domain,
        source=event.source,
        family="event.winner",
        text=text,
        description=description,
        operator=Operator.WINS,
        threshold=EVENT_THRESHOLD,
        known=known,
        times=times,
    )


def option_name(option: str) -> str:
    """An option as people write it.

    >>> option_name("max-verstappen"), option_name("Boston Red Sox")
    ('Max Verstappen', 'Boston Red Sox')
    """
    return option.replace("-", " ").title() if option.islower() else option


def source_url(source: str) -> str:
    """Where a source is found: `owner/name` is a GitHub repository; "" of one known by name only."""
    return f"https://github.com/{source}" if source.count("/") == 1 and " " not in source else ""


def _unit(series: Series) -> str:
    known = not series.unit or series.unit.lower() in series.title.lower()
    return "" if known else f" {series.unit}"


def _question(
    *,
    target: Target,
    domain: str,
    source: str,
    family: str,
    text: str,
    description: str,
    operator: Operator,
    threshold: float,
    known: Known,
    times: Times,
) -> Question:
    # No seed in the id: it only chooses parameters, so runs of other seeds join on equal questions.
    parameters = [target.id, target.date, target.option, operator.value, threshold]
    return Question(
        id=content_id(times.world, times.day, source, family, parameters),
        day=times.day,
        kind=QuestionKind.BINARY,
        text=text,
        description=description,
        domain=domain,
        family=family,
        source=source,
        source_url=source_url(source),
        resolver=target.kind.value,
        operator=operator,
        threshold=threshold,
        target=target,
        asked_at=times.asked_at,
        closes_at=times.closes_at,
        resolves_at=times.resolves_at,
        last_values=known.values[-WINDOW:],
        typical_step=known.step,
    )
