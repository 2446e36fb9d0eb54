"""What the world says of a question: an answer, not yet, or never. There is no default.

`resolve` reads only facts knowable at `now`. The first published value decides (first vintage).
Reasons are short and without names, so that a day can count them.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from futureworld.records import Event, EventStatus, Question, TargetKind, content_id
from futureworld.worlds.base import World

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Resolved:
    """`value` is 1.0 for Yes, 0.0 for No; `evidence` the content id of the rows it was read from."""

    value: float
    evidence: str


@dataclass(frozen=True, slots=True)
class Pending:
    """Not known yet; may be asked again later."""

    reason: str


@dataclass(frozen=True, slots=True)
class Void:
    """There will be no answer to the question as it was asked."""

    reason: str


Resolution = Resolved | Pending | Void


def resolve(question: Question, world: World, now: datetime) -> Resolution:
    """The answer to `question` as of `now`. Raises WorldError for a series the world does not have."""
    if question.target.kind is TargetKind.EVENT:
        return _event(question, world, now)
    return _series(question, world, now)


def _series(question: Question, world: World, now: datetime) -> Resolution:
    target = question.target
    rows = {row.date: row for row in world.observations(target.id, now)}
    series = world.series()[target.id]
    row = rows.get(target.date)
    if row is None:
        skipped = any(day > target.date for day in rows)
        return Pending("date skipped by its source" if skipped else "not published yet")
    if row.published_at <= question.asked_at:
        return Void("known when asked")
    if target.date in series.breaks:
        return Void("break in the series")
    value, evidence = row.value, [row]
    if series.kind == "cumulative":
        before = rows.get(target.date - _DAY)
        if before is None:
            return Void("gap in a cumulative series")
        value, evidence = row.value - before.value, [before, row]
    return Resolved(
        float(question.operator.holds(value, question.threshold)),
        content_id(*[[item.series_id, item.date, item.value, item.published_at] for item in evidence]),
    )


def _event(question: Question, world: World, now: datetime) -> Resolution:
    event = next((event for event in world.events(now) if event.id == question.target.id), None)
    if event is None:
        return Void("no longer listed")
    reason = _broken(question, event)
    if reason is not None:
        return Void(reason)
    if event.status is not EventStatus.RESOLVED or event.resolved_at is None:
        return Pending("no result yet")
    if event.outcome not in event.options:
        return Void("result is none of the options")
    won = float(event.outcome == question.target.option)
    return Resolved(
        float(question.operator.holds(won, question.threshold)),
        content_id([event.id, event.date, event.outcome, event.resolved_at]),
    )


def _broken(question: Question, event: Event) -> str | None:
    """Why the event is no longer the one that was asked about."""
    if event.status is EventStatus.POSTPONED:
        return "postponed"
    if event.date != question.target.date:
        return "moved to another day"
    if event.resolved_at is not None and event.resolved_at <= question.asked_at:
        return "known when asked"
    if event.scheduled_at < question.closes_at:
        return "started before answers closed"
    return None
