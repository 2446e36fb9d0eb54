"""The plain floats that an update reports, from verl's metrics and the batch."""

import math
from collections.abc import Mapping

from futureworld.cycle.batch import Batch
from verl_tool_future.advantages import group_advantages, group_stats

OURS = "actor/futureworld/"
"""Where the worker's record arrives; verl prefixes what an actor returns."""

RENAMED = {
    "actor/pg_loss": "loss",
    "actor/grad_norm": "grad_norm",
    "actor/pg_clipfrac": "clip_fraction",
    "actor/ppo_kl": "kl",
    "actor/kl_loss": "kl_loss",
    "actor/entropy_loss": "entropy",
    "timing_s/old_log_prob": "seconds_old_log_prob",
    "timing_s/ref": "seconds_reference",
    "timing_s/adv": "seconds_advantages",
    "timing_s/update_actor": "seconds_update_actor",
}
"""verl's name -> ours; means over the optimiser steps, `kl` is the mean of log pi_old - log pi, `kl_loss` the
one to version 0 (k3), before its weight."""

KEPT = (
    "actor/pg_clipfrac_lower",
    "prompt_length/",
    "response_length/",
    "rollout_corr/",
    "training/rollout_",
    "training/off_policy/trajectory_staleness/",
    "perf/throughput",
    "timing_s/",
)
"""Of verl's other metrics those that say something about this update."""


def update_metrics(
    batch: Batch, verl: Mapping[str, float], seconds: Mapping[str, float], normalize_std: bool
) -> dict[str, float]:
    """Everything about one update; what is kept of verl's own stands under `verl/`."""
    made = batch_metrics(batch, normalize_std)
    for key, value in verl.items():
        if key.startswith(OURS):
            made[key.removeprefix(OURS)] = value
        elif key in RENAMED:
            made[RENAMED[key]] = value
        elif key.startswith(KEPT) and math.isfinite(value):
            made[f"verl/{key}"] = value
    return made | {f"seconds_{stage}": value for stage, value in seconds.items()}


def batch_metrics(batch: Batch, normalize_std: bool) -> dict[str, float]:
    """Groups, rewards, advantages and ages (days from asking to training) of a batch."""
    rewards = [member.reward for member in batch.members]
    groups = [member.trajectory.question_id for member in batch.members]
    stats = group_stats(rewards, groups, group_advantages(rewards, groups, normalize_std))
    ages = [member.age for member in batch.members]
    return {
        "trajectories": float(len(rewards)),
        "groups": float(stats.groups),
        "zero_variance_groups": float(stats.zero_variance_groups),
        "dropped": float(sum(batch.dropped.values())),
        "reward_mean": stats.reward_mean,
        "reward_std": stats.reward_std,
        "advantage_std": stats.advantage_std,
        "age_mean": sum(ages) / len(ages),
        "age_max": float(max(ages)),
    }
