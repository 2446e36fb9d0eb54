"""verl finds the CPU platform by itself where there is no CUDA."""

import pytest
import torch

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="verl takes CUDA here")


def test_verl_is_on_the_cpu_platform() -> None:
    import verl  # noqa: F401  (loads the entry points)
    from verl.plugin.platform import get_platform
    from verl.utils.device import get_device_id, get_device_name, get_nccl_backend, get_resource_name

    platform = get_platform()
    assert type(platform).__name__ == "CpuPlatform"
    assert (get_device_name(), get_device_id(), get_nccl_backend(), get_resource_name()) == (
        "cpu",
        "cpu",
        "gloo",
        "GPU",
    )


def test_the_device_module_answers_memory_calls() -> None:
    from verl_tool_future.platform import CpuPlatform

    device = CpuPlatform().device_module
    device.empty_cache()
    device.synchronize()
    assert device.memory_allocated() == device.max_memory_reserved(0) == 0
    free, total = device.mem_get_info()
    assert 0 < free <= total
    state = device.get_rng_state()
    first = torch.rand(3)
    device.set_rng_state(state)
    assert torch.equal(torch.rand(3), first)
    assert device.device_count() == torch.cpu.device_count()
