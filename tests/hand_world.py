"""Small worlds written by hand, for tests that know every row."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from futureworld.records import Event, EventStatus, Observation, Series
from futureworld.worlds.reading import Rows
from futureworld.worlds.recorded import RecordedWorld

DAY = date(2026, 6, 10)  # a Wednesday
ONE = timedelta(days=1)


def at(day: date, hours: float) -> datetime:
    """`hours` after the UTC day began."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=hours)


def series(name: str = "s", *, kind: str = "level", zone: str = "UTC", domain: str = "d", **changes) -> Series:
    fields = {"unit": "points", "calendar": "daily", "timing": "within_day", "source": "origin"}
    return Series(
        name, changes.pop("title", f"the {name} index"), domain, zone=zone, kind=kind, **{**fields, **changes}
    )


def rows(
    name: str, values: Iterable[float], *, last: date = DAY - ONE, lag: float = 20.0, skip: Iterable[date] = ()
) -> list[Observation]:
    """Daily rows that end on `last`, each published `lag` hours after its UTC day began."""
    values = list(values)
    dates = [last - timedelta(days=i) for i in reversed(range(len(values)))]
    out = set(skip)
    return [Observation(name, d, v, at(d, lag)) for d, v in zip(dates, values, strict=True) if d not in out]


def game(
    name: str, start: datetime, options: tuple[str, ...], outcome: str | None = None, *, hours: float = 3.0, **changes
) -> Event:
    """A game known since 2026-01-01; with an outcome, its result is known `hours` after the start."""
    fields = {
        "domain": "ball",
        "competition": "Cup",
        "title": " v ".join(option for option in options if option != "Draw"),
        "date": start.date(),
        "known_from": datetime(2026, 1, 1, tzinfo=UTC),
        "minute_known": True,
        "source": "origin",
        "status": EventStatus.RESOLVED if outcome else EventStatus.SCHEDULED,
        "resolved_at": start + timedelta(hours=hours) if outcome else None,
    }
    return Event(id=name, scheduled_at=start, options=options, outcome=outcome, **{**fields, **changes})


def past_games(options: tuple[str, ...], winners: Iterable[str], *, before: date = DAY, **changes) -> list[Event]:
    """One game a day at 18:00 UTC, the last on the day before `before`."""
    winners = list(winners)
    days = [before - timedelta(days=i + 1) for i in reversed(range(len(winners)))]
    return [game(f"past{d}", at(d, 18), options, won, **changes) for d, won in zip(days, winners, strict=True)]


def world(
    about: Iterable[Series] = (), found: Iterable[Observation] = (), events: Iterable[Event] = ()
) -> RecordedWorld:
    return RecordedWorld(
        Rows(series={s.id: s for s in about}, observations=list(found), events=list(events), digest="0" * 64), "hand"
    )
