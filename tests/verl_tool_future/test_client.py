"""The client of verl's servers, on servers of one line."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from verl_tool_future.client import Client


class Server:
    """Answers with its own name once it is allowed to; remembers vLLM's request ids."""

    def __init__(self, name: str, gate: asyncio.Event) -> None:
        self.name, self.gate = name, gate
        self.ids: list[str] = []
        self.generate = self

    async def remote(self, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any]) -> str:
        self.ids.append(request_id)
        await self.gate.wait()
        if prompt_ids == [13]:
            raise OSError("the server died")
        return self.name


def turn(client: Client, rollout: str, prompt: int = 1) -> Any:
    return client.generate(rollout, prompt_ids=[prompt], sampling_params={})


def test_rollouts_spread_over_the_servers_and_stay_where_they_began() -> None:
    async def play() -> None:
        gate = asyncio.Event()
        servers = [Server(name, gate) for name in "abc"]
        client = Client({server.name: server for server in servers})
        first = [asyncio.create_task(turn(client, f"r{i}")) for i in range(9)]
        await asyncio.sleep(0)
        gate.set()
        homes = await asyncio.gather(*first)
        assert Counter(homes) == {"a": 3, "b": 3, "c": 3}
        again = await asyncio.gather(*(turn(client, f"r{i}") for i in range(9)))
        assert again == homes
        ids = [one for server in servers for one in server.ids]
        assert len(ids) == 18 == len(set(ids))

    asyncio.run(play())


def test_a_failed_turn_is_no_longer_in_flight() -> None:
    async def play() -> None:
        gate = asyncio.Event()
        gate.set()
        client = Client({name: Server(name, gate) for name in "ab"})
        with pytest.raises(OSError, match="the server died"):
            await turn(client, "r0", prompt=13)
        gate.clear()
        both = [asyncio.create_task(turn(client, f"r{i}")) for i in (1, 2)]
        await asyncio.sleep(0)
        gate.set()
        assert sorted(await asyncio.gather(*both)) == ["a", "b"]

    asyncio.run(play())
