"""The only place that knows the time. Everything inside is aware UTC.

A live run reads the machine's clock; a replay moves a `FakeClock` by hand. Nothing else may
call `datetime.now`, `date.today` or build a naive datetime (ruff's DTZ rules hold that).
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from futureworld.errors import RecordError


class Clock(Protocol):
    def now(self) -> datetime: ...


class SystemClock:
    """The machine's clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class FakeClock:
    """A clock that stands until it is moved, and never goes back."""

    def __init__(self, start: datetime) -> None:
        self._now = utc(start)

    def now(self) -> datetime:
        return self._now

    def move_to(self, moment: datetime) -> None:
        """Move forward to `moment`; an earlier moment leaves the clock where it is."""
        self._now = max(self._now, utc(moment))


def utc(moment: datetime) -> datetime:
    """`moment` in UTC. Raises RecordError for a naive datetime: its zone cannot be guessed."""
    if moment.tzinfo is None:
        raise RecordError(f"time {moment.isoformat()} has no zone; write it with one, for example ...Z")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise RecordError(f"time {moment.isoformat()} is out of range in UTC; years are 1 to 9999") from None


def parse_utc(text: str) -> datetime:
    """ISO 8601 with a zone -> aware UTC. Raises RecordError when unreadable or naive."""
    try:
        moment = datetime.fromisoformat(text)
    except (ValueError, TypeError) as error:
        raise RecordError(f"time {text!r} is not ISO 8601: {error}") from None
    return utc(moment)


def iso(moment: datetime) -> str:
    """Aware datetime -> `2026-05-04T12:00:00Z` (microseconds only where there are some)."""
    return utc(moment).isoformat().replace("+00:00", "Z")


def local(day: date, at: time, zone: str) -> datetime:
    """The UTC moment at which clocks in `zone` show `day` `at`.

    Raises RecordError where that wall time does not exist (the hour lost to summer time);
    of a time that occurs twice the first is meant.
    """
    there = datetime.combine(day, at, tzinfo=ZoneInfo(zone))
    moment = there.astimezone(UTC)
    if moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) != there.replace(tzinfo=None):
        raise RecordError(f"{day} {at} does not exist in {zone}: clocks were put forward there")
    return moment


def end_of_day(day: date, zone: str) -> datetime:
    """The UTC moment at which `day` is over in `zone` (23, 24 or 25 hours after it began)."""
    return datetime.combine(day + timedelta(days=1), time.min, tzinfo=ZoneInfo(zone)).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a day's questions are asked and when its outcomes are read.

    `ask_at` and `resolve_at` are wall times in `zone`; `answer_hours` bounds how long an agent
    may take, so that an answer is given before the world moves on.
    """

    ask_at: time = time(20, 0)
    resolve_at: time = time(20, 30)
    zone: str = "Asia/Shanghai"
    answer_hours: float = 4.0

    def asked_at(self, day: date) -> datetime:
        return local(day, self.ask_at, self.zone)

    def resolves_at(self, day: date) -> datetime:
        """The moment at which outcomes of the questions asked on `day` are read: a day later."""
        return local(day + timedelta(days=1), self.resolve_at, self.zone)

    def closes_at(self, day: date) -> datetime:
        """The latest moment at which an answer to a question of `day` may be given."""
        return self.asked_at(day) + timedelta(hours=self.answer_hours)
