"""Questions in named sets, their states, and what the world said."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import Connection, func, select

from futureworld import faults
from futureworld.errors import StoreError
from futureworld.records import Outcome, Question, QuestionState
from futureworld.store import codec, schema
from futureworld.store.database import chunks, insert_new
from futureworld.store.part import Part


class Questions(Part):
    def save_questions(self, set_name: str, questions: Sequence[Question]) -> tuple[Question, ...]:
        """Store a set, all or nothing; the set as stored.

        A set that exists stays as it is, whatever is passed. A question that another set holds is
        shared: its stored row and state stand.
        """
        ids = [question.id for question in questions]
        if len(set(ids)) != len(ids):
            raise StoreError(f"question set {set_name!r} names a question twice")
        members = [{"set_name": set_name, "position": i, "question_id": id_} for i, id_ in enumerate(ids)]
        with self.database.write() as connection:
            if insert_new(connection, schema.question_sets, [{"name": set_name}], schema.question_sets.c.name):
                rows = [codec.question_row(question) for question in questions]
                insert_new(connection, schema.questions, rows, schema.questions.c.id)
                insert_new(connection, schema.set_members, members, schema.set_members.c.position)
                faults.at("questions.inserted")
            return _members(connection, set_name)

    def question_set(self, name: str) -> tuple[Question, ...] | None:
        """The set's questions in order; None where there is no such set (an empty one is `()`)."""
        with self.database.read() as connection:
            known = connection.execute(select(schema.question_sets).where(schema.question_sets.c.name == name)).first()
            return None if known is None else _members(connection, name)

    def questions(self, ids: Iterable[str]) -> dict[str, Question]:
        """Questions by id; unknown ids are left out."""
        table, found = schema.questions, {}
        with self.database.read() as connection:
            for part in chunks(ids):
                rows = connection.execute(select(table.c.record).where(table.c.id.in_(part))).mappings()
                found.update((question.id, question) for question in map(codec.question, rows))
        return found

    def pending(self, due_by: datetime, set_prefix: str = "") -> list[Question]:
        """Questions that wait for the world with `resolves_at <= due_by`, by (resolves_at, id).

        With `set_prefix`, only those in a set whose name begins with it.
        """
        table, members = schema.questions, schema.set_members
        query = select(table.c.record).where(
            table.c.state == QuestionState.PENDING.value, table.c.resolves_at <= due_by
        )
        if set_prefix:
            name = func.substr(members.c.set_name, 1, len(set_prefix))  # LIKE ignores case in SQLite
            query = query.where(table.c.id.in_(select(members.c.question_id).where(name == set_prefix)))
        with self.database.read() as connection:
            found = [codec.question(row) for row in connection.execute(query).mappings()]
        return sorted(found, key=lambda question: (question.resolves_at, question.id))

    def states(self, ids: Iterable[str]) -> dict[str, QuestionState]:
        """States by question id; unknown ids are left out."""
        table, found = schema.questions, {}
        with self.database.read() as connection:
            for part in chunks(ids):
                rows = connection.execute(select(table.c.id, table.c.state).where(table.c.id.in_(part)))
                found.update((id_, QuestionState(state)) for id_, state in rows)
        return found

    def set_state(self, ids: Iterable[str], state: QuestionState) -> None:
        """Raises StoreError, and changes nothing, where an id is unknown."""
        with self.database.write() as connection:
            for part in chunks(ids):
                _set_state(connection, part, state)

    def add_outcome(self, outcome: Outcome) -> bool:
        """Append a reading and set the question's state (resolved, or void without a value).

        False, and nothing written, where the last revision says the same value already. Raises
        StoreError for an unknown question, or a revision that does not follow the last one (from 0).
        """
        return self.add_outcomes([outcome]) == 1

    def add_outcomes(self, outcomes: Iterable[Outcome]) -> int:
        """`add_outcome` of several in one transaction, all of them or none; returns how many were written."""
        with self.database.write() as connection:
            return sum(_append(connection, outcome) for outcome in outcomes)

    def outcomes(self, ids: Iterable[str]) -> dict[str, Outcome]:
        """The latest revision by question id; questions without one are left out."""
        table, found = schema.outcomes, {}
        with self.database.read() as connection:
            for part in chunks(ids):
                query = select(table).where(table.c.question_id.in_(part)).order_by(table.c.revision)
                rows = connection.execute(query).mappings()
                found.update((outcome.question_id, outcome) for outcome in map(codec.outcome, rows))
        return found

    def outcome_history(self, question_id: str) -> list[Outcome]:
        """Every revision, oldest first."""
        with self.database.read() as connection:
            return _history(connection, question_id)


def _members(connection: Connection, set_name: str) -> tuple[Question, ...]:
    members, table = schema.set_members, schema.questions
    query = (
        select(table.c.record)
        .join(members, members.c.question_id == table.c.id)
        .where(members.c.set_name == set_name)
        .order_by(members.c.position)
    )
    return tuple(codec.question(row) for row in connection.execute(query).mappings())


def _history(connection: Connection, question_id: str) -> list[Outcome]:
    table = schema.outcomes
    query = select(table).where(table.c.question_id == question_id).order_by(table.c.revision)
    return [codec.outcome(row) for row in connection.execute(query).mappings()]


def _append(connection: Connection, outcome: Outcome) -> bool:
    history = _history(connection, outcome.question_id)
    if history and history[-1].value == outcome.value:
        return False
    if outcome.revision != len(history):
        raise StoreError(
            f"outcome of question {outcome.question_id} has revision {outcome.revision},"
            f" expected {len(history)}; read the history and append to it"
        )
    connection.execute(schema.outcomes.insert().values(codec.outcome_row(outcome)))
    _set_state(
        connection, [outcome.question_id], QuestionState.VOID if outcome.value is None else QuestionState.RESOLVED
    )
    faults.at("outcome.inserted")
    return True


def _set_state(connection: Connection, ids: list[str], state: QuestionState) -> None:
    table = schema.questions
    done = connection.execute(table.update().where(table.c.id.in_(ids)).values(state=state.value))
    if done.rowcount != len(ids):
        raise StoreError(f"{len(ids) - done.rowcount} of {len(ids)} questions are not in the store: {ids[:3]}")
