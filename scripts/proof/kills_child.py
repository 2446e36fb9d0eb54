"""A process that plays small runs, each in a child of its own that may be killed.

It imports what a run needs once and forks for every job, so that a kill costs a run and no start.
Jobs come as JSON lines on standard input, answers leave as JSON lines:

    {"job": {...}}    -> {"pid": 12}             a child plays the run; see `Job`
    {"wait": 12}      -> {"code": -9}            when it has ended; -9 is SIGKILL
                      -> {"stopped": true}       when it has stopped itself, see `Job.stop_at`

The policy answers by a hash of weights, question and seed: a run on other weights would say other
things. The learner is the real one with its files, markers and order; its trainer takes Adam steps
on a table of 64 numbers in this process.
"""

import asyncio
import faulthandler
import gzip
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from futureworld import faults
from futureworld.agents.base import Conversation, Feedback, Policy, Sampling, Turn
from futureworld.agents.scripted import ScriptedConversation, ScriptedEngine, ScriptedPolicy, search_then
from futureworld.clock import FakeClock
from futureworld.config import Config, load
from futureworld.cycle import predict as predicting
from futureworld.cycle import resolve as resolving
from futureworld.cycle.day import do_day
from futureworld.cycle.replay import replay, workers
from futureworld.cycle.run import open_run
from futureworld.errors import EngineError, FutureWorldError, UpdateError
from futureworld.policies import weight_hash
from futureworld.records import Message, content_id
from futureworld.worlds.open import ALMANAC, world_folder
from futureworld.worlds.reading import OBSERVATIONS, SERIES, WORLD
from verl_tool_future.advantages import group_advantages
from verl_tool_future.learner import VerlLearner
from verl_tool_future.transfer import Row

WEIGHTS = "model.safetensors"
BUCKETS = 64
SINCE = "2026-01-01"


@dataclass(frozen=True, slots=True)
class Job:
    """One run to play until it ends, fails or is killed. Output and errors go to `log`."""

    folder: str
    log: str
    settings: Sequence[str]
    fault: str = ""
    """A place and a passage, as in futureworld.faults."""
    stop_at: int = 0
    """Stop (SIGSTOP) when this rollout begins; 0 never."""
    file_limit: int = 0
    """No file may grow beyond so many bytes; 0 is no limit."""
    clock: str = ""
    """Do the whole calendar day `day` by a clock that shows this, in place of a replay."""
    day: str = ""


# --- the policy -----------------------------------------------------------------------------------


class Answers(ScriptedEngine):
    """Serves a policy that searches and answers by a hash; about one rollout in 13 fails outside it."""

    opened = 0
    stop_at = 0

    def __init__(self, config: Config, run_folder: Path, model: Path) -> None:
        super().__init__(search_then(lambda _: 0.5))

    def load(self, path: str, version: int) -> None:
        super().load(path, version)
        self._weights = weight_hash(Path(path))

    def policy(self) -> Policy:
        return HashedPolicy(self._weights, self._version)


class HashedPolicy(ScriptedPolicy):
    def __init__(self, weights: str, version: int) -> None:
        super().__init__(search_then(lambda _: 0.5), version)
        self._weights = weights

    def open(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], sampling: Sampling, request_id: str
    ) -> Conversation:
        Answers.opened += 1
        if Answers.opened == Answers.stop_at:
            os.kill(os.getpid(), signal.SIGSTOP)
        said = search_then(lambda code: 0.02 + 0.96 * number(self._weights, code, sampling.seed))
        return Slow(messages, said(messages), self.version, sampling.seed)


class Slow(ScriptedConversation):
    """Lets others go on before each turn, so that rollouts end and are stored one after the other."""

    async def next(self, feedback: Sequence[Feedback], max_tokens: int) -> Turn:
        await asyncio.sleep(0)
        if number("fails", self._seed) < 1 / 13:
            raise EngineError("the request was refused")
        return await super().next(feedback, max_tokens)


def number(*parts: Any) -> float:
    """A number from 0 to 1 that only the parts decide."""
    return int(content_id(*parts)[:8], 16) / 16**8


# --- the trainer ----------------------------------------------------------------------------------


