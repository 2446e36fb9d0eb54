"""One GRPO step through verl's worker against the same step written in plain torch.

Uneven groups, observations, pad and eos ids inside responses, temperature 0.7, stored log-probs
shifted so that clipping is active on both sides and dual clipping too, and an AdamW step.
"""

import copy
import math
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from tiny_policy import log_probs, make_batch, make_policy

from futureworld.config import Config, build
from futureworld.cycle.batch import Batch, whole_groups
from verl_tool_future import transfer

TEMPERATURE = 0.7
CLIP, DUAL_CLIP, GRAD_NORM, RATE, DECAY = 0.2, 3.0, 0.05, 3e-3, 0.01
REWARDS = ([-0.04, -0.81], [-0.25, -0.25, -0.25], [-0.01, -0.36, -0.49, -1.0, 0.0], [-0.09, -0.16])
PENDING = (7, 11)
"""Members without an outcome yet: one of the group of five, and one of the last, which leaves the other alone."""
SHIFTS = (0.0, 0.5, -0.6, -1.6, 0.02)
"""Stored log-prob minus the policy's own, by position: ratios 1, 0.61, 1.8, 5 and 0.98."""


def config(**update: Any) -> Config:
    settings = {"learning_rate": RATE, "warmup_days": 3, "clip": CLIP, "grad_norm": GRAD_NORM, "weight_decay": DECAY}
    return build({"device": "cpu", "rollout": {"temperature": TEMPERATURE}, "update": settings | update})


@dataclass(frozen=True)
class Step:
    loss: float
    grad_norm: float
    gradients: dict[str, torch.Tensor]
    """As the optimiser saw them, so after clipping by norm."""
    weights: dict[str, torch.Tensor]
    metrics: dict[str, Any]


@pytest.fixture(scope="module")
def process_group(tmp_path_factory: pytest.TempPathFactory):
    patch = pytest.MonkeyPatch()
    store = tmp_path_factory.mktemp("rendezvous") / "file"
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "LOCAL_RANK": 0, "DIST_INIT_METHOD": f"file://{store}"}.items():
        patch.setenv(name, str(value))
    patch.setenv("MASTER_ADDR", "127.0.0.1")
    patch.setenv("MASTER_PORT", "0")
    yield
    if dist.is_initialized():
        dist.destroy_process_group()
    patch.undo()


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("policy")
    return make_policy(folder), folder


def shifted(model: Any) -> Batch:
    batch = make_batch(
        model, REWARDS, base_hash="", temperature=TEMPERATURE, shift=lambda i: SHIFTS[i % len(SHIFTS)], seed=3
    )
    members, alone = whole_groups(member for i, member in enumerate(batch.members) if i not in PENDING)
    assert (len(members), alone) == (9, 1)
    return replace(batch, members=members)


def verl_step(
    policy: tuple[Any, Path],
    batch: Batch,
    settings: Config,
    padding: int = 0,
    version0: Path | None = None,
    **actor: Any,
) -> Step:
    """All of `batch` as one mini-batch through verl's worker, `padding` of verl's empty rows added.

    `version0`: the weights that a KL loss holds the policy near.
    """
    from omegaconf import OmegaConf

    from verl_tool_future.update_config import update_config
    from verl_tool_future.worker import CpuActorWorker

    composed = update_config(settings, policy[1], Path("unused"))
    OmegaConf.resolve(composed)
    for key, value in actor.items():
        composed.actor_rollout_ref.actor[key] = value
    worker = CpuActorWorker(config=composed.actor_rollout_ref, role="actor")
    worker.init_model()
    engine: Any = worker.actor.engine
    seen: dict[str, torch.Tensor] = {}

    def keep(*_: Any) -> None:
        seen.update({name: full(p.grad).clone() for name, p in engine.module.named_parameters() if p.grad is not None})

    engine.optimizer.register_step_pre_hook(keep)
    data = tensors(batch, settings, composed, padding)
    if version0 is not None:
        data["ref_log_prob"] = verl_reference(composed, version0, data)
    metrics = dict(worker.update_actor(data)["metrics"])
    weights = {name: full(p).detach().clone() for name, p in engine.module.named_parameters()}
    return Step(metrics["actor/pg_loss"][0], metrics["grad_norm"][0], seen, weights, metrics)


def verl_reference(composed: Any, version0: Path, data: Any) -> Any:
    """Log-probs of the response under `version0`, by verl's reference worker as the trainer calls it."""
    from verl.utils import tensordict_utils as tu
    from verl.workers.utils.padding import response_from_nested

    from verl_tool_future.worker import CpuActorWorker

    settings = copy.deepcopy(composed.actor_rollout_ref)
    settings.model.path = str(version0)
    worker = CpuActorWorker(config=settings, role="ref")
    worker.init_model()
    asked = data.copy()
    tu.assign_non_tensor(asked, calculate_entropy=False, compute_loss=False)
    output: Any = worker.compute_ref_log_prob(asked)
    return response_from_nested(output["log_probs"], data["response_mask"])


