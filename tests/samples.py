"""Records to fill a store with; the fixtures `make_question` and `make_rollout` hand them out."""

from datetime import UTC, date, datetime

from futureworld.records import (
    AnswerStatus,
    Forecast,
    Message,
    Purpose,
    Question,
    QuestionKind,
    Role,
    Span,
    StopReason,
    Target,
    TargetKind,
    ToolCall,
    Trajectory,
    forecast_id,
)
from futureworld.wording import Operator


def sample_question(id_: str = "q1", **changes: object) -> Question:
    fields: dict[str, object] = {
        "id": id_,
        "day": date(2026, 5, 4),
        "kind": QuestionKind.BINARY,
        "text": "Will the diesel price be above 1.6 on 2026-05-05?",
        "description": "Pump prices, daily.",
        "domain": "fuel",
        "family": "series-threshold",
        "source": "pump",
        "source_url": "https://example.org/pump",
        "resolver": "series",
        "operator": Operator.ABOVE,
        "threshold": 1.6,
        "target": Target(TargetKind.SERIES, "pump/diesel", "diesel", date(2026, 5, 5), "Europe/Berlin"),
        "asked_at": datetime(2026, 5, 4, 12, 0, tzinfo=UTC),
        "closes_at": datetime(2026, 5, 4, 16, 0, tzinfo=UTC),
        "resolves_at": datetime(2026, 5, 5, 12, 30, tzinfo=UTC),
        "last_values": (1.55, 0.1 + 0.2),
        "typical_step": 0.0125,
        "metadata": {"region": "north"},
    }
    return Question(**{**fields, **changes})  # type: ignore[arg-type]


def sample_rollout(
    question_id: str = "q1", *, agent: str = "pocket", policy_version: int = 0, sample: int = 0, **changes: object
) -> tuple[Trajectory, Forecast]:
    purpose = changes.pop("purpose", Purpose.TRAIN)
    assert isinstance(purpose, Purpose)
    fields: dict[str, object] = {
        "id": forecast_id(question_id, agent, policy_version, purpose, sample),
        "question_id": question_id,
        "day": date(2026, 5, 4),
        "purpose": purpose,
        "agent": agent,
        "policy_version": policy_version,
        "sample": sample,
        "attempt": 0,
        "as_of": datetime(2026, 5, 4, 12, 0, tzinfo=UTC),
        "prompt_ids": (1, 2, 3),
        "ids": (12, 907, 40, 41, 55),
        "spans": (
            Span(0, 2, Role.POLICY),
            Span(2, 4, Role.ENVIRONMENT, tool="search", status="ok"),
            Span(4, 5, Role.POLICY),
        ),
        "log_probs": (-0.5, -1.25, None, None, 0.0),
        "logprobs_mode": "processed",
        "temperature": 1.0,
        "top_p": 1.0,
        "seed": 7,
        "stop_reason": StopReason.ANSWERED,
        "answer": "0.25",
        "probability": 0.25,
        "answer_status": AnswerStatus.OK,
        "messages": (Message("user", "Will it rise?"), Message("assistant", "\\boxed{0.25}")),
        "calls": (ToolCall(0, "search", '{"query": "diesel"}', "ok", "diesel: 1.55 1.6", ("doc-9",)),),
        "template_hash": "0123456789abcdef",
        "trainable": True,
    }
    trajectory = Trajectory(**{**fields, **changes})  # type: ignore[arg-type]
    forecast = Forecast(
        id=trajectory.id,
        question_id=question_id,
        agent=agent,
        policy_version=policy_version,
        purpose=purpose,
        sample=sample,
        attempt=trajectory.attempt,
        probability=trajectory.probability,
        status=trajectory.answer_status,
        stop_reason=trajectory.stop_reason,
        made_at=datetime(2026, 5, 4, 12, 1, 2, 345678, tzinfo=UTC),
    )
    return trajectory, forecast
