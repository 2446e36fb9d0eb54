"""The configuration: typed, bounded, YAML plus dotted overrides.

An unknown key is an error that names the nearest known one. The section `verl:` holds verl's own
keys and is passed through unchanged.
"""

import difflib
import hashlib
import json
from collections.abc import Sequence
from datetime import date, time, timedelta
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from futureworld.clock import Schedule
from futureworld.errors import ConfigError
from futureworld.rewards import WORST, Score


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: Any) -> Any:
        if isinstance(value, bool) and cls.model_fields[info.field_name].annotation in (int, float):
            raise ValueError("a number is expected")
        return value


class ScheduleConfig(Section):
    ask_at: time = time(20, 0)
    """Wall time at which the day's questions are asked."""
    resolve_at: time = time(20, 30)
    """Wall time at which outcomes are read, the next day."""
    zone: str = "Asia/Shanghai"
    answer_hours: float = Field(default=4.0, gt=0, le=24)
    """How long an answer may take."""
    retry_days: int = Field(default=3, ge=0, le=60)
    """Days for which a missing outcome is asked for again; 0 throws late questions away, as the paper does."""

    @field_validator("ask_at", "resolve_at", mode="before")
    @classmethod
    def _wall_time(cls, value: Any) -> Any:
        # YAML 1.1 reads a bare 20:00 as 1200, which would then be taken for seconds.
        if not isinstance(value, time | str):
            raise ValueError("YAML reads a bare time as a number; put it in quotes, '20:00'")
        return value

    @field_validator("ask_at", "resolve_at")
    @classmethod
    def _without_zone(cls, value: time) -> time:
        if value.tzinfo is not None:
            raise ValueError("a wall time has no zone of its own; set schedule.zone")
        return value

    @field_validator("zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ValueError, OSError, KeyError):
            raise ValueError("unknown zone; use an IANA name such as Europe/Berlin") from None
        return value

    def schedule(self) -> Schedule:
        return Schedule(self.ask_at, self.resolve_at, self.zone, self.answer_hours)


class QuestionsConfig(Section):
    per_day: int = Field(default=256, ge=1, le=20000)
    """Questions asked a day, after filters and resampling."""
    thresholds: int = Field(default=2, ge=1, le=8)
    """At most this many thresholds for one target and day."""
    min_history: int = Field(default=12, ge=2)
    """Known values a target needs before it is asked about."""
    min_results: int = Field(default=7, ge=1)
    """Known results the asked side of an event needs."""


class RolloutConfig(Section):
    n: int = Field(default=8, ge=1, le=1024)
    """Rollouts per question: the GRPO group."""
    temperature: float = Field(default=1.0, ge=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_turns: int = Field(default=4, ge=1, le=64)
    """Turns of the policy in one rollout."""
    max_tokens: int = Field(default=512, ge=16)
    """Tokens of prompt, turns and observations together."""
    max_turn_tokens: int = Field(default=48, ge=1)
    """Tokens of one turn."""
    max_seconds: float = Field(default=300.0, gt=0)
    """Seconds of one rollout; running over is a failure outside the policy."""
    search: bool = True
    """False offers no tool, answers every call with that, and asks for none before an answer."""
    reminders: int = Field(default=1, ge=0, le=4)
    """How often an answer without a search is sent back."""
    search_results: int = Field(default=1, ge=1, le=20)
    """Hits a search shows."""
    concurrency: int = Field(default=384, ge=1)
    """Rollouts in flight: some more than the engine samples at once (256), so that it never waits for them."""


class RewardConfig(Section):
    score: Score = "brier"
    """What an answer is paid: see futureworld.rewards."""
    missing: float = Field(default_factory=lambda known: WORST[known["score"]], le=0)
    """Reward of a rollout without an answer or without a search; unset, that of the worst answer, -1 under Brier."""

    @field_validator("missing")
    @classmethod
    def _silence_never_pays(cls, value: float, info: ValidationInfo) -> float:
        score = info.data.get("score")  # absent where it was refused itself
        if score is not None and value > WORST[score]:
            raise ValueError(f"the worst answer is paid {WORST[score]:.4f} under {score}; silence may not be paid more")
        return value


class UpdateConfig(Section):
    learning_rate: float = Field(default=2e-4, gt=0)
    warmup_days: int = Field(default=3, ge=0)
    """Updates over which the learning rate rises linearly."""
    mini_batches: int = Field(default=8, ge=1)
    """Optimiser steps in one update."""
    epochs: int = Field(default=1, ge=1)
    clip: float = Field(default=0.5, gt=0, lt=1)
    """PPO clip range. A batch is a day old and the last update moved the policy already: 0.2 stops much of a step."""
    kl: float = Field(default=0.0, ge=0)
    """Weight of a KL loss that holds the policy near version 0; 0 leaves the reference model out."""
    grad_norm: float = Field(default=0.5, gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    normalize_std: bool = False
    """Divide advantages by the group's standard deviation."""
    correction: Literal["bypass", "decoupled"] = "bypass"
    """bypass: the ratio is taken against the sampler; decoupled: against a recomputed proximal policy."""
    max_weight: float = Field(default=2.0, gt=1)
    """Truncation of decoupled importance weights."""


class EvaluateConfig(Section):
    days: int = Field(default=28, ge=1)
    """Days after the last training outcome over which the fixed set is spread."""
    per_day: int = Field(default=20, ge=1)
    """Questions a day; days x per_day is the size of the set."""
    samples: int = Field(default=1, ge=1)
    """Samples a question for every checkpoint."""
    end_samples: int = Field(default=4, ge=1)
    """Samples a question for the first and the last checkpoint."""
    bootstrap: int = Field(default=2000, ge=100)


class Config(Section):
    world: str = "almanac"
    """`almanac`, or the folder of a recorded world."""
    policy: str = "pocket"
    """`pocket`, or the folder of a Hugging Face causal LM with tokenizer and chat template."""
    start: date = Field(default=date(2026, 5, 4), ge=date(1970, 1, 1), le=date(2200, 1, 1))
    days: int = Field(default=8, ge=1, le=3650)
    seed: int = 0
    store: str = ""
    """Database URL; empty means SQLite in the run folder."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    tracking: Literal["wandb", "none"] = "wandb"
    """wandb runs offline unless a key is set."""
    control: Literal["none", "permuted-outcomes", "shuffled-observations"] = "none"
    schedule: ScheduleConfig = ScheduleConfig()
    questions: QuestionsConfig = QuestionsConfig()
    rollout: RolloutConfig = RolloutConfig()
    reward: RewardConfig = RewardConfig()
    update: UpdateConfig = UpdateConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    verl: dict[str, Any] = {}
    """verl's own keys, passed through unchanged."""

    def asked_days(self) -> list[date]:
        """The days on which questions are asked, in order."""
        return [self.start + timedelta(days=i) for i in range(self.days)]

    def hash(self) -> str:
        """16 hex digits over every value; runs of another hash are refused."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def load(path: Path | None = None, overrides: Sequence[str] = ()) -> Config:
    """Defaults, then the YAML file, then `section.key=value` overrides (values read as YAML).

    Raises ConfigError naming the key, what was found and the nearest known key.
    """
    tree: dict[str, Any] = {}
    if path is not None:
        tree = _read(path)
    for override in overrides:
        key, sign, value = override.partition("=")
        if not sign or not key:
            raise ConfigError(f"override {override!r} is not of the form section.key=value")
        _set(tree, key, _scalar(value, override))
    return build(tree)


def build(tree: dict[str, Any]) -> Config:
    """A config from a plain tree; raises ConfigError for unknown keys and values out of bounds."""
    try:
        config = Config.model_validate(tree)
    except ValidationError as error:
        items = [item for item in error.errors() if item["type"] != "default_factory_not_called"]  # follows another
        raise ConfigError("\n".join(_explain(item, tree) for item in items)) from None
    return config


def check_training(config: Config) -> None:
    """Refuse sampling that a policy gradient cannot correct for. Raises ConfigError."""
    if config.rollout.temperature <= 0:
        raise ConfigError(f"rollout.temperature must be > 0 for training, got {config.rollout.temperature}")
    if config.rollout.top_p != 1.0:
        raise ConfigError(
            f"rollout.top_p must be 1 for training (log-probs are not renormalised), got {config.rollout.top_p}"
        )
    if config.rollout.n < 2:
        raise ConfigError("rollout.n must be at least 2 for training: a group of one has no advantage")
    if config.control == "shuffled-observations" and not config.rollout.search:
        raise ConfigError("control shuffled-observations has nothing to shuffle: rollout.search is false")


def to_yaml(config: Config) -> str:
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def _read(path: Path) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"configuration {path} cannot be read: {error}") from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"configuration {path} holds a {type(tree).__name__}, expected sections and keys")
    return tree


def _scalar(value: str, override: str) -> Any:
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigError(f"override {override!r}: value cannot be read: {error}") from None


def _set(tree: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"override {key}: {section} is a value, not a section")
    tree[last] = value


def _explain(item: Any, tree: dict[str, Any]) -> str:
    key = ".".join(str(part) for part in item["loc"])
    if item["type"] != "extra_forbidden":
        return f"{key}: {item['msg'].lower()}, got {item['input']!r}"
    near = difflib.get_close_matches(key, known_keys(), n=1, cutoff=0.4)
    return f"unknown configuration key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def known_keys() -> list[str]:
    """Every dotted key, sections included, in order."""
    keys: list[str] = []
    for name, info in Config.model_fields.items():
        keys.append(name)
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            keys.extend(f"{name}.{inner}" for inner in kind.model_fields)
    return keys
