"""verl's `delayed` trainer: one update of stored trajectories whose outcomes came later.

It has no dataset, no inference engine and no weight sync. Rows come from the learner through
TransferQueue; log-probs, advantages, loss, optimiser and checkpoint are verl's.
"""

import math
import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import ray
import torch
import transfer_queue as tq
from omegaconf import DictConfig, OmegaConf
from verl.trainer.ppo.core_algos import register_adv_est
from verl.trainer.ppo.v1.trainer_base import PPOTrainer, register_trainer

from verl_tool_future import transfer
from verl_tool_future.advantages import RatioStats, group_advantages
from verl_tool_future.transfer import Row
from verl_tool_future.update_config import ADVANTAGE, TRAINER
from verl_tool_future.worker import actor_worker


@register_adv_est(ADVANTAGE)
def estimate(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: np.ndarray,
    config: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, R) advantages and returns: `group_advantages` of each row's summed reward, on its policy tokens.

    Rows without a policy token are verl's padding: they belong to no group and get 0.
    """
    live = response_mask.bool().any(dim=-1)
    rewards = token_level_rewards[live].double().sum(dim=-1)
    names = [str(name) for name, alive in zip(index, live.tolist(), strict=True) if alive]
    scalars = torch.zeros(len(response_mask), dtype=torch.float64, device=token_level_rewards.device)
    scalars[live] = torch.from_numpy(
        group_advantages(rewards.tolist(), names, bool(config.norm_adv_by_std_in_grpo))
    ).to(scalars.device)
    advantages = (scalars[:, None] * response_mask).float()
    return advantages, advantages


class Endless:
    """Stands where verl expects a dataloader; there is nothing in it and nothing to resume."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


class DelayedTrainer(PPOTrainer):
    """One step per call of `run`; `version` is the last finished one."""

    _enable_hybrid_replicas = False

    def __init__(self, config: DictConfig) -> None:
        super().__init__(config)
        self.rows: Sequence[Row] = ()
        self.metrics: dict[str, Any] = {}

    def init(self) -> None:
        super().init()
        self.version: int = self.global_steps
        transfer.clear()

    def run(self, rows: Sequence[Row], mini_batches: int) -> dict[str, Any]:
        """Train on `rows` in `mini_batches` optimiser steps; returns verl's metrics and timings."""
        self.rows = rows
        self.config.data.train_batch_size = len({row.group for row in rows})
        self.config.actor_rollout_ref.actor.ppo_mini_batch_size = self._mini_batch(len(rows), mini_batches)
        self.global_steps = self.version  # fit() adds one before its step and one after it
        self.total_training_steps = self.version + 1
        self._init_dump_executor()  # fit() ends it
        self.fit(None)  # type: ignore[arg-type]  # there is no agent loop to manage
        self.version += 1
        return self.metrics

    def save(self) -> None:
        """Write `global_step_<version>` and verl's note of it."""
        self.global_steps = self.version
        self._save_checkpoint()

    def prepare_step(self) -> dict[str, Any]:
        transfer.put(self.rows, self.global_steps)
        return {}

    def on_sample_end(self) -> None:
        pass

    def on_step_end(self) -> None:
        pass

    def _mini_batch(self, count: int, mini_batches: int) -> int:
        ranks = self.config.trainer.n_gpus_per_node * self.config.trainer.nnodes
        return math.ceil(count / (mini_batches * ranks)) * ranks

    def _init_dataloader(self) -> None:
        self.train_dataloader: Any = Endless()
        self.steps_per_epoch = sys.maxsize
        self.total_training_steps = self.config.trainer.total_training_steps

    def _init_resource_pool_mgr(self) -> None:
        super()._init_resource_pool_mgr()
        remote = ray.remote(actor_worker())
        self.role_worker_mapping = dict.fromkeys(self.role_worker_mapping, remote)

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        batch = super()._update_actor(batch, metrics)
        if not self.config.algorithm.rollout_correction.bypass_mode:
            metrics.update(self._proximal_ratios(batch))  # in place of the ratios to the recomputed policy
        return batch

    def _proximal_ratios(self, batch: Any) -> dict[str, float]:
        """Raw weights of the decoupled correction: the recomputed policy over the sampler."""
        names = ["old_log_probs", "rollout_log_probs", "response_mask"]
        data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=names)
        recomputed, sampled, mask = (cast(Any, data[name]).values() for name in names)
        difference = (recomputed.double() - sampled.double())[mask.bool()]
        cap = float(self.config.algorithm.rollout_correction.rollout_is_threshold)
        stats = RatioStats.of(difference.numpy(), cap)
        return {f"actor/futureworld/{key}": value for key, value in (stats.ratios() | stats.differences()).items()}

    def _compute_metrics(
        self, batch: Any, metrics: dict[str, Any], timing_raw: dict[str, float], *a: Any, **k: Any
    ) -> None:
        super()._compute_metrics(batch, metrics, timing_raw, *a, **k)
        self.metrics = dict(metrics)


register_trainer(TRAINER)(DelayedTrainer)


@ray.remote(num_cpus=0)
class UpdateActor:
    """A DelayedTrainer in a process of its own. After any exception it is killed and made again."""

    def __init__(self, config: DictConfig) -> None:
        OmegaConf.resolve(config)
        tq.init(config.transfer_queue)
        self._trainer = DelayedTrainer(config)
        self._trainer.init()

    def version(self) -> int:
        return self._trainer.version

    def step(self, rows: Sequence[Row], mini_batches: int) -> dict[str, float]:
        metrics = self._trainer.run(rows, mini_batches)
        return {key: float(value) for key, value in metrics.items() if isinstance(value, (int, float, np.number))}

    def save(self) -> None:
        self._trainer.save()
