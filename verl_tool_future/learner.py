"""Learner: one GRPO update a day by verl's trainer, applied exactly once."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from futureworld import faults
from futureworld.config import Config, check_training
from futureworld.cycle.batch import Batch, Learned
from futureworld.errors import UpdateError
from futureworld.policies import weight_hash
from futureworld.records import update_id
from verl_tool_future.actor import TrainerHandle
from verl_tool_future.checkpoints import Checkpoints, Marker, verify
from verl_tool_future.metrics import update_metrics
from verl_tool_future.runtime import quiet
from verl_tool_future.transfer import Row, rows


class Trainer(Protocol):
    """What takes the optimiser steps and keeps their state; `TrainerHandle` is verl's."""

    def version(self) -> int: ...

    def step(self, rows: Sequence[Row], mini_batches: int) -> dict[str, float]: ...

    def save(self) -> None: ...

    def kill(self) -> None: ...


class VerlLearner:
    """Keeps a trainer up over days and makes version after version under `run_folder/checkpoints`.

    `model` is version 0. Order of an update: train, verl saves its state, weights are exported
    and read back, the marker is written, older resume states are removed. `trainer` is made
    from (config, model, state folder, run folder).
    """

    def __init__(
        self,
        config: Config,
        run_folder: Path,
        model: Path,
        trainer: Callable[[Config, Path, Path, Path], Trainer] = TrainerHandle,
    ) -> None:
        check_training(config)
        self._config = config
        self._run_folder = run_folder
        self._model = model
        self._checkpoints = Checkpoints(run_folder / "checkpoints")
        self._make_trainer = trainer
        self._trainer: Trainer | None = None

    def start(self) -> None:
        """Begin to start the trainer (about a minute); `update` waits for it."""
        if self._trainer is None:
            self._checkpoints.verl.mkdir(parents=True, exist_ok=True)
            self._checkpoints.discard_after(self._checkpoints.newest())
            with quiet.into(self._run_folder / "logs" / "learner.log"):
                self._trainer = self._make_trainer(self._config, self._model, self._checkpoints.verl, self._run_folder)

    def update(self, batch: Batch) -> Learned:
        """Make version `batch.step`, or return it where this very update made it before.

        Raises UpdateError; a failed update leaves no trace and may be called again.
        """
        name = update_id(batch.base.version, batch.base.weight_hash, [m.trajectory.id for m in batch.members])
        done = self._checkpoints.marker(batch.step)
        if done is not None:
            return self._finished(batch.step, name, done)
        self._check_base(batch)
        made = rows(batch, self._config)
        try:
            return self._make(batch, made, name)
        except BaseException as error:
            self.stop()
            if isinstance(error, OSError):
                raise UpdateError(
                    f"version {batch.step} cannot be written: {error}; the base stands, run again"
                ) from error
            raise

    def stop(self) -> None:
        """End the trainer; what is on disk stays complete. Also the way on after a failure:
        the optimiser may have moved, nothing of this trainer may be used again.
        """
        if self._trainer is not None:
            trainer, self._trainer = self._trainer, None
            trainer.kill()

    def _make(self, batch: Batch, made: list[Row], name: str) -> Learned:
        seconds: dict[str, float] = {}
        with _timed(seconds, "start"):
            trainer = self._ready(batch.base.version)
        faults.at("update.ready")
        with _timed(seconds, "step"):
            verl = trainer.step(made, self._config.update.mini_batches)
        faults.at("update.stepped")
        with _timed(seconds, "save"):
            trainer.save()
            faults.at("update.written")
            folder = self._checkpoints.export(batch.step, self._model)
            hashed = verify(folder, self._model)
        faults.at("update.saved")
        metrics = update_metrics(batch, verl, seconds, self._config.update.normalize_std)
        self._checkpoints.mark(batch.step, Marker(name, batch.base.weight_hash, hashed, metrics))
        faults.at("update.marked")
        self._checkpoints.prune(batch.step)
        return Learned(folder, hashed, metrics)

    def _ready(self, base: int) -> Trainer:
        self.start()
        assert self._trainer is not None
        found = self._trainer.version()
        if found != base:
            raise UpdateError(f"the trainer stands at version {found}, the batch starts from version {base}")
        return self._trainer

    def _finished(self, step: int, name: str, done: Marker) -> Learned:
        if done.update_id != name:
            raise UpdateError(
                f"version {step} was made by update {done.update_id}, this batch is update {name}; a run's past cannot"
                " change: restore its store, or start a new run folder"
            )
        self._checkpoints.prune(step)
        return Learned(self._checkpoints.version(step), done.weight_hash, dict(done.metrics))

    def _check_base(self, batch: Batch) -> None:
        base, newest = batch.base.version, self._checkpoints.newest()
        if batch.step != base + 1 or base != newest:
            raise UpdateError(
                f"update {batch.step} starts from version {base}, but version {newest} is the newest on disk"
            )
        marker = self._checkpoints.marker(base)
        found = marker.weight_hash if marker is not None else weight_hash(self._model)
        if found != batch.base.weight_hash:
            raise UpdateError(
                f"weights of version {base} are {found} on disk and {batch.base.weight_hash} in the store; restore one"
                " of them"
            )


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    seconds[stage] = time.monotonic() - began
