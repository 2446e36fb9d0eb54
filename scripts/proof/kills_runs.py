"""Small scripted runs in processes that may be killed, and what their stores say afterwards."""

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from futureworld.clock import FakeClock
from futureworld.config import Config, load
from futureworld.cycle.ask import train_set
from futureworld.cycle.heldout import HELD_OUT
from futureworld.errors import RunError
from futureworld.policies import weight_hash
from futureworld.records import as_json, content_id
from futureworld.store.store import Store
from proof.kills_child import Job, make_policy, make_world

SMALL = (
    "days=3",
    "questions.per_day=12",
    "rollout.n=3",
    "rollout.concurrency=2",
    "update.mini_batches=4",
    "evaluate.days=2",
    "evaluate.per_day=10",
    "evaluate.end_samples=2",
    "evaluate.bootstrap=100",
    "tracking=none",
)
CHILD = Path(__file__).with_name("kills_child.py")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended: its exit code (-9 is SIGKILL), what it printed, processes it left."""

    pid: int
    code: int
    said: str
    left_over: int

    @property
    def last_line(self) -> str:
        return self.said.strip().splitlines()[-1] if self.said.strip() else ""


class Server:
    """The process that forks a child a job; see kills_child."""

    def __init__(self) -> None:
        environment = {key: value for key, value in os.environ.items() if key != "FUTUREWORLD_FAULT"}
        environment |= {"PYTHONPATH": str(CHILD.parent.parent), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def start(self, job: Job) -> int:
        """The child's process id."""
        return self._ask({"job": asdict(job)})["pid"]

    def stopped(self, pid: int) -> bool:
        """Wait until the child has stopped itself; False where it ended before."""
        return "stopped" in self._ask({"wait": pid})

    def end(self, pid: int, job: Job) -> Ended:
        """Wait until the child has ended."""
        code = self._ask({"wait": pid})["code"]
        return Ended(pid, code, Path(job.log).read_text(), in_session(pid))

    def run(self, job: Job) -> Ended:
        return self.end(self.start(job), job)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RunError(f"{CHILD.name} ended with code {self._process.wait()}; its traceback stands above")
        return json.loads(answer)


@cache
def server() -> Server:
    """The one of this process, closed when it ends."""
    made = Server()
    atexit.register(made.close)
    return made


def in_session(leader: int) -> int:
    """Living processes of the session that `leader` began."""
    count = 0
    for process in psutil.process_iter(["status"]):
        try:
            ours = os.getsid(process.pid) == leader
        except OSError:  # it has ended meanwhile
            continue
        count += ours and process.info["status"] != psutil.STATUS_ZOMBIE
    return count


@dataclass(frozen=True, slots=True)
class Lab:
    """A task's folder with its world and policy, and the configuration that all of its runs share."""

    folder: Path
    settings: tuple[str, ...] = field(default=())

    @classmethod
    def new(cls, folder: Path, *changes: str) -> "Lab":
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        world, policy = make_world(folder / "world"), make_policy(folder / "scripted")
        return cls(folder, (*SMALL, f"world={world}", f"policy={policy}", *changes))

    @property
    def config(self) -> Config:
        return load(None, list(self.settings))

    def run_folder(self, name: str) -> Path:
        return self.folder / "runs" / name

    def job(self, name: str, *, log_name: str = "", **more: Any) -> Job:
        log = self.folder / f"{log_name or name}.log"
        return Job(folder=str(self.run_folder(name)), log=str(log), settings=self.settings, **more)

    def play(self, name: str, **more: Any) -> Ended:
        return server().run(self.job(name, **more))

    def reference(self) -> tuple[dict[str, int], "Found"]:
        """Passages by place, and the end, of a run that nothing disturbs. Raises RunError where it fails."""
        ended = self.play("reference")
        if ended.code != 0:
            raise RunError(f"the undisturbed run ended with code {ended.code}: {ended.last_line}")
        passed = re.search(r"^passed (\{.*\})$", ended.said, re.MULTILINE)
        assert passed is not None
        return json.loads(passed[1]), self.find("reference")

    def find(self, name: str) -> "Found":
        return Found.of(self.run_folder(name), self.config)

    def forget(self, name: str) -> None:
        shutil.rmtree(self.run_folder(name), ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Found:
    """What a run's store and folder hold, as plain values by name; times of the machine are left out."""

    questions: Mapping[str, Any]
    outcomes: Mapping[str, Any]
    forecasts: Mapping[str, Any]
    """Forecast and the digest of its trajectory, by id."""
    attempts: Mapping[str, int]
    updates: Mapping[str, Any]
    weights: Mapping[str, str]
    """Of every checkpoint in the store, the hash of the files on disk."""
    stages: Mapping[str, Any]
    doubled: int

    @classmethod
    def of(cls, run: Path, config: Config) -> "Found":
        clock = FakeClock(config.schedule.schedule().asked_at(config.start))
        with Store.open(run, config.store, clock) as store:
            sets = [*map(train_set, config.asked_days()), HELD_OUT]
            asked = {name: store.question_set(name) for name in sets}
            questions = {q.id: q for some in asked.values() for q in some or ()}
            histories = {id_: store.outcome_history(id_) for id_ in questions}
            forecasts = store.forecasts()
            bodies = store.trajectories([forecast.id for forecast in forecasts])
            updates = store.updates()
            checkpoints = store.checkpoints()
            slots = {(f.question_id, f.agent, f.policy_version, f.purpose, f.sample) for f in forecasts}
            return cls(
                questions={n: [as_json(q) for q in some] for n, some in asked.items() if some is not None},
                outcomes={id_: [as_json(one) for one in history] for id_, history in histories.items() if history},
                forecasts={f.id: (as_json(f), digest(b)) for f, b in zip(forecasts, bodies, strict=True)},
                attempts={id_: count for id_, count in store.attempts(f.id for f in forecasts).items() if count},
                updates={made.id: (made.version, made.trajectory_ids, made.ages, made.weight_hash) for made in updates},
                weights={f"v{one.version}": weight_hash(run / one.path) for one in checkpoints},
                stages={f"{job['stage']} {job['key']}": summary(job["summary"]) for job in store.jobs()},
                doubled=len(forecasts) - len(slots) + len(updates) - len({made.version for made in updates}),
            )

    def missing_from(self, later: "Found") -> int:
        """How much of what is here is not there, or differs there."""
        return sum(
            there.get(name) != value
            for here, there in zip(self.parts(), later.parts(), strict=True)
            for name, value in here.items()
        )

    def differences(self, other: "Found") -> int:
        """Things that only one of both holds, or that differ."""
        return sum(
            one.get(name) != two.get(name)
            for one, two in zip(self.parts(), other.parts(), strict=True)
            for name in one.keys() | two.keys()
        )

    def parts(self) -> Sequence[Mapping[str, Any]]:
        return (
            self.questions,
            self.outcomes,
            self.forecasts,
            self.attempts,
            self.updates,
            self.weights,
            self.stages,
        )


def digest(trajectory: Any) -> str:
    return content_id(as_json(trajectory))


def summary(kept: Mapping[str, Any]) -> dict[str, Any]:
    """A stage's summary without what a clock measured."""
    return {key: value for key, value in kept.items() if key not in ("seconds", "metrics")}
