"""The World protocol against the raw files, parsed here once more and compared as text."""

import csv
import gzip
import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_world import DOCUMENT, EVENT, OBSERVATIONS, SERIES, moments, write_world

from futureworld.clock import iso, parse_utc
from futureworld.errors import RecordError, WorldError
from futureworld.records import EventStatus
from futureworld.worlds.base import World
from futureworld.worlds.open import open_world
from futureworld.worlds.recorded import RecordedWorld

ALMANAC = Path(str(files("futureworld.worlds") / "almanac"))
SHARED = Path(__file__).resolve().parents[3] / "shared/worlds/2026"
NOW = parse_utc("2026-11-30T00:00:00Z")
MOMENTS = moments("2025-12-20T00:00:00Z", "2026-08-12T00:00:00Z")
LIGHT = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass(frozen=True, repr=False)
class Raw:
    """A folder's rows as they stand in its files; moments stay text, which sorts like time."""

    world: RecordedWorld
    observations: dict[str, list[dict[str, str]]]
    domains: dict[str, str]
    events: list[dict[str, Any]]
    documents: list[dict[str, Any]]
    rankings: list[dict[str, Any]]
    moments: list[str]


def read_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with gzip.open(path, "rt", newline="\n") if path.suffix == ".gz" else path.open() as stream:
        return [json.loads(line) for line in stream]


def read_raw(folder: Path, name: str) -> Raw:
    observations: dict[str, list[dict[str, str]]] = defaultdict(list)
    with gzip.open(folder / "observations.csv.gz", "rt", newline="") as stream:
        for row in csv.DictReader(stream):
            observations[row["series_id"]].append(row)
    events = read_lines(folder / "events.jsonl.gz")
    published = {row["published_at"] for rows in observations.values() for row in rows}
    decided = {event["resolved_at"] for event in events}
    return Raw(
        world=open_world(name, NOW),
        observations=dict(observations),
        domains={row["id"]: row["domain"] for row in read_lines(folder / "series.jsonl")},
        events=events,
        documents=read_lines(folder / "documents.jsonl.gz"),
        rankings=read_lines(folder / "rankings.jsonl.gz"),
        moments=sorted(published | decided),
    )


@pytest.fixture(scope="module", params=["almanac", "2026"])
def raw(request: pytest.FixtureRequest) -> Raw:
    if request.param == "almanac":
        return request.getfixturevalue("almanac_raw")
    if not SHARED.is_dir():
        pytest.skip("../shared/worlds/2026 is not beside this checkout")
    return read_raw(SHARED, str(SHARED))


@pytest.fixture(scope="module")
def almanac_raw() -> Raw:
    return read_raw(ALMANAC, "almanac")


def check_reading(raw: Raw, as_of: datetime, series_id: str) -> None:
    at, world = iso(as_of), raw.world
    rows = [(row["date"], float(row["value"]), row["published_at"]) for row in raw.observations.get(series_id, [])]
    seen = [(row.date.isoformat(), row.value, iso(row.published_at)) for row in world.observations(series_id, as_of)]
    assert seen == sorted(row for row in rows if row[2] <= at)
    check_events(raw, at, as_of)
    lists = [(row["published_at"], row["ranking_id"]) for row in raw.rankings if row["published_at"] <= at]
    assert [(iso(row.published_at), row.id) for row in world.rankings(as_of)] == sorted(lists)
    if raw.documents:
        texts = [(row["published_at"], row["id"]) for row in raw.documents if row["published_at"] <= at]
        assert [(iso(row.published_at), row.id) for row in world.documents(as_of)] == sorted(texts)


def check_events(raw: Raw, at: str, as_of: datetime) -> None:
    known = sorted((e for e in raw.events if e["known_from"] <= at), key=lambda e: (e["scheduled_at"], e["id"]))
    seen = raw.world.events(as_of)
    assert [event.id for event in seen] == [event["id"] for event in known]
    for event, row in zip(seen, known, strict=True):
        if row["resolved_at"] <= at:
            assert (event.status.value, event.outcome) == (row["status"], row["outcome"])
        else:
            assert (event.status, event.outcome, event.resolved_at) == (EventStatus.SCHEDULED, None, None)
        assert event.minute_known == (row["schedule_precision"] == "minute")


@LIGHT
@given(data=st.data())
def test_no_reading_holds_a_row_from_after_as_of(raw: Raw, data: st.DataObject) -> None:
    series_id = data.draw(st.sampled_from(sorted(raw.domains)))
    check_reading(raw, data.draw(MOMENTS), series_id)


@LIGHT
@given(data=st.data())
def test_a_row_appears_in_the_second_it_is_published(raw: Raw, data: st.DataObject) -> None:
    moment = parse_utc(data.draw(st.sampled_from(raw.moments)))
    series_id = data.draw(st.sampled_from(sorted(raw.domains)))
    for step in (-1, 0, 1):
        check_reading(raw, moment + timedelta(seconds=step), series_id)


