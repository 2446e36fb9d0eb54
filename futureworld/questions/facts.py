"""What is known about a question's target at a moment: its history and where it stands.

The archive's lookup line, the warm start of the pocket policy and the baselines all read this
one place. Nothing here sees a row from after `as_of`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise

from futureworld.records import Event, EventStatus, Series, Target, TargetKind
from futureworld.wording import Operator
from futureworld.worlds.base import World

WINDOW = 7
"""How many of the last values an agent is shown."""
STEP_WINDOW = 30
"""How many first differences the typical step is taken from."""
MAX_DISTANCE = 3.0


@dataclass(frozen=True, slots=True)
class Point:
    """A value of a target's history, about `date`, knowable from `published_at`."""

    date: date
    value: float
    published_at: datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """Where the target stands against a threshold.

    `yes_count` of the `values` (at most the last seven, oldest first) answer Yes; `last_yes` says
    whether the last one does; `distance` is (last - threshold) / typical step, positive on the Yes
    side, cut at +-3.
    """

    values: tuple[float, ...]
    yes_count: int
    last_yes: bool
    distance: float


def series_points(world: World, series: Series, as_of: datetime) -> list[Point]:
    """The series' history as asked about: a cumulative series as daily increments.

    An increment over a gap of more than one date is left out, as is one that ends on a break; it
    is knowable from the later of its two rows.
    """
    rows = world.observations(series.id, as_of)
    if series.kind != "cumulative":
        return [Point(row.date, row.value, row.published_at) for row in rows]
    return [
        Point(b.date, b.value - a.value, max(a.published_at, b.published_at))
        for a, b in pairwise(rows)
        if b.date - a.date == timedelta(days=1) and b.date not in series.breaks
    ]


def option_points(world: World, domain: str, option: str, as_of: datetime) -> list[Point]:
    """An option's results in the domain's events: 1.0 where it won, else 0.0, by start."""
    return event_points(world.events(as_of), domain, option)


def event_points(events: Iterable[Event], domain: str, option: str) -> list[Point]:
    """`option_points` of events already read; callers with many options read them once."""
    return [
        Point(event.date, float(event.outcome == option), event.resolved_at)
        for event in events
        if event.domain == domain
        and event.status is EventStatus.RESOLVED
        and event.resolved_at is not None
        and option in event.options
    ]


def history(world: World, target: Target, domain: str, as_of: datetime) -> list[Point]:
    """What could be known at `as_of` of the target's earlier values, oldest first."""
    if target.kind is TargetKind.SERIES:
        return series_points(world, world.series()[target.id], as_of)
    assert target.option is not None  # Target checks it
    return option_points(world, domain, target.option, as_of)


def typical_step(values: Sequence[float]) -> float:
    """Standard deviation (population) of the last 30 first differences; 0.0 where nothing moved.

    >>> typical_step([1.0, 2.0, 1.0])
    1.0
    """
    steps = [b - a for a, b in pairwise(values)][-STEP_WINDOW:]
    if not steps:
        return 0.0
    mean = math.fsum(steps) / len(steps)
    return math.sqrt(math.fsum((step - mean) ** 2 for step in steps) / len(steps))


def facts(values: Sequence[float], threshold: float, operator: Operator, step: float) -> Facts:
    """Facts about `values` (at least one, oldest first) against `threshold`; `step` > 0."""
    shown = tuple(values[-WINDOW:])
    last = shown[-1]
    signed = (last - threshold) / step * (1.0 if operator.upward else -1.0)
    return Facts(
        values=shown,
        yes_count=sum(operator.holds(value, threshold) for value in shown),
        last_yes=operator.holds(last, threshold),
        distance=max(-MAX_DISTANCE, min(MAX_DISTANCE, signed)),
    )


def lookup_line(code: str, domain: str, known: Facts) -> str:
    """The archive's answer about a target.

    >>> f = Facts((1.5, 2.0), 1, True, 0.25)
    >>> print(lookup_line("kamo", "fuel", f))
    kamo: 1.5 2
    fuel: yes side 1 of 2, last yes by 0.2
    """
    values = " ".join(f"{value:g}" for value in known.values)
    side = "yes" if known.last_yes else "no"
    return (
        f"{code}: {values}\n{domain}: yes side {known.yes_count} of {len(known.values)},"
        f" last {side} by {abs(known.distance):.1f}"
    )
