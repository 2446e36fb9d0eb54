"""Search and visit: nothing later than as_of, weights that do not see the future, codes that find their card."""

import time
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_world import EVENT, moments, write_world

from futureworld.clock import parse_utc
from futureworld.records import EventStatus, Target, TargetKind
from futureworld.worlds.archive import event_target, event_url, series_url, words
from futureworld.worlds.open import open_world
from futureworld.worlds.recorded import RecordedWorld

NOW = parse_utc("2026-11-30T00:00:00Z")
SHARED = Path(__file__).resolve().parents[3] / "shared/worlds/2026"
MARCH = parse_utc("2026-03-02T12:00:00Z")


@pytest.fixture(scope="module")
def almanac() -> RecordedWorld:
    return open_world("almanac", NOW)


def document(name: str, title: str, at: str = "2026-03-01T12:00:00Z", **more: str) -> dict[str, str]:
    return {"id": name, "title": title, "published_at": at} | more


def found(world: RecordedWorld, query: str, as_of: datetime = MARCH, limit: int = 5) -> list[str]:
    return [hit.document.id for hit in world.search(query, as_of, limit)]


def test_words_are_runs_of_letters_and_digits() -> None:
    assert words("Fuel.us_REGULAR: 4.81 Düsseldorf's") == ["fuel", "us", "regular", "4", "81", "düsseldorf", "s"]
    assert words("!? _") == []


def test_the_best_match_comes_first_and_none_that_does_not_match(tmp_path: Path) -> None:
    texts = [document("a", "flood at the mill"), document("b", "flood flood"), document("c", "sunny weekend")]
    world = RecordedWorld.load(write_world(tmp_path, documents=texts), NOW)
    assert found(world, "flood") == ["b", "a"]
    assert found(world, "flood", limit=1) == ["b"]
    assert found(world, "earthquake") == []
    assert found(world, "?!") == []
    assert found(world, "flood", limit=0) == []
    scores = [hit.score for hit in world.search("flood", MARCH, 5)]
    assert scores == sorted(scores, reverse=True)


def test_equal_scores_come_by_document_id(tmp_path: Path) -> None:
    texts = [document(name, "flood at the mill") for name in "dbeac"]
    world = RecordedWorld.load(write_world(tmp_path, documents=texts), NOW)
    assert found(world, "flood") == list("abcde")
    assert found(world, "flood", limit=2) == ["a", "b"]


def test_a_search_before_everything_finds_nothing(tmp_path: Path) -> None:
    world = RecordedWorld.load(write_world(tmp_path), NOW)
    assert found(world, "bridge", parse_utc("2025-01-01T00:00:00Z")) == []


@settings(max_examples=15, deadline=None)
@given(
    as_of=moments("2026-01-01T00:00:00Z", "2026-08-09T00:00:00Z"),
    query=st.sampled_from(["gasoline california", "new york", "results published", "grand prix", "euro stars 2026"]),
)
def test_k1_no_search_finds_a_later_document(almanac: RecordedWorld, as_of: datetime, query: str) -> None:
    hits = almanac.search(query, as_of, 2000)
    assert all(hit.document.published_at <= as_of for hit in hits)
    ahead = {event.id for event in almanac.events(as_of) if event.status is EventStatus.SCHEDULED}
    cards = {hit.document.url.split("/")[3] for hit in hits if hit.document.url.startswith("world://event/")}
    assert cards <= ahead
    for hit in hits[:20]:
        page = almanac.visit(hit.document.url, as_of)
        assert page is not None and page.published_at <= as_of and "outcome" not in page.text


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/worlds/2026 is not beside this checkout")
def test_k1_no_search_of_the_recording_finds_a_later_document() -> None:
    world, as_of = open_world(SHARED, NOW), parse_utc("2026-06-10T12:00:00Z")
    known = {row.id for row in world.documents(as_of)}
    hits = world.search("world cup election prices the", as_of, 5000)
    assert len(hits) == 5000
    assert all(hit.document.published_at <= as_of for hit in hits)
    assert all(hit.document.id in known or hit.document.id == hit.document.url for hit in hits)


