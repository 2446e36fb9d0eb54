"""verl's standalone inference servers and the client before them, as one thing to start, ask and end."""

import asyncio
import logging
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verl_tool_future.client import Client

HEALTH_SECONDS = 5.0
SLOT_SECONDS = 30.0


class Servers:
    """The replicas that a composed verl configuration asks for. Methods raise Ray's errors."""

    def __init__(self, verl_config: Any) -> None:
        self._verl_config = verl_config
        self._config = verl_config.actor_rollout_ref.rollout
        self._replicas: list[Any] = []
        self._next_rank = 0

    def start(self) -> None:
        """Start the replicas; returns when a first request was answered."""
        asyncio.run(self._launch())
        asyncio.run(self._warm_up())

    def restart(self) -> None:
        """Replace the replicas, dead or not."""
        self.end()
        self.start()

    def client(self) -> "Client":
        from verl_tool_future.client import Client

        return Client(self.handles())

    def handles(self) -> dict[str, Any]:
        """The actor of each server, by its address."""
        return {replica.server_address: replica.server_handle for replica in self._replicas}

    def call(self, method: str, *args: Any, **kwargs: Any) -> None:
        """Call `method` of every server's actor and wait for all."""
        import ray

        ray.get([getattr(handle, method).remote(*args, **kwargs) for handle in self.handles().values()])

    def abort_requests(self) -> None:
        """End every running request as aborted; later ones wait for `admit_requests`."""
        asyncio.run(self._every("abort_all_requests"))

    def admit_requests(self) -> None:
        asyncio.run(self._every("resume_generation"))

    def healthy(self) -> bool:
        """Whether every server answers at its health address."""
        return bool(self._replicas) and all(_answers(replica.server_address) for replica in self._replicas)

    def end(self) -> None:
        """Kill the replicas, those half started too, and give their slots back."""
        import ray

        replicas, self._replicas = self._replicas, []
        for replica in replicas:
            for handle in [*replica.servers, *replica.workers]:
                _kill(handle)
            for group in (replica.resource_pool and replica.resource_pool.pgs) or []:
                ray.util.remove_placement_group(group)

    async def _launch(self) -> None:
        from verl.workers.rollout.replica import get_rollout_replica_class

        config = self._config
        kind = get_rollout_replica_class(config.name)
        slots = config.nnodes * config.n_gpus_per_node
        _wait_for_slots(slots)
        of_one = config.tensor_model_parallel_size * config.data_parallel_size * config.pipeline_model_parallel_size
        for _ in range(slots // of_one):
            self._replicas.append(
                kind(
                    replica_rank=self._next_rank,
                    config=config,
                    model_config=self._verl_config.actor_rollout_ref.model,
                    gpus_per_node=config.n_gpus_per_node,
                )
            )
            self._next_rank += 1  # a server's name is made of it and may be used once
        await asyncio.gather(*(replica.init_standalone() for replica in self._replicas))

    async def _warm_up(self) -> None:
        await self.client().generate("warm-up", prompt_ids=[0], sampling_params={"max_tokens": 1, "temperature": 1.0})

    async def _every(self, method: str) -> None:
        await asyncio.gather(*(getattr(replica, method)() for replica in self._replicas))


def _wait_for_slots(count: int) -> None:
    """Dead replicas give their slots back a moment after they ended; verl counts the free ones only once."""
    import ray

    deadline = time.monotonic() + SLOT_SECONDS
    while ray.available_resources().get("GPU", 0) < count and time.monotonic() < deadline:
        time.sleep(0.1)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/health", timeout=HEALTH_SECONDS) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _kill(handle: Any) -> None:
    """What is dead already does not matter."""
    import ray
    from ray.exceptions import RayError

    try:
        ray.kill(handle)
    except (RayError, ValueError) as error:
        logging.getLogger(__name__).debug("actor was gone: %s", error)
