"""A recorded world: a folder of dated rows, each with the moment from which it could be known.

docs/worlds.md describes the files. Everything is read once; a reading at `as_of` is a bisection.
"""

import difflib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

from futureworld.clock import SystemClock, utc
from futureworld.errors import WorldError
from futureworld.records import Document, Event, EventStatus, Observation, Ranking, Series
from futureworld.worlds.archive import Archive
from futureworld.worlds.base import Hit
from futureworld.worlds.bulletins import bulletins
from futureworld.worlds.reading import Rows, read

READINGS = 8
"""How many readings of whole kinds (events, documents) are kept: a day's stages ask for few moments."""


class RecordedWorld:
    """The World protocol over a folder. Immutable once loaded; ids are `name@hash` of the rows."""

    def __init__(self, rows: Rows, name: str) -> None:
        """`rows` without problems; `name` is used where the folder gives itself none."""
        self._id = f"{rows.about.get('name', name)}@{rows.digest[:12]}"
        self._series = MappingProxyType(dict(sorted(rows.series.items())))
        self._observations = _by_series(rows.observations)
        self._published = {key: [row.published_at for row in found] for key, found in self._observations.items()}
        self._in_order = {key: _is_by_date(found) for key, found in self._observations.items()}
        self._events = [
            (event, _fixture(event)) for event in sorted(rows.events, key=lambda event: (event.scheduled_at, event.id))
        ]
        self._rankings = sorted(rows.rankings, key=lambda row: (row.published_at, row.id))
        documents = list(rows.documents)
        if rows.about.get("bulletins"):
            documents += bulletins(rows.series, rows.observations, rows.events)
        self._documents = sorted(documents, key=lambda row: (row.published_at, row.id))
        moments = _moments(rows)
        self._first, self._last = min(moments), max(moments)
        self._archive = Archive(self, self._documents, [event for event, _ in self._events], self._first)
        self._read = lru_cache(maxsize=4 * max(1, len(self._series)))(self._rows_of)
        self._events_at = lru_cache(maxsize=READINGS)(self._events_known)
        self._documents_at = lru_cache(maxsize=READINGS)(lambda count: tuple(self._documents[:count]))

    @classmethod
    def load(cls, folder: Path, now: datetime | None = None) -> "RecordedWorld":
        """The world in `folder`. `now` bounds when rows may be known; None is this machine's time.

        Raises WorldError where the folder does not exist, holds nothing, or a row is wrong, naming
        file and row.
        """
        if not folder.is_dir():
            raise WorldError(
                f"world {str(folder)!r} does not exist; name `almanac`, or a folder that holds series.jsonl"
            )
        rows = read(folder, now or SystemClock().now())
        if rows.problems:
            more = f" ({len(rows.problems) - 1} more)" if len(rows.problems) > 1 else ""
            raise WorldError(
                f"world {folder}: {rows.problems[0]}{more}; `futureworld world check {folder}` lists every problem"
            )
        if not _moments(rows):
            raise WorldError(f"world {folder} holds no observation and no event; nothing can be asked about it")
        return cls(rows, folder.resolve().name)

    @property
    def id(self) -> str:
        return self._id

    @property
    def first_day(self) -> date:
        """The UTC day on which the first row could be known."""
        return self._first.date()

    @property
    def last_day(self) -> date:
        """The UTC day on which the last row could be known."""
        return self._last.date()

    def series(self) -> Mapping[str, Series]:
        return self._series

    def observations(self, series_id: str, as_of: datetime) -> Sequence[Observation]:
        """Rows with `published_at <= as_of`, by date. Raises WorldError for an unknown series."""
        if series_id not in self._series:
            near = difflib.get_close_matches(series_id, self._series, n=1)
            raise WorldError(
                f"world {self._id} has no series {series_id!r}" + (f"; did you mean {near[0]!r}?" if near else "")
            )
        return self._read(series_id, bisect_right(self._published.get(series_id, ()), utc(as_of)))

    def events(self, as_of: datetime) -> Sequence[Event]:
        return self._events_at(utc(as_of))

    def rankings(self, as_of: datetime) -> Sequence[Ranking]:
        return self._rankings[: bisect_right(self._rankings, utc(as_of), key=lambda row: row.published_at)]

    def documents(self, as_of: datetime) -> Sequence[Document]:
        return self._documents_at(bisect_right(self._documents, utc(as_of), key=lambda row: row.published_at))

    def search(self, query: str, as_of: datetime, limit: int) -> Sequence[Hit]:
        """The best `limit` of the documents and of the cards of series and events ahead, as of then."""
        return self._archive.search(query, utc(as_of), limit)

    def visit(self, url: str, as_of: datetime) -> Document | None:
        return self._archive.visit(url, utc(as_of))

    def _rows_of(self, series_id: str, count: int) -> tuple[Observation, ...]:
        rows = self._observations.get(series_id, [])[:count]
        return tuple(rows if self._in_order.get(series_id) else sorted(rows, key=lambda row: row.date))

    def _events_known(self, as_of: datetime) -> tuple[Event, ...]:
        return tuple(
            event if event.resolved_at is not None and event.resolved_at <= as_of else fixture
            for event, fixture in self._events
            if event.known_from <= as_of
        )


def _by_series(observations: Sequence[Observation]) -> dict[str, list[Observation]]:
    found: dict[str, list[Observation]] = defaultdict(list)
    for row in sorted(observations, key=lambda row: (row.published_at, row.date)):
        found[row.series_id].append(row)
    return dict(found)


def _is_by_date(rows: Sequence[Observation]) -> bool:
    return all(a.date < b.date for a, b in pairwise(rows))


def _fixture(event: Event) -> Event:
    """The event before its result could be known."""
    return replace(event, status=EventStatus.SCHEDULED, outcome=None, resolved_at=None)


def _moments(rows: Rows) -> list[datetime]:
    """When observations, fixtures and results could be known."""
    moments = [row.published_at for row in rows.observations]
    moments += [event.known_from for event in rows.events]
    return moments + [event.resolved_at for event in rows.events if event.resolved_at is not None]
