"""Whether verl accepts a configuration: both jobs composed and validated, nothing started."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from futureworld.config import Config
from futureworld.errors import ConfigError
from verl_tool_future.engine import engine_config
from verl_tool_future.update_config import update_config

NOWHERE = Path("checked")
"""Stands for the folders of a run; nothing is read or written."""


def check(config: Config) -> tuple[DictConfig, DictConfig]:
    """verl's configurations of engine and trainer, after verl's own checks of both.

    Needs neither the policy's folder nor its device. Raises ConfigError with verl's words.
    """
    model = Path(config.policy)
    with _refused():
        engine, trainer = engine_config(config, model), update_config(config, model, NOWHERE)
        from verl.trainer.ppo.utils import need_reference_policy
        from verl.utils.config import omega_conf_to_dataclass, validate_config

        for section in (engine.actor_rollout_ref.rollout, trainer.actor_rollout_ref.rollout, trainer.algorithm):
            omega_conf_to_dataclass(section)
        OmegaConf.resolve(trainer)  # as the trainer does first
        validate_config(trainer, use_reference_policy=need_reference_policy(trainer), use_critic=False)
    return engine, trainer


@contextlib.contextmanager
def _refused() -> Iterator[None]:
    """verl's refusals as ConfigError; what it prints on the way is left out."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    except (HydraException, OmegaConfBaseException, AssertionError, TypeError, ValueError) as error:
        raise ConfigError(f"section verl: {str(error).strip() or type(error).__name__}") from None
