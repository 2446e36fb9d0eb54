"""What a start finds: where the run was when the last process ended, in words."""

from datetime import date, timedelta

from futureworld.cycle.ask import train_set
from futureworld.cycle.day import moments
from futureworld.cycle.evaluate import HELD_OUT, evaluation_key, samples_of
from futureworld.cycle.run import Run
from futureworld.records import Purpose, Question


def standing(run: Run) -> str | None:
    """The first stage that is not done and how much of it is stored; None where nothing has begun."""
    if not run.store.jobs() and run.store.question_set(train_set(run.days[0])) is None:
        return None
    for moment in moments(run):
        for stage in ("collect", "ask", "predict") if moment.asks else ("resolve", "update"):
            if run.store.finished(stage, moment.day.isoformat()) is None:
                return f"{stage} of {moment.day}{_stored(run, stage, moment.day)}"
    return _evaluation(run)


def _stored(run: Run, stage: str, day: date) -> str:
    if stage == "ask":
        asked = run.store.question_set(train_set(day))
        return "" if asked is None else f" with {len(asked)} questions stored"
    if stage == "predict":
        asked = run.store.question_set(train_set(day)) or ()
        return f" with {_rollouts(run, asked, Purpose.TRAIN)} of {len(asked) * run.config.rollout.n} rollouts stored"
    if stage == "resolve":
        asked = run.store.question_set(train_set(day - timedelta(days=1))) or ()
        return f" with {len(run.store.outcomes([q.id for q in asked]))} of {len(asked)} outcomes stored"
    if stage == "update" and any(made.day == day for made in run.store.updates()):
        return " with its version stored"
    return ""


def _evaluation(run: Run) -> str:
    questions = run.store.question_set(HELD_OUT)
    if questions is None:
        return "evaluation with no question stored"
    checkpoints = run.store.checkpoints()
    for one in checkpoints:
        samples = samples_of(run, one, checkpoints)
        if run.store.finished("evaluate", evaluation_key(one, samples)) is None:
            stored = _rollouts(run, questions, Purpose.EVALUATE, one.version)
            return f"evaluation of checkpoint {one.version} with {stored} of {len(questions) * samples} answers stored"
    return "evaluation with every answer stored"


def _rollouts(run: Run, questions: tuple[Question, ...], purpose: Purpose, version: int | None = None) -> int:
    ids = [question.id for question in questions]
    return len(run.store.forecasts(purpose, version, ids, run.agent))
