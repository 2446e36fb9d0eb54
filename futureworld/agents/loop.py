"""The one rollout loop: a policy, its tools and a question, turn by turn, until it ends for a stated reason.

Training, evaluation and benchmark all run it. It knows turns and limits; ids belong to the policy.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from futureworld.agents.answers import Answer, parse_probability
from futureworld.agents.base import (
    Call,
    Conversation,
    Feedback,
    Policy,
    Sampling,
    Tape,
    Tool,
    ToolContext,
    ToolResult,
    ToolStatus,
    Turn,
    TurnEnd,
)
from futureworld.agents.calls import MAX_CALLS
from futureworld.agents.sanitize import sanitize
from futureworld.agents.tools import SEARCH
from futureworld.clock import Clock
from futureworld.config import RolloutConfig
from futureworld.errors import EngineDeadError, EngineError, PolicyError
from futureworld.questions import prompts
from futureworld.records import (
    AnswerStatus,
    Forecast,
    Message,
    Purpose,
    Question,
    StopReason,
    ToolCall,
    Trajectory,
    check_tokens,
    forecast_id,
)
from futureworld.worlds.base import World

T = TypeVar("T")
logger = logging.getLogger(__name__)


async def rollout(
    question: Question,
    policy: Policy,
    tools: Sequence[Tool],
    world: World,
    *,
    config: RolloutConfig,
    sampling: Sampling,
    purpose: Purpose,
    sample: int,
    attempt: int,
    clock: Clock,
    agent: str | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> tuple[Trajectory, Forecast]:
    """Play one rollout to its end; its trajectory and forecast share an id.

    A policy's mistake, a limit and a failure outside the policy are all results, told apart by
    `stop_reason` and `status`. Only cancellation, PolicyError and EngineDeadError are raised. The
    token limit is over prompt and response; `monotonic` (seconds) measures `config.max_seconds`.
    `agent` is the name in the records, the policy's own where None.
    """
    version = policy.version
    agent = agent or policy.name
    identity = forecast_id(question.id, agent, version, purpose, sample)
    play = _Play(
        tools={tool.name: tool for tool in tools},
        context=ToolContext(world, question, question.asked_at),
        config=config,
        deadline=monotonic() + config.max_seconds,
        monotonic=monotonic,
        messages=list(prompts.messages(question, config.search)),
    )
    conversation: Conversation | None = None
    try:
        schemas = [tool.schema for tool in tools]
        conversation = policy.open(tuple(play.messages), schemas, sampling, f"{identity}-{attempt}")
        end = await play.run(conversation)
        tape = _checked_tape(identity, conversation, version)
    except (PolicyError, EngineDeadError):  # not this rollout's failure: every other one would end the same
        raise
    except Exception as error:  # a failed rollout is data; cancellation is not an Exception and passes
        logger.warning("rollout %s of question %s failed: %s: %s", identity, question.id, type(error).__name__, error)
        end = _End(StopReason.ERROR, AnswerStatus.ERROR)
        tape = _rescued_tape(identity, conversation, version)
    trajectory = Trajectory(
        id=identity,
        question_id=question.id,
        day=question.day,
        purpose=purpose,
        agent=agent,
        policy_version=version,
        sample=sample,
        attempt=attempt,
        as_of=question.asked_at,
        prompt_ids=tape.prompt_ids,
        ids=tape.ids,
        spans=tape.spans,
        log_probs=tape.log_probs,
        logprobs_mode=policy.logprobs_mode,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        seed=tape.seed,
        stop_reason=end.stop,
        answer=end.answer,
        probability=end.probability,
        answer_status=end.status,
        messages=tuple(play.messages),
        calls=tuple(play.calls),
        template_hash=policy.template_hash,
        trainable=policy.trainable and bool(tape.ids) and not end.status.is_failure,
    )
    return trajectory, _forecast(trajectory, clock)


def _forecast(trajectory: Trajectory, clock: Clock) -> Forecast:
    return Forecast(
        id=trajectory.id,
        question_id=trajectory.question_id,
        agent=trajectory.agent,
        policy_version=trajectory.policy_version,
        purpose=trajectory.purpose,
        sample=trajectory.sample,
        attempt=trajectory.attempt,
        probability=trajectory.probability,
        status=trajectory.answer_status,
        stop_reason=trajectory.stop_reason,
        made_at=clock.now(),
    )


def _checked_tape(name: str, conversation: Conversation, version: int) -> Tape:
    """The conversation's tape. Raises EngineError for another policy version, RecordError for torn tokens."""
    tape = conversation.tape()
    if tape.policy_version != version:
        raise EngineError(
            f"rollout {name} was opened on policy version {version} and sampled by {tape.policy_version};"
            " load checkpoints only while nothing is in flight"
        )
    check_tokens(name, tape.ids, tape.spans, tape.log_probs)
    return tape


