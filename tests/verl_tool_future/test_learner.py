import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_policy import log_probs, make_batch, make_policy

from futureworld import faults
from futureworld.config import Config, UpdateConfig, build
from futureworld.cycle.batch import Batch
from futureworld.errors import ConfigError, UpdateError
from futureworld.policies import weight_hash
from verl_tool_future import transfer
from verl_tool_future.learner import VerlLearner
from verl_tool_future.metrics import batch_metrics
from verl_tool_future.update_config import learning_rate, update_config

REWARDS = ([-0.04, -0.81, -0.25], [-0.25, -0.25], [-0.01, -0.36, -1.0, 0.0])
RATE = 2e-3


def config(**changes: Any) -> Config:
    return build({"device": "cpu", "update": {"learning_rate": RATE, "mini_batches": 4}, **changes})


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("learner") / "policy"
    return make_policy(folder), folder


# --- rows ---------------------------------------------------------------------------------------


def test_b1_a_row_has_the_policys_tokens_in_its_mask_and_nothing_else(policy: tuple[Any, Path]):
    batch = make_batch(policy[0], REWARDS, base_hash="")
    row, trajectory = transfer.rows(batch, config())[0], batch.members[0].trajectory
    fields = transfer.fields(row)
    assert fields["response_mask"].tolist() == list(trajectory.mask)
    assert fields["input_ids"].tolist() == [*trajectory.prompt_ids, *trajectory.ids]
    assert fields["rm_scores"].tolist() == [0.0] * (len(trajectory.ids) - 1) + [pytest.approx(-0.04)]
    assert fields["rollout_log_probs"].tolist() == [pytest.approx(p or 0.0) for p in trajectory.log_probs]


def test_d5_a_groups_name_is_its_own_in_every_step_and_has_no_underscore(policy: tuple[Any, Path]):
    first = make_batch(policy[0], REWARDS, base_hash="")
    rows = transfer.rows(first, config()) + transfer.rows(replace(first, step=2), config())
    assert len({row.group for row in rows}) == 2 * len(REWARDS)
    assert all(row.key.split("_")[0] == row.group for row in rows)
    assert len({row.key for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"temperature": 0.7}, "c1: sampled at temperature 0.7"),
        ({"top_p": 0.9}, "c3: top_p 0.9"),
        ({"logprobs_mode": "raw"}, "c2: raw log-probs"),
        ({"trainable": False}, "c7: no token of the policy"),
    ],
    ids=lambda value: value[:2] if isinstance(value, str) else "",
)
def test_c_trajectories_that_cannot_be_corrected_for_are_refused(policy: tuple[Any, Path], change: dict, words: str):
    batch = make_batch(policy[0], REWARDS, base_hash="")
    member = batch.members[0]
    spoiled = replace(member, trajectory=replace(member.trajectory, **change))
    with pytest.raises(UpdateError, match=words.split(": ")[1]):
        transfer.rows(replace(batch, members=(spoiled, *batch.members[1:])), config())


def test_d11_an_empty_batch_and_a_rollout_named_twice_are_refused(policy: tuple[Any, Path]):
    batch = make_batch(policy[0], REWARDS, base_hash="")
    with pytest.raises(UpdateError, match="has no members"):
        transfer.rows(replace(batch, members=()), config())
    with pytest.raises(UpdateError, match="twice"):
        transfer.rows(replace(batch, members=(*batch.members, batch.members[0])), config())


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", [{"temperature": 0.0}, {"top_p": 0.9}, {"n": 1}], ids=["c4", "c3", "d3"])
def test_c_sampling_that_no_gradient_can_correct_is_refused(tmp_path: Path, sampling: dict[str, float]):
    with pytest.raises(ConfigError, match=f"rollout.{next(iter(sampling))} must be"):
        VerlLearner(config(rollout=sampling), tmp_path, tmp_path)


@pytest.mark.parametrize("days", [0, 1, 3])
def test_e10_the_warm_up_trains_at_its_first_update(days: int):
    from verl.utils.torch_functional import get_cosine_schedule_with_warmup

    settings = config(update={"learning_rate": RATE, "warmup_days": days})
    optim = update_config(settings, Path("model"), Path("state")).actor_rollout_ref.actor.optim
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=optim.lr)
    schedule = get_cosine_schedule_with_warmup(
        optimizer,
        optim.lr_warmup_steps,
        1,
        optim.min_lr_ratio,
        optim.num_cycles,
        zero_indexed_step=optim.zero_indexed_step,
    )
    for step in range(1, 30):
        assert schedule.get_last_lr()[0] == pytest.approx(learning_rate(settings.update, step)), step
        optimizer.step()
        schedule.step()


