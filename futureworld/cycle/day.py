"""One calendar day: look at the clock and do what is due.

A replay moves a fake clock over it, a live run a scheduler; there is no second path. At `ask_at`
of an asked day: collect, ask, predict with the newest checkpoint. At `resolve_at` of every day
after the first: resolve what is due, then update. Every stage is a no-op when it was done.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from futureworld.agents.base import Engine
from futureworld.config import Config
from futureworld.cycle.ask import ask, collect
from futureworld.cycle.batch import Learner
from futureworld.cycle.predict import predict
from futureworld.cycle.resolve import resolve
from futureworld.cycle.run import Run, Summary
from futureworld.cycle.update import update
from futureworld.errors import RunError


@dataclass(frozen=True, slots=True)
class Workers:
    """The engine and the learner, started when first needed and kept up over days."""

    engine: Callable[[], Engine]
    learner: Callable[[], Learner]


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of the schedule: questions are asked on `day`, or outcomes are read on it."""

    at: datetime
    day: date
    asks: bool


def moments(run: Run) -> list[Moment]:
    """Every moment of the run, in order: `days` asked days, and a day more to learn from the last."""
    asking = [Moment(run.schedule.asked_at(day), day, True) for day in run.days]
    reading = [Moment(run.schedule.resolves_at(day), day + timedelta(days=1), False) for day in run.days]
    return sorted(asking + reading, key=lambda moment: (moment.at, not moment.asks))


def do(run: Run, moment: Moment, workers: Workers) -> dict[str, Summary]:
    """Do the stages of one moment; returns their summaries by stage."""
    day = moment.day
    if moment.asks:
        return {
            "collect": collect(run, day),
            "ask": ask(run, day),
            "predict": predict_newest(run, day, workers),
        }
    return {"resolve": resolve(run, day), "update": update_next(run, day, workers)}


def do_day(run: Run, day: date, workers: Workers) -> dict[str, Summary]:
    """Everything of calendar day `day` that is due by the clock."""
    done: dict[str, Summary] = {}
    for moment in moments(run):
        if moment.day == day and moment.at <= run.clock.now():
            done |= do(run, moment, workers)
    return done


def predict_newest(run: Run, day: date, workers: Workers) -> Summary:
    """Predict with the newest checkpoint; the engine is not started when the stage was done, or comes too early."""
    finished = run.store.finished("predict", day.isoformat())
    if finished is not None:
        return finished
    need(run, "ask", day)
    return predict(run, day, workers.engine())


def update_next(run: Run, day: date, workers: Workers) -> Summary:
    finished = run.store.finished("update", day.isoformat())
    if finished is not None:
        return finished
    need(run, "resolve", day)
    if (asked := day - timedelta(days=1)) in run.days:
        need(run, "predict", asked)
    return update(run, day, workers.learner())


def need(run: Run, stage: str, day: date) -> None:
    """Refuse with RunError what comes before `stage` was done: it would be taken for an empty day."""
    if run.store.finished(stage, day.isoformat()) is None:
        raise RunError(
            f"stage {stage} of {day} was not done yet; run `futureworld {stage} --run {run.folder} --day {day}` first"
        )


def check_day(config: Config, stage: str, day: date) -> None:
    """Refuse with RunError a calendar day on which the run has nothing to do in `stage`.

    Questions are asked on `days` days from `start`; their outcomes are read from the day after
    the first to `retry_days` days after the day that follows the last.
    """
    first = config.start
    last = first + timedelta(days=config.days - 1)
    if stage in ("resolve", "update"):
        first, last = first + timedelta(days=1), last + timedelta(days=1 + config.schedule.retry_days)
    elif stage == "day":
        last += timedelta(days=1)
    if not first <= day <= last:
        raise RunError(f"the run has no {stage} on {day}, only from {first} to {last}; see start and days")
