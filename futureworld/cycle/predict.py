"""Predict: rollouts of the newest policy on the day's questions, each durable before it counts.

A rollout is named by its forecast id, so a killed stage goes on with exactly the missing ones.
A rollout that failed for reasons outside the policy is tried again, then kept as failed. An engine
that dies is restarted; the rollouts that died with it are missing ones, made with the same seeds.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from futureworld import faults
from futureworld.agents.base import Engine, Policy, Sampling, Tool
from futureworld.agents.loop import rollout
from futureworld.agents.tools import SearchTool, archive_tools
from futureworld.config import check_training
from futureworld.cycle.ask import train_set
from futureworld.cycle.controls import shuffled
from futureworld.cycle.report import Bar
from futureworld.cycle.run import Run, Summary
from futureworld.errors import EngineDeadError, RunError
from futureworld.policies import weight_hash
from futureworld.records import Checkpoint, Forecast, Purpose, Question, Trajectory, content_id, forecast_id

ATTEMPTS = 3
"""Tries of a rollout that fails for reasons outside the policy."""

RESTARTS = 2
"""Times that a dead engine is restarted while one set of rollouts is made."""

BETWEEN_COMMITS = 19.0
"""Time between two commits, in commits: writing takes a twentieth of the loop."""
LONGEST_WAIT = 1.0
"""Seconds for which a finished rollout waits at most, however slow the store is."""

Finished = tuple[Trajectory, Forecast]


@dataclass(frozen=True, slots=True)
class Slot:
    """One forecast to make."""

    id: str
    question: Question
    sample: int


def predict(run: Run, day: date, engine: Engine) -> Summary:
    """Roll out the questions of `day` with the newest checkpoint, or with the one that began to."""
    check_training(run.config)
    questions = run.store.question_set(train_set(day))
    if questions is None:
        raise RunError(f"day {day} was not asked yet; run `futureworld ask --run {run.folder} --day {day}` first")

    def work() -> Summary:
        checkpoint = answering(run, questions)
        counts = answer(run, questions, engine, checkpoint, Purpose.TRAIN, run.config.rollout.n, f"predict {day}")
        return {"rollouts": sum(counts.values()), "policy_version": checkpoint.version, "status": dict(counts)}

    return run.stage("predict", day.isoformat(), work)


def answering(run: Run, questions: Sequence[Question]) -> Checkpoint:
    """The newest checkpoint, unless an earlier one has answered some of `questions`: a group has one policy.

    So it is where predict was killed and an update came before it was run again.
    """
    ids = [question.id for question in questions]
    begun = {f.policy_version for f in run.store.forecasts(purpose=Purpose.TRAIN, agent=run.agent, question_ids=ids)}
    if not begun:
        return run.newest_checkpoint()
    return next(checkpoint for checkpoint in run.store.checkpoints() if checkpoint.version == min(begun))


def serve(run: Run, engine: Engine, checkpoint: Checkpoint) -> Policy:
    """Let `engine` serve `checkpoint`; refused with RunError where its weights are not those of the run."""
    path = run.checkpoint_path(checkpoint)
    found = weight_hash(path)
    if found != checkpoint.weight_hash:
        raise RunError(
            f"checkpoint {checkpoint.version}: the weights in {path} are {found}, the run was made with"
            f" {checkpoint.weight_hash}; restore them, or start a new run"
        )
    engine.load(str(path), checkpoint.version)
    return engine.policy()


def answer(
    run: Run,
    questions: Sequence[Question],
    engine: Engine,
    checkpoint: Checkpoint,
    purpose: Purpose,
    samples: int,
    title: str,
) -> Counter[str]:
    """Fill the missing forecasts of `questions` x `samples` by `checkpoint`; returns how they ended, by status.

    Raises EngineDeadError when the engine dies again before anything more was finished, or too often.
    """
    version = checkpoint.version
    slots = [
        Slot(forecast_id(question.id, run.agent, version, purpose, sample), question, sample)
        for sample in range(samples)
        for question in questions
    ]
    tools = tools_for(run, questions, purpose)

    def missing() -> list[Slot]:
        done = run.store.finished_ids(purpose, run.agent, version)
        return [slot for slot in slots if slot.id not in done]

    def fill() -> None:
        policy = serve(run, engine, checkpoint)
        if left := missing():
            asyncio.run(_Rollouts(run, policy, purpose, tools, title).all(left))

    outlive_deaths(run, engine, fill, lambda: len(missing()))
    ids = [slot.id for slot in slots]
    run.store.compact(f"{purpose.value}-v{version}", ids)
    wanted = set(ids)
    kept = run.store.forecasts(purpose=purpose, policy_version=version, agent=run.agent)
    return Counter(forecast.status.value for forecast in kept if forecast.id in wanted)


def outlive_deaths(run: Run, engine: Engine, fill: Callable[[], None], missing: Callable[[], int]) -> None:
    """Call `fill` until the engine lives through it, restarting it at most RESTARTS times.

    A death without a rollout finished since the restart before it is raised: it would go on for ever.
    """
    deaths, left = 0, None
    while True:
        try:
            fill()
            return
        except EngineDeadError as error:
            deaths, before, left = deaths + 1, left, missing()
            if deaths > RESTARTS or left == before:
                raise
            found = str(error).partition(";")[0]  # the way out that it names is the one taken here
            run.reporter.line(f"the engine died ({found}); restarting it for the {left} missing rollouts")
            with run.reporter.bar("restarting the engine", 0):
                engine.restart()


def tools_for(run: Run, questions: Sequence[Question], purpose: Purpose) -> list[Tool]:
    """The archive's; the control that shuffles observations does so in evaluation only."""
    if run.config.control == "shuffled-observations" and purpose is Purpose.EVALUATE:
        other = shuffled(questions, run.config.seed)
        limit = run.config.rollout.search_results
        return [SearchTool(limit, lambda question: other[question.id])]  # a visit would show the truth
    return archive_tools(run.config.rollout)


