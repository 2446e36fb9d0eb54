"""verl's actor worker with a record of raw ratios, and its CPU form on gloo.

The policy loss `futureworld` is verl's clipped one; beside it the record keeps, for every
optimiser step, the ratio of the policy to the log-probs that the loss was given, before clipping,
and the learning rate that the step was taken with (verl reports the next one).
"""

import os
from functools import reduce
from operator import add
from typing import Any, cast

import torch
import torch.distributed as dist
from tensordict import TensorDict
from verl.single_controller.base.decorator import make_nd_compute_dataproto_dispatch_fn, register
from verl.trainer.ppo.core_algos import compute_policy_loss_vanilla, register_policy_loss
from verl.utils import tensordict_utils as tu
from verl.workers.engine import EngineRegistry
from verl.workers.engine_workers import ActorRolloutRefWorker, TrainingWorker

from verl_tool_future.advantages import RatioStats
from verl_tool_future.cpu_engine import CpuEngine

LOSS = "futureworld"


class Record:
    """Ratio statistics of each optimiser step since `clear`, and the learning rate of the first."""

    def __init__(self) -> None:
        self.steps: list[RatioStats] = []
        self.learning_rate: float | None = None

    def clear(self) -> None:
        self.steps.clear()
        self.learning_rate = None

    def begin_step(self, learning_rate: float) -> None:
        self.steps.append(RatioStats(cap=float("inf")))
        if self.learning_rate is None:
            self.learning_rate = learning_rate

    def add(self, stats: RatioStats) -> None:
        """Add a micro-batch to the current step (a loss outside of `train_batch` begins one)."""
        if not self.steps:
            self.steps.append(RatioStats(stats.cap))
        self.steps[-1] = stats + self.steps[-1]


RECORD = Record()
"""Of this worker process: verl calls a loss as a plain function, so there is no object to hold it."""


@register_policy_loss(LOSS)
def clipped_loss(
    old_log_prob: torch.Tensor,
    log_prob: torch.Tensor,
    advantages: torch.Tensor,
    response_mask: torch.Tensor,
    loss_agg_mode: str = "token-mean",
    config: Any = None,
    rollout_is_weights: torch.Tensor | None = None,
) -> tuple[torch.Tensor, dict[str, Any]]:
    """verl's dual-clip PPO loss over (B, R); records the raw ratio of every unmasked token."""
    chosen = response_mask.bool()
    difference = (log_prob.detach().double() - old_log_prob.double())[chosen]
    cap = float(config.policy_loss.rollout_correction.rollout_is_threshold)
    RECORD.add(RatioStats.of(difference.cpu().numpy(), cap))
    return compute_policy_loss_vanilla(
        old_log_prob, log_prob, advantages, response_mask, loss_agg_mode, config, rollout_is_weights
    )


class RecordingWorker(TrainingWorker):
    def train_batch(self, data: TensorDict) -> TensorDict:
        engine: Any = self.engine  # an FSDP engine; other backends keep their optimiser elsewhere
        RECORD.begin_step(engine.optimizer.param_groups[0]["lr"])
        return super().train_batch(data)


class ActorWorker(ActorRolloutRefWorker):
    """verl's actor worker; `update_actor` also returns the record as metrics."""

    actor_worker_cls = RecordingWorker

    @register(dispatch_mode=make_nd_compute_dataproto_dispatch_fn(mesh_name="actor"))
    def update_actor(self, data: TensorDict) -> TensorDict:
        RECORD.clear()
        output = super().update_actor(data)
        steps = _over_ranks(RECORD.steps)
        if output is not None:
            metrics = cast(dict[str, Any], tu.get(output, "metrics"))
            metrics |= {f"futureworld/{key}": [value] for key, value in _summary(steps).items()}
            metrics["futureworld/lr"] = [RECORD.learning_rate]
        return output


class CpuRecordingWorker(RecordingWorker):
    """Starts gloo itself: verl would ask for the backends `cpu:gloo,cpu:gloo`, which torch refuses.

    Uses every core: the engine waits while the trainer works.
    """

    def __init__(self, config: Any) -> None:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        if not dist.is_initialized():
            dist.init_process_group(
                "gloo",
                rank=int(os.environ["RANK"]),
                world_size=int(os.environ["WORLD_SIZE"]),
                init_method=os.environ.get("DIST_INIT_METHOD"),
            )
        super().__init__(config)


class CpuActorWorker(ActorWorker):
    actor_worker_cls = CpuRecordingWorker
    ref_worker_cls = CpuRecordingWorker


# verl registers its own class for cuda and npu only
EngineRegistry.register(model_type="language_model", backend=["fsdp", "fsdp2"], device="cpu")(CpuEngine)


def actor_worker() -> type[ActorWorker]:
    """The worker class for the device that verl found."""
    from verl.utils.device import get_device_name

    return CpuActorWorker if get_device_name() == "cpu" else ActorWorker


def _over_ranks(steps: list[RatioStats]) -> list[RatioStats]:
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return list(steps)
    gathered: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, steps)
    return [reduce(add, same) for same in zip(*gathered, strict=True)]


def _summary(steps: list[RatioStats]) -> dict[str, float]:
    """Ratios over all steps; differences of the first only, where the weights had not yet moved."""
    return reduce(add, steps).ratios() | steps[0].differences()
