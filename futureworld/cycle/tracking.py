"""wandb, as a mirror of the job ledger: its own axis for days and for updates, nothing late dropped.

Offline unless WANDB_API_KEY is set. One process writes; `step=` is never passed, since a later
day's outcome may belong to an earlier axis value and wandb drops steps that go back.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from futureworld.config import Config


class Tracker(Protocol):
    def log(self, values: Mapping[str, Any]) -> None: ...

    def finish(self) -> None: ...


class NoTracker:
    def log(self, values: Mapping[str, Any]) -> None:
        pass

    def finish(self) -> None:
        pass


class WandbTracker:
    """Families `day/*`, `resolve/*` over `day`; `update/*` and `evaluate/*` over `update`."""

    AXES: Mapping[str, str] = {
        "collect": "day",
        "ask": "day",
        "predict": "day",
        "resolve": "day",
        "update": "update",
        "evaluate": "update",
    }

    def __init__(self, config: Config, folder: Path) -> None:
        import wandb

        logging.getLogger("wandb").setLevel(logging.ERROR)
        self._run = wandb.init(
            project="futureworld",
            dir=str(folder),
            mode="online" if os.environ.get("WANDB_API_KEY") else "offline",
            config=config.model_dump(mode="json"),
            name=folder.name,
            resume="allow",
            settings=wandb.Settings(
                silent=True, console="off", x_disable_stats=True, disable_git=True, disable_code=True
            ),
        )
        for axis in ("day", "update"):
            self._run.define_metric(axis)
        for family, axis in self.AXES.items():
            self._run.define_metric(f"{family}/*", step_metric=axis)

    def log(self, values: Mapping[str, Any]) -> None:
        self._run.log(dict(values))

    def finish(self) -> None:
        """Write out what is left and end wandb's own process."""
        import wandb

        self._run.finish()
        wandb.teardown()


def tracker(config: Config, folder: Path) -> Tracker:
    return WandbTracker(config, folder) if config.tracking == "wandb" else NoTracker()


def numbers(family: str, summary: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a stage's summary under `family/...`, nested names joined with `/`."""
    flat: dict[str, float] = {}
    for key, value in summary.items():
        if isinstance(value, Mapping):
            flat.update(numbers(f"{family}/{key}", value))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            flat[f"{family}/{key}"] = value
    return flat
