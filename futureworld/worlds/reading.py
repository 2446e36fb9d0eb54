"""Reads the files of a recorded world into records and lists what is wrong with them.

There is one reading: `check` shows all of its problems, loading refuses the first. A row is named
by its line in the file, so the header of the table is row 1; row 0 means the file as a whole.
"""

import csv
import gzip
import hashlib
import io
import json
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from futureworld.clock import iso, parse_utc
from futureworld.errors import RecordError
from futureworld.records import Document, Event, EventStatus, Observation, Ranking, Series

WORLD, SERIES, OBSERVATIONS = "world.json", "series.jsonl", "observations.csv.gz"
EVENTS, DOCUMENTS, RANKINGS = "events.jsonl.gz", "documents.jsonl.gz", "rankings.jsonl.gz"
FILES = (WORLD, SERIES, OBSERVATIONS, EVENTS, DOCUMENTS, RANKINGS)
COLUMNS = ("series_id", "date", "value", "published_at")
LISTS = ("options", "items")
TIMINGS = ("before_day", "within_day", "after_day")
LATE_FIXTURE = timedelta(hours=24)
"""How long after `scheduled_at` a fixture may become known where only its date is known."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in `row` (a line number, 0 for the whole file) of `file`."""

    file: str
    row: int
    message: str

    def __str__(self) -> str:
        return f"{self.file} row {self.row}: {self.message}" if self.row else f"{self.file}: {self.message}"


@dataclass(slots=True)
class Rows:
    """Everything a folder holds. `digest` is the SHA-256 of the files' content, uncompressed."""

    about: dict[str, Any] = field(default_factory=dict)
    series: dict[str, Series] = field(default_factory=dict)
    observations: list[Observation] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    rankings: list[Ranking] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    digest: str = ""


_Record = TypeVar("_Record", Series, Event, Document, Ranking)


class _RowError(Exception):
    """A row that cannot become a record."""


def read(folder: Path, now: datetime | None) -> Rows:
    """The rows of `folder`; those that are wrong are left out and listed in `problems`.

    No row may be known later than `now`; None leaves that unchecked. A file that is not there
    holds no rows, but a world has series or events.
    """
    rows = Rows()
    digest = hashlib.sha256()
    texts = {name: _text(folder, name, rows.problems) for name in FILES}
    for name in FILES:
        digest.update(f"{name}\0{texts[name] or ''}\0".encode())
    rows.digest = digest.hexdigest()
    if not (folder / SERIES).exists() and not (folder / EVENTS).exists():
        rows.problems.append(Problem(SERIES, 0, f"not found, nor {EVENTS}; a world needs one of them"))
    rows.about = _about(texts[WORLD], rows.problems)
    latest = _Latest(now)
    for series in _records(SERIES, texts, rows.problems, _series):
        rows.series[series.id] = series
    rows.observations = list(_observations(texts[OBSERVATIONS], rows, latest))
    rows.events = list(_records(EVENTS, texts, rows.problems, lambda row: _event(row, latest)))
    rows.documents = list(_records(DOCUMENTS, texts, rows.problems, lambda row: _document(row, latest)))
    rows.rankings = list(_records(RANKINGS, texts, rows.problems, lambda row: _ranking(row, latest)))
    return rows


class _Latest:
    """Reads the moments from which rows are known: none is later than the bound."""

    def __init__(self, now: datetime | None) -> None:
        self._now = now

    def moment(self, text: Any, name: str) -> datetime:
        moment = _moment(text, name)
        if self._now is not None and moment > self._now:
            raise _RowError(
                f"{name} {text} is in the future (now is {iso(self._now)[:19]}Z);"
                " nothing can be known before it was published: mend the row, or this machine's clock"
            )
        return moment


