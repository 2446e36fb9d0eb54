"""A policy behind any OpenAI-compatible chat endpoint: keeps messages, has no tokens, is not trainable."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import httpx

from futureworld.agents.base import Call, Conversation, Feedback, Sampling, Tape, Turn, TurnEnd
from futureworld.agents.calls import read_object
from futureworld.errors import EngineError, PolicyError
from futureworld.records import Message

KEY_VARIABLE = "OPENAI_API_KEY"
TRIES = 4
"""Times one request is sent: a request changes nothing on the server, a rollout is never sent again."""
FIRST_WAIT, MAX_WAIT = 1.0, 60.0
"""Seconds before the second try, doubled each time; and the longest wait a server may ask for."""
TIMEOUT = 600.0
"""Seconds without an answer; the rollout's own limit is usually shorter."""

Sleep = Callable[[float], Awaitable[None]]


class ChatPolicy:
    """`model` at `base_url` (which ends before `/chat/completions`).

    The key is read from the environment variable `key_variable` (unset: none is sent) and is in no
    message. Call `close` when done.
    """

    version = 0
    template_hash = ""
    trainable = False
    logprobs_mode = ""

    def __init__(
        self, model: str, base_url: str, key_variable: str = KEY_VARIABLE, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise PolicyError(f"endpoint {base_url!r} of model {model} is not an address; write http(s)://host/v1")
        key = os.environ.get(key_variable)
        self.name = model
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {}, timeout=httpx.Timeout(TIMEOUT, connect=10.0)
        )
        self._sleep = sleep

    def open(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], sampling: Sampling, request_id: str
    ) -> Conversation:
        request = {
            "model": self.name,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            **({"tools": list(tools)} if tools else {}),
            **({} if sampling.seed is None else {"seed": sampling.seed}),
        }
        opening = [{"role": message.role, "content": message.text} for message in messages]
        return ChatConversation(self, request, opening, sampling.seed)

    async def close(self) -> None:
        await self._client.aclose()

    async def send(self, body: Mapping[str, Any]) -> httpx.Response:
        """The endpoint's answer, after at most TRIES tries. Raises EngineError for a lost connection or a 5xx or 429
        that stays."""
        wait, found = FIRST_WAIT, ""
        for left in reversed(range(TRIES)):
            try:
                response = await self._client.post(self._url, json=body)
            except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
                found, asked = type(error).__name__, None
            except httpx.HTTPError as error:  # a timeout may have cost a whole generation: not sent again
                raise EngineError(f"endpoint {self._url} gave no answer: {type(error).__name__}") from None
            else:
                if response.status_code != 429 and response.status_code < 500:
                    return response
                found, asked = f"status {response.status_code}", _retry_after(response)
            if left:
                await self._sleep(min(asked if asked is not None else wait, MAX_WAIT))
                wait *= 2
        raise EngineError(f"endpoint {self._url} failed {TRIES} times, last with {found}; try again later")


class ChatConversation:
    """Messages so far. `tokens_used` is what the endpoint last counted, 0 where it does not count."""

    def __init__(
        self, policy: ChatPolicy, request: Mapping[str, Any], messages: list[dict[str, Any]], seed: int | None
    ) -> None:
        self._policy = policy
        self._request = request
        self._messages = messages
        self._seed = seed
        self._waiting: list[str] = []
        self.tokens_used = 0

    async def next(self, feedback: Sequence[Feedback], max_tokens: int) -> Turn:
        for item in feedback:
            self._messages.append(self._message(item))
        body = {**self._request, "messages": self._messages, "max_tokens": max_tokens}
        response = await self._policy.send(body)
        if response.status_code == 400 and "context_length" in response.text:
            return Turn("", (), TurnEnd.LENGTH)
        message, reason, used = _read(response)
        self.tokens_used = used
        text = message.get("content") or ""
        calls = _calls(message.get("tool_calls") or [])
        self._waiting = [name for name, _ in calls]
        self._messages.append(_echo(text, calls))
        end = TurnEnd.LENGTH if reason == "length" else TurnEnd.CLOSED
        return Turn(text, tuple(call for _, call in calls), end)

    def _message(self, item: Feedback) -> dict[str, Any]:
        if item.role == "tool":
            return {"role": "tool", "tool_call_id": self._waiting.pop(0), "content": item.text}
        return {"role": item.role, "content": item.text}

    def tape(self) -> Tape:
        return Tape((), (), (), (), self._policy.version, self._seed)


def _read(response: httpx.Response) -> tuple[dict[str, Any], str | None, int]:
    """Message, finish reason and total tokens of a completion. Raises EngineError for anything else."""
    if response.status_code != 200:
        raise EngineError(f"endpoint {response.url} refused with {response.status_code}: {response.text[:300]}")
    try:
        body = response.json()
        choice = body["choices"][0]
        message = choice["message"]
        usage = body.get("usage") or {}
        used = int(usage.get("total_tokens") or 0)
        if not isinstance(message, dict) or not isinstance(message.get("content") or "", str):
            raise TypeError("message is not an object with text")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise EngineError(
            f"endpoint {response.url} did not send a chat completion"
            f" ({type(error).__name__}: {error}): {response.text[:300]}"
        ) from None
    return message, choice.get("finish_reason"), used


def _calls(items: Any) -> list[tuple[str, Call]]:
    """(tool call id, call) of each native call; what is missing becomes the call's problem."""
    if not isinstance(items, list):
        return [("call0", Call("", None, str(items)[:300], "tool_calls is not a list"))]
    return [_call(number, item) for number, item in enumerate(items)]


def _call(number: int, item: Any) -> tuple[str, Call]:
    function = item.get("function") if isinstance(item, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return f"call{number}", Call("", None, json.dumps(item)[:300], "the call names no function")
    raw = function.get("arguments")
    if not isinstance(raw, str):
        raw = json.dumps(raw)
    arguments, problem = read_object(raw)
    call = Call(function["name"], arguments, raw, problem or None)
    return str(item.get("id") or f"call{number}"), call


def _echo(text: str, calls: Sequence[tuple[str, Call]]) -> dict[str, Any]:
    """The policy's turn as the next request repeats it. Servers refuse a history with unreadable arguments, so
    those are sent as none; the record keeps what was written."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": name,
                "type": "function",
                "function": {"name": call.name or "unknown", "arguments": json.dumps(call.arguments or {})},
            }
            for name, call in calls
        ]
    return message


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds the server asks to wait; None where it names none (or a date)."""
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None
