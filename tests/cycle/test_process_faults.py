"""Faults of processes and tasks (group F of docs/faults.md) that need no real engine to be seen."""

import ast
import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from cycle_parts import opened, play, small_config

from futureworld.agents.scripted import ScriptedConversation, ScriptedEngine, ScriptedPolicy, search_then
from futureworld.cycle import predict as predicting
from futureworld.cycle.ask import ask, train_set
from futureworld.cycle.predict import predict
from futureworld.cycle.replay import workers
from futureworld.cycle.update import make_batch
from futureworld.records import AnswerStatus, Purpose, QuestionState

ROOT = Path(__file__).parents[2]
BLOCKING = {
    *("time.sleep", "ray.get", "ray.wait", "asyncio.run", "urllib.request.urlopen", "subprocess.run"),
    *("subprocess.check_output", "socket.create_connection", "os.waitpid"),
}


class Worker:
    """An engine or a learner that writes down its life, and fails where it is told to."""

    def __init__(self, name: str, said: list[str], fails: str = "") -> None:
        self.name, self.said, self.fails = name, said, fails

    def start(self) -> None:
        self.said.append(f"{self.name} started")
        if self.fails == "start":
            raise RuntimeError(f"{self.name} does not start")

    def stop(self) -> None:
        self.said.append(f"{self.name} stopped")


@pytest.mark.parametrize("error", [RuntimeError("a stage failed"), KeyboardInterrupt()], ids=["failure", "Ctrl-C"])
def test_f1_engine_and_learner_are_stopped_however_a_stage_ends(tmp_path: Path, error: BaseException) -> None:
    said: list[str] = []
    with (
        opened(tmp_path, small_config(tmp_path)) as (run, _, _),
        pytest.raises(type(error)),
        workers(run, lambda kind: lambda *_: Worker(kind, said)) as crew,
    ):
        crew.learner()
        crew.engine()
        crew.engine()  # up already
        raise error
    assert said == ["learners started", "engines started", "engines stopped", "learners stopped"]


def test_f1_a_worker_that_does_not_start_is_stopped_and_the_other_too(tmp_path: Path) -> None:
    said: list[str] = []

    def find(kind: str) -> Any:
        return lambda *_: Worker(kind, said, "start" if kind == "engines" else "")

    with (
        opened(tmp_path, small_config(tmp_path)) as (run, _, _),
        pytest.raises(RuntimeError, match="engines does not start"),
        workers(run, find) as crew,
    ):
        crew.learner()
        crew.engine()
    assert said == ["learners started", "engines started", "engines stopped", "learners stopped"]


def test_f4_no_coroutine_of_ours_calls_what_blocks() -> None:
    found, seen = [], 0
    for path in [*(ROOT / "futureworld").rglob("*.py"), *(ROOT / "verl_tool_future").rglob("*.py")]:
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.AsyncFunctionDef):
                seen += 1
                found += [f"{path.name}: {name}" for name in calls(function) if name in BLOCKING]
    assert found == []
    assert seen > 20


def calls(function: ast.AsyncFunctionDef) -> list[str]:
    return [ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]


def test_f4_the_search_for_blocking_calls_finds_one() -> None:
    function = ast.parse("async def f():\n    import time\n    time.sleep(1)").body[0]
    assert isinstance(function, ast.AsyncFunctionDef)
    assert [name for name in calls(function) if name in BLOCKING] == ["time.sleep"]


def test_f5_rollouts_wait_their_turn_and_all_end(tmp_path: Path) -> None:
    """The bound is on what is begun, not on a queue of results, which could block."""
    under_way: set[str] = set()
    most = 0

    class Talk(ScriptedConversation):
        def __init__(self, request: str, messages: Any, seed: int | None) -> None:
            super().__init__(messages, search_then(lambda _: 0.7)(messages), 0, seed)
            self.request = request

        async def next(self, feedback: Any, max_tokens: int) -> Any:
            nonlocal most
            most = max(most, len(under_way))
            turn = await super().next(feedback, max_tokens)
            if not turn.calls:
                under_way.discard(self.request)
            return turn

    class Policy(ScriptedPolicy):
        def open(self, messages: Any, tools: Any, sampling: Any, request_id: str) -> Any:
            under_way.add(request_id)
            return Talk(request_id, messages, sampling.seed)

    class Engine(ScriptedEngine):
        def policy(self) -> Any:
            return Policy(search_then(lambda _: 0.7))

    with opened(tmp_path, small_config(tmp_path, "days=1", "rollout.concurrency=5")) as (run, _, _):
        ask(run, run.days[0])
        assert predict(run, run.days[0], Engine(search_then(lambda _: 0.7)))["status"] == {"ok": 36}
    assert most <= 5
    assert under_way == set()


