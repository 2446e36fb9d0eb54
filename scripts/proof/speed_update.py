"""Seconds of an update's step: ours, and that of verl's `sync` trainer with verl's own worker, on the same rows.

verl's `sync` trainer adds to its base only the sync with the rollout servers, which is no part of a
step here; rows reach both trainers through TransferQueue.
"""

import os
import shutil
import statistics
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import ray
import torch.distributed as dist
import transfer_queue as tq
from omegaconf import DictConfig, OmegaConf
from verl.trainer.ppo.v1.trainer_base import PPOTrainer
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp import FSDPEngineWithLMHead
from verl.workers.engine_workers import ActorRolloutRefWorker, TrainingWorker

from futureworld.clock import FakeClock
from futureworld.config import Config, load
from futureworld.cycle.ask import ask, collect
from futureworld.cycle.predict import predict
from futureworld.cycle.resolve import resolve
from futureworld.cycle.run import open_run
from futureworld.cycle.update import make_batch
from futureworld.policies import policy_folder
from proof.parts import Row
from proof.speed_engine import engine, rounded
from verl_tool_future.actor import TrainerHandle
from verl_tool_future.runtime import start_ray, stop_ray
from verl_tool_future.trainer import DelayedTrainer
from verl_tool_future.transfer import Row as Trained
from verl_tool_future.transfer import rows
from verl_tool_future.update_config import update_config

ROUNDS, STEPS = 2, 3
"""Each trainer is started so often in turn, and steps so often after a first step that is not counted."""


class VerlWorker(TrainingWorker):
    def __init__(self, config: Any) -> None:
        if not dist.is_initialized():  # torch refuses verl's `cpu:gloo,cpu:gloo`
            method = os.environ.get("DIST_INIT_METHOD")
            ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            dist.init_process_group("gloo", rank=ranks[0], world_size=ranks[1], init_method=method)
        super().__init__(config)


class VerlActorWorker(ActorRolloutRefWorker):
    """verl's own worker with verl's own engine, which it registers for cuda and npu only."""

    actor_worker_cls = VerlWorker

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        for backend in ("fsdp", "fsdp2"):  # in place of ours: verl refuses to register a device twice
            EngineRegistry._engines["language_model"][backend]["cpu"] = FSDPEngineWithLMHead
        super().__init__(*args, **kwargs)


class VerlTrainer(DelayedTrainer):
    """verl's steps between sampling and the sync of weights, as its base and its `sync` trainer have them."""

    def _init_resource_pool_mgr(self) -> None:
        PPOTrainer._init_resource_pool_mgr(self)
        self.role_worker_mapping = dict.fromkeys(self.role_worker_mapping, ray.remote(VerlActorWorker))

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        return PPOTrainer._update_actor(self, batch, metrics)


@ray.remote(num_cpus=0)
class VerlUpdateActor:
    def __init__(self, config: DictConfig) -> None:
        OmegaConf.resolve(config)
        tq.init(config.transfer_queue)
        self._trainer = VerlTrainer(config)
        self._trainer.init()

    def step(self, made: Sequence[Trained], mini_batches: int) -> dict[str, float]:
        metrics = self._trainer.run(made, mini_batches)
        return {key: float(value) for key, value in metrics.items() if key.startswith("timing_s/")}


class VerlHandle(TrainerHandle):
    """Our handle on verl's trainer: GRPO advantages and the plain clipped loss, all else the same."""

    def __init__(self, config: Config, model: Path, state: Path, run_folder: Path) -> None:
        start_ray(config, run_folder)
        composed = update_config(config, model, state)
        composed.algorithm.adv_estimator = "grpo"
        composed.actor_rollout_ref.actor.policy_loss.loss_mode = "vanilla"
        self._actor: Any = VerlUpdateActor.remote(composed)


def update_ratio(folder: Path) -> Row:
    """Seconds of verl's `timing_s/step`, which both trainers take of themselves."""
    config = load(None, ["tracking=none"])
    made = sampled(folder, config)
    found: dict[str, list[float]] = {"ours": [], "verl": []}
    for i in range(ROUNDS):
        for name, kind in (("ours", TrainerHandle), ("verl", VerlHandle)):
            found[name] += steps(kind, folder / f"{name}-{i}", config, made)
    ratio = statistics.median(found["ours"]) / statistics.median(found["verl"])
    return {
        "kind": "update",
        "trajectories": len(made),
        "tokens": sum(len(row) for row in made),
        "trained_tokens": int(sum(row.mask.sum() for row in made)),
        "ours": rounded(found["ours"]),
        "verl": rounded(found["verl"]),
        "ratio": round(ratio, 3),
        "checks": {"an update's step takes no longer than verl's": ratio <= 1.0},
    }


def sampled(folder: Path, config: Config) -> list[Trained]:
    """The rows of a first day's update, by the real engine."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    clock = FakeClock(config.schedule.schedule().asked_at(config.start))
    tomorrow = config.start + timedelta(days=1)
    with engine(config, folder) as served, open_run(folder / "run", config, clock=clock) as run:
        collect(run, config.start)
        ask(run, config.start)
        predict(run, config.start, served)
        clock.move_to(config.schedule.schedule().resolves_at(config.start))
        resolve(run, tomorrow)
        return rows(make_batch(run, tomorrow), config)


def steps(kind: type[TrainerHandle], folder: Path, config: Config, made: list[Trained]) -> list[float]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    trainer = kind(config, policy_folder(config.policy), folder / "state", folder)
    try:
        timings = [trainer.step(made, config.update.mini_batches) for _ in range(1 + STEPS)]
    finally:
        trainer.kill()
        stop_ray()
    return [timing["timing_s/step"] for timing in timings[1:]]