def _text(folder: Path, name: str, problems: list[Problem]) -> str | None:
    path = folder / name
    if not path.exists():
        return None
    try:
        data = path.read_bytes()
        # A byte order mark is no part of the first name.
        return (gzip.decompress(data) if name.endswith(".gz") else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        problems.append(Problem(name, 0, f"cannot be read ({error}); write it again as UTF-8"))
        return None


def _about(text: str | None, problems: list[Problem]) -> dict[str, Any]:
    """world.json: `name`, and `bulletins` where documents are to be written from the rows."""
    if text is None:
        return {}
    try:
        about = json.loads(text)
        if isinstance(about, dict) and isinstance(about.get("name", ""), str):
            return about
        problems.append(Problem(WORLD, 1, 'expected an object such as {"name": "almanac", "bulletins": true}'))
    except ValueError as error:
        problems.append(Problem(WORLD, 1, f"is not JSON: {error}"))
    return {}


def _records(
    file: str, texts: dict[str, str | None], problems: list[Problem], build: Callable[[dict[str, Any]], _Record]
) -> Iterator[_Record]:
    seen: dict[object, int] = {}
    # Only \n ends a row: texts may hold other line separators.
    for number, line in enumerate((texts[file] or "").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = build(_object(line))
            key = (record.id, record.date) if isinstance(record, Ranking) else record.id
            if seen.setdefault(key, number) != number:
                raise _RowError(f"id {record.id} is already in row {seen[key]}; ids are unique, keep one")
            yield record
        except _RowError as fault:
            problems.append(Problem(file, number, str(fault)))


def _object(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _RowError(f"is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise _RowError(f"holds a {type(row).__name__}, expected an object")
    return row


def _need(row: dict[str, Any], *names: str) -> None:
    """Raises unless every name is there as text, or as a list where lists are expected."""
    missing = [name for name in names if row.get(name) in (None, "")]
    if missing:
        raise _RowError(f"field {', '.join(missing)} is missing; every row needs {', '.join(names)}")
    for name in names:
        expected = list if name in LISTS else str
        if not isinstance(row[name], expected):
            raise _RowError(f"field {name} holds a {type(row[name]).__name__}, expected a {expected.__name__}")


def _need_text(row: dict[str, Any], *names: str) -> None:
    """Raises where an optional field is there and no text."""
    for name in names:
        if not isinstance(row.get(name) or "", str):
            raise _RowError(f"field {name} holds a {type(row[name]).__name__}, expected a str")


def _moment(text: Any, name: str) -> datetime:
    try:
        return parse_utc(text)
    except RecordError as error:
        raise _RowError(f"{name}: {error}") from None


def _day(text: Any, name: str) -> date:
    try:
        day = date.fromisoformat(text)
        if day.isoformat() != text:  # a week, or digits alone
            raise ValueError(text)
        return day
    except (ValueError, TypeError):
        raise _RowError(f"{name} {text!r} is not a day; write it as 2026-05-04") from None


def _series(row: dict[str, Any]) -> Series:
    _need(row, "id", "title", "domain", "unit", "zone", "calendar", "timing", "kind", "source_repo")
    try:
        ZoneInfo(row["zone"])
    except (ValueError, OSError, TypeError, KeyError):
        raise _RowError(f"zone {row['zone']!r} is unknown; use an IANA name such as Europe/Berlin") from None
    if row["timing"] not in TIMINGS:
        raise _RowError(f"timing {row['timing']!r} is unknown; use one of {', '.join(TIMINGS)}")
    names = ("id", "title", "domain", "unit", "zone", "calendar", "timing", "kind")
    breaks = row.get("breaks") or []
    if not isinstance(breaks, list):
        raise _RowError(f"field breaks holds a {type(breaks).__name__}, expected a list of days")
    breaks = tuple(_day(day, "breaks") for day in breaks)
    return Series(**{name: row[name] for name in names}, source=row["source_repo"], breaks=breaks)


def _observations(text: str | None, rows: Rows, latest: _Latest) -> Iterator[Observation]:
    if text is None:
        return
    table = csv.reader(io.StringIO(text, newline=""))
    header = next(table, [])
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        message = f"column {', '.join(missing)} is missing, found {', '.join(header)}; needed are {', '.join(COLUMNS)}"
        rows.problems.append(Problem(OBSERVATIONS, 1, message))
        return
    pick = itemgetter(*(header.index(name) for name in COLUMNS))
    seen: dict[tuple[str, date], int] = {}
    for cells in _cells(table, rows):
        number = table.line_num
        try:
            if len(cells) != len(header):
                raise _RowError(f"has {len(cells)} cells, the header {len(header)}")
            row = _observation(*pick(cells), known=rows.series, latest=latest)
            first = seen.setdefault((row.series_id, row.date), number)
            if first != number:
                raise _RowError(f"{row.series_id} {row.date} is already in row {first}; keep the first published")
            yield row
        except _RowError as fault:
            rows.problems.append(Problem(OBSERVATIONS, number, str(fault)))


def _cells(table: Any, rows: Rows) -> Iterator[list[str]]:
    """The rows of a csv reader; what it cannot read ends the table with a problem."""
    try:
        yield from table
    except csv.Error as error:
        rows.problems.append(Problem(OBSERVATIONS, table.line_num, f"is not CSV: {error}; look for an open quote"))


def _observation(
    series_id: str, day: str, value: str, published_at: str, *, known: dict[str, Series], latest: _Latest
) -> Observation:
    if series_id not in known:
        raise _RowError(f"series {series_id!r} is not in {SERIES}; add it there or leave the row out")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _RowError(f"value {value!r} is not a finite number; leave the row out where none is known")
    return Observation(series_id, _day(day, "date"), number, latest.moment(published_at, "published_at"))


def _event(row: dict[str, Any], latest: _Latest) -> Event:
    _need(row, "id", "domain", "competition", "title", "date", "known_from", "scheduled_at")
    _need(row, "schedule_precision", "options", "status", "source_repo")
    if row["status"] not in list(EventStatus):
        raise _RowError(f"status {row['status']!r} is unknown; use one of {', '.join(EventStatus)}")
    known, start = latest.moment(row["known_from"], "known_from"), _moment(row["scheduled_at"], "scheduled_at")
    minute_known = row["schedule_precision"] == "minute"
    if known > start + (timedelta(0) if minute_known else LATE_FIXTURE):
        raise _RowError(f"known_from {iso(known)} is after the start at {iso(start)}; it was no fixture then")
    event = Event(
        **{name: row[name] for name in ("id", "domain", "competition", "title")},
        date=_day(row["date"], "date"),
        known_from=known,
        scheduled_at=start,
        minute_known=minute_known,
        options=tuple(row["options"]),
        source=row["source_repo"],
        status=EventStatus(row["status"]),
        outcome=row.get("outcome"),
        resolved_at=latest.moment(row["resolved_at"], "resolved_at") if row.get("resolved_at") else None,
    )
    # A market's close is no start: it may be decided earlier.
    _check_result(event, has_start=minute_known or row["schedule_precision"].startswith("date"))
    return event


def _check_result(event: Event, has_start: bool) -> None:
    names = [option for option in event.options if isinstance(option, str)]
    if len(names) < 2 or len(set(names)) != len(event.options):
        raise _RowError(f"options {list(event.options)} are not two or more different ones")
    if (event.status is EventStatus.SCHEDULED) != (event.resolved_at is None):
        raise _RowError(f"status {event.status} with resolved_at {event.resolved_at}; only a scheduled event has none")
    if event.status is not EventStatus.RESOLVED and event.outcome is not None:
        raise _RowError(f"status {event.status} with outcome {event.outcome!r}; only a resolved event has one")
    if event.status is EventStatus.RESOLVED and event.outcome not in event.options:
        raise _RowError(f"outcome {event.outcome!r} is none of the options {list(event.options)}")
    if event.resolved_at is not None and event.resolved_at <= event.known_from:
        raise _RowError(f"resolved_at {iso(event.resolved_at)} is not after known_from {iso(event.known_from)}")
    if event.outcome and has_start and event.resolved_at and event.resolved_at < event.scheduled_at:
        raise _RowError(f"resolved_at {iso(event.resolved_at)} is before the start at {iso(event.scheduled_at)}")


def _document(row: dict[str, Any], latest: _Latest) -> Document:
    _need(row, "id", "title", "published_at")
    _need_text(row, "url", "text", "publisher", "source")
    return Document(
        id=row["id"],
        title=row["title"],
        url=row.get("url") or f"world://document/{row['id']}",
        text=row.get("text") or "",
        published_at=latest.moment(row["published_at"], "published_at"),
        publisher=row.get("publisher") or "",
        source=row.get("source") or "",
    )


def _ranking(row: dict[str, Any], latest: _Latest) -> Ranking:
    _need(row, "ranking_id", "domain", "title", "date", "published_at", "items")
    try:
        names = tuple(item["name"] for item in sorted(row["items"], key=lambda item: item["rank"]))
    except (KeyError, TypeError):
        raise _RowError("items are not objects with rank and name") from None
    if not all(isinstance(name, str) for name in names):
        raise _RowError("items have a name that is no text")
    return Ranking(
        id=row["ranking_id"],
        domain=row["domain"],
        title=row["title"],
        date=_day(row["date"], "date"),
        published_at=latest.moment(row["published_at"], "published_at"),
        items=names,
        source=row.get("source_repo") or "",
    )
