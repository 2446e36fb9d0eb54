"""The engine: verl's standalone vLLM servers, kept up over days, and a token policy on them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from futureworld.config import Config
from futureworld.errors import EngineDeadError, EngineError, PolicyError
from verl_tool_future import pocket
from verl_tool_future.composition import compose, is_cpu
from verl_tool_future.runtime import quiet, start_ray
from verl_tool_future.servers import Servers
from verl_tool_future.templates import TemplateRenderer
from verl_tool_future.token_policy import Generate, TokenPolicy

BLOCK = 32
"""Tokens of a prefix-cache block on the CPU; its own 128 is longer than a small policy's prompt."""


class VerlEngine:
    """Serves the policy in the folder `model` (Hugging Face, with tokenizer and chat template).

    `start` is refused with PolicyError where the folder lacks something or its positions are fewer
    than `rollout.max_tokens`. Every call that meets a dead server raises EngineDeadError; `restart`
    then replaces the servers inside the running Ray.
    """

    def __init__(self, config: Config, run_folder: Path, model: Path) -> None:
        self._config = config
        self._run_folder = run_folder
        self._model = model
        self._version = 0
        self._log = run_folder / "logs" / "engine.log"
        self._dead = False
        self._servers: Servers | None = None
        self._renderer: TemplateRenderer | None = None

    @staticmethod
    def check(config: Config) -> None:
        """Refuse with ConfigError what verl would refuse of `verl:` in engine or trainer; starts nothing."""
        from verl_tool_future.check import check

        check(config)

    def start(self) -> None:
        """Start Ray where it is not up, then the servers, which serve `model` as version 0. Idempotent."""
        if self._servers is not None:
            return
        with self._failing("start"), quiet.into(self._log):
            verl_config = engine_config(self._config, self._model)
            arguments = template_arguments(verl_config)
            self._renderer = renderer(self._model, self._config.rollout.max_tokens, arguments)
            start_ray(self._config, self._run_folder)
            servers = Servers(verl_config)
            try:
                servers.start()
                servers.call("set_global_steps", self._version)
            except BaseException:
                servers.end()
                raise
        self._servers = servers

    def load(self, path: str, version: int) -> None:
        """Serve the weights in the folder `path` from now on as `version`.

        Requests that still run are aborted first, and caches of the old weights dropped.
        """
        if (Path(path), version) == (self._model, self._version):
            return
        if not (Path(path) / "config.json").exists():
            raise PolicyError(f"checkpoint {path} has no config.json; it is not a Hugging Face folder")
        servers = self._alive()
        with self._failing(f"load {path}"), quiet.into(self._log):
            servers.abort_requests()
            self._model, self._version = Path(path), version
            self._serve(servers)
            servers.admit_requests()

    def policy(self) -> TokenPolicy:
        """The policy as it is served now; a conversation of it fails once other weights are loaded."""
        servers = self._alive()
        assert self._renderer is not None
        return TokenPolicy(
            self._generate(servers),
            self._renderer,
            name=self._model.name,
            version=self._version,
            room=self._config.rollout.max_tokens,
        )

    def healthy(self) -> bool:
        """Whether every server answers, asked over its health address."""
        return self._servers is not None and not self._dead and self._servers.healthy()

    def restart(self) -> None:
        """Replace dead servers by new ones that serve the same weights as the same version."""
        if self._servers is None:
            self.start()
            return
        with self._failing("restart"), quiet.into(self._log):
            self._servers.restart()
            self._serve(self._servers)
        self._dead = False

    def stop(self) -> None:
        """End the servers. Ray stays, since a learner may work in it: see runtime.stop_ray."""
        servers, self._servers = self._servers, None
        if servers is not None:
            servers.end()

    def _serve(self, servers: Servers) -> None:
        """Make every server serve the weights of `_model` as `_version`, with empty caches."""
        servers.call("collective_rpc", "reload_weights", kwargs={"weights_path": str(self._model)})
        servers.call("clear_kv_cache")
        servers.call("set_global_steps", self._version)

    def _alive(self) -> Servers:
        if self._servers is None:
            raise EngineError("the engine is not started; call start() first")
        if self._dead:
            raise EngineDeadError(f"the engine's servers died; call restart(), or run again; see {self._log.parent}")
        return self._servers

    def _generate(self, servers: Servers) -> Generate:
        client = servers.client()

        async def generate(request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
            with self._failing(f"request {request_id}"):
                return await client.generate(request_id, prompt_ids=prompt_ids, sampling_params=sampling_params)

        return generate

    @contextmanager
    def _failing(self, action: str) -> Iterator[None]:
        """Ray's errors of a dead or refusing server as EngineDeadError and EngineError."""
        from ray.exceptions import RayError

        try:
            yield
        except RayError as error:
            self._dead = self._dead or _is_death(error)
            raise (EngineDeadError if self._dead else EngineError)(
                f"engine {self._model}: {action} failed with {type(error).__name__}: {_first_sentence(error)};"
                f" see {self._log.parent}; run the same command again to go on"
            ) from error
        except (AssertionError, TypeError, ValueError) as error:  # verl refuses a value under `verl:` in this process
            raise EngineError(
                f"engine {self._model}: {action} was refused with {type(error).__name__}: {error};"
                f" look at the keys under `verl:` and at {self._log.parent}"
            ) from error


def engine_config(config: Config, model: Path) -> DictConfig:
    """verl's configuration of the servers."""
    return compose(decided(config, model), config.verl, defaults(is_cpu(config)))


def template_arguments(verl_config: DictConfig) -> dict[str, Any]:
    """What verl's key `data.apply_chat_template_kwargs` gives to the chat template."""
    return cast(dict[str, Any], OmegaConf.to_container(verl_config.data.apply_chat_template_kwargs, resolve=True))


def decided(config: Config, model: Path) -> dict[str, Any]:
    """verl's keys that follow from the run; a user may not set them."""
    rollout = "actor_rollout_ref.rollout"
    return {
        "actor_rollout_ref.model.path": str(model),
        f"{rollout}.name": "vllm",
        f"{rollout}.load_format": "auto",  # verl's own default waits for a weight sync
        f"{rollout}.temperature": config.rollout.temperature,
        f"{rollout}.top_p": config.rollout.top_p,
        f"{rollout}.max_model_len": config.rollout.max_tokens,
        f"{rollout}.prompt_length": config.rollout.max_tokens,
        f"{rollout}.response_length": config.rollout.max_tokens,
        f"{rollout}.logprobs_mode": "processed_logprobs",
        f"{rollout}.router_config_path": None,  # requests are balanced in this process
    }


def defaults(cpu: bool) -> dict[str, Any]:
    """verl's keys as they suit the device; a user may set them otherwise."""
    rollout = "actor_rollout_ref.rollout"
    common = {
        f"{rollout}.nnodes": 1,
        f"{rollout}.n_gpus_per_node": 1,
        f"{rollout}.tensor_model_parallel_size": 1,
        f"{rollout}.free_cache_engine": False,
        f"{rollout}.enable_sleep_mode": False,
        f"{rollout}.max_num_seqs": 256,
    }
    if not cpu:
        return common
    return common | {
        "trainer.device": "cpu",
        f"{rollout}.dtype": "float32",
        f"{rollout}.enforce_eager": True,
        # A seeded request whose prefill is split kills vLLM's engine on the CPU.
        f"{rollout}.enable_chunked_prefill": False,
        f"{rollout}.engine_kwargs.vllm.block_size": BLOCK,
        # The worker inside the engine's core: in a process of its own the core spins while it computes.
        f"{rollout}.engine_kwargs.vllm.distributed_executor_backend": "uni",
    }


def renderer(model: Path, max_tokens: int, arguments: Mapping[str, Any] | None = None) -> TemplateRenderer:
    """The tokenizer and template in `model`, checked before anything heavy starts. Raises PolicyError."""
    pocket.check(model)
    try:
        shape = json.loads((model / "config.json").read_text())
        positions = shape.get("max_position_embeddings")
        short = positions is not None and positions < max_tokens
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise PolicyError(
            f"policy folder {model}: config.json cannot be read ({error}); save the model into it"
        ) from None
    if short:
        raise PolicyError(
            f"policy {model} has {positions} positions, fewer than rollout.max_tokens={max_tokens}; lower that"
        )
    if not (model / "tokenizer_config.json").exists():
        raise PolicyError(f"policy folder {model} lacks tokenizer_config.json; save the tokenizer into it")
    return TemplateRenderer(_tokenizer(model), _generation_stops(model), arguments)


def _tokenizer(model: Path) -> Any:
    from transformers import AutoTokenizer
    from transformers import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    try:
        return AutoTokenizer.from_pretrained(str(model), local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise PolicyError(f"policy folder {model}: its tokenizer cannot be loaded ({error}); save it again") from None


def _generation_stops(model: Path) -> list[int]:
    """The EOS ids of generation_config.json, at which vLLM stops too."""
    path = model / "generation_config.json"
    if not path.exists():
        return []
    try:
        eos = json.loads(path.read_text()).get("eos_token_id")
        if eos is None:
            return []
        return [int(i) for i in eos] if isinstance(eos, list) else [int(eos)]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise PolicyError(f"{path} cannot be read ({error}); save the model again, or remove the file") from None


def _first_sentence(error: Exception) -> str:
    """What Ray's last line begins with; guesses at the cause follow it."""
    lines = str(error).strip().splitlines()
    return lines[-1].partition(". ")[0] if lines else "no message"


def _is_death(error: Exception) -> bool:
    """vLLM's error class comes back through Ray under a name of both."""
    from ray.exceptions import RayActorError

    return isinstance(error, RayActorError) or "EngineDeadError" in type(error).__name__
