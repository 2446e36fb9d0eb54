"""The fixed evaluation set: questions asked over the days after the last training outcome.

Asked once, by the same rules as training questions, and resolved by the same resolvers; every
checkpoint answers exactly these.
"""

from collections.abc import Sequence
from datetime import date, timedelta

from futureworld.config import Config
from futureworld.cycle.resolve import resolve_questions
from futureworld.cycle.run import Run, Summary
from futureworld.errors import RunError
from futureworld.evaluation.baselines import Row
from futureworld.questions.ask import ask
from futureworld.questions.facts import facts
from futureworld.records import Question
from futureworld.worlds.base import World

HELD_OUT = "evaluate/held-out"


def held_out_days(config: Config, world: World) -> list[date]:
    """The `evaluate.days` days after the last moment at which a training outcome may still come in.

    Raises RunError where the world ends before their outcomes, or begins after the first asked day.
    """
    asked = config.asked_days()
    if asked[0] < world.first_day:
        raise RunError(f"{world.id} begins on {world.first_day}, the run on {asked[0]}; start later")
    first = asked[-1] + timedelta(days=1 + config.schedule.retry_days + 1)
    days = [first + timedelta(days=i) for i in range(config.evaluate.days)]
    if days[-1] + timedelta(days=1) > world.last_day:
        raise RunError(
            f"the evaluation needs {world.id} until {days[-1] + timedelta(days=1)},"
            f" it ends on {world.last_day}; start earlier, or set fewer evaluate.days"
        )
    return days


def ask_held_out(run: Run) -> Summary:
    """Store the set; a repeat changes nothing."""

    def work() -> Summary:
        config = run.config.questions.model_copy(update={"per_day": run.config.evaluate.per_day, "thresholds": 1})
        questions: list[Question] = []
        days = held_out_days(run.config, run.world)
        with run.reporter.bar("held-out questions", len(days)) as bar:
            for day in days:
                questions.extend(
                    ask(run.world, day, run.schedule, config, run.config.seed, namespace="held-out").questions
                )
                bar.advance()
        stored = run.store.save_questions(HELD_OUT, questions)
        return {"asked": len(stored), "first": days[0].isoformat(), "last": days[-1].isoformat()}

    return run.stage("ask", HELD_OUT, work)


def resolve_held_out(run: Run) -> Summary:
    """Read every outcome of the set, late ones included; what is missing then has none."""

    def work() -> Summary:
        questions = list(run.store.question_set(HELD_OUT) or ())
        retry = timedelta(days=run.config.schedule.retry_days)
        now = max(question.resolves_at for question in questions) + retry
        counts, reasons = resolve_questions(run, questions, now)
        return {"due": len(questions), **counts, "reasons": reasons}

    return run.stage("resolve", HELD_OUT, work)


def resolved_held_out(run: Run) -> tuple[list[Question], list[float]]:
    """The set's questions that have an outcome, in order, and the outcomes."""
    return with_outcomes(run, run.store.question_set(HELD_OUT) or ())


def with_outcomes(run: Run, questions: Sequence[Question]) -> tuple[list[Question], list[float]]:
    outcomes = run.store.outcomes([question.id for question in questions])
    known = [
        (question, outcome.value)
        for question in questions
        if (outcome := outcomes.get(question.id)) is not None and outcome.value is not None
    ]
    return [question for question, _ in known], [value for _, value in known]


def baseline_row(question: Question, outcome: float | None) -> Row:
    """What the baselines know of a question: exactly what the archive tells an agent."""
    known = facts(question.last_values, question.threshold, question.operator, question.typical_step)
    return Row(question.domain, known.yes_count / len(known.values), known.last_yes, known.distance, outcome)
