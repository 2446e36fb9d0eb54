"""The files of a world, parsed for the audit without futureworld.worlds: what could be read at a moment."""

import csv
import gzip
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

from futureworld.records import Target, TargetKind

DAY = timedelta(days=1)
RESULT = ("outcome", "resolved_at", "details")


@dataclass(frozen=True, slots=True)
class Row:
    date: date
    value: float
    published_at: datetime


@dataclass(frozen=True, slots=True)
class Page:
    """A readable thing: `more` is what only a visit shows, `rows` how many raw rows it was made of."""

    title: str
    published_at: datetime
    text: str
    more: str = ""
    rows: int = 1


@dataclass(slots=True)
class Raw:
    """A world's files as they are: rows by series and date, events by id, versions of documents by url."""

    folder: Path
    series: dict[str, dict[str, Any]]
    rows: dict[str, list[Row]]
    events: dict[str, dict[str, Any]]
    documents: dict[str, list[Page]]
    of_option: dict[tuple[str, str], list[dict[str, Any]]]
    cards: dict[str, tuple[str, str | None]]
    beginning: datetime

    @property
    def count(self) -> int:
        """Rows read: values, events and documents, bulletins among them."""
        texts = sum(len(versions) for versions in self.documents.values())
        return sum(len(rows) for rows in self.rows.values()) + len(self.events) + texts

    def values(self, target: Target, domain: str, as_of: datetime) -> list[float]:
        """The target's history at `as_of`: values, daily increases, or 1 and 0 for won and not."""
        if target.option is not None:
            events = self.of_option.get((domain, target.option), [])
            return [float(e["outcome"] == target.option) for e in events if e["outcome"] and known(e, as_of)]
        about = self.series[target.id]
        rows = [row for row in self.rows[target.id] if row.published_at <= as_of]
        if about["kind"] != "cumulative":
            return [row.value for row in rows]
        steps = [(a, b) for a, b in pairwise(rows) if b.date - a.date == DAY]
        return [b.value - a.value for a, b in steps if str(b.date) not in (about.get("breaks") or [])]

    def page(self, url: str, as_of: datetime) -> Page | None:
        """What could be read at `url`."""
        versions = [page for page in self.documents.get(url, []) if page.published_at <= as_of]
        if versions:
            return max(versions, key=lambda page: page.published_at)
        name, option = self.cards.get(url, (None, None))
        if name is None:
            return None
        return self._series_card(name, as_of) if option is None else self._event_card(name, option, as_of)

    def first_after(self, as_of: datetime) -> tuple[str, Page] | None:
        """The address and text of the next document that nobody can have read."""
        later = [(page.published_at, url, page) for url, of_url in self.documents.items() for page in of_url]
        found = min((item for item in later if item[0] > as_of), key=lambda item: item[:2], default=None)
        return found and found[1:]

    def _series_card(self, name: str, as_of: datetime) -> Page:
        about = self.series[name]
        code = Target(TargetKind.SERIES, name, "", self.beginning.date(), "UTC").code
        rows = [row for row in self.rows[name] if row.published_at <= as_of][-7:]
        shown = "; ".join(f"{row.date}: {row.value:.12g}" for row in rows) or "none yet"
        text = f"{name}. Code: {code}. Domain: {about['domain']}. Unit: {about['unit']}."
        return Page(about["title"], self.beginning, text, f" Last values known: {shown}.", len(rows))

    def _event_card(self, name: str, option: str, as_of: datetime) -> Page | None:
        event = self.events[name]
        if event["known_from"] > as_of:
            return None
        code = Target(TargetKind.EVENT, name, "", date.fromisoformat(event["date"]), "UTC", option).code
        text = f"{option}. Code: {code}. Domain: {event['domain']}. {event['competition']}, on {event['date']}."
        said = f"outcome {event['outcome']}" if event["outcome"] else "postponed"
        more = f" Known since {event['resolved_at']:%Y-%m-%dT%H:%M:%SZ}: {said}." if known(event, as_of) else ""
        return Page(event["title"], event["known_from"], text, more)


def known(event: dict[str, Any], as_of: datetime) -> bool:
    """Whether the event's end could be known."""
    return event["resolved_at"] is not None and event["resolved_at"] <= as_of


