"""A run: one folder with its configuration, its store, its world and its clock.

The folder is the whole state. Opened again with another configuration it is refused; opened by
a second process it is busy, and says who holds it.
"""

import gc
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from futureworld import faults
from futureworld.clock import Clock, FakeClock, Schedule
from futureworld.config import Config, build, to_yaml
from futureworld.cycle.report import Reporter, Silent
from futureworld.errors import ConfigError, RunError
from futureworld.policies import policy_folder, weight_hash
from futureworld.records import Checkpoint
from futureworld.store.database import file_errors
from futureworld.store.store import Store
from futureworld.worlds.base import World
from futureworld.worlds.open import open_world

CONFIG_FILE = "config.yaml"

COLLECT_AFTER = 100_000
"""New objects after which Python's collector looks at them; its own 700 suits small programs."""

Summary = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """Everything a stage needs. Stages read and write `store`; nothing else passes between them."""

    folder: Path
    config: Config
    world: World
    store: Store
    clock: Clock
    schedule: Schedule
    policy: Path
    reporter: Reporter

    @property
    def days(self) -> list[date]:
        """The asked days, in order."""
        return self.config.asked_days()

    @property
    def agent(self) -> str:
        """The name under which the run's policy forecasts."""
        return self.policy.name if self.config.policy != "pocket" else "pocket"

    def stage(self, name: str, key: str, work: Callable[[], Summary]) -> Summary:
        """Do `work` once: its summary is kept under (name, key), and a repeat returns it."""
        done = self.store.finished(name, key)
        if done is not None:
            return done
        started = time.monotonic()
        summary = work()
        summary["seconds"] = round(time.monotonic() - started, 3)
        faults.at(f"{name}.done")
        self.store.finish(name, key, summary)
        faults.at(f"{name}.finished")
        self.write_metrics()
        return summary

    def write_metrics(self) -> None:
        """`metrics.jsonl` is the job ledger as text, rewritten whole: it never knows more than the store."""
        lines = [json.dumps(job, sort_keys=True) for job in self.store.jobs()]
        replace_text(self.folder / "metrics.jsonl", "".join(line + "\n" for line in lines))

    def newest_checkpoint(self) -> Checkpoint:
        return self.store.checkpoints()[-1]

    def checkpoint_path(self, checkpoint: Checkpoint) -> Path:
        """Checkpoints inside the run are stored relative to it, so that a run can be moved."""
        path = Path(checkpoint.path)
        return path if path.is_absolute() else self.folder / path


@contextmanager
def open_run(
    folder: Path,
    config: Config,
    *,
    clock: Clock | None = None,
    reporter: Reporter | None = None,
    holder: str = "futureworld",
) -> Iterator[Run]:
    """Open or make the run in `folder` and hold its lock.

    Raises RunError when the folder belongs to another configuration, LockedError when busy.
    """
    make_folder(folder)
    check_config(folder, config)
    schedule = config.schedule.schedule()
    clock = clock or FakeClock(schedule.asked_at(config.start))
    world = open_world(config.world)
    spare_collections()
    policy = policy_folder(config.policy)
    with Store.open(folder, config.store, clock) as store, store.lock(holder) as lock:
        check_config(folder, config)  # again: another process may have begun the run meanwhile
        check_world(folder, store, world)
        run = Run(folder, config, world, store, clock, schedule, policy, reporter or Silent())
        if lock.taken_over_from is not None:
            run.reporter.line(f"{lock.taken_over_from} was killed while it held {folder}; what it had stored stands")
        store.remove_orphans()
        if not store.checkpoints():
            store.add_checkpoint(Checkpoint(0, str(policy.resolve()), weight_hash(policy), None, None))
        if not (folder / CONFIG_FILE).exists():  # last: what could not be opened leaves the folder free
            replace_text(folder / CONFIG_FILE, to_yaml(config))
        yield run


def spare_collections() -> None:
    """Let Python's cyclic collector pass over the world's rows, which stay, and look at new objects less often.

    Records hold no cycles; looking for them took a tenth of predict and a third of gathering a large batch.
    A process that opens many runs keeps only the first one's world from the collector.
    """
    if not gc.get_freeze_count():
        gc.freeze()
    gc.set_threshold(COLLECT_AFTER)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"run folder {folder} cannot be made: {error.strerror}; choose another with --run") from None


def check_config(folder: Path, config: Config) -> None:
    """Refuse another configuration than the one that the run in `folder` was made with, if there is one."""
    if not (folder / CONFIG_FILE).exists():
        return
    kept = read_config(folder)
    if kept.hash() == config.hash():
        return
    raise RunError(
        f"run folder {folder} belongs to another configuration ({difference(kept, config)});"
        " use its own values, or another folder with --run"
    )


def read_config(folder: Path) -> Config:
    """The configuration a run was made with. Raises RunError when there is none."""
    import yaml

    path = folder / CONFIG_FILE
    if not path.exists():
        raise RunError(
            f"{folder} is no run folder: it has no {CONFIG_FILE}; start one with `futureworld replay --run DIR`"
        )
    try:
        tree = yaml.safe_load(path.read_text())
        if not isinstance(tree, dict):
            raise ConfigError(f"it holds a {type(tree).__name__}, expected sections and keys")
        return build(tree)
    except (ConfigError, OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RunError(
            f"{path} cannot be read by this version: {error}; restore the file, or choose another folder with --run"
        ) from None


def difference(kept: Config, given: Config) -> str:
    """The first keys whose values differ, as `key: kept -> given`."""
    a, b = flat(kept.model_dump(mode="json")), flat(given.model_dump(mode="json"))
    changed = [
        f"{key}: {a.get(key)!r} there, {b.get(key)!r} given" for key in sorted(a | b) if a.get(key) != b.get(key)
    ]
    return "; ".join(changed[:3]) + (f"; and {len(changed) - 3} more" if len(changed) > 3 else "")


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    items: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            items.update(flat(value, f"{prefix}{key}."))
        else:
            items[prefix + key] = value
    return items


def check_world(folder: Path, store: Store, world: World) -> None:
    kept = store.meta("world")
    if kept is None and (folder / CONFIG_FILE).exists():
        raise RunError(
            f"run folder {folder} has a {CONFIG_FILE} but store {store.database.name} holds nothing of the run;"
            " restore the store, or choose another folder with --run"
        )
    if kept is None:
        store.set_meta("world", world.id)
    elif kept != world.id:
        raise RunError(
            f"the run was made on world {kept}, now it is {world.id}: its rows changed; use the old folder or a new run"
        )


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with file_errors(path):
            with temporary.open("w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
