"""Thirty-two days: where training ends, what the policy still leaves open, and what late outcomes are worth."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from futureworld.cycle.evaluate import Samples
from futureworld.cycle.run import Run
from futureworld.cycle.summary import day_row
from futureworld.evaluation.calibration import reliability
from proof import long_page
from proof.course import Pieces, course, tokenizer_pieces
from proof.late_world import make
from proof.learning import MARKS, measured
from proof.parts import Row, Rows, Task
from proof.plays import EIGHT, SEEDS, SHORT, STARTS, late_outcomes, thirty_two_days
from proof.results import Figures, HeldOut, better_by, figures, on_common, plain, read, scores
from proof.runs import opened, shared

TITLE = "Thirty-two days"

LATE = "late outcomes"


def tasks(short: bool) -> Sequence[Task]:
    plays = {"short": SHORT} if short else thirty_two_days()
    courses = [Task(key, partial(measured, play, row_with_tokenizer)) for key, play in plays.items()]
    return courses if short else [*courses, *(Task(f"{LATE}, seed {seed}", partial(late, seed)) for seed in SEEDS)]


def row_with_tokenizer(run: Run) -> Row:
    return row(run, tokenizer_pieces(run.policy))


def row(run: Run, pieces: Pieces) -> Row:
    """Calibration at the marked checkpoints, and every day's rollouts."""
    held = read(run)
    marks = sorted({version for version in MARKS if version in held.answers} | {held.last})
    return {
        "seed": run.config.seed,
        "start": run.config.start.isoformat(),
        "days": run.config.days,
        "questions": len(held.questions),
        "last": held.last,
        "calibration": {str(version): calibration(held, held.answers[version]) for version in marks},
        "course": course(run, pieces),
    }


def calibration(held: HeldOut, samples: Samples) -> Figures:
    """ECE with its noise band, and the bins of single answers as [n, sum of p, sum of y]."""
    found = scores(held, samples)
    pairs = [(p, y) for answers, y in zip(samples, held.y, strict=True) for p in answers if p is not None]
    bins = reliability([p for p, _ in pairs], [float(y) for _, y in pairs]) if pairs else ()
    return {key: found[key] for key in ("brier", "ece", "ece_noise", "parse_rate", "n")} | {
        "bins": plain([[bin.n, bin.n * bin.mean_p, bin.n * bin.mean_y] if bin.n else [0, 0.0, 0.0] for bin in bins])
    }


def late(seed: int, folder: Path) -> Row:
    """Two runs in a world whose outcomes come late: one waits for them, the other throws them away."""
    world = make(shared(folder) / "late-world", STARTS[0], EIGHT)
    with opened(late_outcomes(seed, world, used=True).run(folder)) as run:
        used, used_counts = read(run), counts(run)
    with opened(late_outcomes(seed, world, used=False).run(folder)) as run:
        thrown, thrown_counts = read(run), counts(run)
    return late_row(used, thrown) | {"counts": {"used": used_counts, "thrown": thrown_counts}}


def late_row(used: HeldOut, thrown: HeldOut) -> Row:
    """Both on the same questions; the run that threw outcomes away answered some more."""
    used, thrown = on_common(used, thrown)
    return {
        "used": figures(used, used.answers[used.last]),
        "thrown": figures(thrown, thrown.answers[thrown.last]),
        "used_better_by": better_by(used, thrown),
    }


def counts(run: Run) -> Figures:
    """What became of the questions and of the rollouts of the run's asked days."""
    days = [day_row(run, day) for day in run.days]
    updates = run.store.updates()
    return {name: sum(day[name] for day in days) for name in ("asked", "resolved", "pending", "expired", "trained")} | {
        "trained_late": sum(age > 1 for update in updates for age in update.ages),
        "late_by_update": [sum(age > 1 for age in update.ages) for update in updates],
    }


def section(rows: Rows, pictures: Path) -> str:
    return long_page.section(rows, pictures)
