"""Candidates: every question a day allows, from what was knowable when it is asked.

A series is asked about its next due row (`calendar`), cut by the threshold rule (`thresholds`).
An event is asked about one of its options. Sides are dealt per domain and day.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from futureworld.clock import Schedule
from futureworld.config import QuestionsConfig
from futureworld.questions.calendar import Due, next_due, quantile
from futureworld.questions.facts import event_points, series_points, typical_step
from futureworld.questions.templates import DRAW, Times, event_question, series_question
from futureworld.questions.thresholds import deal, draw, generator
from futureworld.records import Event, EventStatus, Question, Series
from futureworld.worlds.base import World

DURATIONS = 20
MIN_DURATIONS = 5
DURATION_QUANTILE = 0.9
RECENT_WINNERS = 10
"""Events whose winners an event of more than three options asks about."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What random numbers depend on besides the target: the run's seed and a set's namespace."""

    seed: int
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class SeriesTarget:
    series: Series
    due: Due
    values: tuple[float, ...]
    step: float


@dataclass(frozen=True, slots=True)
class EventTarget:
    """`choices` are the options that may be asked about, with their results (1.0 or 0.0)."""

    event: Event
    choices: tuple[tuple[str, tuple[float, ...]], ...]


def candidates(world: World, day: date, schedule: Schedule, config: QuestionsConfig, drawn: Draw) -> list[Question]:
    """Every question of `day`: per target the first threshold, then the second, ...; by domain and id."""
    asked_at, resolves_at = schedule.asked_at(day), schedule.resolves_at(day)
    times = Times(world.id, day, asked_at, schedule.closes_at(day), resolves_at)
    questions: list[Question] = []
    for targets in _by_domain(series_targets(world, times, config)).values():
        questions += _series_questions(targets, times, config, drawn)
    for targets in _by_domain(event_targets(world, times, config)).values():
        questions += _event_questions(targets, times, drawn)
    return questions


def series_targets(world: World, times: Times, config: QuestionsConfig) -> list[SeriesTarget]:
    """Series whose next row is expected by `resolves_at` and which have history enough."""
    targets: list[SeriesTarget] = []
    for series in world.series().values():
        rows = world.observations(series.id, times.asked_at)
        due = next_due(series, rows, times.asked_at)
        if due is None or due.expected > times.resolves_at or due.date in series.breaks:
            continue
        # An increase over a missing row cannot be told.
        if series.kind == "cumulative" and rows[-1].date != due.date - timedelta(days=1):
            continue
        values = tuple(point.value for point in series_points(world, series, times.asked_at))
        step = typical_step(values)
        if len(values) >= config.min_history and step > 0:
            targets.append(SeriesTarget(series, due, values, step))
    return targets


def _series_questions(
    targets: Sequence[SeriesTarget], times: Times, config: QuestionsConfig, drawn: Draw
) -> list[Question]:
    taken: dict[str, set[Decimal]] = defaultdict(set)
    questions: list[Question] = []
    for index in range(config.thresholds):
        random = generator(drawn.seed, targets[0].series.domain, times.day, index, drawn.namespace)
        sides = deal(len(targets), random)
        for place, side in zip(random.permutation(len(targets)), sides, strict=True):
            target = targets[place]
            series_id = target.series.id
            own = generator(drawn.seed, series_id, times.day, index, drawn.namespace)
            found = draw(target.values, target.step, side, own, taken[series_id])
            if found is not None:
                side_found, threshold = found
                taken[series_id].add(threshold)
                questions.append(_series_question(target, side_found.operator, threshold, times))
    return questions


def _series_question(target: SeriesTarget, operator, threshold: Decimal, times: Times) -> Question:
    # Answers close before the row can appear.
    closes_at = min(times.closes_at, target.due.earliest)
    return series_question(
        target.series,
        target.due.date,
        operator,
        threshold,
        target.values,
        target.step,
        Times(times.world, times.day, times.asked_at, closes_at, times.resolves_at),
    )


def event_targets(world: World, times: Times, config: QuestionsConfig) -> list[EventTarget]:
    """Events that start after `asked_at` for sure and are expected to be decided by `resolves_at`."""
    events = world.events(times.asked_at)
    targets: list[EventTarget] = []
    for event in events:
        if event.status is not EventStatus.SCHEDULED or not times.asked_at < event.scheduled_at < times.resolves_at:
            continue
        duration = expected_duration(events, event)
        if duration is None or event.scheduled_at + duration > times.resolves_at:
            continue
        choices = _choices(events, event, config.min_results)
        if choices:
            targets.append(EventTarget(event, choices))
    return targets


def expected_duration(events: Iterable[Event], event: Event) -> timedelta | None:
    """From scheduled start to known result: the 0.9 quantile of the last 20 of its competition.

    Of its domain where the competition has fewer than five results; None where that has too.
    A date-only start is compared with date-only starts, since it is a lower bound.
    """
    alike = [
        (other.competition.split(",")[0], other.resolved_at - other.scheduled_at)
        for other in events
        if other.domain == event.domain
        and other.minute_known == event.minute_known
        and other.status is EventStatus.RESOLVED
        and other.resolved_at is not None
    ]
    own = [duration for competition, duration in alike if competition == event.competition.split(",")[0]]
    durations = own if len(own) >= MIN_DURATIONS else [duration for _, duration in alike]
    if len(durations) < MIN_DURATIONS:
        return None
    return quantile(sorted(durations[-DURATIONS:]), DURATION_QUANTILE)


def _choices(events: Sequence[Event], event: Event, min_results: int) -> tuple[tuple[str, tuple[float, ...]], ...]:
    options = [option for option in event.options if option != DRAW]
    if len(event.options) > 3:
        # Of a large field most options never win; recent winners keep the base rate off the floor.
        winners = [
            other.outcome
            for other in events
            if other.domain == event.domain and other.status is EventStatus.RESOLVED
        ]
        options = [option for option in options if option in winners[-RECENT_WINNERS:]]
    choices: list[tuple[str, tuple[float, ...]]] = []
    for option in options:
        values = tuple(point.value for point in event_points(events, event.domain, option))
        if len(values) >= min_results and typical_step(values) > 0:
            choices.append((option, values))
    return tuple(choices)


def _event_questions(targets: Sequence[EventTarget], times: Times, drawn: Draw) -> list[Question]:
    """One question an event; the option is a coin among those that even out the last results."""
    random = generator(drawn.seed, targets[0].event.domain, times.day, 0, drawn.namespace)
    surplus = 0  # options that won last minus those that did not
    questions: list[Question] = []
    for place in random.permutation(len(targets)):
        event = targets[place].event
        own = generator(drawn.seed, event.id, times.day, 0, drawn.namespace)
        wanted = 1.0 if surplus < 0 or (surplus == 0 and own.random() < 0.5) else 0.0
        choices = [choice for choice in targets[place].choices if choice[1][-1] == wanted] or targets[place].choices
        option, values = choices[own.integers(len(choices))]
        surplus += 1 if values[-1] == 1.0 else -1
        closes_at = min(times.closes_at, event.scheduled_at)
        when = Times(times.world, times.day, times.asked_at, closes_at, times.resolves_at)
        questions.append(event_question(event, option, values, typical_step(values), when))
    return questions


def _by_domain(targets):
    groups = defaultdict(list)
    for target in targets:
        item = target.series if isinstance(target, SeriesTarget) else target.event
        groups[item.domain].append(target)
    return dict(sorted(groups.items()))
