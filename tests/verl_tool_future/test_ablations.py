"""configs/ablations: each file changes one thing, and the trainer hears of it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from futureworld.config import Config, check_training, load
from futureworld.cycle.run import flat
from verl_tool_future.update_config import update_config

FOLDER = Path(__file__).parents[2] / "configs" / "ablations"
CHANGED = {
    "log-score": {"reward.score": "log", "reward.missing": pytest.approx(-4.60517)},  # the second follows
    "spherical-score": {"reward.score": "spherical", "reward.missing": 0.0},
    "std-division": {"update.normalize_std": True},
    "no-search": {"rollout.search": False},
    "kl": {"update.kl": 0.01},
}


def test_every_ablation_is_listed_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(CHANGED)


@pytest.mark.parametrize("name", CHANGED)
def test_one_key_and_a_reason(name: str) -> None:
    path = FOLDER / f"{name}.yaml"
    assert path.read_text().startswith("# ")
    assert len(flat(yaml.safe_load(path.read_text()))) == 1
    config = load(path)
    check_training(config)
    plain, made = (flat(c.model_dump(mode="json")) for c in (Config(), config))
    assert {key: value for key, value in made.items() if value != plain[key]} == CHANGED[name]


def composed(name: str) -> Any:
    return update_config(load(FOLDER / f"{name}.yaml", ["device=cpu"]), Path("model"), Path("state"))


@pytest.mark.parametrize("name", CHANGED)
def test_the_trainer_hears_of_it(name: str) -> None:
    from verl.trainer.ppo.utils import need_reference_policy

    made = composed(name)
    actor = made.actor_rollout_ref.actor
    assert made.algorithm.norm_adv_by_std_in_grpo is (name == "std-division")
    assert need_reference_policy(made) is (name == "kl")
    assert (actor.kl_loss_coef, actor.kl_loss_type) == (0.01 if name == "kl" else 0.0, "low_var_kl")
    assert made.actor_rollout_ref.ref.fsdp_config.mixed_precision.param_dtype == "fp32"


def test_the_trainers_weight_cannot_be_set_behind_the_runs_back() -> None:
    from futureworld.errors import ConfigError

    with pytest.raises(ConfigError, match="follows from the run"):
        update_config(
            load(None, ["device=cpu", "verl.actor_rollout_ref.actor.use_kl_loss=true"]), Path("model"), Path("state")
        )
