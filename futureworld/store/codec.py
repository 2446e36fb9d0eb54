"""Records to rows and back."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import RowMapping

from futureworld.errors import StoreError
from futureworld.records import (
    AnswerStatus,
    Checkpoint,
    Forecast,
    Outcome,
    Purpose,
    Question,
    QuestionState,
    StopReason,
    Update,
    as_json,
)

_Kind = TypeVar("_Kind")
_QUESTION = TypeAdapter(Question)
_UPDATE = TypeAdapter(Update)


def to_text(record: Any) -> str:
    """A record (or plain JSON values) as one JSON text; floats survive exactly."""
    return json.dumps(as_json(record), ensure_ascii=False)


def from_text(text: str) -> dict[str, Any]:
    return json.loads(text)


def question_row(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "state": QuestionState.PENDING.value,
        "resolves_at": question.resolves_at,
        "record": to_text(question),
    }


def question(row: RowMapping) -> Question:
    """Raises StoreError where the row does not hold one."""
    return _record(_QUESTION, row)


def outcome_row(outcome: Outcome) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in Outcome.__dataclass_fields__}


def outcome(row: RowMapping) -> Outcome:
    return Outcome(**row)


def forecast_row(forecast: Forecast) -> dict[str, Any]:
    return {name: getattr(forecast, name) for name in Forecast.__dataclass_fields__} | {
        "purpose": forecast.purpose.value,
        "status": forecast.status.value,
        "stop_reason": forecast.stop_reason.value,
    }


def forecast(row: RowMapping) -> Forecast:
    fields: Mapping[str, Any] = {name: row[name] for name in Forecast.__dataclass_fields__}
    return Forecast(
        **{
            **fields,
            "purpose": Purpose(row["purpose"]),
            "status": AnswerStatus(row["status"]),
            "stop_reason": StopReason(row["stop_reason"]),
        }
    )


def checkpoint_row(checkpoint: Checkpoint) -> dict[str, Any]:
    return {name: getattr(checkpoint, name) for name in Checkpoint.__dataclass_fields__}


def checkpoint(row: RowMapping) -> Checkpoint:
    return Checkpoint(**row)


def update_row(update: Update) -> dict[str, Any]:
    return {"id": update.id, "version": update.version, "record": to_text(update)}


def update(row: RowMapping) -> Update:
    return _record(_UPDATE, row)


def _record(kind: TypeAdapter[_Kind], row: RowMapping) -> _Kind:
    try:
        return kind.validate_python(json.loads(row["record"]))
    except ValueError as error:  # not JSON, or not this record
        first = str(error).splitlines()[0]
        raise StoreError(
            f"a record of the store is damaged ({first}); restore it from a copy, or start a new run folder"
        ) from None
