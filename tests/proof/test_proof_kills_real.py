"""What counts as lost, doubled and left over, without an engine. The kills themselves: test_real_loop.py."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from proof import kills_command as command
from proof import kills_real
from proof.kills_command import Snapshot
from samples import sample_question, sample_rollout

PAIRS = [sample_rollout("q1", sample=sample) for sample in range(3)]
STORED = Snapshot(
    asked={"train/2026-05-04": (sample_question("q1"),)},
    forecasts={forecast.id: forecast for _, forecast in PAIRS},
    trajectories={trajectory.id: trajectory for trajectory, _ in PAIRS},
    outcomes={},
    updates={},
    versions={0: "abc"},
)


def test_nothing_is_lost_where_something_was_added() -> None:
    later = replace(STORED, versions={0: "abc", 1: "def"})
    assert command.lost(STORED, later) == 0
    assert command.lost(later, STORED) == 1


def test_a_forecast_that_is_gone_and_one_that_changed_are_lost() -> None:
    first, second, _ = STORED.forecasts
    changed = {second: replace(STORED.forecasts[second], probability=0.5)}
    later = {key: value for key, value in (STORED.forecasts | changed).items() if key != first}
    assert command.lost(STORED, replace(STORED, forecasts=later)) == 2


def test_a_question_asked_twice_and_a_slot_filled_twice_are_doubled() -> None:
    assert command.doubled(STORED) == 0
    asked_again = STORED.asked | {"train/2026-05-05": (sample_question("q1"),)}
    first = next(iter(STORED.forecasts.values()))
    filled_again = STORED.forecasts | {"another id": first}
    assert command.doubled(replace(STORED, asked=asked_again, forecasts=filled_again)) == 2


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[psutil.Process]:
    """A process that carries the mark of the run in `tmp_path`."""
    words = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)", "some::Worker"]
    with subprocess.Popen(words, env=os.environ | {command.MARK: str(tmp_path)}, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield psutil.Process(child.pid)
        child.kill()


def test_a_process_left_over_is_named_until_it_is_gone(sleeper: psutil.Process, tmp_path: Path) -> None:
    assert command.carriers(tmp_path) == {sleeper}
    (left,) = command.outlived(tmp_path, set(), 0.0)
    assert "python" in left
    assert not command.hit([sleeper], "other::Worker")
    assert command.hit([sleeper], "some::Worker")
    assert command.outlived(tmp_path, {sleeper}, 10.0) == []


def test_forecasts_are_counted_from_outside_and_are_none_before_the_store_is_made(tmp_path: Path) -> None:
    assert command.stored(tmp_path / "run") == 0


def test_every_run_is_killed_at_every_place_and_each_process_of_the_engine_in_turn() -> None:
    places = [[life.words for life in kills_real.lives(i) if life.words] for i in range(kills_real.RUNS)]
    assert places[0] == places[1] == places[2]
    assert len(places[0]) == 9
    struck = [life.strike.process for i in range(kills_real.RUNS) for life in kills_real.lives(i) if life.strike]
    assert all(struck.count(server) == 3 for server in kills_real.SERVERS)
    assert struck.count("UpdateActor.step") == struck.count("WorkerDict.actor_update_actor") == 3
    for life in kills_real.lives(0)[kills_real.LEARNED : kills_real.LEARNED + 6]:
        assert life.place is None or life.place.startswith("update.")


def test_passages_are_counted_over_the_lives() -> None:
    # 96 forecasts a day: 30 % of the first is the 29th, 90 % of the second the 182nd;
    # 192 of both days come before the evaluation's 50th
    first, second, evaluated = (life for life in kills_real.lives(0) if life.place == "predict.stored")
    assert first.fault(0) == "predict.stored:29"
    assert second.fault(29) == "predict.stored:153"
    assert evaluated.fault(192) == "predict.stored:50"
    assert kills_real.Life("resolve.stored", 12).fault(192) == "resolve.stored:12"
    assert kills_real.Life().fault(192) is None


def test_a_message_is_kept_without_the_folders_of_this_machine() -> None:
    said = "2026-05-04  asked 24\nthe engine died (engine /a/b-c/weights: it is dead); restarting it\n"
    assert kills_real.told(said, "the engine died") == ("the engine died (engine weights: it is dead); restarting it")
    assert kills_real.told(said, "a trainer process died") == ""


def test_the_section_adds_up_the_kills_of_a_place() -> None:
    kill = {"place": "resolve", "died": True, "lost": 0, "left_over": 0}
    first = {"kills": [kill], "weights_of_version_1": {"killed": "a", "not killed": "a"}}
    second = {
        "kills": [kill | {"died": False, "lost": 3}],
        "weights_of_version_1": {"killed": "a", "not killed": "b"},
    }
    text = kills_real.section({"ask: in the ledger": {}, "real, run 1": first, "real, run 2": second})
    assert "| resolve | 2 | 1 | 3 | 0 |" in text
    assert "in 1 of 2 it has the same weights" in text
    assert kills_real.section({"ask: in the ledger": {}}) == ""