def _rescued_tape(name: str, conversation: Conversation | None, version: int) -> Tape:
    """The tape of a failed rollout as far as it is sound, for the viewer; it is never trained on."""
    if conversation is not None:
        try:
            return _checked_tape(name, conversation, version)
        except Exception as error:
            logger.warning("rollout %s left no sound tokens: %s", name, error)
    return Tape((), (), (), (), version, None)


@dataclass(frozen=True, slots=True)
class _End:
    stop: StopReason
    status: AnswerStatus
    answer: str | None = None
    probability: float | None = None


class _OutOfTimeError(Exception):
    pass


@dataclass(slots=True)
class _Play:
    """A rollout under way: what was said and called so far, and the limits."""

    tools: Mapping[str, Tool]
    context: ToolContext
    config: RolloutConfig
    deadline: float
    monotonic: Callable[[], float]
    messages: list[Message]
    calls: list[ToolCall] = field(default_factory=list)
    reminders: int = 0

    async def run(self, conversation: Conversation) -> _End:
        try:
            return await self._turns(conversation)
        except _OutOfTimeError:
            return _End(StopReason.SECONDS, AnswerStatus.TIMEOUT)

    async def _turns(self, conversation: Conversation) -> _End:
        feedback: list[Feedback] = []
        for number in range(self.config.max_turns):
            room = self.config.max_tokens - conversation.tokens_used
            if room <= 0:
                return _End(StopReason.TOKENS, AnswerStatus.NO_ANSWER)
            turn = await self._next(conversation, feedback, min(self.config.max_turn_tokens, room))
            if turn.end is TurnEnd.LENGTH or conversation.tokens_used > self.config.max_tokens:
                return _End(StopReason.TOKENS, AnswerStatus.NO_ANSWER)
            if turn.calls:
                feedback = [await self._call(i, number, call) for i, call in enumerate(turn.calls)]
                continue
            answer = parse_probability(turn.text)
            if answer.probability is None or self._may_answer() or self.reminders == self.config.reminders:
                return self._answered(answer)
            feedback = [self._remind()]
        return _End(StopReason.TURNS, AnswerStatus.NO_ANSWER)

    async def _next(self, conversation: Conversation, feedback: Sequence[Feedback], max_tokens: int) -> Turn:
        turn = await self._in_time(lambda: conversation.next(feedback, max_tokens))
        self.messages.append(Message("assistant", turn.text))
        return turn

    def _answered(self, answer: Answer) -> _End:
        """A closed turn without calls ends the rollout, whatever it says."""
        if answer.probability is None:
            return _End(StopReason.ANSWERED, AnswerStatus.NO_ANSWER, answer.text)
        if not self._may_answer():
            return _End(StopReason.ANSWERED, AnswerStatus.NO_SEARCH, answer.text)
        return _End(StopReason.ANSWERED, AnswerStatus.OK, answer.text, answer.probability)

    def _may_answer(self) -> bool:
        """After a search that worked, and at once in a run without searches."""
        searched = any(call.tool == SEARCH and call.status != ToolStatus.FAILED for call in self.calls)
        return searched or not self.config.search

    def _remind(self) -> Feedback:
        self.reminders += 1
        self.messages.append(Message("user", prompts.REMINDER))
        return Feedback("user", prompts.REMINDER)

    async def _call(self, index: int, turn: int, call: Call) -> Feedback:
        result = await self._result(index, call)
        text = sanitize(result.text)
        status = result.status.value
        self.calls.append(ToolCall(turn, call.name, call.raw, status, text, result.filtered))
        self.messages.append(Message("tool", text))
        return Feedback("tool", text, call.name, status)

    async def _result(self, index: int, call: Call) -> ToolResult:
        if not self.config.search:
            return ToolResult(ToolStatus.FAILED, prompts.SEARCH_OFF)
        if index >= MAX_CALLS:
            return ToolResult(ToolStatus.FAILED, f"Not run: more than {MAX_CALLS} calls in one turn.")
        arguments = call.arguments
        if arguments is None:
            return ToolResult(ToolStatus.FAILED, f"The call could not be read: {call.problem}.")
        tool = self.tools.get(call.name)
        if tool is None:
            return ToolResult(ToolStatus.FAILED, f"No such tool. Tools: {', '.join(self.tools)}.")
        return await self._in_time(lambda: tool.run(arguments, self.context))

    async def _in_time(self, start: Callable[[], Awaitable[T]]) -> T:
        """What `start()` gives, unless the rollout's time runs out first."""
        left = self.deadline - self.monotonic()
        if left <= 0:
            raise _OutOfTimeError
        scope = asyncio.timeout(left)
        try:
            async with scope:
                return await start()
        except TimeoutError:
            if scope.expired():
                raise _OutOfTimeError from None
            raise
