"""A policy that reads its turns from a script: tests and stage timings without an engine.

It keeps ids, spans and log-probs as a real token policy does; a token is three bytes of text,
which makes lengths like those of a real tokenizer.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from futureworld.agents.base import Conversation, Feedback, Policy, Sampling, Tape, Turn, TurnEnd
from futureworld.agents.calls import CLOSE, OPEN, parse_calls
from futureworld.records import Message, Role, Span, content_id

Script = Callable[[Sequence[Message]], Sequence[str]]
"""From the opening messages to the turns' texts; a conversation that outlives them gets empty turns."""

BYTES = 3
END_OF_TURN = 256**BYTES
LOG_PROB = -0.5


def encode(text: str) -> tuple[int, ...]:
    data = text.encode()
    return tuple(int.from_bytes(data[i : i + BYTES], "big") for i in range(0, len(data), BYTES))


def search_then(answer: Callable[[str], float]) -> Script:
    """Search for the question's code, then answer `answer(code)`."""

    def script(messages: Sequence[Message]) -> Sequence[str]:
        code = messages[-1].text.rpartition("Code: ")[2]
        return (search_call(code), f"My answer is \\boxed{{{answer(code):.6g}}}")

    return script


def search_call(query: str) -> str:
    call = {"name": "search", "arguments": {"query": query}}
    return f"{OPEN}\n{json.dumps(call)}\n{CLOSE}"


class ScriptedConversation:
    def __init__(self, messages: Sequence[Message], turns: Sequence[str], version: int, seed: int | None) -> None:
        self._prompt = tuple(i for message in messages for i in encode(f"{message.role}\n{message.text}\n"))
        self._turns = list(turns)
        self._version = version
        self._seed = seed
        self._ids: list[int] = []
        self._spans: list[Span] = []
        self._log_probs: list[float | None] = []

    @property
    def tokens_used(self) -> int:
        return len(self._prompt) + len(self._ids)

    async def next(self, feedback: Sequence[Feedback], max_tokens: int) -> Turn:
        for item in feedback:
            self._append(encode(f"\n{item.role}\n{item.text}\n"), Role.ENVIRONMENT, item)
        text = self._turns.pop(0) if self._turns else ""
        ids = (*encode(text), END_OF_TURN)
        self._append(ids[:max_tokens], Role.POLICY)
        if len(ids) > max_tokens:
            return Turn(text.encode()[: max_tokens * BYTES].decode(errors="ignore"), (), TurnEnd.LENGTH)
        return Turn(text, parse_calls(text), TurnEnd.CLOSED)

    def _append(self, ids: Sequence[int], role: Role, item: Feedback | None = None) -> None:
        start = len(self._ids)
        self._ids.extend(ids)
        self._log_probs.extend([LOG_PROB if role is Role.POLICY else None] * len(ids))
        self._spans.append(
            Span(start, len(self._ids), role, item.tool if item else None, item.status if item else None)
        )

    def tape(self) -> Tape:
        return Tape(
            self._prompt, tuple(self._ids), tuple(self._spans), tuple(self._log_probs), self._version, self._seed
        )


class ScriptedPolicy:
    name = "scripted"
    template_hash = content_id("scripted")
    trainable = True
    logprobs_mode = "processed"

    def __init__(self, script: Script, version: int = 0) -> None:
        self.version = version
        self._script = script

    def open(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], sampling: Sampling, request_id: str
    ) -> Conversation:
        return ScriptedConversation(messages, self._script(messages), self.version, sampling.seed)


class ScriptedEngine:
    """Serves the same script under each loaded version."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._version = 0

    def start(self) -> None:
        pass

    def restart(self) -> None:
        pass

    def load(self, path: str, version: int) -> None:
        self._version = version

    def policy(self) -> Policy:
        return ScriptedPolicy(self._script, self._version)

    def stop(self) -> None:
        pass
