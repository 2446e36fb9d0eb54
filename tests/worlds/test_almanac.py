"""The shipped world: what is in it, how small it is, and that the script makes exactly it."""

import gzip
import json
import re
import subprocess
import sys
import time
from collections import Counter
from datetime import date, timedelta
from importlib.resources import files
from pathlib import Path

import pytest

from futureworld.clock import Schedule, parse_utc
from futureworld.config import QuestionsConfig
from futureworld.questions.build import Draw, candidates
from futureworld.worlds.check import check
from futureworld.worlds.open import open_world
from futureworld.worlds.recorded import RecordedWorld

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared/worlds/2026"
FOLDER = Path(str(files("futureworld.worlds") / "almanac"))
MADE = ("world.json", "series.jsonl", "observations.csv.gz", "events.jsonl.gz")
NOW = parse_utc("2026-11-30T00:00:00Z")
WINDOW = [date(2026, 5, 1) + timedelta(days=i) for i in range(98)]
"""2026-05-01 to 2026-08-06."""
DOMAINS = {
    "baseball", "basketball", "earthquakes", "energy", "fuel", "fx", "health", "news", "racing", "soccer",
    "software", "totals", "volatility", "weather",
}  # fmt: skip


@pytest.fixture(scope="module")
def almanac() -> RecordedWorld:
    return open_world("almanac", NOW)


def test_it_is_sound_small_and_attributed() -> None:
    assert check(FOLDER, NOW) == []
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_200_000
    attribution = (FOLDER / "ATTRIBUTION.md").read_text()
    origins = {json.loads(line)["source_repo"] for line in (FOLDER / "series.jsonl").read_text().splitlines()}
    origins |= {event.source for event in open_world("almanac", NOW).events(NOW)}
    assert [origin for origin in sorted(origins) if origin not in attribution] == []


def test_it_loads_quickly() -> None:
    begin = time.process_time()
    open_world("almanac", NOW)
    assert time.process_time() - begin < 1.0


def test_it_holds_facts_and_figures_only(almanac: RecordedWorld) -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_file()} == {*MADE, "ATTRIBUTION.md"}
    assert list(almanac.rankings(NOW)) == []
    assert all(row.publisher == "world bulletin" for row in almanac.documents(NOW))
    assert b"details" not in gzip.decompress((FOLDER / "events.jsonl.gz").read_bytes())
    domains = {series.domain for series in almanac.series().values()} | {e.domain for e in almanac.events(NOW)}
    assert domains == DOMAINS
    prefixes = {key.split(".")[0] for key in almanac.series()}
    assert prefixes == {"energy", "fuel", "fx", "github", "health", "hn", "mlb", "quake", "vol", "weather"}


def test_titles_read_inside_a_question(almanac: RecordedWorld) -> None:
    titles = [series.title for series in almanac.series().values()]
    assert len(set(titles)) == len(titles)
    assert [title for title in titles if not re.fullmatch(r"the [^?:()]+[^?:(). ]", title)] == []


def test_stars_stay_cumulative(almanac: RecordedWorld) -> None:
    kinds = {series.kind for series in almanac.series().values() if series.domain == "software"}
    assert kinds == {"cumulative"}


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/worlds/2026 is not beside this checkout")
def test_the_script_makes_the_shipped_files(tmp_path: Path) -> None:
    script = [sys.executable, str(ROOT / "scripts/make_almanac.py"), "--from", str(SHARED), "--to", str(tmp_path)]
    subprocess.run(script, check=True, timeout=120)
    for name in MADE:
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes(), name


def targets_by_domain(world: RecordedWorld, day: date) -> Counter[str]:
    questions = candidates(world, day, Schedule(), QuestionsConfig(), Draw(0))
    return Counter({question.target.id: question.domain for question in questions}.values())


def check_targets(world: RecordedWorld, days: list[date]) -> None:
    counts = {day: targets_by_domain(world, day) for day in days}
    assert {day: found for day, found in counts.items() if found.total() < 145 or len(found) < 5} == {}
    assert len(set().union(*counts.values())) >= 10


def test_days_of_the_window_have_targets_enough(almanac: RecordedWorld) -> None:
    # 2 May is the thinnest of all.
    check_targets(almanac, [*WINDOW[:5], *WINDOW[5::10]])


@pytest.mark.slow
def test_every_day_of_the_window_has_targets_enough(almanac: RecordedWorld) -> None:
    check_targets(almanac, WINDOW)