def test_k1_weights_of_words_do_not_depend_on_later_texts(tmp_path: Path) -> None:
    before = [document("a", "flood at the mill"), document("b", "mill festival"), document("c", "quiet day")]
    later = [document(f"z{i}", "flood flood again", "2026-03-02T12:00:01Z") for i in range(50)]
    event_later = EVENT | {"id": "cup.9", "title": "flood cup", "known_from": "2026-03-02T12:00:01Z"}
    alone = RecordedWorld.load(write_world(tmp_path / "a", documents=before), NOW)
    both = RecordedWorld.load(write_world(tmp_path / "b", documents=later + before, events=[EVENT, event_later]), NOW)
    both.search("flood", NOW, 5)  # an index of a later moment changes nothing
    for query in ("flood", "mill", "flood mill harbour"):
        assert both.search(query, MARCH, 10) == alone.search(query, MARCH, 10)
    assert len(both.search("flood", MARCH + timedelta(seconds=1), 100)) > 50


@pytest.mark.parametrize("day", ["2026-05-04", "2026-07-01"])
def test_a_code_alone_finds_its_card_first(almanac: RecordedWorld, day: str) -> None:
    as_of = parse_utc(f"{day}T12:00:00Z")
    cards: dict[str, set[str]] = {}
    for series in almanac.series().values():
        # Whatever the date of a question, the code is that of the series.
        target = Target(TargetKind.SERIES, series.id, "any name", date(2026, 5, 9), series.zone)
        cards.setdefault(target.code, set()).add(series_url(series.id))
    for event in almanac.events(as_of):
        for option in event.options if event.status is EventStatus.SCHEDULED else ():
            cards.setdefault(event_target(event, option).code, set()).add(event_url(event.id, option))
    assert len(cards) > 1000
    for code, urls in cards.items():
        assert {hit.document.url for hit in almanac.search(code, as_of, len(urls))} == urls, code


def test_a_text_of_one_word_does_not_outrank_the_card_with_that_code(tmp_path: Path) -> None:
    code = Target(TargetKind.SERIES, "river.level", "", date(2026, 5, 9), "Europe/Berlin").code
    long = [document(f"l{i}", "a long report of the day " * 20) for i in range(20)]
    world = RecordedWorld.load(write_world(tmp_path, documents=[document("a", code), *long]), NOW)
    assert found(world, code) == [series_url("river.level"), "a"]


def test_a_series_card_shows_the_last_values_known(tmp_path: Path) -> None:
    world = RecordedWorld.load(write_world(tmp_path), NOW)
    url = series_url("river.level")
    page = world.visit(url, parse_utc("2026-03-02T22:00:00Z"))
    assert page is not None
    assert "Last values known: 2026-03-01: 120; 2026-03-03: 119." in page.text
    assert world.visit(url, parse_utc("2026-01-31T00:00:00Z")) is None
    early = world.visit(url, parse_utc("2026-02-01T00:00:00Z"))
    assert early is not None and "none yet" in early.text


def test_an_event_card_hides_the_outcome_until_it_is_known(tmp_path: Path) -> None:
    world = RecordedWorld.load(write_world(tmp_path), NOW)
    url = event_url("cup.1", "Draw")
    decided = parse_utc("2026-03-02T20:15:00Z")
    before, after = world.visit(url, decided - timedelta(seconds=1)), world.visit(url, decided)
    assert before is not None and "outcome" not in before.text
    assert after is not None and "outcome Draw" in after.text
    assert world.visit(url, parse_utc("2026-01-31T23:59:59Z")) is None
    assert url in found(world, "harbour hillside", decided - timedelta(seconds=1))
    assert url not in found(world, "harbour hillside", decided)


def test_k12_visit_opens_documents_only_once_published(tmp_path: Path) -> None:
    texts = [
        document("a", "first", url="https://river/1"),
        document("b", "second", "2026-03-02T13:00:00Z", url="https://river/1"),
    ]
    world = RecordedWorld.load(write_world(tmp_path, documents=texts), NOW)
    assert world.visit("https://river/1", parse_utc("2026-03-01T11:59:59Z")) is None
    for moment, title in (("2026-03-02T12:59:59Z", "first"), ("2026-03-02T13:00:00Z", "second")):
        page = world.visit("https://river/1", parse_utc(moment))
        assert page is not None and page.title == title
    assert world.visit("https://elsewhere", NOW) is None


def test_searching_the_almanac_is_quick(almanac: RecordedWorld) -> None:
    as_of = parse_utc("2026-06-01T12:00:00Z")
    almanac.search("warm", as_of, 1)
    begin = time.process_time()
    almanac.search("warm", as_of + timedelta(seconds=1), 1)
    assert time.process_time() - begin < 0.5
    begin = time.process_time()
    for _ in range(100):
        almanac.search("gasoline california price", as_of, 5)
    assert (time.process_time() - begin) / 100 < 0.002
