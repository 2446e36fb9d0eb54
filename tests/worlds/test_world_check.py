"""Every planted fault is found with its file and row, and a world with it does not load."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from small_world import DOCUMENT, EVENT, OBSERVATIONS, RANKING, SERIES, write_world

from futureworld.clock import parse_utc
from futureworld.errors import WorldError
from futureworld.worlds.check import check
from futureworld.worlds.open import open_world
from futureworld.worlds.reading import Problem

NOW = parse_utc("2026-11-30T00:00:00Z")

TABLE, SERIES_FILE = "observations.csv.gz", "series.jsonl"
EVENTS, DOCUMENTS, RANKINGS = "events.jsonl.gz", "documents.jsonl.gz", "rankings.jsonl.gz"


def without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


def event(**changed: Any) -> dict[str, Any]:
    return {"events": [EVENT, EVENT | {"id": "cup.2"} | changed]}


def table(row: str) -> dict[str, Any]:
    return {"observations": [*OBSERVATIONS, row]}


FAULTS: list[tuple[str, dict[str, Any], str, int, str]] = [
    ("column", {"header": "series_id,date,value,published"}, TABLE, 1, "column published_at is missing"),
    ("cells", table("river.level,2026-03-04,1"), TABLE, 5, "has 3 cells, the header 4"),
    ("naive", table("river.level,2026-03-04,1,2026-03-04T09:00:00"), TABLE, 5, "has no zone"),
    ("unreadable", table("river.level,2026-03-04,1,yesterday"), TABLE, 5, "not ISO 8601"),
    ("future", table("river.level,2026-03-04,1,2026-12-01T00:00:00Z"), TABLE, 5, "is in the future"),
    ("j11-twice", table("river.level,2026-03-01,7,2026-03-05T09:00:00Z"), TABLE, 5, "already in row 2"),
    ("j10-series", table("lake.level,2026-03-04,1,2026-03-04T09:00:00Z"), TABLE, 5, "'lake.level' is not in"),
    ("nan", table("river.level,2026-03-04,nan,2026-03-04T09:00:00Z"), TABLE, 5, "not a finite number"),
    ("infinite", table("river.level,2026-03-04,inf,2026-03-04T09:00:00Z"), TABLE, 5, "not a finite number"),
    ("empty", table("river.level,2026-03-04,,2026-03-04T09:00:00Z"), TABLE, 5, "not a finite number"),
    ("j9-day", table("river.level,N/A,1,2026-03-04T09:00:00Z"), TABLE, 5, "'N/A' is not a day"),
    ("json", {"series": [SERIES, "{"]}, SERIES_FILE, 2, "is not JSON"),
    ("list", {"series": [SERIES, "[]"]}, SERIES_FILE, 2, "expected an object"),
    ("field", {"series": [SERIES, without(SERIES, "zone")]}, SERIES_FILE, 2, "field zone is missing"),
    ("zone", {"series": [SERIES, SERIES | {"id": "x", "zone": "Mars/Dune"}]}, SERIES_FILE, 2, "'Mars/Dune' is unknown"),
    ("timing", {"series": [SERIES, SERIES | {"id": "x", "timing": "soon"}]}, SERIES_FILE, 2, "'soon' is unknown"),
    ("id", {"series": [SERIES, SERIES]}, SERIES_FILE, 2, "already in row 1"),
    ("event-id", event(id="cup.1"), EVENTS, 2, "already in row 1"),
    ("before-start", event(resolved_at="2026-03-02T17:59:59Z"), EVENTS, 2, "is before the start"),
    ("j4-outcome", event(outcome="Riverside"), EVENTS, 2, "'Riverside' is none of the options"),
    ("no-outcome", event(outcome=None), EVENTS, 2, "None is none of the options"),
    ("j6-outcome", event(status="postponed"), EVENTS, 2, "only a resolved event has one"),
    ("status", event(status="cancelled"), EVENTS, 2, "'cancelled' is unknown"),
    ("undecided", event(resolved_at=None), EVENTS, 2, "only a scheduled event has none"),
    ("known-late", event(known_from="2026-03-02T18:00:01Z"), EVENTS, 2, "is after the start"),
    ("event-naive", event(scheduled_at="2026-03-02T18:00:00"), EVENTS, 2, "scheduled_at: time"),
    ("event-number", event(scheduled_at=1772474400), EVENTS, 2, "scheduled_at holds a int, expected a str"),
    ("event-list", event(options="Harbour"), EVENTS, 2, "options holds a str, expected a list"),
    ("event-options", event(options=["Draw", ["Harbour"]]), EVENTS, 2, "not two or more different"),
    ("series-id", {"series": [SERIES, SERIES | {"id": 7}]}, SERIES_FILE, 2, "id holds a int, expected a str"),
    ("event-future", event(resolved_at="2027-03-02T18:00:00Z"), EVENTS, 2, "is in the future"),
    ("one-option", event(options=["Draw"]), EVENTS, 2, "not two or more different ones"),
    ("document-id", {"documents": [DOCUMENT, DOCUMENT]}, DOCUMENTS, 2, "already in row 1"),
    ("document-time", {"documents": [without(DOCUMENT, "published_at")]}, DOCUMENTS, 1, "published_at is missing"),
    ("ranking", {"rankings": [RANKING | {"items": ["Moon"]}]}, RANKINGS, 1, "items are not objects"),
]


@pytest.mark.parametrize(("given", "file", "row", "said"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_planted_fault_is_found_and_refused(
    tmp_path: Path, given: dict[str, Any], file: str, row: int, said: str
) -> None:
    folder = write_world(tmp_path, **given)
    problems = check(folder, NOW)
    assert [(problem.file, problem.row) for problem in problems] == [(file, row)]
    assert said in problems[0].message
    with pytest.raises(WorldError, match=rf"{file} row {row}: .*`futureworld world check ") as error:
        open_world(folder, NOW)
    assert said in str(error.value)


def test_a_sound_world_has_no_problems(tmp_path: Path) -> None:
    assert check(write_world(tmp_path), NOW) == []


def test_rows_in_any_order_are_sound(tmp_path: Path) -> None:
    folder = write_world(tmp_path, observations=OBSERVATIONS[::-1], events=[EVENT | {"id": "z"}, EVENT])
    assert check(folder, NOW) == []


def test_all_problems_come_by_file_and_row(tmp_path: Path) -> None:
    rows = ["lake,2026-03-01,1,2026-03-01T09:00:00Z", *OBSERVATIONS, "river.level,2026-03-09,x,2026-03-09T09:00:00Z"]
    folder = write_world(tmp_path, series=[SERIES, "{}"], observations=rows, documents=["", DOCUMENT, "5"])
    found = [(problem.file, problem.row) for problem in check(folder, NOW)]
    assert found == [(SERIES_FILE, 2), (TABLE, 2), (TABLE, 6), (DOCUMENTS, 3)]
    with pytest.raises(WorldError, match=r"series.jsonl row 2: .* \(3 more\)"):
        open_world(folder, NOW)


def test_a_start_known_by_date_only_is_a_lower_bound(tmp_path: Path) -> None:
    loose = {"schedule_precision": "date", "scheduled_at": "2026-03-02T00:00:00Z", "known_from": "2026-03-02T12:00:00Z"}
    assert check(write_world(tmp_path / "a", events=[EVENT | loose]), NOW) == []
    market = {"schedule_precision": "close of the market", "scheduled_at": "2026-05-01T00:00:00Z"}
    assert check(write_world(tmp_path / "b", events=[EVENT | market]), NOW) == []


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda _: b"plain text", lambda _: gzip.compress(b"\xff\xfe")]
)
def test_a_damaged_file_is_named(tmp_path: Path, damage: Any) -> None:
    folder = write_world(tmp_path)
    path = folder / EVENTS
    path.write_bytes(damage(path.read_bytes()))
    assert [(problem.file, problem.row) for problem in check(folder, NOW)] == [(EVENTS, 0)]
    with pytest.raises(WorldError, match=r"events.jsonl.gz: cannot be read"):
        open_world(folder, NOW)


@pytest.mark.parametrize("text", ["{", "[]", '{"name": 5}'])
def test_a_wrong_world_json_is_named(tmp_path: Path, text: str) -> None:
    folder = write_world(tmp_path)
    (folder / "world.json").write_text(text)
    assert [(problem.file, problem.row) for problem in check(folder, NOW)] == [("world.json", 1)]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="does not exist"):
        check(tmp_path / "nowhere", NOW)


def test_a_problem_reads_as_file_row_and_message() -> None:
    assert str(Problem("a.jsonl", 3, "is wrong")) == "a.jsonl row 3: is wrong"
    assert str(Problem("a.jsonl", 0, "is wrong")) == "a.jsonl: is wrong"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"observations": ['"' + "a" * 200_000 + '",2,3,4']}, "is not CSV"),
        ({"observations": ["river.level,20260301,120,2026-03-01T09:00:00Z"]}, "is not a day"),
        ({"observations": ["river.level,2026-03-01,120,0001-01-01T00:00:00+14:00"]}, "out of range"),
        ({"series": [{**SERIES, "breaks": 5}]}, "field breaks holds a int"),
        ({"documents": ["[" * 100_000]}, "is not JSON"),
        ({"documents": [{**DOCUMENT, "text": 5}]}, "field text holds a int"),
        ({"rankings": [{**RANKING, "items": [{"rank": 1, "name": 5}]}]}, "no text"),
    ],
)
def test_rows_that_no_reader_expects_are_problems(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    problems = check(write_world(tmp_path, **changes), NOW)
    assert said in str(problems[0])
