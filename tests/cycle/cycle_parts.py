"""A run small enough for tests: the almanac, a scripted policy, a learner that writes down its batches."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from futureworld.agents.scripted import ScriptedEngine, search_then
from futureworld.clock import FakeClock
from futureworld.config import Config, load
from futureworld.cycle.batch import Batch, Learned
from futureworld.cycle.day import Workers, do, moments
from futureworld.cycle.run import Run, Summary, open_run
from futureworld.policies import weight_hash


def make_policy(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer_config.json", "model.safetensors"):
        (folder / name).write_text("{}")
    return folder


def small_config(tmp_path: Path, *overrides: str) -> Config:
    policy = make_policy(tmp_path / "scripted")
    small = ["days=2", "questions.per_day=12", "rollout.n=3", "tracking=none", f"policy={policy}"]
    return load(None, [*small, *overrides])


class NotebookLearner:
    """Makes a version that names the trajectories and rewards it was given, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.batches: list[Batch] = []

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def update(self, batch: Batch) -> Learned:
        self.batches.append(batch)
        rows = [(member.trajectory.id, member.reward) for member in batch.members]
        path = self.folder / "checkpoints" / f"v{batch.step}"
        path.mkdir(parents=True, exist_ok=True)
        (path / "model.safetensors").write_text(json.dumps(rows))
        return Learned(path, weight_hash(path), {"reward_mean": sum(reward for _, reward in rows) / len(rows)})


@contextmanager
def opened(tmp_path: Path, config: Config) -> Iterator[tuple[Run, FakeClock, NotebookLearner]]:
    clock = FakeClock(config.schedule.schedule().asked_at(config.start))
    folder = tmp_path / "run"
    with open_run(folder, config, clock=clock) as run:
        yield run, clock, NotebookLearner(folder)


def play(
    run: Run, clock: FakeClock, learner: NotebookLearner, answer: Callable[[str], float] = lambda _: 0.7
) -> list[dict[str, Summary]]:
    """Every moment of the run, with a policy that searches and says `answer(observation)`."""
    engine = ScriptedEngine(search_then(answer))
    done = []
    for moment in moments(run):
        clock.move_to(moment.at)
        done.append(do(run, moment, Workers(lambda: engine, lambda: learner)))
    return done
