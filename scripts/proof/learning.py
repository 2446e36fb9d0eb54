"""It learns because of outcomes: three seeds and two start dates, none picked."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from futureworld.cycle.run import Run
from proof import learning_page
from proof.habits import by_domain
from proof.parts import Row, Rows, Task
from proof.plays import SHORT, Play, thirty_two_days
from proof.results import above, against_rivals, curve, figures, plain, read
from proof.runs import more_answers, opened

TITLE = "It learns because of outcomes"

MARKS = (0, 8, 16, 32)
"""Checkpoints that answer the held-out set as often as the ends of the run."""
SAMPLES = 4
TARGETS = {8: (0.5, 0.3), 32: (0.8, 0.6)}
"""Days of training -> the skill asked for of the mean of four answers, and of a single one."""


def tasks(short: bool) -> Sequence[Task]:
    plays = {"short": SHORT} if short else thirty_two_days()
    return [Task(key, partial(measured, play, row)) for key, play in plays.items()]


def measured(play: Play, rows_of: Callable[[Run], Row], folder: Path) -> Row:
    """The row of a finished run, played where it is not there yet."""
    run = play.run(folder)
    with opened(run) as found:
        last = found.newest_checkpoint().version
    between = [version for version in MARKS if 0 < version < last]
    if between:
        more_answers(run, between, SAMPLES)
    with opened(run) as found:
        return rows_of(found)


def row(run: Run) -> Row:
    """Everything that the page says of a run, and whether it is what was asked for."""
    held = read(run)
    marks = sorted({version for version in MARKS if version in held.answers} | {held.last})
    at = {
        str(version): figures(held, held.answers[version]) | {"below": against_rivals(held, version)}
        for version in marks
    }
    return {
        "seed": run.config.seed,
        "start": run.config.start.isoformat(),
        "days": run.config.days,
        "questions": len(held.questions),
        "clusters": {"series": len(set(held.series)), "days": len(set(held.days))},
        "samples": len(held.answers[held.last][0]),
        "last": held.last,
        "baselines": plain(held.baseline_briers()),
        "best": held.best,
        "curve": curve(held),
        "at": at,
        "habits": by_domain(run, held, held.last),
        "checks": checks(at, run.config.days),
    }


def checks(at: Row, trained: int) -> dict[str, bool]:
    """A checkpoint that a run of `trained` days should have made and did not is a check that failed."""
    found: dict[str, bool] = {}
    for days, wanted in TARGETS.items():
        if days > trained:
            continue
        for kind, words, least in zip(("mean", "single"), ("the mean of four", "a single answer"), wanted, strict=True):
            skill = at[str(days)][kind]["skill"] if str(days) in at else None
            found[f"skill of {words} at least {least} after {days} days"] = skill is not None and skill >= least
    if trained >= max(TARGETS):
        words = "mean of four below persistence after 32 days, interval above 0"
        found[words] = "32" in at and above(at["32"]["below"]["mean"]["persistence"]["difference"])
    return found


def section(rows: Rows, pictures: Path) -> str:
    return learning_page.section(rows, pictures)
