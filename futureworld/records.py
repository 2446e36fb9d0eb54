"""The nouns of FutureWorld: frozen records that check themselves.

Every reader and writer goes through these types. Times are aware UTC; days are `date`s in the
zone the record names. Ids are 16 hex digits of content (`content_id`), so the same thing has the
same id in every process; they hold no `_`, at which verl splits its keys.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from futureworld.clock import iso, utc
from futureworld.errors import RecordError
from futureworld.wording import Operator


def content_id(*parts: object) -> str:
    """16 hex digits of the SHA-256 of `parts` (strings, numbers, dates, times, lists of these)."""
    text = json.dumps(parts, default=_plain, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, date):
        return value.isoformat()
    raise RecordError(f"{type(value).__name__} cannot be part of an id")


@dataclass(frozen=True, slots=True)
class Series:
    """What a series of observations is about; known from the start.

    `zone` is the zone of its dates, `calendar` names the days it has (daily, weekly, ...),
    `timing` says when rows are typically known (before_day, within_day, after_day), `kind` what
    the values are (level, count, cumulative, ...), `breaks` the dates at which the level jumps
    for a technical reason.
    """

    id: str
    title: str
    domain: str
    unit: str
    zone: str
    calendar: str
    timing: str
    kind: str
    source: str
    breaks: tuple[date, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """One value of a series: about `date` in its zone, knowable from `published_at`."""

    series_id: str
    date: date
    value: float
    published_at: datetime

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise RecordError(f"{self.series_id} {self.date}: value {self.value} is not a finite number")


class EventStatus(StrEnum):
    SCHEDULED = "scheduled"
    RESOLVED = "resolved"
    POSTPONED = "postponed"


@dataclass(frozen=True, slots=True)
class Event:
    """A fixture knowable from `known_from`, and its result knowable from `resolved_at`.

    Before `resolved_at` a world hands it out as SCHEDULED, without outcome. `scheduled_at` is a
    lower bound of the start unless `minute_known`. A postponed event has no outcome.
    """

    id: str
    domain: str
    competition: str
    title: str
    date: date
    known_from: datetime
    scheduled_at: datetime
    minute_known: bool
    options: tuple[str, ...]
    source: str
    status: EventStatus = EventStatus.SCHEDULED
    outcome: str | None = None
    resolved_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A dated text of the archive."""

    id: str
    title: str
    url: str
    text: str
    published_at: datetime
    publisher: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Ranking:
    """A dated ranked list; `items` are names, best first."""

    id: str
    domain: str
    title: str
    date: date
    published_at: datetime
    items: tuple[str, ...]
    source: str = ""


class QuestionKind(StrEnum):
    BINARY = "binary"
    CHOICE = "choice"
    MULTI_CHOICE = "multi_choice"
    RANKING = "ranking"
    NUMBER = "number"


class TargetKind(StrEnum):
    SERIES = "series"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class Target:
    """What a question is about: a series' value on `date`, or the `option` of an event.

    `name` is what the archive calls it; `date` is in `zone`.
    """

    kind: TargetKind
    id: str
    name: str
    date: date
    zone: str
    option: str | None = None

    def __post_init__(self) -> None:
        if (self.option is not None) != (self.kind is TargetKind.EVENT):
            raise RecordError(f"target {self.id}: an event needs the option asked about, a series has none")

    @property
    def code(self) -> str:
        """A short name that a small policy can copy: two syllables drawn from the target's id.

        Two targets may share one; it names the target of a question, not a row of the store.
        """
        key = hashlib.sha256(f"{self.id}|{self.option or ''}".encode()).digest()
        return SYLLABLES[key[0] % len(SYLLABLES)] + SYLLABLES[key[1] % len(SYLLABLES)]


SYLLABLES: tuple[str, ...] = tuple(c + v for c in "bdfgklmnprstvz" for v in "aeiou")[:64]


@dataclass(frozen=True, slots=True)
class Question:
    """A question about the world, asked at `asked_at` and read from the world at `resolves_at`.

    `description` and `last_values` (known at `asked_at`, oldest first) serve filters and baselines;
    prompts leave them out.
    """

    id: str
    day: date
    kind: QuestionKind
    text: str
    description: str
    domain: str
    family: str
    source: str
    source_url: str
    resolver: str
    operator: Operator
    threshold: float
    target: Target
    asked_at: datetime
    closes_at: datetime
    resolves_at: datetime
    last_values: tuple[float, ...]
    typical_step: float
    options: tuple[str, ...] = ("Yes", "No")
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not utc(self.asked_at) < utc(self.closes_at) <= utc(self.resolves_at):
            raise RecordError(
                f"question {self.id}: asked_at {iso(self.asked_at)} < closes_at {iso(self.closes_at)}"
                f" <= resolves_at {iso(self.resolves_at)} does not hold"
            )


