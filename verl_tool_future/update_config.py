"""FutureWorld's update settings as verl's own keys.

What follows from the run is an override, which a user's `verl:` section may not contradict; what
only suits the device is a default, which it may.
"""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from futureworld.config import Config, UpdateConfig
from verl_tool_future.composition import compose, is_cpu

TRAINER = "delayed"
ADVANTAGE = "futureworld"
TOKENS_PER_MICRO_BATCH = {"cuda": 16384, "cpu": 4096}
"""4096 takes a fifth less CPU time than 16384 with a model of a million parameters."""

_ACTOR = "actor_rollout_ref.actor"
_REFERENCE = "actor_rollout_ref.ref"


def update_config(config: Config, model: Path, folder: Path) -> DictConfig:
    """verl's configuration of the update job: `model` is version 0, `folder` holds verl's resume state."""
    overrides = _run_keys(config, model, folder) | _update_keys(config.update)
    return compose(overrides, config.verl, defaults=_defaults(config))


def learning_rate(update: UpdateConfig, step: int) -> float:
    """The rate of update `step` (1, 2, ...): linear over the first `warmup_days` updates, then constant."""
    return update.learning_rate * min(1.0, step / max(1, update.warmup_days))


def _run_keys(config: Config, model: Path, folder: Path) -> dict[str, Any]:
    return {
        "trainer.v1.trainer_mode": TRAINER,
        "trainer.device": "cpu" if is_cpu(config) else "cuda",
        "trainer.default_local_dir": str(folder.absolute()),
        "trainer.resume_mode": "auto",
        "trainer.total_training_steps": 1,
        "trainer.save_freq": -1,  # the learner saves, between its own fault points
        "trainer.test_freq": -1,
        "trainer.val_before_train": False,
        "trainer.logger": [],
        "trainer.v1.sampler.max_off_policy_threshold": None,  # late groups are trained on, not dropped
        "transfer_queue.enable": True,
        "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
        "reward.num_workers": 0,
        "critic.enable": False,
        "actor_rollout_ref.hybrid_engine": False,
        "actor_rollout_ref.model.path": str(model.absolute()),
        "actor_rollout_ref.rollout.name": "vllm",
        "actor_rollout_ref.rollout.n": 1,  # verl multiplies mini-batches by it; ours are counted in trajectories
        "actor_rollout_ref.rollout.temperature": config.rollout.temperature,
        "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz": True,
        f"{_ACTOR}.use_dynamic_bsz": True,
        f"{_ACTOR}.checkpoint.save_contents": ["model", "optimizer", "extra", "hf_model"],
        f"{_ACTOR}.checkpoint.load_contents": ["model", "optimizer", "extra"],
    }


def _update_keys(update: UpdateConfig) -> dict[str, Any]:
    decoupled = update.correction == "decoupled"
    correction = {
        "bypass_mode": not decoupled,
        "rollout_is": "token" if decoupled else None,
        "rollout_is_threshold": update.max_weight,
        "rollout_rs": None,
    }
    keys: dict[str, Any] = {
        "algorithm.adv_estimator": ADVANTAGE,
        "algorithm.norm_adv_by_std_in_grpo": update.normalize_std,
        "algorithm.use_kl_in_reward": False,
        f"{_ACTOR}.use_kl_loss": update.kl > 0,
        f"{_ACTOR}.kl_loss_coef": update.kl,
        f"{_ACTOR}.kl_loss_type": "low_var_kl",
        f"{_ACTOR}.entropy_coeff": 0,
        f"{_ACTOR}.calculate_entropy": True,
        f"{_ACTOR}.clip_ratio": update.clip,
        f"{_ACTOR}.clip_ratio_low": update.clip,
        f"{_ACTOR}.clip_ratio_high": update.clip,
        f"{_ACTOR}.policy_loss.loss_mode": "futureworld",
        f"{_ACTOR}.loss_agg_mode": "token-mean",
        f"{_ACTOR}.ppo_epochs": update.epochs,
        f"{_ACTOR}.shuffle": False,
        f"{_ACTOR}.optim.lr": update.learning_rate,
        f"{_ACTOR}.optim.weight_decay": update.weight_decay,
        f"{_ACTOR}.optim.betas": [0.9, 0.999],
        f"{_ACTOR}.optim.clip_grad": update.grad_norm,
        f"{_ACTOR}.optim.lr_warmup_steps": update.warmup_days,
    }
    keys |= {f"algorithm.rollout_correction.{key}": value for key, value in correction.items()}
    keys |= {
        f"{_ACTOR}.policy_loss.rollout_correction._target_": "verl.trainer.config.algorithm.RolloutCorrectionConfig",
        f"{_ACTOR}.policy_loss.rollout_correction.rollout_is_threshold": update.max_weight,
    }
    return keys | _schedule()


def _schedule() -> dict[str, Any]:
    """A warm-up that trains at its first update, then a constant rate.

    verl's constant schedule starts at rate 0. Its cosine one counts from 1 when told so, and with
    a floor at the full rate the cosine is flat.
    """
    optim = f"{_ACTOR}.optim"
    return {
        f"{optim}.lr_scheduler_type": "cosine",
        f"{optim}.min_lr_ratio": 1.0,
        f"{optim}.zero_indexed_step": False,
    }


def _defaults(config: Config) -> dict[str, Any]:
    device = "cpu" if is_cpu(config) else "cuda"
    tokens = max(TOKENS_PER_MICRO_BATCH[device], config.rollout.max_tokens)
    keys = {
        "trainer.n_gpus_per_node": 1,
        "actor_rollout_ref.rollout.nnodes": 1,  # the engine's keys; a user's are carried here and not used
        "actor_rollout_ref.rollout.tensor_model_parallel_size": 1,
        f"{_ACTOR}.strategy": "fsdp2",
        f"{_ACTOR}.ppo_max_token_len_per_gpu": tokens,
        "actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu": tokens,
    }
    return keys | _cpu_defaults() if device == "cpu" else keys


def _cpu_defaults() -> dict[str, Any]:
    precision = dict.fromkeys(("param_dtype", "reduce_dtype", "buffer_dtype"), "fp32")
    return {
        "actor_rollout_ref.model.override_config.attn_implementation": "sdpa",
        "actor_rollout_ref.model.use_remove_padding": False,  # packed rows would attend over the whole micro-batch
        "actor_rollout_ref.model.enable_gradient_checkpointing": False,
        f"{_ACTOR}.use_torch_compile": False,
        f"{_ACTOR}.fsdp_config.use_torch_compile": False,
        f"{_ACTOR}.fsdp_config.mixed_precision": precision,
        f"{_REFERENCE}.fsdp_config.use_torch_compile": False,
        f"{_REFERENCE}.fsdp_config.mixed_precision": precision,
    }