def test_the_warm_up_by_hand():
    update = UpdateConfig(learning_rate=0.3, warmup_days=3)
    assert [learning_rate(update, step) for step in (1, 2, 3, 4)] == pytest.approx([0.1, 0.2, 0.3, 0.3])


def test_update_settings_arrive_at_verl():
    settings = config(
        update={"clip": 0.1, "grad_norm": 2.0, "epochs": 2, "correction": "decoupled", "max_weight": 5.0},
        rollout={"temperature": 0.7},
    )
    made = update_config(settings, Path("model"), Path("state"))
    actor = made.actor_rollout_ref.actor
    assert (actor.clip_ratio_low, actor.clip_ratio_high) == (0.1, 0.1)
    assert (actor.optim.clip_grad, actor.ppo_epochs) == (2.0, 2)
    assert made.actor_rollout_ref.rollout.temperature == 0.7
    correction = made.algorithm.rollout_correction
    assert (correction.bypass_mode, correction.rollout_is, correction.rollout_is_threshold) == (False, "token", 5.0)


def test_a_users_verl_section_is_passed_through_and_may_not_touch_what_the_run_decides():
    made = update_config(
        config(verl={"actor_rollout_ref": {"actor": {"fsdp_config": {"seed": 7}}}}), Path("model"), Path("state")
    )
    assert made.actor_rollout_ref.actor.fsdp_config.seed == 7
    with pytest.raises(ConfigError, match=r"trainer\.default_local_dir"):
        update_config(config(verl={"trainer": {"default_local_dir": "x"}}), Path("model"), Path("state"))


def test_g_batch_metrics_by_hand(policy: tuple[Any, Path]):
    batch = make_batch(policy[0], ([0.0, -0.5], [-0.25, -0.25]), base_hash="")
    made = batch_metrics(batch, normalize_std=False)
    assert (made["groups"], made["zero_variance_groups"], made["trajectories"]) == (2, 1, 4)
    assert made["advantage_std"] == pytest.approx((2 * 0.25**2 / 4) ** 0.5)
    assert (made["reward_mean"], made["age_mean"], made["age_max"], made["dropped"]) == (-0.25, 1, 1, 1)


# --- the real trainer ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ray_at_end() -> Iterator[None]:
    from verl_tool_future.runtime import stop_ray

    yield
    stop_ray()


def gain(model_folder: Path, model: Any, batch: Batch) -> float:
    """Sum over policy tokens of advantage x (new - old log-prob)."""
    from transformers import AutoModelForCausalLM

    moved: Any = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    means: dict[str, list[float]] = {m.trajectory.question_id: [] for m in batch.members}
    for member in batch.members:
        means[member.trajectory.question_id].append(member.reward)
    total = 0.0
    for member in batch.members:
        t, group = member.trajectory, means[member.trajectory.question_id]
        with torch.no_grad():
            change = log_probs(moved, t.prompt_ids, t.ids, 1.0) - log_probs(model, t.prompt_ids, t.ids, 1.0)
        total += (member.reward - sum(group) / len(group)) * float((change * torch.tensor(t.mask)).sum())
    return total


def kill(words: str) -> None:
    """Kill -9 of the trainer's process with `words` in its title, as soon as there is one."""
    import psutil

    deadline = time.monotonic() + 60
    while not (found := [p for p in psutil.Process().children(recursive=True) if words in title(p)]):
        assert time.monotonic() < deadline
    found[0].kill()


def title(process: Any) -> str:
    import psutil

    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.mark.engine
