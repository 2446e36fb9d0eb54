"""When a series' next row is due, learnt from the rows already known.

Three things are taken from them: the weekdays that have rows, how long after the start of its
date a row appears, and from that the next date that nobody can know yet. Whether the row really
came is never looked at: a holiday or a late origin shows at resolution.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from futureworld.clock import end_of_day
from futureworld.records import Observation, Series

PATTERN_WEEKS = 6
"""Weeks before the last row from which the weekdays are learnt."""
RECENT_LAGS = 10
LAG_QUANTILE = 0.9
MAX_MISSED = 1
"""A holiday or a lost day is forgiven; a series with more overdue dates than this has stopped."""
HORIZON = timedelta(days=14)

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Due:
    """The row asked about: its `date`, when it may appear at the earliest, by when it is expected."""

    date: date
    earliest: datetime
    expected: datetime


def next_due(series: Series, rows: Sequence[Observation], asked_at: datetime) -> Due | None:
    """The first date without a row whose day has not ended and whose value nobody can know yet.

    `rows` are those known at `asked_at`, by date. A date whose row is usually out by now is
    passed over: its value exists, it is only late. None where no such date is near or the series
    has stopped.
    """
    if not rows:
        return None
    lags = sorted(row.published_at - start_of_day(row.date, series.zone) for row in rows[-RECENT_LAGS:])
    weekdays = weekday_pattern([row.date for row in rows])
    missed = 0
    day = rows[-1].date + _DAY
    while missed <= MAX_MISSED and day <= rows[-1].date + HORIZON:
        if day.weekday() in weekdays:
            start = start_of_day(day, series.zone)
            due = Due(day, start + lags[0], start + quantile(lags, LAG_QUANTILE))
            ended = end_of_day(day, series.zone) <= asked_at
            if not ended and due.earliest > asked_at:
                return due
            # A day that ended and is not yet due (a slow origin) is stale, but nothing is missing.
            missed += not ended or due.expected <= asked_at
        day += _DAY
    return None


def weekday_pattern(dates: Sequence[date]) -> frozenset[int]:
    """Weekdays (Monday 0) that have a row in at least half of the last six weeks of `dates`.

    Weeks count back from the last date and not from before the first.
    """
    last = dates[-1]
    weeks = min(PATTERN_WEEKS, (last - dates[0]).days // 7 + 1)
    recent = Counter(day.weekday() for day in dates if last - day < timedelta(weeks=weeks))
    return frozenset(weekday for weekday, count in recent.items() if 2 * count >= weeks)


def quantile(ordered: Sequence[timedelta], q: float) -> timedelta:
    """The nearest-rank quantile: the smallest value with at least a share `q` at or below it."""
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def start_of_day(day: date, zone: str) -> datetime:
    """The UTC moment at which `day` begins in `zone`."""
    return end_of_day(day - _DAY, zone)
