"""Writes small world folders for tests."""

import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from futureworld.clock import parse_utc

SERIES = {
    "id": "river.level",
    "title": "the level of the river at the bridge",
    "domain": "water",
    "unit": "cm",
    "zone": "Europe/Berlin",
    "calendar": "daily",
    "timing": "within_day",
    "kind": "level",
    "source_repo": "office",
}
HEADER = "series_id,date,value,published_at"
OBSERVATIONS = [
    "river.level,2026-03-01,120,2026-03-01T09:00:00Z",
    "river.level,2026-03-02,125.5,2026-03-03T09:00:00Z",
    "river.level,2026-03-03,119,2026-03-02T22:00:00Z",
]
EVENT = {
    "id": "cup.1",
    "domain": "soccer",
    "competition": "Cup",
    "title": "Harbour v Hillside",
    "date": "2026-03-02",
    "known_from": "2026-02-01T00:00:00Z",
    "scheduled_at": "2026-03-02T18:00:00Z",
    "schedule_precision": "minute",
    "options": ["Harbour", "Draw", "Hillside"],
    "outcome": "Draw",
    "status": "resolved",
    "details": {"score": [2, 2]},
    "resolved_at": "2026-03-02T20:15:00Z",
    "source_repo": "league",
}
DOCUMENT = {"id": "d1", "title": "Bridge closed after flood", "published_at": "2026-03-01T12:00:00Z"}
RANKING = {
    "ranking_id": "songs",
    "domain": "music",
    "title": "songs of the week",
    "date": "2026-03-07",
    "published_at": "2026-03-03T10:00:00Z",
    "items": [{"rank": 2, "name": "Tide"}, {"rank": 1, "name": "Moon"}],
}


def moments(first: str, last: str) -> st.SearchStrategy[datetime]:
    """Whole seconds between two moments, in UTC."""
    start, end = parse_utc(first), parse_utc(last)
    return st.integers(0, int((end - start).total_seconds())).map(lambda seconds: start + timedelta(seconds=seconds))


def write_world(
    folder: Path,
    *,
    series: list[Any] | None = None,
    observations: list[str] | None = None,
    events: list[Any] | None = None,
    documents: list[Any] | None = None,
    rankings: list[Any] | None = None,
    header: str = HEADER,
    about: dict[str, Any] | None = None,
) -> Path:
    """A sound world of one series, one event, one document and one ranking, but for what is given."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "series.jsonl").write_text(_lines([SERIES] if series is None else series))
    rows = OBSERVATIONS if observations is None else observations
    _gzip(folder / "observations.csv.gz", "\n".join([header, *rows]) + "\n")
    _gzip(folder / "events.jsonl.gz", _lines([EVENT] if events is None else events))
    _gzip(folder / "documents.jsonl.gz", _lines([DOCUMENT] if documents is None else documents))
    _gzip(folder / "rankings.jsonl.gz", _lines([RANKING] if rankings is None else rankings))
    if about is not None:
        (folder / "world.json").write_text(json.dumps(about))
    return folder


def _lines(rows: list[Any]) -> str:
    return "".join((row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n" for row in rows)


def _gzip(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode()))
