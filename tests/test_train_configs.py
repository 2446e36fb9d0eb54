"""configs/train: every file composes against the installed verl for both jobs and passes verl's own checks."""

import json
from pathlib import Path

import pytest
import yaml
from omegaconf import DictConfig, OmegaConf
from typer.testing import CliRunner

from futureworld.cli.main import app
from futureworld.config import Config, build, check_training, load, to_yaml
from futureworld.errors import ConfigError
from verl_tool_future.check import check
from verl_tool_future.engine import template_arguments

FOLDER = Path(__file__).parents[1] / "configs" / "train"
FILES = sorted(FOLDER.glob("*.yaml"))
POSITIONS = {"qwen2.5-7b-instruct": 32768, "qwen3-8b": 40960, "deepseek-r1-distill-qwen-7b": 131072}
"""Of the models' own config.json."""
ONE_NODE = 8

everywhere = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def composed() -> dict[str, tuple[Config, DictConfig, DictConfig]]:
    return {path.stem: (config := load(path), *check(config)) for path in FILES}


def test_the_three_models_have_a_file() -> None:
    assert {path.stem for path in FILES} == set(POSITIONS)


@everywhere
def test_nothing_that_is_the_default_is_repeated(path: Path) -> None:
    default = Config().model_dump(mode="json")
    for section, keys in yaml.safe_load(path.read_text()).items():
        if section != "verl" and isinstance(keys, dict):
            assert not [key for key, value in keys.items() if default[section][key] == value]
        else:
            assert default[section] != keys


@everywhere
def test_the_day_is_the_one_that_was_asked_for(path: Path) -> None:
    config = load(path)
    check_training(config)
    assert (config.questions.per_day, config.rollout.n, config.device) == (500, 8, "cuda")
    assert config.rollout.max_tokens <= POSITIONS[path.stem]
    assert config.rollout.max_tokens >= 4 * config.rollout.max_turn_tokens


@everywhere
def test_trainer_keys_arrive(path: Path, composed: dict[str, tuple[Config, DictConfig, DictConfig]]) -> None:
    config, _, trainer = composed[path.stem]
    actor, model = trainer.actor_rollout_ref.actor, trainer.actor_rollout_ref.model
    assert (trainer.trainer.device, trainer.trainer.n_gpus_per_node, trainer.trainer.nnodes) == ("cuda", 4, 1)
    assert (actor.strategy, actor.optim.optimizer, actor.optim.lr) == ("fsdp2", "AdamW", 1e-6)
    assert (actor.fsdp_config.dtype, actor.fsdp_config.model_dtype) == ("bfloat16", "fp32")
    assert actor.fsdp_config.get("mixed_precision") is None  # verl's own: bf16 with fp32 reductions
    assert (actor.use_dynamic_bsz, actor.entropy_checkpointing) == (True, True)
    assert actor.fsdp_config.entropy_from_logits_with_chunking is True
    assert (model.enable_gradient_checkpointing, model.use_remove_padding) == (True, True)
    longest = config.rollout.max_tokens
    assert actor.ppo_max_token_len_per_gpu >= longest
    assert trainer.actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu >= longest


@everywhere
def test_engine_keys_arrive(path: Path, composed: dict[str, tuple[Config, DictConfig, DictConfig]]) -> None:
    config, engine, trainer = composed[path.stem]
    rollout = engine.actor_rollout_ref.rollout
    assert (rollout.nnodes, rollout.n_gpus_per_node, rollout.tensor_model_parallel_size) == (1, 4, 1)
    assert (rollout.dtype, rollout.gpu_memory_utilization) == ("bfloat16", 0.85)
    assert rollout.max_model_len == config.rollout.max_tokens
    assert rollout.n_gpus_per_node * rollout.max_num_seqs >= config.rollout.concurrency
    assert rollout.n_gpus_per_node + trainer.trainer.n_gpus_per_node == ONE_NODE


@everywhere
def test_verls_model_section_wants_flash_attention(
    path: Path, composed: dict[str, tuple[Config, DictConfig, DictConfig]], tmp_path: Path
) -> None:
    from verl.utils.config import omega_conf_to_dataclass

    shape = {"model_type": "qwen3" if "qwen3" in path.stem else "qwen2", "vocab_size": 300, "hidden_size": 64}
    (tmp_path / "config.json").write_text(json.dumps(shape | {"architectures": ["Qwen2ForCausalLM"]}))
    section = OmegaConf.to_container(composed[path.stem][2].actor_rollout_ref.model)
    assert isinstance(section, dict)
    model = omega_conf_to_dataclass({**section, "path": str(tmp_path), "load_tokenizer": False})
    assert model.hf_config._attn_implementation == "flash_attention_2"


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("verl.trainer.n_gpu_per_node=4", "Could not override 'trainer.n_gpu_per_node'"),
        ("verl.trainer.device=cpu", "verl.trainer.device follows from the run"),
        ("verl.actor_rollout_ref.rollout.temperature=0.5", "verl.actor_rollout_ref.rollout.temperature follows"),
        ("verl.actor_rollout_ref.rollout.pipeline_model_parallel_size=2", "pipeline_model_parallel_size > 1"),
        ("verl.+actor_rollout_ref.actor.nonsense=1", "nonsense"),
    ],
)
def test_a_wrong_key_of_verl_is_seen_before_anything_starts(key: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"verl") as refused:
        check(load(FILES[0], [key]))
    assert said in str(refused.value)


def test_the_engine_may_split_a_model_that_the_trainer_shards() -> None:
    engine, trainer = check(load(FILES[0], ["verl.actor_rollout_ref.rollout.tensor_model_parallel_size=2"]))
    assert engine.actor_rollout_ref.rollout.tensor_model_parallel_size == 2
    assert trainer.trainer.n_gpus_per_node == 4


def test_a_file_survives_its_own_resolved_form(tmp_path: Path) -> None:
    for path in FILES:
        config = load(path)
        (tmp_path / "config.yaml").write_text(to_yaml(config))
        assert load(tmp_path / "config.yaml").hash() == config.hash()


def test_a_dry_run_asks_verl_about_its_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    call = ["replay", "--dry-run", "--config", str(FILES[0])]
    shown = CliRunner().invoke(app, call)
    assert shown.exit_code == 0
    assert build(yaml.safe_load(shown.stdout)).hash() == load(FILES[0]).hash()
    refused = CliRunner().invoke(app, [*call, "--set", "verl.actor_rollout_ref.rollout.nodes=1"])
    assert isinstance(refused.exception, ConfigError)
    assert refused.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_argument_of_the_template_is_named_under_verl_s_own_key() -> None:
    engine, _ = check(load(FILES[0], ["verl.+data.apply_chat_template_kwargs.enable_thinking=false"]))
    assert template_arguments(engine) == {"enable_thinking": False}