def full(tensor: Any) -> torch.Tensor:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def tensors(batch: Batch, settings: Config, composed: Any, padding: int) -> Any:
    """What the trainer hands to the worker, by the trainer's own estimator and row format."""
    from verl.trainer.ppo.padding_utils import construct_minimal_padding_template
    from verl.utils import tensordict_utils as tu
    from verl.workers.utils.padding import response_to_nested

    from verl_tool_future.trainer import estimate

    rows = transfer.rows(batch, settings)
    entries = [transfer.fields(row) for row in rows]
    for i in range(padding):
        entry, _ = construct_minimal_padding_template(dict(entries[0]), transfer.tag(rows[0]), eos_token_id=1)
        entry.pop("attention_mask")
        entry["rollout_log_probs"] = entry["rollout_log_probs"] - 7.0 * i  # whatever stands there must not matter
        entries.append(entry)
    data = tu.list_of_dict_to_tensordict(entries)
    mask = data["response_mask"]
    advantages, _ = estimate(
        token_level_rewards=data["rm_scores"].to_padded_tensor(0.0),
        response_mask=mask.to_padded_tensor(0),
        index=np.array([entry["uid"] for entry in entries], dtype=object),
        config=composed.algorithm,
    )
    data["advantages"] = response_to_nested(advantages, mask)
    data["old_log_probs"] = data["rollout_log_probs"]
    tu.assign_non_tensor(
        data,
        temperature=TEMPERATURE,
        pad_token_id=0,
        calculate_entropy=True,
        distillation_use_topk=False,
        distillation_only=False,
        global_batch_size=len(entries),
        mini_batch_size=len(entries),
        epochs=1,
        seed=42,
        dataloader_kwargs={"shuffle": False},
    )
    return data


def reference_loss(model: Any, batch: Batch) -> tuple[torch.Tensor, dict[str, int]]:
    """Clipped policy loss over the policy's tokens, mean over all of them; and how often each branch was taken."""
    rewards: dict[str, list[float]] = defaultdict(list)
    for member in batch.members:
        rewards[member.trajectory.question_id].append(member.reward)
    losses: list[torch.Tensor] = []
    taken = dict.fromkeys(("high", "low", "dual"), 0)
    for member in batch.members:
        trajectory, group = member.trajectory, rewards[member.trajectory.question_id]
        advantage = member.reward - sum(group) / len(group)
        now = log_probs(model, trajectory.prompt_ids, trajectory.ids, TEMPERATURE)
        for i, stored in enumerate(trajectory.log_probs):
            if stored is None:
                continue
            ratio = torch.exp(now[i] - stored)
            plain, clipped = -advantage * ratio, -advantage * ratio.clamp(1 - CLIP, 1 + CLIP)
            loss = torch.maximum(plain, clipped)
            taken["high"] += advantage > 0 and ratio.item() > 1 + CLIP
            taken["low"] += advantage < 0 and ratio.item() < 1 - CLIP
            if advantage < 0 and ratio.item() > DUAL_CLIP:
                loss = torch.as_tensor(-advantage * DUAL_CLIP)
                taken["dual"] += 1
            losses.append(loss)
    return torch.stack(losses).sum() / len(losses), taken


def reference_kl(model: Any, version0: Any, batch: Batch) -> torch.Tensor:
    """Mean over the policy's tokens of r - 1 - log r with r = p_version0 / p_now (k3 of Schulman 2020)."""
    found: list[torch.Tensor] = []
    for member in batch.members:
        trajectory = member.trajectory
        now, then = (log_probs(m, trajectory.prompt_ids, trajectory.ids, TEMPERATURE) for m in (model, version0))
        log_ratio = (then.detach() - now)[torch.tensor(trajectory.mask).bool()]
        found.append(log_ratio.exp() - 1 - log_ratio)
    return torch.cat(found).mean()


def reference_step(folder: Path, batch: Batch, kl: float = 0.0, version0: Any = None) -> tuple[Step, dict[str, int]]:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE / 3, weight_decay=DECAY)  # first of three warm-up days
    loss, taken = reference_loss(model, batch)
    (loss + kl * reference_kl(model, version0, batch) if kl else loss).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), GRAD_NORM).item()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    optimizer.step()
    return Step(loss.item(), norm, gradients, {n: p.detach() for n, p in model.named_parameters()}, {}), taken


