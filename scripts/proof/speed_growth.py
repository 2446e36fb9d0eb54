"""How the stages grow with the questions of a day: a made world, a scripted policy, one process a size.

python -m proof.speed_growth FOLDER QUESTIONS      prints one JSON object
"""

import csv
import gzip
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from futureworld.agents.scripted import ScriptedEngine, search_then
from futureworld.clock import FakeClock
from futureworld.config import Config, load
from futureworld.cycle.ask import ask, collect
from futureworld.cycle.batch import Batch, Learned
from futureworld.cycle.evaluate import answer_held_out, score
from futureworld.cycle.predict import predict
from futureworld.cycle.resolve import resolve
from futureworld.cycle.run import open_run
from futureworld.cycle.update import update
from futureworld.policies import weight_hash
from futureworld.worlds.reading import COLUMNS, OBSERVATIONS, SERIES, WORLD

START = date(2026, 5, 4)
HISTORY, FUTURE = 20, 6
"""Days of rows before and after the asked day."""
SPARE = 1.5
"""Series for each question of the day: some have no question of the day, and a held-out day needs them too."""
STAGES = ("collect", "ask", "predict", "resolve", "update", "evaluate")


def make_world(folder: Path, series: int) -> Path:
    """Daily series that swing about a level of their own, each row published in the evening of its day."""
    folder.mkdir(parents=True, exist_ok=True)
    days = [START + timedelta(days=i) for i in range(-HISTORY, FUTURE)]
    shape = {"kind": "level", "unit": "points", "calendar": "daily", "timing": "within_day", "zone": "UTC"}
    with (folder / SERIES).open("w") as file:
        for i in range(series):
            about = {
                "id": f"made.s{i:05}",
                "title": f"the level of station {i}",
                "domain": f"d{i % 8}",
                "source_repo": "made",
            }
            file.write(json.dumps(about | shape) + "\n")
    with gzip.open(folder / OBSERVATIONS, "wt", compresslevel=1, newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for i in range(series):
            for j, day in enumerate(days):
                value = round(100 + i % 50 + 5 * math.sin(0.9 * j + i), 2)
                table.writerow((f"made.s{i:05}", day, value, f"{day}T20:00:00Z"))
    (folder / WORLD).write_text(json.dumps({"name": "made", "bulletins": True}))
    return folder


class NoLearner:
    """Copies the weights: an update in which only gathering and writing take time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def update(self, batch: Batch) -> Learned:
        path = self._folder / "checkpoints" / f"v{batch.step}"
        path.mkdir(parents=True, exist_ok=True)
        (path / "model.safetensors").write_text(f"version {batch.step}")
        return Learned(path, weight_hash(path), {"trained": float(len(batch.members))})


class Meter:
    """Seconds and the highest resident memory of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.peak_mb: dict[str, float] = {}

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        forget_peak()
        began = time.perf_counter()
        yield
        self.seconds[stage] = round(time.perf_counter() - began, 3)
        self.peak_mb[stage] = round(peak_mb(), 1)


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again from what is resident now


def peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def settings(folder: Path, questions: int) -> Config:
    policy = folder / "scripted"
    policy.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer_config.json", "model.safetensors"):
        (policy / name).write_text("{}")
    world = make_world(folder / "world", round(SPARE * questions))
    keys = {
        "world": world,
        "policy": policy,
        "start": START,
        "days": 1,
        "tracking": "none",
        "schedule.retry_days": 0,
        "questions.per_day": questions,
        "rollout.n": 2,
        "evaluate.days": 1,
        "evaluate.per_day": questions,
        "evaluate.end_samples": 1,
        "evaluate.bootstrap": 200,
    }
    return load(None, [f"{key}={value}" for key, value in keys.items()])


def stages(folder: Path, questions: int) -> dict[str, Any]:
    """Every stage once; returns questions asked, seconds and peak memory by stage."""
    config = settings(folder, questions)
    clock = FakeClock(config.schedule.schedule().asked_at(START))
    engine, meter = ScriptedEngine(search_then(lambda _: 0.7)), Meter()
    tomorrow = START + timedelta(days=1)
    with open_run(folder / "run", config, clock=clock) as run:
        resident = peak_mb()
        done: dict[str, Mapping[str, Any]] = {}
        first: dict[str, Callable[[], Mapping[str, Any]]] = {
            "collect": lambda: collect(run, START),
            "ask": lambda: ask(run, START),
            "predict": lambda: predict(run, START, engine),
        }
        for name, stage in first.items():
            with meter.of(name):
                done[name] = stage()
        clock.move_to(config.schedule.schedule().resolves_at(START))
        with meter.of("resolve"):
            done["resolve"] = resolve(run, tomorrow)
        with meter.of("update"):
            done["update"] = update(run, tomorrow, NoLearner(run.folder))
        answer_held_out(run, lambda: engine)
        with meter.of("evaluate"):
            found = score(run)
    return {
        "questions": done["ask"]["asked"],
        "rollouts": done["predict"]["rollouts"],
        "trained": done["update"]["trained"],
        "held_out": len(found.questions),
        "stage_seconds": meter.seconds,
        "peak_mb": meter.peak_mb,
        "world_mb": round(resident, 1),
    }


if __name__ == "__main__":
    place = Path(sys.argv[1])
    stages(place / "warm", 10)  # imports and caches are not growth
    print(json.dumps(stages(place / "measured", int(sys.argv[2]))))
