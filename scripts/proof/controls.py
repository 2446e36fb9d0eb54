"""Controls: where learning must fail; and what other rewards would have taught."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from proof import controls_page
from proof.parts import Row, Rows, Task
from proof.permuted import RUNS, permuted_runs
from proof.plays import ABLATIONS, SEEDS, SHORT, Play, ablation, eight_days, permuted
from proof.results import (
    HeldOut,
    above,
    against_rivals,
    below_constant,
    better_by,
    figures,
    held_out,
    holds,
    known,
    plain,
)
from proof.runs import evaluated_as, shared

TITLE = "Controls: where learning must fail"

PERMUTED, SHUFFLED, ABLATION = "outcomes permuted", "observations shuffled", "reward or recipe changed"
LEAST_LOSS = 0.05
"""What a policy that reads its evidence loses at least when it is shown that of another question."""


def tasks(short: bool) -> Sequence[Task]:
    if short:
        return [Task(f"{SHUFFLED}, short", shuffled_short)]
    return [
        *(Task(f"{PERMUTED}, seed {seed}", partial(permuted_outcomes, seed)) for seed in SEEDS),
        Task(f"{PERMUTED}, over {RUNS} runs", permuted_runs),
        *(Task(f"{SHUFFLED}, seed {seed}", partial(shuffled_observations, eight_days(seed))) for seed in SEEDS),
        *(Task(f"{ABLATION}: {name}", partial(other_recipe, name)) for name in ABLATIONS),
    ]


def permuted_outcomes(seed: int, folder: Path) -> Row:
    """A run that learns from outcomes dealt anew, beside the true run of the same seed."""
    true, control = held_out(eight_days(seed).run(folder)), held_out(permuted(seed).run(folder))
    return permuted_row(true, control)


def permuted_row(true: HeldOut, control: HeldOut) -> Row:
    found = compared(true, control)
    against_constant = below_constant(control)
    return found | {
        "below_constant": against_constant,
        "checks": {
            "AUC of the last checkpoint: interval contains 0.5": holds(found["control"]["single"]["auc"], 0.5),
            "mean of four not below the base rate": known(against_constant["difference"])
            and not above(against_constant["difference"]),
            "the true run beats it on the same questions, interval above 0": above(
                found["true_better_by"]["single"]["difference"]
            ),
        },
    }


def other_recipe(name: str, folder: Path) -> Row:
    """A run of seed 0 with one thing changed, beside the run with the defaults; it must do nothing certain."""
    return compared(held_out(eight_days(0).run(folder)), held_out(ablation(name).run(folder)))


def compared(true: HeldOut, control: HeldOut) -> Row:
    """The last checkpoints of both runs, and how much better the true one is on the same questions."""
    return {
        "questions": len(true.questions),
        "baselines": plain(true.baseline_briers()),
        "first": figures(true, true.answers[0]),
        "true": figures(true, true.answers[true.last]),
        "control": figures(control, control.answers[control.last]) | {"below": against_rivals(control, control.last)},
        "true_better_by": better_by(true, control),
    }


def shuffled_observations(play: Play, folder: Path) -> Row:
    """The ends of a true run, evaluated again with the observations of other questions."""
    run = play.run(folder)
    true = held_out(run)
    control = evaluated_as(run, shared(folder) / f"{play.name}-shuffled", "shuffled-observations", [0, true.last])
    return shuffled_row(true, held_out(control))


def shuffled_short(folder: Path) -> Row:
    """Two small days teach nothing that could be lost, so nothing is asked of them."""
    return shuffled_observations(SHORT, folder) | {"checks": {}}


def shuffled_row(true: HeldOut, control: HeldOut) -> Row:
    loss = {name: better_by(true, control, version) for name, version in (("first", 0), ("last", true.last))}
    before, after = (loss[name]["single"]["difference"] for name in ("first", "last"))
    return {
        "questions": len(true.questions),
        "first": figures(true, true.answers[0]),
        "true": figures(true, true.answers[true.last]),
        "control": figures(control, control.answers[control.last]),
        "control_first": figures(control, control.answers[0]),
        "loss": loss,
        "checks": {
            f"the trained policy loses at least {LEAST_LOSS}": after[0] >= LEAST_LOSS,
            "day 0 does not": holds(before, 0.0) or abs(before[0]) < LEAST_LOSS,
        },
    }


def section(rows: Rows, pictures: Path) -> str:
    return controls_page.section(rows, pictures)
