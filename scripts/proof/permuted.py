"""Outcomes permuted, over many runs: what training on noise does, with the run as the unit.

A run on permuted outcomes has nothing to learn, but its policy still moves, and by chance towards its
evidence or away from it. The interval of one run over questions does not know of that; one over runs does.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

from scipy.stats import t

from proof.parts import Row, Rows, table
from proof.plays import SEEDS, eight_days, permuted
from proof.results import Figures, HeldOut, below_constant, figures, held_out, holds, plain
from proof.words import change, number, within

RUNS = 8

WORDS = """Trained on noise a policy still moves, and by chance towards its evidence or away from it; the intervals of
one run are over questions and do not know of that. So runs are drawn too, each with other questions, samples and
another dealing, and the intervals here are Student's over the runs."""


def permuted_runs(folder: Path) -> Row:
    """`RUNS` runs that learn from outcomes dealt anew, beside the true runs."""
    runs = [one_run(seed, held_out(permuted(seed).run(folder))) for seed in range(RUNS)]
    true = [last_auc(held_out(eight_days(seed).run(folder))) for seed in SEEDS]
    return runs_row(runs, true)


def one_run(seed: int, held: HeldOut) -> Figures:
    return {
        "seed": seed,
        "auc": [figures(held, held.answers[version])["single"]["auc"][0] for version in (0, held.last)],
        "brier": [figures(held, held.answers[version])["single"]["brier"][0] for version in (0, held.last)],
        "below_constant": below_constant(held)["difference"][0],
    }


def runs_row(runs: Sequence[Figures], true: Sequence[float]) -> Row:
    auc = over_runs([run["auc"][1] for run in runs])
    below = over_runs([run["below_constant"] for run in runs])
    return {
        "runs": list(runs),
        "true_auc": list(true),
        "auc": auc,
        "below_constant": below,
        "checks": {
            "AUC of the last checkpoints, over runs: interval contains 0.5": holds(auc, 0.5),
            "mean of four not below the base rate, over runs": below[1] <= 0.0,
            "every true run ranks better than every permuted one": min(true) > max(run["auc"][1] for run in runs),
        },
    }


def over_runs(values: Sequence[float]) -> list[float]:
    """[mean, low, high], Student's 95 % interval of the mean of independent runs."""
    mean = fmean(values)
    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return plain([mean, mean - half, mean + half])


def last_auc(held: HeldOut) -> float:
    return figures(held, held.answers[held.last])["single"]["auc"][0]


def section(rows: Rows) -> str:
    return "\n\n".join([WORDS, *(runs_table(row) for row in rows.values())])


def runs_table(row: Row) -> str:
    head = ("permuted run", "AUC before", "after", "Brier before", "after", "mean of four below base rate")
    lines = [
        (
            f"seed {run['seed']}",
            *(number(value) for value in (*run["auc"], *run["brier"])),
            f"{run['below_constant']:+.3f}",
        )
        for run in row["runs"]
    ]
    lines.append((f"over {len(lines)} runs", "", within(row["auc"]), "", "", change(row["below_constant"])))
    true = ", ".join(number(value) for value in row["true_auc"])
    return f"{table(head, lines)}\n\nAUC of the true runs: {true}."
