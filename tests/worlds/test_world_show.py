from datetime import date
from pathlib import Path

import pytest
from small_world import EVENT, write_world

from futureworld.clock import Schedule, parse_utc
from futureworld.errors import WorldError
from futureworld.worlds.recorded import RecordedWorld
from futureworld.worlds.show import DomainCount, show, text

NOW = parse_utc("2026-11-30T00:00:00Z")


@pytest.fixture
def world(tmp_path: Path) -> RecordedWorld:
    return RecordedWorld.load(write_world(tmp_path / "river"), NOW)


def test_only_what_was_knowable_when_asked_is_shown(world: RecordedWorld) -> None:
    known = show(world, date(2026, 3, 2), Schedule())
    assert known.asked_at == parse_utc("2026-03-02T12:00:00Z")
    assert known.domains == (DomainCount("soccer", 0, 0, 1, 0), DomainCount("water", 1, 1, 0, 0))
    assert [(series.id, row.value) for series, row in known.latest] == [("river.level", 120.0)]
    assert [event.id for event in known.ahead] == ["cup.1"]
    assert (known.documents, known.rankings) == (1, 0)


def test_a_day_later_the_result_is_counted(world: RecordedWorld) -> None:
    known = show(world, date(2026, 3, 3), Schedule())
    assert known.domains == (DomainCount("soccer", 0, 0, 1, 1), DomainCount("water", 1, 3, 0, 0))
    assert known.ahead == ()
    assert known.rankings == 1


def test_the_text_names_rows_and_events(world: RecordedWorld) -> None:
    known = show(world, date(2026, 3, 2), Schedule())
    lines = text(known).splitlines()
    assert str(known) == text(known)
    assert lines[0] == f"{world.id} at 2026-03-02T12:00:00Z (asked on 2026-03-02)"
    assert "  2026-03-01 09:00  river.level  2026-03-01  120 cm" in lines
    assert "  2026-03-02 18:00  soccer  Harbour v Hillside" in lines


def test_long_lists_of_events_say_how_many_more(tmp_path: Path) -> None:
    events = [EVENT | {"id": f"cup.{i}"} for i in range(20)]
    shown = text(show(RecordedWorld.load(write_world(tmp_path, events=events), NOW), date(2026, 3, 2), Schedule()))
    assert "events of the next 36 hours: 20" in shown
    assert shown.endswith("and 8 more")


def test_a_day_outside_the_world_is_refused(world: RecordedWorld) -> None:
    with pytest.raises(WorldError, match="reaches from 2026-02-01 to 2026-03-03"):
        show(world, date(2026, 3, 4), Schedule())
