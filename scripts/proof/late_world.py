"""A world in which outcomes come late: the almanac, with some rows published days after their time.

Lateness begins with the first asked day, so that nobody could have learnt it before; the asker does
learn it from the rows that came since, and asks less about series that were late twice in ten rows.
"""

import csv
import gzip
import io
import json
import random
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from shutil import copyfile

from futureworld.clock import iso, parse_utc
from futureworld.worlds.open import ALMANAC, world_folder
from futureworld.worlds.reading import EVENTS, OBSERVATIONS, SERIES, WORLD

SHARE = 0.3
"""Of the rows of daily series, how many come late."""
LATEST = 3
"""At most so many days late: as long as `schedule.retry_days` waits."""


def make(folder: Path, first: date, days: int, seed: int = 0) -> Path:
    """The late world in `folder`, made where it is not there: rows about `days` days from `first` may be late."""
    if (folder / WORLD).exists():  # written last
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with world_folder(ALMANAC) as source:
        for name in (SERIES, EVENTS):
            copyfile(source / name, folder / name)
        about = json.loads((source / WORLD).read_text())
        daily = daily_series((source / SERIES).read_text())
        rows = gzip.decompress((source / OBSERVATIONS).read_bytes()).decode()
        late = "".join(late_rows(rows, daily, first, days, seed))
        (folder / OBSERVATIONS).write_bytes(gzip.compress(late.encode(), mtime=0))
    (folder / WORLD).write_text(json.dumps(about | {"name": "almanac-late"}))
    return folder


def daily_series(text: str) -> set[str]:
    rows = (json.loads(line) for line in text.splitlines() if line.strip())
    return {row["id"] for row in rows if row["calendar"] == "daily"}


def late_rows(text: str, daily: set[str], first: date, days: int, seed: int) -> Iterator[str]:
    """The lines of the table, some of them published 1 to `LATEST` days later; nothing else changes."""
    table = csv.DictReader(io.StringIO(text, newline=""))
    names = list(table.fieldnames or ())
    yield ",".join(names) + "\n"
    for row in table:
        day = date.fromisoformat(row["date"])
        if row["series_id"] in daily and first <= day < first + timedelta(days=days):
            delay = days_late(row["series_id"], day, seed)
            row["published_at"] = iso(parse_utc(row["published_at"]) + timedelta(days=delay))
        yield ",".join(row[name] for name in names) + "\n"


def days_late(series: str, day: date, seed: int) -> int:
    """0 for most rows, else 1 to `LATEST`: drawn for each row from its name, in any order the same."""
    drawn = random.Random(f"late|{seed}|{series}|{day}")
    return drawn.randint(1, LATEST) if drawn.random() < SHARE else 0
