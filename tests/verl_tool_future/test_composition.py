"""verl's configuration: the user's keys unchanged, ours where they follow from the run."""

import pytest
import torch

from futureworld.config import build
from futureworld.errors import ConfigError
from verl_tool_future.composition import check_device, compose, is_cpu

NAME = "actor_rollout_ref.rollout.name"


def test_user_over_defaults_and_the_run_over_both() -> None:
    config = compose(
        {NAME: "vllm", "actor_rollout_ref.model.path": 'a folder, "odd"={x}'},
        {"actor_rollout_ref": {"rollout": {"dtype": "float16"}}, "data.train_batch_size": 3},
        {"actor_rollout_ref.rollout.dtype": "float32", "trainer.device": "cpu"},
    )
    assert config.actor_rollout_ref.model.path == 'a folder, "odd"={x}'
    assert config.actor_rollout_ref.rollout.dtype == "float16"
    assert (config.data.train_batch_size, config.trainer.device) == (3, "cpu")
    assert config.algorithm.gamma == 1.0  # verl's own


def test_values_of_every_kind_arrive() -> None:
    values = [None, True, 0.5, 1e-4, -2, "", "a: b", ["console", "wandb"], {"param_dtype": "fp32"}, []]
    for value in values:
        config = compose({NAME: "vllm", "trainer.thing": value}, {})
        assert config.trainer.thing == value


def test_a_key_that_verl_does_not_list_needs_a_plus() -> None:
    config = compose({NAME: "vllm"}, {"+actor_rollout_ref.rollout.enable_sleep_mode": False})
    assert config.actor_rollout_ref.rollout.enable_sleep_mode is False
    with pytest.raises(ConfigError, match=r"use \+trainer.nonsense"):
        compose({NAME: "vllm"}, {"trainer": {"nonsense": 1}})


def test_a_group_of_verl_can_be_chosen() -> None:
    assert compose({NAME: "vllm"}, {"model_engine": "megatron"}).actor_rollout_ref.actor.strategy == "megatron"


@pytest.mark.parametrize(
    "user",
    [
        {"trainer": {"logger": ["wandb"]}},
        {"trainer.logger": ["wandb"]},
        {"+trainer": {"logger": {"deeper": 1}}},
        {"trainer": None},
    ],
)
def test_what_follows_from_the_run_is_refused(user: dict) -> None:
    with pytest.raises(ConfigError, match=r"verl\.\+?trainer.* follows from the run"):
        compose({NAME: "vllm", "trainer.logger": ["console"]}, user)


def test_device() -> None:
    assert is_cpu(build({"device": "cpu"}))
    assert not is_cpu(build({"device": "cuda"}))  # composes without CUDA, starts nothing without it
    assert is_cpu(build({})) is not torch.cuda.is_available()
    check_device(build({"device": "cpu"}))
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="finds no CUDA device"):
            check_device(build({"device": "cuda"}))
