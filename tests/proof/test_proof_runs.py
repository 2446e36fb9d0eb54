"""Runs in processes of their own, the ledger under several writers, and the world whose outcomes come late."""

import json
import multiprocessing
from datetime import date, timedelta
from pathlib import Path

import pytest
from cycle_parts import make_policy
from proof import late_world
from proof.ledger import Ledger
from proof.plays import ABLATIONS, late_outcomes, thirty_two_days
from proof.runs import child, evaluated_as, replayed

from futureworld.clock import Schedule
from futureworld.config import QuestionsConfig
from futureworld.errors import RunError
from futureworld.questions.ask import ask
from futureworld.resolution.resolve import Pending, Resolved, resolve
from futureworld.worlds.open import open_world
from futureworld.worlds.recorded import RecordedWorld

FIRST = date(2026, 5, 4)
WRITERS, EACH = 4, 5


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return late_world.make(tmp_path_factory.mktemp("late") / "world", FIRST, days=3)


def test_late_rows_are_the_same_rows_known_later(late: Path):
    before, after = open_world("almanac"), RecordedWorld.load(late)
    end = Schedule().asked_at(FIRST + timedelta(days=40))
    daily = late_world.daily_series((late / "series.jsonl").read_text())
    moved = total = 0
    for name in before.series():
        rows = {row.date: row for row in before.observations(name, end)}
        for row in after.observations(name, end):
            delay = row.published_at - rows[row.date].published_at
            assert row.value == rows[row.date].value
            assert delay == timedelta(days=delay.days)
            assert 0 <= delay.days <= late_world.LATEST
            inside = name in daily and FIRST <= row.date < FIRST + timedelta(days=3)
            assert inside or not delay
            total, moved = total + inside, moved + bool(delay)
    assert 0.25 < moved / total < 0.35
    assert after.id.startswith("almanac-late@")


def test_late_outcomes_are_waited_for_and_then_known(late: Path):
    world = RecordedWorld.load(late)
    schedule = Schedule()
    questions = ask(world, FIRST, schedule, QuestionsConfig(per_day=60), 0).questions
    now = schedule.resolves_at(FIRST)
    waiting = [question for question in questions if isinstance(resolve(question, world, now), Pending)]
    assert 4 <= len(waiting) <= 30
    later = now + timedelta(days=late_world.LATEST)
    assert all(isinstance(resolve(question, world, later), Resolved) for question in waiting)


def test_the_late_world_is_made_once(late: Path):
    stamp = (late / "world.json").stat().st_mtime_ns
    assert late_world.make(late, FIRST, days=3) == late
    assert (late / "world.json").stat().st_mtime_ns == stamp


def test_both_late_runs_answer_questions_of_the_same_days(tmp_path: Path):
    from futureworld.config import load
    from futureworld.cycle.heldout import held_out_days

    world = open_world("almanac")
    days = []
    for used in (True, False):
        settings = dict(late_outcomes(0, tmp_path, used).settings) | {"world": "almanac"}
        config = load(None, [f"{key}={value}" for key, value in settings.items()])
        days.append(held_out_days(config, world))
    assert days[1][3:] == days[0]


def test_every_long_run_fits_into_the_almanac():
    from futureworld.config import load
    from futureworld.cycle.heldout import held_out_days

    for play in thirty_two_days().values():
        config = load(None, [f"{key}={value}" for key, value in play.settings.items()])
        assert len(held_out_days(config, open_world("almanac"))) == 28
    assert len(ABLATIONS) == 5


def test_a_failed_process_is_an_error_with_the_end_of_its_log(tmp_path: Path):
    with pytest.raises(RunError, match=r"replay --run.*(?s:.)*nonsense"):
        replayed_badly(tmp_path)
    assert "nonsense" in (tmp_path / "replay.log").read_text()


def replayed_badly(tmp_path: Path) -> None:
    from proof.runs import called

    called(["replay", "--run", str(tmp_path / "run"), "--set", "nonsense=1"], tmp_path)


def test_what_a_process_says_is_shown_and_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    child(["bash", "-c", "echo out; echo err >&2; echo $WANDB_MODE"], tmp_path / "some.log")
    assert sorted((tmp_path / "some.log").read_text().split()) == ["err", "offline", "out"]
    assert "    out" in capfd.readouterr().out


def test_a_run_of_another_recipe_is_refused(tmp_path: Path):
    from cycle_parts import opened, small_config

    with opened(tmp_path, small_config(tmp_path)):
        pass
    policy = make_policy(tmp_path / "scripted")
    with pytest.raises(RunError, match="belongs to another configuration"):
        replayed(tmp_path, {"days": 3, "policy": policy})


def test_checkpoints_are_evaluated_again_in_a_run_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from cycle_parts import opened, play, small_config
    from proof import runs

    from futureworld.cycle.run import open_run, read_config

    with opened(tmp_path, small_config(tmp_path)) as (run, clock, learner):
        play(run, clock, learner)
    calls = []
    monkeypatch.setattr(runs, "called", lambda arguments, folder: calls.append((arguments[0], folder)))
    made = evaluated_as(tmp_path / "run", tmp_path / "shuffled", "shuffled-observations", [0, 2])
    assert calls == [("evaluate", tmp_path / "shuffled")]
    with open_run(made, read_config(made)) as found:
        assert found.config.control == "shuffled-observations"
        assert [one.version for one in found.store.checkpoints()] == [0, 2]
        assert all(found.checkpoint_path(one).is_dir() for one in found.store.checkpoints())


def write_rows(path: Path, writer: int) -> None:
    ledger = Ledger(path)
    for i in range(EACH):
        ledger.add("learning", f"{writer}-{i}", {"writer": writer})


def test_several_writers_lose_no_row(tmp_path: Path):
    path = tmp_path / "proof.json"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=write_rows, args=(path, i)) for i in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(Ledger(path).rows("learning")) == WRITERS * EACH
    assert [entry.name for entry in tmp_path.iterdir()] == ["proof.json"]


def test_a_ledger_sees_what_another_one_wrote(tmp_path: Path):
    first, second = Ledger(tmp_path / "proof.json"), Ledger(tmp_path / "proof.json")
    first.add("speed", "a", {"x": 1})
    assert second.rows("speed")["a"]["x"] == 1
    second.forget("speed", "a")
    assert first.rows("speed") == {}
    assert json.loads((tmp_path / "proof.json").read_text())["parts"] == {"speed": {}}


def test_a_broken_ledger_is_named(tmp_path: Path):
    (tmp_path / "proof.json").write_text("{")
    with pytest.raises(RunError, match=r"proof\.json cannot be read"):
        Ledger(tmp_path / "proof.json")
