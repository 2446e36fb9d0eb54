"""What a run has stored, questions and rollouts of training and evaluation, against the raw files."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

from audit_checks import Findings, audit_question, audit_trajectory
from audit_raw import Raw, cut

from futureworld.clock import FakeClock
from futureworld.config import QuestionsConfig
from futureworld.cycle.ask import train_set
from futureworld.cycle.heldout import HELD_OUT
from futureworld.cycle.run import Run, open_run, read_config
from futureworld.errors import RunError
from futureworld.questions.ask import ask
from futureworld.records import Question, Trajectory
from futureworld.worlds.open import open_world

CHUNK = 100
"""Questions whose rollouts are in memory together."""
NO_LIMIT = 20_000
"""Questions of a day that is asked again: all that there are."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of one day, and how they were asked."""

    day: date
    questions: Sequence[Question]
    config: QuestionsConfig
    namespace: str = ""


@contextmanager
def stored(folder: Path) -> Iterator[Run]:
    """The run in `folder`, locked, at the end of its time.

    Raises RunError where its rollouts were shown other questions' facts on purpose.
    """
    config = read_config(folder)
    if config.control == "shuffled-observations":
        raise RunError(f"{folder} is the control that shows facts of other questions; audit another run")
    schedule = config.schedule.schedule()
    end = schedule.resolves_at(config.asked_days()[-1] + timedelta(days=config.schedule.retry_days))
    with open_run(folder, config, clock=FakeClock(end), holder="audit") as run:
        yield run


def asked(run: Run, day: date) -> Sequence[Question]:
    return run.store.question_set(train_set(day)) or ()


def everything_asked(run: Run) -> Iterator[Asked]:
    """Day by day what was trained on, then what was evaluated on."""
    for day in run.days:
        yield Asked(day, asked(run, day), run.config.questions)
    held_out = run.store.question_set(HELD_OUT) or ()
    config = run.config.questions.model_copy(update={"thresholds": 1})
    for day in sorted({question.day for question in held_out}):
        yield Asked(day, [question for question in held_out if question.day == day], config, HELD_OUT.split("/")[1])


def audit_run(run: Run, raw: Raw) -> Findings:
    found = Findings()
    for of_day in everything_asked(run):
        found.add(audit_asking(run, raw, of_day))
        found.add(audit_kept(run, raw, of_day.questions))
    return found


def audit_kept(run: Run, raw: Raw, questions: Sequence[Question]) -> Findings:
    """What `questions` were made of, and everything that any rollout on them was shown."""
    found = Findings()
    for part in (questions[i : i + CHUNK] for i in range(0, len(questions), CHUNK)):
        by_id = {question.id: question for question in part}
        for question in part:
            found.add(audit_question(raw, question))
        for trajectory in rollouts(run, part):
            found.add(audit_trajectory(raw, by_id[trajectory.question_id], trajectory))
    return found


def rollouts(run: Run, questions: Sequence[Question]) -> list[Trajectory]:
    made = run.store.forecasts(question_ids=[question.id for question in questions])
    return list(run.store.trajectories([forecast.id for forecast in made]))


def audit_asking(run: Run, raw: Raw, of_day: Asked) -> Findings:
    """A world without its later rows allows the same questions: targets, sides, limits and times."""
    everything = of_day.config.model_copy(update={"per_day": NO_LIMIT})
    with tempfile.TemporaryDirectory(prefix="futureworld-audit-") as place:
        blind = Path(place, "cut")
        cut(raw.folder, blind, run.schedule.asked_at(of_day.day))
        world = open_world(blind)
    again = ask(world, of_day.day, run.schedule, everything, run.config.seed, namespace=of_day.namespace).questions
    # Ids name the world, and a cut one is another world.
    allowed = {(question.target, question.threshold): replace(question, id="") for question in again}
    found = Findings(Counter({"questions asked again without later rows": len(of_day.questions)}))
    for question in of_day.questions:
        same = allowed.get((question.target, question.threshold)) == replace(question, id="")
        found.expect(same, f"question {question.id}: {question.target.id} is not asked without later rows")
    return found