class PlainTrainer:
    """Adam on a table of log-probabilities by token, in this process; state and note as verl leaves them."""

    def __init__(self, config: Config, model: Path, state: Path, run_folder: Path) -> None:
        self._state, self._version = state, 0
        self._table = torch.nn.Parameter(load_file(model / WEIGHTS)["table"])
        self._optimiser = torch.optim.Adam([self._table], lr=0.05)
        if self._note.exists():
            self._version = int(self._note.read_text())
            kept = torch.load(self._folder / "state.pt", weights_only=True)
            with torch.no_grad():
                self._table.copy_(kept["table"])
            self._optimiser.load_state_dict(kept["optimiser"])

    def version(self) -> int:
        return self._version

    def step(self, rows: Sequence[Row], mini_batches: int) -> dict[str, float]:
        advantages = group_advantages([row.reward for row in rows], [row.group for row in rows], False)
        losses = []
        for first in range(mini_batches):
            part = range(first, len(rows), mini_batches)
            loss = torch.stack([self._loss(rows[i], float(advantages[i])) for i in part]).mean()
            self._optimiser.zero_grad()
            loss.backward()
            self._optimiser.step()
            losses.append(loss.item())
        self._version += 1
        return {"actor/pg_loss": sum(losses) / len(losses)}

    def save(self) -> None:
        try:
            self._write()
        except Exception as error:  # torch and safetensors have classes of their own for a full disk
            raise UpdateError(f"the trainer cannot save into {self._folder}: {error}; run again") from error

    def kill(self) -> None:
        pass

    def _write(self) -> None:
        export = self._folder / "huggingface"
        export.mkdir(parents=True, exist_ok=True)
        torch.save({"table": self._table.data, "optimiser": self._optimiser.state_dict()}, self._folder / "state.pt")
        save_file({"table": self._table.data}, export / WEIGHTS)
        faults.at("trainer.saving")
        self._note.write_text(str(self._version))

    def _loss(self, row: Row, advantage: float) -> torch.Tensor:
        log_probs = torch.log_softmax(self._table, 0)[torch.from_numpy(row.response % BUCKETS)]
        return -advantage * (log_probs * torch.from_numpy(row.mask)).sum() / row.mask.sum()

    @property
    def _folder(self) -> Path:
        return self._state / f"global_step_{self._version}" / "actor"

    @property
    def _note(self) -> Path:
        return self._state / "latest_checkpointed_iteration.txt"


PLUGINS = {"engines": Answers, "learners": partial(VerlLearner, trainer=PlainTrainer)}


def make_policy(folder: Path) -> Path:
    """Version 0: a table of zeros, and the files that every policy folder has."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer_config.json"):
        (folder / name).write_text("{}")
    save_file({"table": torch.zeros(BUCKETS)}, folder / WEIGHTS)
    return folder


def make_world(folder: Path) -> Path:
    """Every fifth series of the almanac since SINCE, and no events: asked, searched and read in a moment."""
    folder.mkdir(parents=True, exist_ok=True)
    with world_folder(ALMANAC) as source:
        lines = (source / SERIES).read_text().splitlines(keepends=True)[::5]
        head, *rows = gzip.decompress((source / OBSERVATIONS).read_bytes()).decode().splitlines(keepends=True)
        (folder / WORLD).write_bytes((source / WORLD).read_bytes())
    kept = {json.loads(line)["id"] for line in lines}
    rows = [row for row in rows if (parts := row.split(","))[0] in kept and parts[1] >= SINCE]
    (folder / SERIES).write_text("".join(lines))
    (folder / OBSERVATIONS).write_bytes(gzip.compress("".join([head, *rows]).encode(), mtime=0))
    return folder


# --- a job ----------------------------------------------------------------------------------------


class Lines:
    """Tells on standard output what a person would see."""

    def line(self, text: str) -> None:
        print(text, flush=True)

    @contextmanager
    def bar(self, title: str, total: int) -> Iterator["Lines"]:
        yield self

    def advance(self, steps: int = 1) -> None:
        pass


def play(job: Job) -> None:
    config, folder = load(None, list(job.settings)), Path(job.folder)
    if job.clock:
        day, clock = date.fromisoformat(job.day), FakeClock(datetime.fromisoformat(job.clock))
        with (
            open_run(folder, config, clock=clock, reporter=Lines(), holder="day") as run,
            workers(run, PLUGINS.__getitem__) as crew,
        ):
            print("did", *do_day(run, day, crew))
        return
    clock = FakeClock(config.schedule.schedule().asked_at(config.start))
    with open_run(folder, config, clock=clock, reporter=Lines(), holder="replay") as run:
        replay(run, clock, PLUGINS.__getitem__)
    print("passed", json.dumps(faults.passed()))


def child(job: Job) -> None:
    """The life of a forked child; never returns."""
    os.setsid()  # what it leaves behind is found by its session
    handle = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    faulthandler.enable()
    os.environ[faults.ENVIRONMENT_VARIABLE] = job.fault or "nowhere"
    Answers.stop_at = job.stop_at
    if job.file_limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job.file_limit, resource.RLIM_INFINITY))
    code = 1
    try:
        play(job)
        code = 0
    except FutureWorldError as error:
        print(f"{type(error).__name__}: {error}")
    except OSError as error:
        print(f"{type(error).__name__}: {error}")
        code = 1 if error.filename else 3  # as the command line: a path is a way out
    except BaseException:
        traceback.print_exc()
        code = 3
    sys.stdout.flush()
    os._exit(code)


def serve() -> None:
    torch.set_num_threads(1)
    # Little is stored at once, so that a kill can fall between two commits of a small stage.
    predicting.BETWEEN_COMMITS = 0.0
    resolving.TOGETHER = 5
    for name in ("torch._dynamo", "bm25s", "pyarrow.parquet", "sklearn.linear_model", "scipy.stats"):
        import_module(name)  # what a run imports when it first needs it
    for line in sys.stdin:
        request = json.loads(line)
        if "job" in request:
            pid = os.fork()
            if pid == 0:
                child(Job(**request["job"]))
            answer: dict[str, Any] = {"pid": pid}
        else:
            _, status = os.waitpid(request["wait"], os.WUNTRACED)
            answer = {"stopped": True} if os.WIFSTOPPED(status) else {"code": os.waitstatus_to_exitcode(status)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
