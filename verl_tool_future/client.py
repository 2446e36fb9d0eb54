"""The client of verl's servers: one loop, no process between."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from verl.workers.rollout.router import GlobalRequestLoadBalancer


class Client:
    """Asks the servers' actors: a rollout stays with one, whose cache holds it; a new one goes to the least busy.

    verl keeps the same balancer in a process that its agent-loop workers share. Our loop is the
    servers' only client: two Ray calls and an unpickled actor a turn would cost more than its own work.
    """

    def __init__(self, servers: Mapping[str, Any]) -> None:
        self._balancer = GlobalRequestLoadBalancer(dict(servers))
        self._turns = count()

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Any:
        """verl's TokenOutput for one turn of the rollout `request_id`. Raises Ray's errors of a dead server."""
        address, server = self._balancer.acquire_server(request_id)
        try:
            return await server.generate.remote(
                request_id=f"{request_id}-{next(self._turns)}",  # no two turns may share vLLM's
                prompt_ids=prompt_ids,
                sampling_params=sampling_params,
            )
        finally:
            self._balancer.release_server(address)
