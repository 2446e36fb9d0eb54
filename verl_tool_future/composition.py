"""verl's own configuration, composed by hydra from the keys of verl's installed `ppo_trainer`.

Three sources, each applied as a hydra override: what suits this device (`defaults`), the user's
section `verl:` unchanged, and what follows from the day (`overrides`). The last two may not meet.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from omegaconf import DictConfig

from futureworld.config import Config
from futureworld.errors import ConfigError


def is_cpu(config: Config) -> bool:
    """Whether this run is meant for the CPU; `device: auto` means CUDA where torch finds it."""
    return not _cuda_found() if config.device == "auto" else config.device == "cpu"


def check_device(config: Config) -> None:
    """Refuse with ConfigError to start what is meant for CUDA on a machine without it."""
    if config.device == "cuda" and not _cuda_found():
        raise ConfigError("device is cuda, but torch finds no CUDA device; set device=auto or device=cpu")


def _cuda_found() -> bool:
    import torch

    return torch.cuda.is_available()


def compose(
    overrides: Mapping[str, Any], user: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> DictConfig:
    """verl's `ppo_trainer` with dotted `defaults`, then `user`, then dotted `overrides` applied.

    `user` is a tree (or dotted keys) as in Config.verl; a leading `+` adds a key that verl's YAML
    does not list, as on hydra's command line. Raises ConfigError naming the key where `user` sets
    what `overrides` decides, and with hydra's words where it cannot be composed.
    """
    wishes = dict(_leaves(user))
    for key in wishes:
        _refuse_decided(key, overrides)
    lines = [f"++{key}={literal(value)}" for key, value in (defaults or {}).items()]
    lines += [f"{key}={literal(value)}" for key, value in wishes.items()]
    lines += [f"++{key}={literal(value)}" for key, value in overrides.items()]
    return _compose(lines)


def literal(value: Any) -> str:
    """`value` (scalars, lists, mappings with plain keys) in hydra's override grammar."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(literal(item) for item in value) + "]"
    raise ConfigError(f"verl value {value!r} is a {type(value).__name__}; write a scalar, a list or a mapping")


def _leaves(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, here)
        else:
            yield here, value


def _refuse_decided(wish: str, decided: Mapping[str, Any]) -> None:
    bare = wish.lstrip("+~")
    for key in decided:
        if bare == key or bare.startswith(f"{key}.") or key.startswith(f"{bare}."):
            raise ConfigError(f"verl.{wish} follows from the run and cannot be set ({key}={decided[key]}); remove it")


def _compose(lines: list[str]) -> DictConfig:
    import hydra
    from hydra.errors import HydraException

    with hydra.initialize_config_module(config_module="verl.trainer.config", version_base=None):
        try:
            return hydra.compose(config_name="ppo_trainer", overrides=lines)
        except HydraException as error:
            raise ConfigError(f"section verl: {error}") from None
