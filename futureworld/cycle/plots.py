"""The run's pictures, drawn from its evaluation into its folder."""

from pathlib import Path

import numpy as np

from futureworld.cycle.evaluate import Evaluation, Samples
from futureworld.cycle.replay import Replayed
from futureworld.cycle.run import Run
from futureworld.evaluation.calibration import ReliabilityRow, reliability
from futureworld.pages import plots


def draw(run: Run, replayed: Replayed) -> list[Path]:
    """Curves, reliability, domains and strategies as PNG; returns their paths."""
    evaluation = replayed.evaluation
    names = ("curves", "reliability", "by-domain", "strategies")
    paths = {name: run.folder / "plots" / f"{name}.png" for name in names}
    last = evaluation.checkpoints[-1].version
    labels = ("checkpoint 0", f"checkpoint {last}")
    means = (evaluation.first_mean, evaluation.last_mean)
    plots.curves(evaluation.checkpoints, evaluation.baselines, paths["curves"], means)
    before, after = bins(evaluation, evaluation.first), bins(evaluation, evaluation.last)
    plots.reliability(before, after, paths["reliability"], labels)
    plots.by_domain(evaluation.domains_first, evaluation.domains_last, paths["by-domain"], labels)
    strategies = replayed.summary["strategies"]
    plots.strategies(strategies["first"], strategies["last"], paths["strategies"], ("first day", "last day"))
    return list(paths.values())


def bins(evaluation: Evaluation, samples: Samples) -> tuple[ReliabilityRow, ...]:
    """Reliability of the single answers that exist."""
    pairs = [
        (p, outcome)
        for answers, outcome in zip(samples, evaluation.outcomes, strict=True)
        for p in answers
        if p is not None
    ]
    p, y = np.asarray(pairs, dtype=np.float64).reshape(-1, 2).T
    return reliability(p, y)
