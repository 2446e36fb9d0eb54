"""One local Ray for engine and learner, and a quiet terminal while they start.

Ray is always started here (`address="local"`): another Ray on the machine is never joined, and
stopping ends only our own.
"""

import contextlib
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from futureworld.config import Config
from verl_tool_future.composition import check_device, is_cpu

CPU_SLOTS = 2
"""Logical GPUs on a machine without any: one for the engine's replica, one for the trainer's rank."""
LOGICAL_CPUS = 24
"""verl's placement asks for 2 to 3 CPUs a slot and 1 an actor, most of which wait; they are not the machine's."""
OBJECT_STORE_BYTES = 512 << 20

ENVIRONMENT = {
    "TRANSFER_QUEUE_ENABLE": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_LOGGING_LEVEL": "WARN",
    "VLLM_NO_USAGE_STATS": "1",
}
CPU_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB, whole
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # lets the executor be "uni", see engine.defaults
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
}


class _LocalRay:
    """This process's Ray, started once whatever thread asks first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._context: Any = None

    def start(self, config: Config) -> Any:
        with self._lock:
            if self._context is None:
                self._context = _init(config)
            return self._context

    def stop(self) -> None:
        with self._lock:
            if self._context is not None:
                import ray

                ray.shutdown()
                self._context = None


_local = _LocalRay()


def start_ray(config: Config, run_folder: Path | None = None) -> Any:
    """Start this process's Ray once and return its context; later calls return the same.

    With `run_folder`, Ray's logs (and so those of every actor) can be read at `logs/ray` in it.
    """
    context = _local.start(config)
    if run_folder is not None:
        _link_logs(run_folder, Path(context.address_info["session_dir"]) / "logs")
    return context


def stop_ray() -> None:
    """End the Ray that `start_ray` started, with every actor in it; nothing where there is none."""
    _local.stop()


def _init(config: Config) -> Any:
    check_device(config)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # silences a warning about num_gpus=0
    import ray

    _keep_stdout()
    environment = dict(ENVIRONMENT)
    resources: dict[str, Any] = {}
    if is_cpu(config):
        environment |= CPU_ENVIRONMENT
        resources = {"num_gpus": CPU_SLOTS, "num_cpus": LOGICAL_CPUS, "object_store_memory": OBJECT_STORE_BYTES}
    return ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env={"env_vars": environment},
        **resources,
    )


def _keep_stdout() -> None:
    """Ray prints the death of every worker to standard output, which is the command's; its logs have it too."""
    from ray._private import worker

    def log(data: Mapping[str, Any], ignore_prefix: bool) -> None:
        logging.getLogger(__name__).debug("%s: %s", data["pid"], " ".join(data["lines"]))

    worker.print_to_stdstream = log


def _link_logs(run_folder: Path, logs: Path) -> None:
    link = run_folder / "logs" / "ray"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(logs)


class Quiet:
    """Sends this process's prints to a file while any thread is inside; the last one out restores them.

    The file stays open: libraries that set up their logging inside go on writing to it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._stack = contextlib.ExitStack()

    @contextlib.contextmanager
    def into(self, path: Path) -> Iterator[None]:
        self._enter(path)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, path: Path) -> None:
        with self._lock:
            self._inside += 1
            if self._inside > 1:
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a", encoding="utf-8", buffering=1)
            self._stack.enter_context(contextlib.redirect_stdout(file))
            self._stack.enter_context(contextlib.redirect_stderr(file))

    def _leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                sys.stdout.flush()
                self._stack.close()


quiet = Quiet()
