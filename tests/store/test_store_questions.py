"""Question sets, waiting for the world, and outcomes with revisions."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from samples import sample_question

from futureworld import faults
from futureworld.errors import RecordError, StoreError
from futureworld.records import Outcome, QuestionState, Target, TargetKind
from futureworld.store.store import Store

RESOLVES_AT = datetime(2026, 5, 5, 12, 30, tzinfo=UTC)


def outcome(value: float | None, revision: int = 0, question_id: str = "q1") -> Outcome:
    reason = "" if value is not None else "cancelled"
    return Outcome(question_id, revision, value, reason, RESOLVES_AT + timedelta(microseconds=revision), "e1")


def test_a_set_comes_back_as_it_was_asked(store: Store) -> None:
    target = Target(TargetKind.EVENT, "mlb-1", "Red\u2028Sox", sample_question().day, "America/New_York", "Boston")
    questions = [
        sample_question("q2", text="\u2028 \x85 \N{SNOWMAN}", threshold=0.1 + 0.2, last_values=(), metadata={}),
        sample_question("q1", target=target, typical_step=0.0),
    ]
    assert store.question_set("train/2026-05-04") is None
    assert store.save_questions("train/2026-05-04", questions) == tuple(questions)
    assert store.question_set("train/2026-05-04") == tuple(questions)
    assert store.questions(["q1", "unknown"]) == {"q1": questions[1]}
    stored = store.questions(["q1"])["q1"]
    assert stored.asked_at.utcoffset() == timedelta(0)


def test_asking_again_changes_nothing(store: Store) -> None:
    first = (sample_question("q1"), sample_question("q2"))
    store.save_questions("train/1", first)
    store.set_state(["q1"], QuestionState.EXPIRED)
    assert store.save_questions("train/1", [sample_question("q3"), sample_question("q1")]) == first
    assert store.questions(["q3"]) == {}
    assert store.states(["q1", "q2"]) == {"q1": QuestionState.EXPIRED, "q2": QuestionState.PENDING}


def test_sets_share_questions_and_an_empty_set_is_a_set(store: Store) -> None:
    store.save_questions("train/1", [sample_question("q1")])
    store.set_state(["q1"], QuestionState.VOID)
    shared = store.save_questions("held-out", [sample_question("q2"), sample_question("q1")])
    assert [question.id for question in shared] == ["q2", "q1"]
    assert store.states(["q1"]) == {"q1": QuestionState.VOID}
    assert store.save_questions("train/2", []) == ()
    assert store.question_set("train/2") == ()
    with pytest.raises(StoreError, match="names a question twice"):
        store.save_questions("train/3", [sample_question("q4"), sample_question("q4")])


def test_a_set_is_stored_whole_or_not_at_all(store: Store) -> None:
    faults.arm("questions.inserted", RuntimeError("power"))
    with pytest.raises(RuntimeError):
        store.save_questions("train/1", [sample_question("q1")])
    assert store.question_set("train/1") is None
    assert store.questions(["q1"]) == {}


def test_pending_are_those_due_in_sets_of_the_prefix(store: Store) -> None:
    later = RESOLVES_AT + timedelta(seconds=1)
    store.save_questions(
        "train/1", [sample_question("q3", resolves_at=later), sample_question("q2"), sample_question("q1")]
    )
    store.save_questions("Train/1", [sample_question("q4"), sample_question("q2")])
    store.set_state(["q1"], QuestionState.RESOLVED)

    def due(moment: datetime, prefix: str = "") -> list[str]:
        return [question.id for question in store.pending(moment, prefix)]

    assert due(RESOLVES_AT - timedelta(microseconds=1)) == []
    assert due(RESOLVES_AT) == ["q2", "q4"]
    assert due(later) == ["q2", "q4", "q3"]
    assert due(later, "train/") == ["q2", "q3"]
    assert due(later, "train_") == []
    assert due(RESOLVES_AT.astimezone(ZoneInfo("Asia/Shanghai"))) == ["q2", "q4"]
    with pytest.raises(RecordError, match="no zone"):
        store.pending(datetime(2026, 5, 5))  # noqa: DTZ001


def test_outcomes_are_appended_with_revisions(store: Store) -> None:
    store.save_questions("train/1", [sample_question("q1"), sample_question("q2")])
    assert store.outcomes(["q1"]) == {}
    assert store.add_outcome(outcome(0.0)) is True
    assert store.states(["q1"]) == {"q1": QuestionState.RESOLVED}
    assert store.add_outcome(outcome(0.0)) is False
    assert store.add_outcome(outcome(0.0, 1)) is False
    with pytest.raises(StoreError, match="has revision 0, expected 1"):
        store.add_outcome(outcome(1.0, 0))
    with pytest.raises(StoreError, match="has revision 2, expected 1"):
        store.add_outcome(outcome(1.0, 2))
    assert store.add_outcome(outcome(1.0, 1)) is True
    assert store.add_outcome(outcome(None, 2)) is True
    assert store.states(["q1", "q2"]) == {"q1": QuestionState.VOID, "q2": QuestionState.PENDING}
    assert store.outcome_history("q1") == [outcome(0.0), outcome(1.0, 1), outcome(None, 2)]
    assert store.outcomes(["q1", "q2"]) == {"q1": outcome(None, 2)}


def test_d10_an_outcome_of_zero_is_not_a_missing_one(store: Store) -> None:
    store.save_questions("train/1", [sample_question("q1"), sample_question("q2")])
    store.add_outcome(outcome(0.0))
    store.add_outcome(outcome(None, 0, "q2"))
    found = store.outcomes(["q1", "q2"])
    assert found["q1"].value == 0.0
    assert found["q2"].value is None
    assert store.add_outcome(outcome(None, 1, "q2")) is False


def test_outcome_and_state_are_one_step(store: Store) -> None:
    store.save_questions("train/1", [sample_question("q1")])
    faults.arm("outcome.inserted", RuntimeError("power"))
    with pytest.raises(RuntimeError):
        store.add_outcome(outcome(1.0))
    assert store.outcome_history("q1") == []
    assert store.states(["q1"]) == {"q1": QuestionState.PENDING}


def test_unknown_questions_are_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="not in the store"):
        store.add_outcome(outcome(1.0, 0, "nobody"))
    assert store.outcome_history("nobody") == []
    store.save_questions("train/1", [sample_question("q1")])
    with pytest.raises(StoreError, match="1 of 2 questions"):
        store.set_state(["q1", "nobody"], QuestionState.EXPIRED)
    assert store.states(["q1"]) == {"q1": QuestionState.PENDING}


def test_more_ids_than_one_statement_takes(store: Store) -> None:
    questions = [sample_question(f"q{i:04}") for i in range(2500)]
    ids = [question.id for question in questions]
    assert store.save_questions("train/1", questions) == tuple(questions)
    store.set_state(ids, QuestionState.EXPIRED)
    assert set(store.states(ids).values()) == {QuestionState.EXPIRED}
    assert len(store.questions(ids)) == 2500
