"""Faults of resuming (group E of docs/faults.md): stopped anywhere, a run goes on where it was, once."""

import gzip
import json
from collections import Counter, defaultdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from cycle_parts import NotebookLearner, make_policy, opened, play, small_config
from small_world import HEADER, SERIES

from futureworld.agents.scripted import ScriptedEngine, ScriptedPolicy, search_then
from futureworld.clock import FakeClock
from futureworld.config import load
from futureworld.cycle.day import Workers, do, moments
from futureworld.cycle.evaluate import evaluate
from futureworld.cycle.run import Run, open_run
from futureworld.errors import EngineError, PolicyError, RunError
from futureworld.records import Purpose

DAY = date(2026, 5, 4)
SMALL_EVALUATION = (
    "days=1",
    "evaluate.days=2",
    "evaluate.per_day=6",
    "evaluate.end_samples=2",
    "evaluate.bootstrap=100",
)


def test_e1_e2_e3_a_run_stopped_between_moments_goes_on_with_the_next(tmp_path: Path) -> None:
    """Stopped when the first day was asked, the second, and after the first update: the next batch is the one due."""
    config = small_config(tmp_path)
    with opened(tmp_path / "whole", config) as (run, clock, whole):
        play(run, clock, whole)
        expected = [[member.trajectory.id for member in batch.members] for batch in whole.batches]
    made: list[list[str]] = []
    for stop in (1, 2, 3, 4):
        with opened(tmp_path, config) as (run, clock, learner):
            play_until(stop, run, clock, learner)
            made += [[member.trajectory.id for member in batch.members] for batch in learner.batches]
            assert made == expected[: max(0, stop - 2)]


def play_until(stop: int, run: Run, clock: FakeClock, learner: NotebookLearner) -> None:
    """The first `stop` moments of the run."""
    engine = ScriptedEngine(search_then(lambda _: 0.7))
    for moment in moments(run)[:stop]:
        clock.move_to(moment.at)
        do(run, moment, Workers(lambda: engine, lambda: learner))


def test_e8_the_policy_that_answers_after_a_resume_is_the_one_that_would_have(tmp_path: Path) -> None:
    """No counter of lag is kept that could start again at 0: it is read from the stored versions."""
    days, expected = [DAY + timedelta(days=i) for i in range(4)], [{0}, {0}, {1}, {2}]
    for stop in (3, 4, 6, 8):
        with opened(tmp_path, small_config(tmp_path, "days=4", "questions.per_day=4")) as (run, clock, learner):
            play_until(stop, run, clock, learner)
            versions: dict[date, set[int]] = defaultdict(set)
            for trajectory in run.store.trajectories([f.id for f in run.store.forecasts(purpose=Purpose.TRAIN)]):
                versions[trajectory.day].add(trajectory.policy_version)
            assert [versions[day] for day in days if day in versions] == expected[: len(versions)]
    assert len(versions) == len(days)


def test_e11_another_configuration_is_refused_with_its_difference(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path)):
        pass
    with (
        pytest.raises(RunError, match=r"seed: 0 there, 1 given"),
        opened(tmp_path, small_config(tmp_path, "seed=1")),
    ):
        pass


class Scripted(ScriptedEngine):
    """Answers 0.7; counts the rollouts opened, and breaks at one of them."""

    def __init__(self, breaks_at: int | None = None) -> None:
        super().__init__(search_then(lambda _: 0.7))
        self.opened: Counter[str] = Counter()
        self.breaks_at = breaks_at

    def policy(self) -> Any:
        engine = self

        class Counting(ScriptedPolicy):
            def open(self, messages: Any, tools: Any, sampling: Any, request_id: str) -> Any:
                engine.opened[request_id] += 1
                if engine.opened.total() == engine.breaks_at:
                    raise PolicyError("as if stopped here")
                return super().open(messages, tools, sampling, request_id)

        return Counting(search_then(lambda _: 0.7), self._version)


def test_e13_an_evaluation_is_made_once_however_often_it_was_stopped(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, *SMALL_EVALUATION, "rollout.concurrency=2")) as (run, clock, learner):
        play(run, clock, learner)
        stopped, resumed = Scripted(breaks_at=20), Scripted()
        with pytest.raises(PolicyError):
            evaluate(run, lambda: stopped)
        kept = run.store.forecasts(purpose=Purpose.EVALUATE)
        assert 0 < len(kept) < 48
        assert not run.store.finished("evaluate", "evaluate/held-out/v0x2")
        first = evaluate(run, lambda: resumed)
        made = run.store.forecasts(purpose=Purpose.EVALUATE)
        assert len(made) == len({f.id for f in made}) == 2 * 12 * 2  # two checkpoints, twelve questions, two samples
        assert resumed.opened.total() == 48 - len(kept)

        def nobody() -> Any:
            raise EngineError("an engine was asked for, although everything is answered")

        again = evaluate(run, nobody)
        assert (again.first, again.last, again.checkpoints) == (first.first, first.last, first.checkpoints)


ROW = "river.level,2026-05-0{day},12{day},2026-05-0{day}T09:00:00Z"


def test_e14_a_world_whose_rows_changed_is_refused(tmp_path: Path) -> None:
    world, policy = tmp_path / "world", make_policy(tmp_path / "scripted")
    world.mkdir()
    (world / "series.jsonl").write_text(json.dumps(SERIES) + "\n")

    def write(days: int) -> None:
        rows = [HEADER, *(ROW.format(day=day) for day in range(1, days + 1))]
        (world / "observations.csv.gz").write_bytes(gzip.compress("\n".join(rows).encode()))

    config = load(None, [f"world={world}", f"policy={policy}", "tracking=none"])
    write(days=8)
    with open_run(tmp_path / "run", config):
        pass
    with open_run(tmp_path / "run", config):  # the same rows: the run goes on
        pass
    write(days=9)
    with pytest.raises(RunError, match="its rows changed"), open_run(tmp_path / "run", config):
        pass