@pytest.mark.usefixtures("process_group")
def test_one_grpo_step_equals_plain_torch(policy: tuple[Any, Path]):
    batch = shifted(policy[0])
    made = verl_step(policy, batch, config())
    wanted, taken = reference_step(policy[1], batch)
    assert "kl_loss" not in made.metrics
    assert min(taken.values()) > 0, f"the case must reach every branch of the clip: {taken}"
    assert wanted.grad_norm > GRAD_NORM, "clipping by norm must be active"
    assert abs(wanted.loss) > 1e-3
    assert_same_step(made, wanted)
    assert made.metrics["futureworld/lr"] == [pytest.approx(RATE / 3)]
    assert made.metrics["futureworld/logprob_diff_max"][0] == pytest.approx(1.6, abs=0.01)
    assert made.metrics["futureworld/ratio_max"][0] == pytest.approx(math.exp(1.6), abs=0.05)


@pytest.mark.usefixtures("process_group")
def test_a_step_with_a_kl_loss_equals_plain_torch(policy: tuple[Any, Path], tmp_path: Path):
    batch, weight = shifted(policy[0]), 0.7
    version0: Any = make_policy(tmp_path)
    with torch.no_grad():  # near the policy: verl cuts off a KL above 10 at a token
        for parameter in version0.parameters():
            parameter.add_(0.005 * torch.randn_like(parameter))
    version0.save_pretrained(tmp_path)
    made = verl_step(policy, batch, config(kl=weight), version0=tmp_path)
    wanted, _ = reference_step(policy[1], batch, weight, version0)
    without, _ = reference_step(policy[1], batch)
    assert_same_step(made, wanted)
    assert made.metrics["kl_loss"][0] == pytest.approx(reference_kl(policy[0], version0, batch).item(), rel=1e-5)
    assert any((wanted.gradients[name] - g).abs().max() > 1e-3 for name, g in without.gradients.items())


def assert_same_step(made: Step, wanted: Step) -> None:
    assert made.loss == pytest.approx(wanted.loss, abs=1e-5)
    assert made.grad_norm == pytest.approx(wanted.grad_norm, abs=1e-5)
    assert made.gradients.keys() == wanted.gradients.keys()
    for name, gradient in wanted.gradients.items():
        torch.testing.assert_close(made.gradients[name], gradient, atol=1e-5, rtol=0)
        # AdamW's first step divides a gradient by its own size: rounding decides where there is none
        clear = gradient.abs() > 1e-5
        torch.testing.assert_close(made.weights[name][clear], wanted.weights[name][clear], atol=1e-5, rtol=0)


@pytest.mark.usefixtures("process_group")
def test_b7_b8_b9_b10_the_mean_is_over_the_policys_tokens_however_they_are_packed(policy: tuple[Any, Path]):
    batch = shifted(policy[0])
    whole = verl_step(policy, batch, config())
    packed = verl_step(policy, batch, config(), ppo_max_token_len_per_gpu=40)
    padded = verl_step(policy, batch, config(), padding=5)
    for other in (packed, padded):
        assert other.loss == pytest.approx(whole.loss, abs=1e-6)
        for name, gradient in whole.gradients.items():
            torch.testing.assert_close(other.gradients[name], gradient, atol=1e-6, rtol=0)
        for name in ("ratio_mean", "ratio_max", "ess", "logprob_diff_mean"):
            assert other.metrics[f"futureworld/{name}"] == pytest.approx(whole.metrics[f"futureworld/{name}"], rel=1e-5)


@pytest.mark.usefixtures("process_group")
def test_c1_ratios_are_one_on_an_unmoved_policy_at_a_temperature_of_its_own(policy: tuple[Any, Path]):
    batch = make_batch(policy[0], REWARDS, base_hash="", temperature=TEMPERATURE)
    made = verl_step(policy, batch, config())
    assert made.metrics["futureworld/logprob_diff_max"][0] < 1e-5
    assert made.metrics["futureworld/ess"][0] == pytest.approx(1.0, abs=1e-9)


def test_b10_d4_the_estimator_gives_each_live_row_its_advantage_and_padding_none():
    from verl_tool_future.trainer import estimate

    rewards = torch.tensor([[0.0, -1.0, 0.0], [0.0, 0.0, 0.0], [-9.0, 0.0, 0.0]])
    mask = torch.tensor([[1, 0, 1], [1, 1, 0], [0, 0, 0]])
    made, _ = estimate(rewards, mask, np.array(["q", "q", "q"], dtype=object), build_algorithm(False))
    # the third row is verl's padding: without it the mean of -1 and 0 is -0.5
    assert made.tolist() == [[-0.5, 0.0, -0.5], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]


def build_algorithm(normalize: bool) -> Any:
    from omegaconf import OmegaConf

    return OmegaConf.create({"norm_adv_by_std_in_grpo": normalize})
