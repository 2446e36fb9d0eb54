"""`futureworld` in processes of its own, made small, killed with -9, and looked at from outside.

A command dies at a named place (futureworld.faults), or one of its processes is struck from here. What
it started is watched while it lives and must be gone soon after it has ended.
"""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import psutil

from futureworld import faults
from futureworld.clock import SystemClock
from futureworld.cycle.ask import train_set
from futureworld.errors import RunError
from futureworld.records import Forecast, Outcome, Question, Trajectory, Update
from futureworld.store.store import Store

COMMAND = Path(sys.executable).with_name("futureworld")
MARK = "FUTUREWORLD_KILLED_RUN"
"""Names the run in the environment of every process that works on it."""

START, DAY_COUNT = date(2026, 5, 4), 2
PER_DAY, GROUP, MINI_BATCHES = 24, 4, 4
SMALL: Mapping[str, object] = {
    "days": DAY_COUNT,
    "questions.per_day": PER_DAY,
    "rollout.n": GROUP,
    "rollout.concurrency": 16,
    "update.mini_batches": MINI_BATCHES,
    "evaluate.days": 2,
    "evaluate.per_day": 10,
    "evaluate.end_samples": 2,
    "evaluate.bootstrap": 200,
}
DAYS = tuple(date.fromordinal(START.toordinal() + i) for i in range(DAY_COUNT))

LIMIT = 1500.0
"""Seconds that a command may take."""
GRACE = 90.0
"""Seconds in which everything that a command started must have ended after it."""


@dataclass(frozen=True, slots=True)
class Strike:
    """Kill -9 of the first process whose title holds `process`, once `forecasts` are stored."""

    process: str
    forecasts: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `left` names the processes that outlived it by more than GRACE."""

    code: int
    output: str
    said: str
    struck: bool
    left: tuple[str, ...]

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    @property
    def last_words(self) -> str:
        lines = [line for line in self.said.splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""


def replay(run: Path, *extra: str, fault: str | None = None, strike: Strike | None = None) -> Ended:
    """`futureworld replay`, small, of `run`; goes on with it where it was begun."""
    settings = [f"--set={key}={value}" for key, value in SMALL.items()]
    resume = ["--resume"] if run.exists() else []
    return command(run, "replay", "--run", str(run), *resume, *settings, *extra, fault=fault, strike=strike)


def command(run: Path, *arguments: str, fault: str | None = None, strike: Strike | None = None) -> Ended:
    """`futureworld ARGUMENTS`, which works on `run`, until it has ended and what it started too."""
    environment = os.environ | {MARK: str(run), "WANDB_MODE": "offline", "PYTHONUNBUFFERED": "1", "COLUMNS": "500"}
    environment.pop(faults.ENVIRONMENT_VARIABLE, None)
    if fault is not None:
        environment[faults.ENVIRONMENT_VARIABLE] = fault
    output, said = run.with_name("output.txt"), run.with_name("said.txt")
    with output.open("w") as out, said.open("w") as err:
        running = subprocess.Popen([COMMAND, *arguments], env=environment, stdout=out, stderr=err)
        try:
            seen, struck = watch(running, run, strike)
        finally:
            running.kill()
            running.wait()
    left = outlived(run, seen, GRACE)
    return Ended(running.returncode, output.read_text(), said.read_text(), struck, tuple(left))


def watch(running: subprocess.Popen[bytes], run: Path, strike: Strike | None) -> tuple[set[psutil.Process], bool]:
    """Wait for the command's end and carry out `strike`; every process that it started, and whether it was struck."""
    seen: set[psutil.Process] = set()
    struck, deadline = False, time.monotonic() + LIMIT
    while running.poll() is None:
        if time.monotonic() > deadline:
            raise RunError(f"a command on {run} still ran after {LIMIT:.0f} s; look at {run / 'logs'}")
        with contextlib.suppress(psutil.NoSuchProcess):
            started = psutil.Process(running.pid).children(recursive=True)
            seen.update(started)
            if strike is not None and not struck and stored(run) >= strike.forecasts:
                struck = hit(started, strike.process)
        time.sleep(0.05 if strike is not None and not struck else 0.5)
    return seen, struck


def hit(processes: Sequence[psutil.Process], words: str) -> bool:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if words in " ".join(process.cmdline()):
                process.kill()
                return True
    return False


def stored(run: Path) -> int:
    """Forecasts in the run's store so far, while another process writes it."""
    address = f"file:{run / 'store.db'}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM forecasts").fetchone()[0]
    except sqlite3.OperationalError:  # not made yet
        return 0


def outlived(run: Path, seen: set[psutil.Process], seconds: float) -> list[str]:
    """Wait for the end of `seen` and of all that carries the run's mark; the titles of those that did not end."""
    deadline = time.monotonic() + seconds
    while left := [process for process in seen | carriers(run) if alive(process)]:
        if time.monotonic() > deadline:
            return sorted(title(process) for process in left)
        psutil.wait_procs(left, timeout=1.0)
    return []


def carriers(run: Path) -> set[psutil.Process]:
    """Every process that carries the run's mark."""
    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == str(run):
                found.add(process)
    return found


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:60]
    except psutil.Error:
        return str(process.pid)


@dataclass(frozen=True)
class Snapshot:
    """What a run's store says at one moment."""

    asked: dict[str, tuple[Question, ...]]
    forecasts: dict[str, Forecast]
    trajectories: dict[str, Trajectory]
    outcomes: dict[str, Outcome]
    updates: dict[int, Update]
    versions: dict[int, str]
    """Weight hash by version."""


def snapshot(run: Path) -> Snapshot:
    with Store.open(run, "", SystemClock()) as store:
        sets = {name: store.question_set(name) for name in map(train_set, DAYS)}
        asked = {name: questions for name, questions in sets.items() if questions is not None}
        forecasts = {forecast.id: forecast for forecast in store.forecasts()}
        ids = [question.id for questions in asked.values() for question in questions]
        return Snapshot(
            asked=asked,
            forecasts=forecasts,
            trajectories={one.id: one for one in store.trajectories(list(forecasts))},
            outcomes=dict(store.outcomes(ids)),
            updates={update.version: update for update in store.updates()},
            versions={checkpoint.version: checkpoint.weight_hash for checkpoint in store.checkpoints()},
        )


def lost(before: Snapshot, after: Snapshot) -> int:
    """Things of `before` that `after` lacks or has otherwise."""
    pairs = [(getattr(before, name), getattr(after, name)) for name in Snapshot.__dataclass_fields__]
    return sum(later.get(key) != value for earlier, later in pairs for key, value in earlier.items())


def doubled(found: Snapshot) -> int:
    """Questions asked, forecasts made and trajectories trained on more than once."""
    asked = Counter(question.id for questions in found.asked.values() for question in questions)
    slots = Counter((f.purpose, f.policy_version, f.question_id, f.sample) for f in found.forecasts.values())
    trained = Counter(name for update in found.updates.values() for name in update.trajectory_ids)
    return sum(times - 1 for counter in (asked, slots, trained) for times in counter.values())


def optimiser_steps(run: Path, version: int) -> set[int]:
    """Steps that Adam itself counted over the whole life of version `version`."""
    import torch

    (state,) = (run / "checkpoints" / "verl").glob(f"global_step_{version}/actor/optim_*.pt")
    return {int(one["step"]) for one in torch.load(state, weights_only=False)["state"].values()}
