"""The kills' short form, and what they found in the loop."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cycle_parts import opened, play, small_config
from proof import kills, kills_harms, kills_scripted
from proof.kills_runs import Found, Lab

from futureworld import faults
from futureworld.clock import FakeClock
from futureworld.cycle.resume import standing
from futureworld.cycle.run import open_run


@pytest.fixture(autouse=True)
def nothing_armed() -> Iterator[None]:
    yield
    faults.disarm()


@pytest.mark.parametrize("words", kills_scripted.SHORT)
def test_e_a_killed_run_ends_as_an_unkilled_one(tmp_path: Path, words: str) -> None:
    place = next(place for place in kills_scripted.PLACES if place.words == words)
    row = kills_scripted.row(tmp_path / "row", place, kills=1)
    assert all(row["checks"].values()), row
    assert [row[name] for name in ("died", *kills_scripted.COUNTED[1:])] == [1, 0, 0, 0, 0]


def test_e_a_second_job_is_refused_and_the_first_unharmed(tmp_path: Path) -> None:
    row = kills_harms.two_jobs(tmp_path / "row")
    assert all(row["checks"].values()), row


def test_passages_are_spread_over_all_there_are(tmp_path: Path) -> None:
    lab = Lab(tmp_path, ("days=2", "questions.per_day=10", "rollout.n=2"))
    early = kills_scripted.Place("predict", "predict.stored", "", (0.25, 0.35))
    assert sorted(kills_scripted.chosen(early, {"predict.stored": 60}, lab, 6)) == [5, 6, 7, 25, 26, 27]
    late = kills_scripted.Place("evaluate", "predict.stored", "", evaluation=True)
    assert set(kills_scripted.chosen(late, {"predict.stored": 60}, lab, 20)) == set(range(41, 61))
    once = kills_scripted.chosen(kills_scripted.Place("row", "update.stored", ""), {"update.stored": 2}, lab, 4)
    assert sorted(once) == [1, 1, 2, 2]


def test_what_is_lost_and_what_differs_is_counted() -> None:
    def found(**forecasts: str) -> Found:
        return Found({}, {}, forecasts, {}, {}, {}, {}, doubled=0)

    before, after = found(a="1", b="2"), found(a="1", b="3", c="4")
    assert before.missing_from(after) == 1
    assert after.missing_from(before) == 2
    assert before.differences(after) == 2


def test_every_row_of_the_part_has_a_key_of_its_own() -> None:
    keys = [task.key for task in kills.tasks(short=False)]
    assert len(keys) == len(set(keys))
    assert len(keys) >= len(kills_scripted.PLACES) + 5


def test_the_ledger_keeps_what_was_left_out_though_killed_after_the_row(tmp_path: Path) -> None:
    config = small_config(tmp_path)
    faults.arm("update.stored", RuntimeError("killed"))
    with opened(tmp_path, config) as (run, clock, learner), pytest.raises(RuntimeError, match="killed"):
        play(run, clock, learner)
    with opened(tmp_path, config) as (run, clock, learner):
        assert standing(run) == "update of 2026-05-05 with its version stored"
        done = play(run, clock, learner)
    assert done[2]["update"]["dropped"] == {"waiting for the world": 36}, "the second day's 12 x 3 rollouts"


def test_a_start_says_where_the_run_stands(tmp_path: Path) -> None:
    config = small_config(tmp_path)
    faults.arm("resolve.stored", RuntimeError("killed"), passage=5)
    with opened(tmp_path, config) as (run, clock, learner):
        assert standing(run) is None
        with pytest.raises(RuntimeError, match="killed"):
            play(run, clock, learner)
        assert standing(run) == "resolve of 2026-05-05 with 12 of 12 outcomes stored"  # they are stored together
        play(run, clock, learner)
        assert standing(run) == "evaluation with no question stored"


def test_a_start_names_a_killed_predecessor(tmp_path: Path) -> None:
    class Heard:
        def __init__(self) -> None:
            self.lines: list[str] = []

        def line(self, text: str) -> None:
            self.lines.append(text)

        @contextmanager
        def bar(self, title: str, total: int) -> Iterator["Heard"]:
            yield self

        def advance(self, steps: int = 1) -> None:
            pass

    config = small_config(tmp_path)
    clock = FakeClock(config.schedule.schedule().asked_at(config.start))
    folder = tmp_path / "run"
    with open_run(folder, config, clock=clock, holder="replay"):
        left = (folder / "store.lock").read_text()
    heard = Heard()
    with open_run(folder, config, clock=clock, reporter=heard):
        assert heard.lines == [], "it ended by itself"
    (folder / "store.lock").write_text(left)  # as a killed process leaves it
    with open_run(folder, config, clock=clock, reporter=heard):
        assert len(heard.lines) == 1
        assert heard.lines[0].startswith("replay (process ")
        assert heard.lines[0].endswith(f"was killed while it held {folder}; what it had stored stands")
