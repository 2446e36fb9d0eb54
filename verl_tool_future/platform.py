"""verl on machines without CUDA: a CPU platform, found by verl through the entry point `verl.plugins`.

verl loads this module at the end of its own import and asks each registered platform, CUDA
first, whether it is there; a machine with CUDA never gets this one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import psutil
import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry, get_platform, set_platform

ROLLOUT_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB, whole
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # the default pins every engine to the same core
}


class CpuDevice(ModuleType):
    """`torch.cpu` with the memory calls of `torch.cuda` that verl makes; bytes, or nothing to do."""

    def __init__(self) -> None:
        super().__init__("verl_tool_future.platform.cpu")

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    def _nothing(self, *_: Any, **__: Any) -> None:
        return None

    def _zero(self, *_: Any, **__: Any) -> int:
        return 0

    empty_cache = ipc_collect = synchronize = set_device = reset_peak_memory_stats = _nothing
    memory_allocated = memory_reserved = max_memory_allocated = max_memory_reserved = _zero
    get_rng_state = staticmethod(torch.get_rng_state)
    set_rng_state = staticmethod(torch.set_rng_state)

    def get_device_name(self, *_: Any) -> str:
        return "CPU"

    def mem_get_info(self, *_: Any) -> tuple[int, int]:
        memory = psutil.virtual_memory()
        return memory.available, memory.total


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    """Answers verl's questions for a machine without CUDA.

    Ray knows logical GPUs there, because verl's placement counts nothing else.
    """

    def __init__(self) -> None:
        self._device = CpuDevice()

    @property
    def device_name(self) -> str:
        return "cpu"

    @property
    def vendor_name(self) -> str:
        return "cpu"

    @property
    def device_module(self) -> ModuleType:
        return self._device

    def is_available(self) -> bool:
        return not torch.cuda.is_available()

    def current_device(self) -> Any:
        return "cpu"  # verl moves tensors to it, and 0 would mean cuda:0

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        pass

    def synchronize(self, device_index: int | None = None) -> None:
        pass

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        pass

    def empty_cache(self) -> None:
        pass

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        yield

    def profiler_start(self) -> None:
        pass

    def profiler_stop(self) -> None:
        pass

    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    def rollout_env_vars(self) -> dict[str, str]:
        return dict(ROLLOUT_ENVIRONMENT)

    def cudart(self) -> Any:
        return None


# On a CUDA machine verl takes CUDA as soon as nvidia-smi answers; a torch built without CUDA cannot follow it.
if torch.version.cuda is None and torch.version.hip is None and get_platform().device_name == "cuda":
    set_platform(CpuPlatform())
