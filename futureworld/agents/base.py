"""What a policy and a tool are. The loop speaks turns, not ids.

A token policy (an engine) keeps ids, log-probs and spans; a chat policy keeps messages. Loop,
tools, limits, answer parsing and records are the same for both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from futureworld.records import Message, Question, Span
from futureworld.worlds.base import World


class ToolStatus(StrEnum):
    """`NONE`: the tool worked and found nothing. `FILTERED`: found, withheld. `FAILED`: did not work."""

    OK = "ok"
    NONE = "none"
    FILTERED = "filtered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ToolResult:
    status: ToolStatus
    text: str
    filtered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know. The model chooses arguments, never `as_of`."""

    world: World
    question: Question
    as_of: datetime


class Tool(Protocol):
    """`schema` is an OpenAI function object: {"type": "function", "function": {...}}."""

    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> Mapping[str, Any]: ...

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the policy wrote it. `arguments` is None where they could not be read (`problem` says why)."""

    name: str
    arguments: Mapping[str, Any] | None
    raw: str
    problem: str | None = None


class TurnEnd(StrEnum):
    """Why a turn ended: the policy closed it, or it ran out of tokens."""

    CLOSED = "closed"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the policy: its text without calls' markup removed, its calls, why it ended."""

    text: str
    calls: tuple[Call, ...]
    end: TurnEnd


@dataclass(frozen=True, slots=True)
class Feedback:
    """What goes back to the policy before its next turn: a tool's result, or a user's reminder.

    `text` is already sanitised and inside its data block.
    """

    role: str  # "tool" or "user"
    text: str
    tool: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Tape:
    """The token side of a finished conversation; see records.Trajectory for shapes.

    A chat policy's tape has no ids.
    """

    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    spans: tuple[Span, ...]
    log_probs: tuple[float | None, ...]
    policy_version: int
    seed: int | None


class Conversation(Protocol):
    async def next(self, feedback: Sequence[Feedback], max_tokens: int) -> Turn:
        """Append `feedback`, then sample one turn of at most `max_tokens` tokens.

        `feedback` is empty on the first call. Raises EngineError when the engine died; the
        rollout then has failed for reasons outside the policy.
        """
        ...

    @property
    def tokens_used(self) -> int:
        """Tokens of prompt and response so far (0 of a chat policy that does not count)."""
        ...

    def tape(self) -> Tape: ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How turns are sampled. Training asks for temperature > 0 and top_p = 1."""

    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None


class Policy(Protocol):
    """`name` goes into records; `version` is the checkpoint's; `template_hash` that of its chat template."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def template_hash(self) -> str: ...

    @property
    def trainable(self) -> bool: ...

    @property
    def logprobs_mode(self) -> str: ...

    def open(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], sampling: Sampling, request_id: str
    ) -> Conversation: ...


class Engine(Protocol):
    """Serves a policy. Stays up over days; `load` takes the next checkpoint while nothing is in flight.

    Raises EngineDeadError where it has died; `restart` then brings it back with the checkpoint that it served.
    """

    def start(self) -> None: ...

    def restart(self) -> None: ...

    def load(self, path: str, version: int) -> None: ...

    def policy(self) -> Policy: ...

    def stop(self) -> None: ...
