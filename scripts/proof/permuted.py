"""Outcomes permuted, over many runs: what training on noise does, with the run as the unit.

A run on permuted outcomes should have nothing to learn. But a dealing agrees with the evidence a little more or
less often than not, by chance, and that is learned like anything else; the interval of one run over questions
does not know of it. An interval over runs does, and a line through them says what no agreement would have taught.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy.stats import linregress, t

from futureworld.cycle.ask import train_set
from futureworld.cycle.controls import permuted as permuted_outcomes
from futureworld.cycle.run import Run
from futureworld.questions.facts import facts, history
from futureworld.records import Question
from proof.parts import Row, Rows, table
from proof.plays import SEEDS, eight_days, permuted
from proof.results import Figures, HeldOut, below_constant, figures, held_out, holds, plain, read
from proof.runs import opened
from proof.words import change, number, within

RUNS = 8

WORDS = """A dealing agrees with the evidence a little more or less often than not, by chance, and a policy learns that
like anything else; the intervals of one run are over questions and do not know of it. So runs are drawn too, each with
other questions, samples and another dealing; intervals here are Student's over the runs. *Agreement by chance* is the
correlation, over the training questions, of the dealt outcome and of the side on which the last value stands (of the
true outcome: about 0.54). The last line is that of a straight line through the runs where this agreement is 0."""


def permuted_runs(folder: Path) -> Row:
    """`RUNS` runs that learn from outcomes dealt anew, beside the true runs."""
    runs = [one_run(seed, permuted(seed).run(folder)) for seed in range(RUNS)]
    true = [last_auc(held_out(eight_days(seed).run(folder))) for seed in SEEDS]
    return runs_row(runs, true)


def one_run(seed: int, run: Path) -> Figures:
    with opened(run) as found:
        return run_figures(seed, read(found), agreement(found))


def run_figures(seed: int, held: HeldOut, chance: float) -> Figures:
    return {
        "seed": seed,
        "chance": round(chance, 5),
        "auc": [figures(held, held.answers[version])["single"]["auc"][0] for version in (0, held.last)],
        "brier": [figures(held, held.answers[version])["single"]["brier"][0] for version in (0, held.last)],
        "below_constant": below_constant(held)["difference"][0],
    }


def agreement(run: Run) -> float:
    """Correlation of the outcome that each training question was trained on and of the last value's side.

    The dealing is made again from all outcomes: it is the run's where none came late.
    """
    asked = [question for day in run.days for question in run.store.question_set(train_set(day)) or ()]
    questions = {question.id: question for question in asked}
    outcomes = {name: o.value for name, o in run.store.outcomes(questions).items() if o.value is not None}
    dealt = permuted_outcomes(outcomes, questions, run.config.seed)
    sides = [(side(run, questions[name]), dealt[name]) for name in sorted(dealt)]
    pairs = [(float(yes), outcome) for yes, outcome in sides if yes is not None]
    return float(np.corrcoef(np.array(pairs).T)[0, 1])


def side(run: Run, question: Question) -> bool | None:
    """Whether the last value that could be known stands on the Yes side; None where none could."""
    known = history(run.world, question.target, question.domain, question.asked_at)
    values = [point.value for point in known]
    return facts(values, question.threshold, question.operator, 1.0).last_yes if values else None


def runs_row(runs: Sequence[Figures], true: Sequence[float]) -> Row:
    auc = over_runs([run["auc"][1] for run in runs])
    below = over_runs([run["below_constant"] for run in runs])
    without = at_zero([run["chance"] for run in runs], [run["auc"][1] for run in runs])
    return {
        "runs": list(runs),
        "true_auc": list(true),
        "auc": auc,
        "auc_without_chance": without,
        "below_constant": below,
        "checks": {
            "AUC of the last checkpoints, over runs: interval contains 0.5": holds(auc, 0.5),
            "AUC where the dealing agrees with nothing: interval contains 0.5": holds(without, 0.5),
            "mean of four not below the base rate, over runs": below[1] <= 0.0,
            "every true run ranks better than every permuted one": min(true) > max(run["auc"][1] for run in runs),
        },
    }


def over_runs(values: Sequence[float]) -> list[float]:
    """[mean, low, high], Student's 95 % interval of the mean of independent runs."""
    mean = fmean(values)
    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return plain([mean, mean - half, mean + half])


def at_zero(x: Sequence[float], y: Sequence[float]) -> list[float]:
    """[value, low, high] at x = 0 of the least-squares line of y, Student's 95 % interval with n - 2 degrees."""
    line: Any = linregress(x, y)
    half = float(t.ppf(0.975, len(x) - 2)) * float(line.intercept_stderr)
    return plain([line.intercept, line.intercept - half, line.intercept + half])


def last_auc(held: HeldOut) -> float:
    return figures(held, held.answers[held.last])["single"]["auc"][0]


def section(rows: Rows) -> str:
    return "\n\n".join([WORDS, *(runs_table(row) for row in rows.values())])


def runs_table(row: Row) -> str:
    head = (
        "permuted run",
        "agreement by chance",
        "AUC before",
        "after",
        "Brier before",
        "after",
        "mean of four below base rate",
    )
    lines = [
        (
            f"seed {run['seed']}",
            f"{run['chance']:+.3f}",
            *(number(value) for value in (*run["auc"], *run["brier"])),
            f"{run['below_constant']:+.3f}",
        )
        for run in row["runs"]
    ]
    lines.append((f"over {len(lines)} runs", "", "", within(row["auc"]), "", "", change(row["below_constant"])))
    lines.append(("where the agreement is 0", "", "", within(row["auc_without_chance"]), "", "", ""))
    true = ", ".join(number(value) for value in row["true_auc"])
    return f"{table(head, lines)}\n\nAUC of the true runs: {true}."
