"""An engine that dies while rollouts are made: restarted in place, and given up when it dies again and again."""

import asyncio
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from cycle_parts import opened, play, small_config

from futureworld import faults
from futureworld.agents.base import Sampling
from futureworld.agents.scripted import ScriptedEngine, ScriptedPolicy, search_then
from futureworld.cycle.ask import ask, train_set
from futureworld.cycle.day import Workers, do, moments
from futureworld.cycle.predict import predict
from futureworld.cycle.report import Silent as Quiet
from futureworld.cycle.run import Run
from futureworld.errors import EngineDeadError, StoreError
from futureworld.records import Purpose

DAY = date(2026, 5, 4)


def test_f3_a_dead_engine_ends_the_stage_and_keeps_what_was_finished(tmp_path: Path) -> None:
    class Dying(ScriptedPolicy):
        opened = 0

        def open(self, messages: Any, tools: Any, sampling: Sampling, request_id: str) -> Any:
            Dying.opened += 1
            if Dying.opened > 10:
                raise EngineDeadError("the engine's servers died")
            return super().open(messages, tools, sampling, request_id)

    class Engine(ScriptedEngine):
        def policy(self) -> Any:
            return Dying(search_then(lambda _: 0.7))

    config = small_config(tmp_path, "days=1", "rollout.concurrency=4")
    with opened(tmp_path, config) as (run, clock, learner):
        ask(run, DAY)
        with pytest.raises(EngineDeadError, match="servers died"):
            predict(run, DAY, Engine(search_then(lambda _: 0.7)))
        kept = {f.id for f in run.store.forecasts(purpose=Purpose.TRAIN)}
        assert 0 < len(kept) <= 10
        assert run.store.finished("predict", DAY.isoformat()) is None
        play(run, clock, learner)
        assert kept < {f.id for f in run.store.forecasts(purpose=Purpose.TRAIN)}


class Mortal(ScriptedEngine):
    """Dies at the `openings`-th conversation after every start, in its first `lives` lives."""

    def __init__(self, openings: int, lives: int) -> None:
        super().__init__(search_then(lambda _: 0.7))
        self.openings, self.lives, self.restarts, self.opened = openings, lives, 0, 0

    def restart(self) -> None:
        self.restarts, self.opened = self.restarts + 1, 0

    def policy(self) -> Any:
        engine = self

        class Dying(ScriptedPolicy):
            def open(self, messages: Any, tools: Any, sampling: Sampling, request_id: str) -> Any:
                engine.opened += 1
                if engine.restarts < engine.lives and engine.opened >= engine.openings:
                    raise EngineDeadError("engine tiny: the servers died; see the logs")
                return super().open(messages, tools, sampling, request_id)

        return Dying(search_then(lambda _: 0.7))


class Lines(Quiet):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


def test_f3_an_engine_that_dies_is_restarted_and_the_missing_rollouts_are_the_same(tmp_path: Path) -> None:
    config = small_config(tmp_path, "days=1", "rollout.concurrency=4")

    def made(run: Run, engine: ScriptedEngine) -> list[Any]:
        ask(run, DAY)
        assert predict(run, DAY, engine)["status"] == {"ok": 36}
        forecasts = run.store.forecasts(purpose=Purpose.TRAIN)
        return [(t.id, t.seed, t.attempt, t.ids) for t in run.store.trajectories([f.id for f in forecasts])]

    with opened(tmp_path / "whole", config) as (run, _, _):
        expected = made(run, ScriptedEngine(search_then(lambda _: 0.7)))
    with opened(tmp_path, config) as (run, _, _):
        lines, engine = Lines(), Mortal(openings=10, lives=2)
        assert made(replace(run, reporter=lines), engine) == expected
        assert engine.restarts == 2
        assert len(lines.lines) == 2
        assert lines.lines[0].startswith("the engine died (engine tiny: the servers died); restarting it for the ")


def test_f3_an_engine_that_dies_too_often_ends_the_stage(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, "days=1", "rollout.concurrency=4")) as (run, _, _):
        ask(run, DAY)
        often, at_once = Mortal(openings=10, lives=3), Mortal(openings=1, lives=3)
        with pytest.raises(EngineDeadError):
            predict(run, DAY, at_once)
        assert at_once.restarts == 1  # nothing came of it
        with pytest.raises(EngineDeadError):
            predict(run, DAY, often)
        assert often.restarts == 2
        assert 0 < len(run.store.forecasts(purpose=Purpose.TRAIN)) < 36


def test_an_update_between_two_halves_of_predict_mixes_no_policies(tmp_path: Path) -> None:
    """Predict of the second day is killed, its evening's update runs, then predict is run again."""
    with opened(tmp_path, small_config(tmp_path)) as (run, clock, learner):
        engine = ScriptedEngine(search_then(lambda _: 0.7))
        first, second, evening = moments(run)[:3]
        clock.move_to(first.at)
        do(run, first, Workers(lambda: engine, lambda: learner))
        clock.move_to(second.at)
        faults.arm("predict.stored", RuntimeError("killed"), passage=10)
        with pytest.raises(RuntimeError, match="killed"):
            do(run, second, Workers(lambda: engine, lambda: learner))
        clock.move_to(evening.at)
        assert do(run, evening, Workers(lambda: engine, lambda: learner))["update"]["version"] == 1
        done = do(run, second, Workers(lambda: engine, lambda: learner))
        assert done["predict"]["policy_version"] == 0
        asked = [question.id for question in run.store.question_set(train_set(second.day)) or ()]
        kept = run.store.forecasts(purpose=Purpose.TRAIN, question_ids=asked)
        assert {forecast.policy_version for forecast in kept} == {0}
        assert len(kept) == 36


def test_a_store_that_fails_stops_the_rollouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opens = 0

    class Counting(ScriptedPolicy):
        def open(self, messages: Any, tools: Any, sampling: Sampling, request_id: str) -> Any:
            nonlocal opens
            opens += 1
            conversation = super().open(messages, tools, sampling, request_id)
            said = conversation.next

            async def slowly(*given: Any) -> Any:
                await asyncio.sleep(0)  # a real engine lets the writer run meanwhile
                return await said(*given)

            monkeypatch.setattr(conversation, "next", slowly)
            return conversation

    class Engine(ScriptedEngine):
        def policy(self) -> ScriptedPolicy:
            return Counting(search_then(lambda _: 0.7), version=0)

    def full(rollouts: Any) -> None:
        raise StoreError("the disk is full")

    with opened(tmp_path, small_config(tmp_path, "days=1", "rollout.concurrency=2")) as (run, _, _):
        ask(run, DAY)
        monkeypatch.setattr(run.store, "add_rollouts", full)
        with pytest.raises(StoreError, match="disk is full"):
            predict(run, DAY, Engine(search_then(lambda _: 0.7)))
    assert opens < 36