class QuestionState(StrEnum):
    """`PENDING` is the state of waiting for the world."""

    PENDING = "pending"
    RESOLVED = "resolved"
    VOID = "void"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the world said, append-only: a later reading of the same question has a higher revision.

    `value` is 1.0 or 0.0 of a binary question, None where the question is void (`reason` says why).
    `evidence` is the content id of the rows it was read from.
    """

    question_id: str
    revision: int
    value: float | None
    reason: str
    observed_at: datetime
    evidence: str

    def __post_init__(self) -> None:
        if self.value is not None and self.value not in (0.0, 1.0):
            raise RecordError(
                f"outcome of {self.question_id} is {self.value}; a binary question has 0 or 1, or is void"
            )


class Purpose(StrEnum):
    TRAIN = "train"
    EVALUATE = "evaluate"
    BENCHMARK = "benchmark"


class StopReason(StrEnum):
    ANSWERED = "answered"
    TURNS = "turns"
    TOKENS = "tokens"
    SECONDS = "seconds"
    ERROR = "error"


class AnswerStatus(StrEnum):
    """Why a forecast has a probability, or why it has none."""

    OK = "ok"
    NO_ANSWER = "no_answer"
    NO_SEARCH = "no_search"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    ERROR = "error"

    @property
    def is_failure(self) -> bool:
        """True where something outside the policy failed: the rollout leaves its group."""
        return self in (AnswerStatus.TIMEOUT, AnswerStatus.ERROR)


class Role(StrEnum):
    """Who wrote a span of tokens. Only `POLICY` spans are in the loss."""

    POLICY = "policy"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `ids[start:end]` of a trajectory's response, and whose they are."""

    start: int
    end: int
    role: Role
    tool: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the policy made it, and what it got."""

    turn: int
    tool: str
    arguments: str
    status: str
    text: str
    filtered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One turn as text: `role` is system, user, assistant or tool."""

    role: str
    text: str


SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One rollout of one question: what was sampled, position by position.

    `prompt_ids` (P) and `ids` (R) are the tokens sent to and returned by the engine, never
    re-tokenised text. `spans` tile `ids`. `log_probs` (R) holds the sampler's natural-log
    probability of each policy token and None in environment spans. `logprobs_mode` is
    `processed` (after temperature). A chat agent has no ids and is not trainable.
    """

    id: str
    question_id: str
    day: date
    purpose: Purpose
    agent: str
    policy_version: int
    sample: int
    attempt: int
    as_of: datetime
    prompt_ids: tuple[int, ...]
    ids: tuple[int, ...]
    spans: tuple[Span, ...]
    log_probs: tuple[float | None, ...]
    logprobs_mode: str
    temperature: float
    top_p: float
    seed: int | None
    stop_reason: StopReason
    answer: str | None
    probability: float | None
    answer_status: AnswerStatus
    messages: tuple[Message, ...]
    calls: tuple[ToolCall, ...]
    template_hash: str
    trainable: bool
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        check_tokens(self.id, self.ids, self.spans, self.log_probs)
        if (self.probability is None) == (self.answer_status is AnswerStatus.OK):
            raise RecordError(f"trajectory {self.id}: status {self.answer_status} with probability {self.probability}")
        if self.probability is not None and not 0.0 <= self.probability <= 1.0:
            raise RecordError(f"trajectory {self.id}: probability {self.probability} is outside 0..1")
        if self.trainable and not self.ids:
            raise RecordError(f"trajectory {self.id}: trainable without tokens")

    @property
    def mask(self) -> tuple[int, ...]:
        """(R) 1 on policy tokens, 0 elsewhere; derived from the spans and from nothing else."""
        return tuple(int(span.role is Role.POLICY) for span in self.spans for _ in range(span.start, span.end))


def check_tokens(name: str, ids: Sequence[int], spans: Sequence[Span], log_probs: Sequence[float | None]) -> None:
    """Raises RecordError unless spans tile the ids and exactly policy tokens have log-probs."""
    if len(log_probs) != len(ids):
        raise RecordError(f"trajectory {name}: {len(ids)} ids but {len(log_probs)} log-probs")
    position = 0
    for span in spans:
        if span.start != position or span.end < span.start:
            raise RecordError(f"trajectory {name}: span {span.start}..{span.end} does not follow position {position}")
        policy = span.role is Role.POLICY
        for i, given in enumerate(log_probs[span.start : span.end], span.start):
            if policy and (given is None or not given <= 0.0):
                raise RecordError(f"trajectory {name}: policy token {i} has log-prob {given}")
            if not policy and given is not None:
                raise RecordError(f"trajectory {name}: environment token {i} has a log-prob")
        position = span.end
    if position != len(ids):
        raise RecordError(f"trajectory {name}: spans cover {position} of {len(ids)} ids")


@dataclass(frozen=True, slots=True)
class Forecast:
    """A rollout's answer as scored. `id` names the slot that one finished row may fill."""

    id: str
    question_id: str
    agent: str
    policy_version: int
    purpose: Purpose
    sample: int
    attempt: int
    probability: float | None
    status: AnswerStatus
    stop_reason: StopReason
    made_at: datetime


def forecast_id(question_id: str, agent: str, policy_version: int, purpose: Purpose, sample: int) -> str:
    return content_id("forecast", question_id, agent, policy_version, purpose.value, sample)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A policy version: a Hugging Face folder and the hash of its weights."""

    version: int
    path: str
    weight_hash: str
    update_id: str | None
    day: date | None


@dataclass(frozen=True, slots=True)
class Update:
    """One policy update: from `base_version` to `version` on the named trajectories.

    `ages` are days between asking and training, parallel to `trajectory_ids`. `metrics` are the
    learner's, plain floats.
    """

    id: str
    day: date
    base_version: int
    version: int
    trajectory_ids: tuple[str, ...]
    ages: tuple[int, ...]
    weight_hash: str
    metrics: Mapping[str, float]


def update_id(base_version: int, base_hash: str, trajectory_ids: Sequence[str]) -> str:
    return content_id("update", base_version, base_hash, sorted(trajectory_ids))


def as_json(record: Any) -> Any:
    """A record (or a tree of them) as JSON-ready values: times ISO, enums their values."""
    if hasattr(record, "__dataclass_fields__"):
        return {name: as_json(getattr(record, name)) for name in record.__dataclass_fields__}
    if isinstance(record, Mapping):
        return {str(key): as_json(value) for key, value in record.items()}
    if isinstance(record, (list, tuple)):
        return [as_json(value) for value in record]
    if isinstance(record, (datetime, date)):
        return _plain(record)
    return record.value if isinstance(record, StrEnum) else record
