"""A policy of tokens: what was sampled is kept as it was sampled, position by position."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from futureworld.agents.base import Feedback, Sampling, Tape, Turn, TurnEnd
from futureworld.agents.calls import parse_calls
from futureworld.errors import EngineError, PolicyError
from futureworld.records import Message, Role, Span, check_tokens, content_id
from verl_tool_future.templates import TemplateRenderer


class Sampled(Protocol):
    """What an engine returns for one turn (verl's TokenOutput).

    `token_ids` and `log_probs` (natural log, after temperature) have one length; `extra_fields`
    holds the policy version as `global_steps`.
    """

    token_ids: list[int]
    log_probs: list[float] | None
    stop_reason: str | None
    extra_fields: dict[str, Any]


class Generate(Protocol):
    """Samples one turn. Raises EngineError when the engine died."""

    async def __call__(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> Sampled: ...


class TokenPolicy:
    """A futureworld Policy on `generate`, one version of the weights."""

    trainable = True
    logprobs_mode = "processed"

    def __init__(self, generate: Generate, renderer: TemplateRenderer, *, name: str, version: int, room: int) -> None:
        """`room`: tokens of prompt and response that the engine can hold."""
        self.name = name
        self.version = version
        self.room = room
        self.renderer = renderer
        self.generate = generate

    @property
    def template_hash(self) -> str:
        return self.renderer.template_hash

    def open(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], sampling: Sampling, request_id: str
    ) -> "TokenConversation":
        prompt = self.renderer.prompt_ids(messages, tools)
        if len(prompt) >= self.room:
            raise PolicyError(
                f"the prompt has {len(prompt)} tokens, but only {self.room} fit; raise rollout.max_tokens"
            )
        return TokenConversation(self, prompt, sampling, request_id)


class TokenConversation:
    """An append-only tape: prompt, then policy and environment spans in turn."""

    def __init__(self, policy: TokenPolicy, prompt: tuple[int, ...], sampling: Sampling, request_id: str) -> None:
        self._policy = policy
        self._prompt = prompt
        self._sampling = sampling
        self._request_id = request_id
        self._turns = 0
        self._ids: list[int] = []
        self._spans: list[Span] = []
        self._log_probs: list[float | None] = []

    @property
    def tokens_used(self) -> int:
        return len(self._prompt) + len(self._ids)

    async def next(self, feedback: Sequence[Feedback], max_tokens: int) -> Turn:
        """See Conversation. Feedback that leaves no room for a token of the policy is not appended.

        Raises EngineError when the engine died, aborted the turn or answered with another version;
        PolicyError when the template cannot render `feedback`.
        """
        ids = self._policy.renderer.feedback_ids(feedback, self._ids[-1] if self._ids else None) if feedback else ()
        room = min(max_tokens, self._policy.room - self.tokens_used - len(ids))
        if room < 1:
            return Turn("", (), TurnEnd.LENGTH)
        if feedback:
            self._append(ids, [None] * len(ids), _environment(feedback))
        output = await self._policy.generate(
            self._request_id, prompt_ids=[*self._prompt, *self._ids], sampling_params=self._parameters(room)
        )
        self._turns += 1
        ids, log_probs = self._checked(output)
        self._append(ids, log_probs, Span(0, 0, Role.POLICY))
        text = self._policy.renderer.text(ids)
        end = TurnEnd.CLOSED if ids and ids[-1] in self._policy.renderer.stop_ids else TurnEnd.LENGTH
        return Turn(text, parse_calls(text), end)

    def tape(self) -> Tape:
        return Tape(
            prompt_ids=self._prompt,
            ids=tuple(self._ids),
            spans=tuple(self._spans),
            log_probs=tuple(self._log_probs),
            policy_version=self._policy.version,
            seed=self._sampling.seed,
        )

    def _parameters(self, max_tokens: int) -> dict[str, Any]:
        """A fresh dict a call: the server writes into the one it gets."""
        parameters: dict[str, Any] = {
            "temperature": self._sampling.temperature,
            "top_p": self._sampling.top_p,
            "top_k": -1,
            "logprobs": True,
            "max_tokens": max_tokens,
            "stop_token_ids": sorted(self._policy.renderer.stop_ids),
        }
        if self._sampling.seed is not None:
            # One seed a turn: the same one twice would repeat the same random numbers.
            parameters["seed"] = int(content_id("turn", self._sampling.seed, self._turns), 16) >> 1
        return parameters

    def _checked(self, output: Sampled) -> tuple[list[int], list[float | None]]:
        name = f"request {self._request_id}, turn {self._turns}"
        if output.stop_reason != "completed":
            raise EngineError(f"{name}: the engine stopped with {output.stop_reason!r}; run the stage again")
        version = output.extra_fields.get("global_steps")
        if version != self._policy.version:
            raise EngineError(f"{name}: sampled by policy version {version}, expected {self._policy.version}")
        if output.log_probs is None or len(output.log_probs) != len(output.token_ids):
            found = "none" if output.log_probs is None else str(len(output.log_probs))
            raise EngineError(f"{name}: {len(output.token_ids)} tokens with {found} log-probs")
        # vLLM rounds the log-prob of a certain token to a few 1e-8 above 0.
        return list(output.token_ids), [min(float(value), 0.0) for value in output.log_probs]

    def _append(self, ids: Sequence[int], log_probs: Sequence[float | None], kind: Span) -> None:
        start = len(self._ids)
        self._ids += ids
        self._log_probs += log_probs
        self._spans.append(Span(start, len(self._ids), kind.role, kind.tool, kind.status))
        check_tokens(self._request_id, self._ids, self._spans, self._log_probs)


def _environment(feedback: Sequence[Feedback]) -> Span:
    """The kind of span `feedback` fills: tool and status are named where all of it shares them."""
    tools, statuses = {item.tool for item in feedback}, {item.status for item in feedback}
    tool = tools.pop() if len(tools) == 1 else None
    status = statuses.pop() if len(statuses) == 1 else None
    return Span(0, 0, Role.ENVIRONMENT, tool, status)
