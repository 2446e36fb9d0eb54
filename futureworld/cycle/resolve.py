"""Resolve: read the outcomes that are due; ask again for late ones; give up after `retry_days`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta

from futureworld import faults
from futureworld.cycle.ask import train_set
from futureworld.cycle.run import Run, Summary
from futureworld.errors import RunError
from futureworld.records import Outcome, Question, QuestionState
from futureworld.resolution.resolve import Pending, Resolved, Void
from futureworld.resolution.resolve import resolve as read_outcome

TOGETHER = 100
"""Outcomes stored in one transaction: a commit takes longer than reading an outcome."""


def resolve(run: Run, day: date) -> Summary:
    """Read everything due on calendar day `day`: the questions of the day before, and late ones.

    Raises RunError where the day before has not been asked: its questions would be passed over.
    """
    asked = day - timedelta(days=1)
    if asked in run.days and run.store.finished("ask", asked.isoformat()) is None:
        raise RunError(f"day {asked} was not asked yet; run `futureworld ask --run {run.folder} --day {asked}` first")

    def work() -> Summary:
        now = run.schedule.resolves_at(day - timedelta(days=1))
        due = [*run.store.pending(now, "train/"), *answered(run, day, now)]
        counts, reasons = resolve_questions(run, due, now)
        return {"due": len(due), **counts, "reasons": reasons}

    return run.stage("resolve", day.isoformat(), work)


def answered(run: Run, day: date, now: datetime) -> list[Question]:
    """Questions whose outcome was stored at this very moment, by a start that was killed before the ledger.

    Read again they change nothing in the store, and the day's summary counts them.
    """
    since = day - timedelta(days=1 + run.config.schedule.retry_days)
    sets = [run.store.question_set(train_set(asked)) or () for asked in run.days if since <= asked < day]
    asked = [question for questions in sets for question in questions]
    outcomes = run.store.outcomes([question.id for question in asked])
    return [q for q in asked if q.id in outcomes and outcomes[q.id].observed_at == now]


def resolve_questions(run: Run, due: list[Question], now: datetime) -> tuple[dict[str, int], dict[str, int]]:
    """Store what the world says of `due` at `now`; returns counts by state and by reason."""
    counts = {state.value: 0 for state in QuestionState}
    reasons: Counter[str] = Counter()
    for some in batched(due, TOGETHER):
        known: list[Outcome] = []
        expired: list[str] = []
        for question in some:
            answer = read_outcome(question, run.world, now)
            if not isinstance(answer, Pending):
                known.append(_outcome(question, answer, now))
                state = QuestionState.RESOLVED if isinstance(answer, Resolved) else QuestionState.VOID
            elif now < question.resolves_at + timedelta(days=run.config.schedule.retry_days):
                state = QuestionState.PENDING
            else:  # the last retry has passed
                state = QuestionState.EXPIRED
                expired.append(question.id)
            if not isinstance(answer, Resolved):
                reasons[f"{state.value}: {answer.reason}"] += 1
            counts[state.value] += 1
        run.store.add_outcomes(known)
        run.store.set_state(expired, QuestionState.EXPIRED)
        for _ in some:
            faults.at("resolve.stored")
    return counts, dict(sorted(reasons.items()))


def _outcome(question: Question, answer: Resolved | Void, now: datetime) -> Outcome:
    resolved = isinstance(answer, Resolved)
    return Outcome(
        question_id=question.id,
        revision=0,
        value=answer.value if resolved else None,
        reason="" if resolved else answer.reason,
        observed_at=now,
        evidence=answer.evidence if resolved else "",
    )


def batched(items: Sequence[Question], size: int) -> Iterator[Sequence[Question]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
