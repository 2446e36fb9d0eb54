"""What of a world was knowable when a day's questions were asked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from futureworld.clock import Schedule, iso
from futureworld.errors import WorldError
from futureworld.records import Event, EventStatus, Observation, Series
from futureworld.worlds.base import World

AHEAD = timedelta(hours=36)
"""How far ahead events are shown."""
SHOWN_SERIES = 3
"""How many series of a domain are shown with their last row."""
SHOWN_EVENTS = 12


@dataclass(frozen=True, slots=True)
class DomainCount:
    """Of one domain: its series with a row, their rows, and its events known, decided and ahead."""

    domain: str
    series: int
    observations: int
    events: int
    results: int


@dataclass(frozen=True, slots=True)
class Knowable:
    """A world as it stood at `asked_at` of `day`. `latest` are the newest rows, some of each domain."""

    world_id: str
    day: date
    asked_at: datetime
    domains: tuple[DomainCount, ...]
    documents: int
    rankings: int
    latest: tuple[tuple[Series, Observation], ...]
    ahead: tuple[Event, ...]

    def __str__(self) -> str:
        return text(self)


def show(world: World, day: date, schedule: Schedule) -> Knowable:
    """What was knowable at `schedule.asked_at(day)`. Raises WorldError for a day outside the world."""
    if not world.first_day <= day <= world.last_day:
        raise WorldError(f"world {world.id} has no {day}; it reaches from {world.first_day} to {world.last_day}")
    asked_at = schedule.asked_at(day)
    rows = {key: world.observations(key, asked_at) for key in world.series()}
    events = world.events(asked_at)
    ahead = [
        event
        for event in events
        if event.status is EventStatus.SCHEDULED and asked_at < event.scheduled_at <= asked_at + AHEAD
    ]
    return Knowable(
        world_id=world.id,
        day=day,
        asked_at=asked_at,
        domains=_domains(world, rows, events),
        documents=len(world.documents(asked_at)),
        rankings=len(world.rankings(asked_at)),
        latest=_latest(world, rows),
        ahead=tuple(ahead),
    )


def text(known: Knowable) -> str:
    """`known` as lines for a terminal."""
    lines = [f"{known.world_id} at {iso(known.asked_at)} (asked on {known.day})", ""]
    lines.append(f"{'domain':<22}{'series':>8}{'rows':>8}{'events':>8}{'results':>8}")
    lines += [f"{d.domain:<22}{d.series:>8}{d.observations:>8}{d.events:>8}{d.results:>8}" for d in known.domains]
    lines += [f"documents {known.documents}, rankings {known.rankings}", "", "newest rows"]
    lines += [
        f"  {row.published_at:%Y-%m-%d %H:%M}  {series.id}  {row.date}  {row.value:.12g} {series.unit}"
        for series, row in known.latest
    ]
    lines += ["", f"events of the next {AHEAD.total_seconds() / 3600:.0f} hours: {len(known.ahead)}"]
    lines += [f"  {_start(event)}  {event.domain}  {event.title}" for event in known.ahead[:SHOWN_EVENTS]]
    if len(known.ahead) > SHOWN_EVENTS:
        lines.append(f"  and {len(known.ahead) - SHOWN_EVENTS} more")
    return "\n".join(lines)


def _domains(world: World, rows: dict[str, Sequence[Observation]], events: Sequence[Event]) -> tuple[DomainCount, ...]:
    series: Counter[str] = Counter()
    observations: Counter[str] = Counter()
    for key, about in world.series().items():
        series[about.domain] += bool(rows[key])
        observations[about.domain] += len(rows[key])
    fixtures = Counter(event.domain for event in events)
    results = Counter(event.domain for event in events if event.status is EventStatus.RESOLVED)
    names = sorted({*series, *fixtures})
    return tuple(DomainCount(name, series[name], observations[name], fixtures[name], results[name]) for name in names)


def _latest(world: World, rows: dict[str, Sequence[Observation]]) -> tuple[tuple[Series, Observation], ...]:
    newest = [(about, rows[key][-1]) for key, about in world.series().items() if rows[key]]
    newest.sort(key=lambda item: (item[0].domain, -item[1].published_at.timestamp(), item[0].id))
    shown: Counter[str] = Counter()
    kept = []
    for about, row in newest:
        shown[about.domain] += 1
        if shown[about.domain] <= SHOWN_SERIES:
            kept.append((about, row))
    return tuple(kept)


def _start(event: Event) -> str:
    return f"{event.scheduled_at:%Y-%m-%d %H:%M}" if event.minute_known else f"{event.date} time open"