class _Rollouts:
    """Many rollouts at once, one writer. The first engine failure cancels the rest."""

    def __init__(self, run: Run, policy: Policy, purpose: Purpose, tools: Sequence[Tool], title: str) -> None:
        self.run, self.policy, self.purpose, self.tools, self.title = run, policy, purpose, tools, title
        self.finished: asyncio.Queue[Finished | None] = asyncio.Queue()
        self.ended = asyncio.Event()
        self.attempts: dict[str, int] = {}
        self.writer: asyncio.Task[None] | None = None

    async def all(self, slots: Sequence[Slot]) -> None:
        self.attempts = self.run.store.attempts([slot.id for slot in slots])
        gate = asyncio.Semaphore(self.run.config.rollout.concurrency)
        with self.run.reporter.bar(self.title, len(slots)) as bar:
            self.writer = asyncio.create_task(self._write(bar))
            try:
                async with asyncio.TaskGroup() as group:
                    for slot in slots:
                        group.create_task(self._one(slot, gate))
            except ExceptionGroup as failures:
                raise failures.exceptions[0] from None
            finally:
                # What finished before a failure is kept: it may already have been paid for.
                self.ended.set()
                await self.finished.put(None)
                await self.writer

    async def _one(self, slot: Slot, gate: asyncio.Semaphore) -> None:
        async with gate:
            if self.writer is not None and self.writer.done():  # nobody would keep what is made from here on
                self.writer.result()
            for attempt in range(self.attempts.get(slot.id, 0), ATTEMPTS):
                trajectory, forecast = await self._try(slot, attempt)
                if not forecast.status.is_failure or attempt == ATTEMPTS - 1:
                    await self.finished.put((trajectory, forecast))
                    return
                self.run.store.add_failure(slot.id, attempt, forecast.status, trajectory.stop_reason.value)
                faults.at("predict.failed")
            raise RunError(
                f"forecast {slot.id} failed {ATTEMPTS} times and was not kept; look at `show {slot.question.id}`"
            )

    async def _try(self, slot: Slot, attempt: int) -> Finished:
        rollouts = self.run.config.rollout
        seed = int(content_id("sample", self.run.config.seed, slot.id, attempt)[:7], 16)
        return await rollout(
            slot.question,
            self.policy,
            self.tools,
            self.run.world,
            config=rollouts,
            sampling=Sampling(rollouts.temperature, rollouts.top_p, seed),
            purpose=self.purpose,
            agent=self.run.agent,
            sample=slot.sample,
            attempt=attempt,
            clock=self.run.clock,
        )

    async def _write(self, bar: Bar) -> None:
        """Commit what has finished, together; progress moves only after the commit."""
        last = False
        while not last:
            batch, last = await self._gathered()
            if not batch:
                return
            began = time.monotonic()
            self.run.store.add_rollouts(batch)
            for _ in batch:
                faults.at("predict.stored")
            bar.advance(len(batch))
            # The loop stands still while a commit is made: more may finish before the next, unless all have ended.
            wait = min(LONGEST_WAIT, BETWEEN_COMMITS * (time.monotonic() - began))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), wait)

    async def _gathered(self) -> tuple[list[Finished], bool]:
        """What has finished since the last commit, at least one unless all have ended; and whether they have."""
        batch: list[Finished] = []
        item = await self.finished.get()
        while item is not None:
            batch.append(item)
            if self.finished.empty():
                return batch, False
            item = self.finished.get_nowait()
        return batch, True