def test_f5_what_ends_between_two_commits_is_stored_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long way between commits holds nobody up: the end of the last rollout is the end of the wait."""
    monkeypatch.setattr(predicting, "BETWEEN_COMMITS", 1e9)
    monkeypatch.setattr(predicting, "LONGEST_WAIT", 1e9)

    class Talk(ScriptedConversation):
        async def next(self, feedback: Any, max_tokens: int) -> Any:
            for _ in range(3):
                await asyncio.sleep(0)  # so that rollouts end one after another
            return await super().next(feedback, max_tokens)

    class Policy(ScriptedPolicy):
        def open(self, messages: Any, tools: Any, sampling: Any, request_id: str) -> Any:
            return Talk(messages, search_then(lambda _: 0.7)(messages), 0, sampling.seed)

    class Engine(ScriptedEngine):
        def policy(self) -> Any:
            return Policy(search_then(lambda _: 0.7))

    sizes: list[int] = []
    with opened(tmp_path, small_config(tmp_path, "days=1", "rollout.concurrency=5")) as (run, _, _):
        ask(run, run.days[0])
        add = run.store.add_rollouts

        def counted(pairs: Any) -> Any:
            sizes.append(len(pairs))
            return add(pairs)

        monkeypatch.setattr(run.store, "add_rollouts", counted)
        assert predict(run, run.days[0], Engine(search_then(lambda _: 0.7)))["status"] == {"ok": 36}
    assert sum(sizes) == 36
    assert 1 <= len(sizes) <= 2


def test_f6_every_rollout_is_trained_kept_or_counted(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, "questions.per_day=24")) as (run, clock, learner):
        play(run, clock, learner)
        made = run.store.forecasts(purpose=Purpose.TRAIN)
        trained = [name for update in run.store.updates() for name in update.trajectory_ids]
        assert len(trained) == len(set(trained))
        left = make_batch(run, run.days[-1])
        assert len(made) == len(trained) + len(left.members) + sum(left.dropped.values())
        questions = [q.id for day in run.days for q in run.store.question_set(train_set(day)) or ()]
        states = run.store.states(questions)
        by_question = {forecast.id: forecast.question_id for forecast in made}
        assert {states[by_question[name]] for name in trained} == {QuestionState.RESOLVED}
        unresolved = sum(states[f.question_id] is not QuestionState.RESOLVED for f in made)
        assert left.dropped.get("waiting for the world", 0) == unresolved


def test_f8_time_limits_hold_outside_the_main_thread(tmp_path: Path) -> None:
    """No signal is used: a rollout whose engine hangs ends by its own limit in any thread."""

    class Hanging(ScriptedConversation):
        async def next(self, feedback: Any, max_tokens: int) -> Any:
            await asyncio.Event().wait()

    class Policy(ScriptedPolicy):
        def open(self, messages: Any, tools: Any, sampling: Any, request_id: str) -> Any:
            return Hanging(messages, [], self.version, sampling.seed)

    class Engine(ScriptedEngine):
        def policy(self) -> Any:
            return Policy(search_then(lambda _: 0.7))

    config = small_config(tmp_path, "days=1", "questions.per_day=2", "rollout.n=2", "rollout.max_seconds=0.05")
    done: list[Any] = []

    def work() -> None:
        with opened(tmp_path, config) as (run, _, _):
            ask(run, run.days[0])
            done.append(predict(run, run.days[0], Engine(search_then(lambda _: 0.7))))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert [summary["status"] for summary in done] == [{AnswerStatus.TIMEOUT.value: 4}]