def read_raw(folder: Path) -> Raw:
    """Raises OSError or ValueError for files that cannot be read."""
    series = {row["id"]: row for row in lines(folder / "series.jsonl")}
    rows: dict[str, list[Row]] = {name: [] for name in series}
    for item in csv.DictReader(table(folder)):
        moment = datetime.fromisoformat(item["published_at"])
        rows[item["series_id"]].append(Row(date.fromisoformat(item["date"]), float(item["value"]), moment))
    for of_series in rows.values():
        of_series.sort(key=lambda row: row.date)
    events = {event["id"]: event for event in map(dated, lines(folder / "events.jsonl.gz"))}
    of_option: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for event in sorted(events.values(), key=lambda event: (event["scheduled_at"], event["id"])):
        for option in event["options"]:
            of_option[event["domain"], option].append(event)
    documents: dict[str, list[Page]] = defaultdict(list)
    for item in lines(folder / "documents.jsonl.gz"):
        page = Page(item["title"], datetime.fromisoformat(item["published_at"]), item.get("text") or "")
        documents[item.get("url") or f"world://document/{item['id']}"].append(page)
    if any(about.get("bulletins") for about in lines(folder / "world.json")):
        for url, page in bulletins(series, rows, events):
            documents[url].append(page)
    cards: dict[str, tuple[str, str | None]] = {
        f"world://series/{quote(name, safe='')}": (name, None) for name in series
    }
    for name, event in events.items():
        for option in event["options"]:
            cards[f"world://event/{quote(name, safe='')}/{quote(option, safe='')}"] = (name, option)
    first = [row.published_at for of_series in rows.values() for row in of_series]
    first += [moment for event in events.values() if (moment := event["known_from"])]
    return Raw(folder, series, rows, events, documents, of_option, cards, min(first))


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines; none where there is no file."""
    if not path.exists():
        return []
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in data.decode().split("\n") if line.strip()]


def table(folder: Path) -> list[str]:
    """The lines of the observations, header first; none where there is no file."""
    path = folder / "observations.csv.gz"
    return gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True) if path.exists() else []


def cut(folder: Path, to: Path, as_of: datetime) -> None:
    """Write into `to` what of the series, rows and events in `folder` could be known at `as_of`."""
    to.mkdir()
    if (folder / "series.jsonl").exists():
        shutil.copy(folder / "series.jsonl", to)
    rows = table(folder)
    kept = [row for row in rows[1:] if datetime.fromisoformat(row.rpartition(",")[2].strip()) <= as_of]
    if rows:
        (to / "observations.csv.gz").write_bytes(gzip.compress("".join([rows[0], *kept]).encode()))
    with gzip.open(to / "events.jsonl.gz", "wt") as file:
        for event in lines(folder / "events.jsonl.gz"):
            if datetime.fromisoformat(event["known_from"]) <= as_of:
                file.write(json.dumps(event if known(dated(event), as_of) else fixture(event)) + "\n")


def fixture(event: dict[str, Any]) -> dict[str, Any]:
    """The event before it ended."""
    return {name: value for name, value in event.items() if name not in RESULT} | {"status": "scheduled"}


def dated(event: dict[str, Any]) -> dict[str, Any]:
    times = ("known_from", "scheduled_at", "resolved_at")
    return (
        event
        | {"outcome": event.get("outcome")}
        | {name: datetime.fromisoformat(event[name]) if event.get(name) else None for name in times}
    )


def bulletins(
    series: dict[str, dict[str, Any]], rows: dict[str, list[Row]], events: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, Page]]:
    """The digests of a world without texts: all rows of a domain that came out on one UTC day."""
    found: dict[tuple[str, str, date], list[tuple[str, datetime]]] = defaultdict(list)
    for name, about in series.items():
        unit = "" if about["unit"].lower() in about["title"].lower() else f" {about['unit']}"
        for row in rows[name]:
            day = row.published_at.date()
            on = "" if row.date == day else f" on {row.date}"
            line = f"{about['title']}{on}: {row.value:.12g}{unit}"
            found[about["domain"], "values", day].append((line, row.published_at))
    for event in events.values():
        if event["resolved_at"]:
            line = f"{event['competition']}, {event['date']}, {event['title']}: {event['outcome'] or 'postponed'}"
            found[event["domain"], "results", event["resolved_at"].date()].append((line, event["resolved_at"]))
    for (domain, what, day), items in found.items():
        said = "; ".join(sorted(line for line, _ in items))
        text = f"{said}. Of {day} where no other day is named. Written from the rows of this world."
        title = f"{domain.capitalize()}: {what} published on {day}"
        page = Page(title, max(moment for _, moment in items), text, rows=len(items))
        yield f"world://bulletin/{domain}/{what}/{day}", page