def test_the_bulletins_of_the_almanac_come_out_with_their_last_row(almanac_raw: Raw) -> None:
    raw = almanac_raw
    due: dict[str, str] = {}
    rows = [
        (raw.domains[row["series_id"]], "values", row["published_at"]) for r in raw.observations.values() for row in r
    ]
    rows += [(event["domain"], "results", event["resolved_at"]) for event in raw.events]
    for domain, what, published in rows:
        url = f"world://bulletin/{domain}/{what}/{published[:10]}"
        due[url] = max(due.get(url, ""), published)
    assert {document.url: iso(document.published_at) for document in raw.world.documents(NOW)} == due


def test_values_of_a_bulletin_are_those_of_the_rows(almanac_raw: Raw) -> None:
    raw = almanac_raw
    found = raw.world.visit("world://bulletin/totals/values/2026-05-04", NOW)
    assert found is not None
    rows = [row for key, rows in raw.observations.items() if key.startswith("mlb.") for row in rows]
    rows = [row for row in rows if row["published_at"].startswith("2026-05-04")]
    assert rows
    assert found.text.count(";") == len(rows) - 1
    for row in rows:
        title = raw.world.series()[row["series_id"]].title
        assert f"{title} on {row['date']}: {float(row['value']):g}" in found.text


@pytest.mark.parametrize("method", ["events", "rankings", "documents"])
def test_a_time_without_a_zone_is_refused(tmp_path: Path, method: str) -> None:
    world = RecordedWorld.load(write_world(tmp_path), NOW)
    with pytest.raises(RecordError, match="no zone"):
        getattr(world, method)(datetime(2026, 3, 1))  # noqa: DTZ001
    with pytest.raises(RecordError, match="no zone"):
        world.observations("river.level", datetime(2026, 3, 1))  # noqa: DTZ001
    with pytest.raises(RecordError, match="no zone"):
        world.search("bridge", datetime(2026, 3, 1), 1)  # noqa: DTZ001


def test_a_recorded_world_is_a_world(tmp_path: Path) -> None:
    world: World = RecordedWorld.load(write_world(tmp_path / "river"), NOW)
    assert world.id.startswith("river@")
    assert (world.first_day, world.last_day) == (date(2026, 2, 1), date(2026, 3, 3))
    assert list(world.series()) == ["river.level"]
    late = parse_utc("2026-03-03T09:00:00Z")
    # The row of the 3rd came out before that of the 2nd; both are read by date.
    assert [row.value for row in world.observations("river.level", late - timedelta(seconds=1))] == [120.0, 119.0]
    assert [row.value for row in world.observations("river.level", late)] == [120.0, 125.5, 119.0]
    assert world.rankings(NOW)[0].items == ("Moon", "Tide")


def test_the_id_is_that_of_the_rows_and_not_of_the_files(tmp_path: Path) -> None:
    first = RecordedWorld.load(write_world(tmp_path / "a" / "river"), NOW)
    again = write_world(tmp_path / "b" / "river")
    packed = again / "observations.csv.gz"
    packed.write_bytes(gzip.compress(gzip.decompress(packed.read_bytes()), compresslevel=1, mtime=99))
    other = write_world(tmp_path / "c" / "river", observations=OBSERVATIONS[:2])
    assert RecordedWorld.load(again, NOW).id == first.id
    assert RecordedWorld.load(other, NOW).id != first.id


def test_j5_j6_a_postponed_event_has_a_status_and_no_outcome(tmp_path: Path) -> None:
    put_off = EVENT | {"status": "postponed", "outcome": None}
    world = RecordedWorld.load(write_world(tmp_path, events=[put_off]), NOW)
    known = parse_utc("2026-03-02T20:15:00Z")
    assert world.events(known - timedelta(seconds=1))[0].status is EventStatus.SCHEDULED
    assert world.events(known)[0].status is EventStatus.POSTPONED
    assert world.events(known)[0].outcome is None


def test_details_of_results_never_leave(tmp_path: Path) -> None:
    world = RecordedWorld.load(write_world(tmp_path), NOW)
    assert "score" not in repr(world.events(NOW)[0])


def test_a_missing_file_holds_no_rows(tmp_path: Path) -> None:
    folder = write_world(tmp_path)
    for name in ("events", "documents", "rankings"):
        (folder / f"{name}.jsonl.gz").unlink()
    world = RecordedWorld.load(folder, NOW)
    assert (world.events(NOW), world.documents(NOW), list(world.rankings(NOW))) == ((), (), [])


def test_an_unknown_series_names_the_nearest(tmp_path: Path) -> None:
    world = RecordedWorld.load(write_world(tmp_path), NOW)
    with pytest.raises(WorldError, match=r"no series 'river.levle'; did you mean 'river.level'"):
        world.observations("river.levle", NOW)


def test_a_folder_that_is_not_there_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="does not exist; name `almanac`, or a folder"):
        open_world(tmp_path / "nowhere", NOW)


def test_an_empty_folder_is_no_world(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match=r"series.jsonl: not found"):
        open_world(tmp_path, NOW)
    (tmp_path / "series.jsonl").write_text(json.dumps(SERIES) + "\n")
    with pytest.raises(WorldError, match="no observation and no event"):
        open_world(tmp_path, NOW)


def test_e12_only_a_newline_ends_a_row(tmp_path: Path) -> None:
    odd = DOCUMENT | {"text": "first\u2028second\x85third"}
    world = RecordedWorld.load(write_world(tmp_path, documents=[odd]), NOW)
    assert world.documents(NOW)[0].text == "first\u2028second\x85third"