@pytest.mark.usefixtures("ray_at_end")
def test_e4_e10_two_updates_are_made_once_each_and_a_broken_one_again(policy: tuple[Any, Path], tmp_path: Path):
    model, folder = policy
    learner = VerlLearner(config(), tmp_path, folder)
    learner.start()
    try:
        first = make_batch(model, REWARDS, base_hash=weight_hash(folder))
        one = learner.update(first)
        assert one.path == tmp_path / "checkpoints" / "v1"
        assert one.weight_hash == weight_hash(one.path)
        assert gain(one.path, model, first) > 0
        assert one.metrics["lr"] == pytest.approx(RATE / 3)
        assert one.metrics["logprob_diff_mean"] < 1e-5
        assert one.metrics["groups"] == 3

        assert learner.update(first) == one, "made before: the same result, without training"
        other = replace(first, members=first.members[:3])
        with pytest.raises(UpdateError, match="a run's past cannot change"):
            learner.update(other)
        with pytest.raises(UpdateError, match="restore one of them"):
            learner.update(make_batch(model, REWARDS, base_hash="0" * 16, step=2))

        second = make_batch(model, REWARDS, base_hash=one.weight_hash, step=2)
        faults.arm("update.saved", RuntimeError("as if killed here"))
        with pytest.raises(RuntimeError, match="as if killed here"):
            learner.update(second)
        half = weight_hash(tmp_path / "checkpoints" / "v2")
        two = learner.update(second)
        assert two.weight_hash == half != one.weight_hash, "e10: optimiser and schedule came back with the base"
        assert two.metrics["lr"] == pytest.approx(RATE * 2 / 3)
        state = tmp_path / "checkpoints" / "verl"
        assert [path.name for path in state.glob("global_step_*")] == ["global_step_2"]
        saved = torch.load(state / "global_step_2" / "actor" / "optim_world_size_1_rank_0.pt", weights_only=False)
        assert {int(entry["step"]) for entry in saved["state"].values()} == {2 * 3}, "9 rows in 4 mini-batches of 3"

        third = make_batch(model, REWARDS, base_hash=two.weight_hash, step=3)
        kill("WorkerDict")
        with pytest.raises(UpdateError, match="a trainer process died"):
            learner.update(third)
        learner.start()
        kill("UpdateActor")
        with pytest.raises(UpdateError, match="a trainer process died"):
            learner.update(third)
    finally:
        faults.disarm()
        learner.stop()
    assert VerlLearner(config(), tmp_path, folder).update(second) == two, "a new process finds it done"


@pytest.mark.engine
@pytest.mark.usefixtures("ray_at_end")
def test_the_kl_loss_is_to_version_0_also_after_a_restart(policy: tuple[Any, Path], tmp_path: Path):
    from transformers import AutoModelForCausalLM

    model, folder = policy
    settings = config(update={"learning_rate": RATE, "mini_batches": 1, "kl": 0.5})
    base = weight_hash(folder)
    for step in (1, 2):
        batch = make_batch(model, REWARDS, base_hash=base, step=step)
        learner = VerlLearner(settings, tmp_path, folder)
        try:
            made = learner.update(batch)
        finally:
            learner.stop()
        if step == 1:
            assert made.metrics["kl_loss"] == pytest.approx(0.0, abs=1e-9), "version 0 is itself"
        else:
            then = AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoints" / "v1", dtype=torch.float32)
            assert made.metrics["kl_loss"] == pytest.approx(k3(then, model, batch), rel=1e-3)
        assert made.metrics["seconds_reference"] > 0
        base = made.weight_hash


def k3(model: Any, version0: Any, batch: Batch) -> float:
    """Mean over the policy's tokens of r - 1 - log r, r = p_version0 / p_model."""
    found: list[torch.Tensor] = []
    for member in batch.members:
        t = member.trajectory
        with torch.no_grad():
            log_r = log_probs(version0, t.prompt_ids, t.ids, 1.0) - log_probs(model, t.prompt_ids, t.ids, 1.0)
        found.append((log_r.exp() - 1 - log_r)[torch.tensor(t.mask).bool()])
    return float(torch.cat(found).double().mean())


@pytest.mark.engine
@pytest.mark.usefixtures("ray_at_end")
def test_c10_decoupled_correction_takes_its_raw_weights_against_the_sampler(policy: tuple[Any, Path], tmp_path: Path):
    model, folder = policy
    update = {"learning_rate": RATE, "correction": "decoupled", "max_weight": 2.0}
    learner = VerlLearner(config(update=update), tmp_path, folder)
    batch = make_batch(model, REWARDS, base_hash=weight_hash(folder), shift=lambda i: -1.0 if i == 0 else 0.0)
    try:
        made = learner.update(batch).metrics
    finally:
        learner.stop()
    tokens = sum(sum(member.trajectory.mask) for member in batch.members)
    assert made["ratio_max"] == pytest.approx(2.71828, rel=1e-3), "before truncation at 2"
    assert made["ratio_fraction_high"] == pytest.approx(len(batch.members) / tokens)
    assert made["logprob_diff_max"] == pytest.approx(1.0, abs=1e-3)
    # against the sampler it would be near -9 / tokens, the share of shifted ones
    assert abs(made["kl"]) < 0.5 * len(batch.members) / tokens, "the loss's ratio is to the recomputed log-probs"
