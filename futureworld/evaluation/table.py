"""Rows of the closing table, from plain arrays: checkpoints, baselines, domains.

Missing answers follow `scores.with_missing`: Brier 1.0, wrong in accuracy, 0.5 in AUC. ECE is
over the answers that exist; `parse_rate` beside it tells their share.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import compress

import numpy as np
from numpy.typing import ArrayLike

from futureworld.errors import ScoreError
from futureworld.evaluation.calibration import NoiseBand, ece, ece_noise_band
from futureworld.evaluation.scores import Array, Scored, accuracy, auc, brier_mean, check, with_missing
from futureworld.evaluation.statistics import Interval, auc_of, cluster_bootstrap, mean_of, paired_difference


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A checkpoint on the fixed set: `n` answers asked for, 95% intervals by cluster bootstrap.

    `day` is the last day trained on (None before training). `ece_noise` is the ECE that a
    perfectly calibrated forecaster stays below 95 times of 100. NaN: not defined on these rows.
    """

    version: int
    day: date | None
    n: int
    accuracy: float
    brier: float
    auc: float
    auc_low: float
    auc_high: float
    ece: float
    parse_rate: float
    brier_low: float
    brier_high: float
    accuracy_low: float
    accuracy_high: float
    ece_noise: float
    clusters: int


@dataclass(frozen=True, slots=True)
class BaselineRow:
    """A baseline on the fixed set, one answer for each of `n` questions."""

    name: str
    n: int
    accuracy: float
    brier: float
    auc: float
    ece: float


@dataclass(frozen=True, slots=True)
class DomainRow:
    """Mean Brier score of a domain's `n` answers with its 95% interval."""

    domain: str
    n: int
    brier: float
    low: float
    high: float


def checkpoint_row(
    version: int,
    day: date | None,
    p: Sequence[float | None],
    y: ArrayLike,
    clusters: Sequence[str],
    *,
    rng: np.random.Generator,
    replicates: int = 2000,
    questions: Sequence[str] | None = None,
) -> CheckpointRow:
    """Score answers `p` against outcomes `y`, all (n); rows with the same cluster move together.

    Several samples of a question are several rows with the question's cluster and with its label
    in `questions` (see `calibration.ece_noise_band`). Raises ScoreError as `scores.with_missing`
    and `statistics.cluster_bootstrap` do.
    """
    scored = with_missing(p, y)
    brier = cluster_bootstrap(mean_of(scored.brier), clusters, rng=rng, replicates=replicates)
    right = cluster_bootstrap(mean_of(scored.correct), clusters, rng=rng, replicates=replicates)
    order = cluster_bootstrap(auc_of(scored.p, scored.y), clusters, rng=rng, replicates=replicates)
    error, noise = _calibration(scored, questions, rng)
    return CheckpointRow(
        version=version,
        day=day,
        n=scored.n,
        accuracy=right.estimate,
        brier=brier.estimate,
        auc=order.estimate,
        auc_low=order.low,
        auc_high=order.high,
        ece=error,
        parse_rate=float(scored.answered.mean()),
        brier_low=brier.low,
        brier_high=brier.high,
        accuracy_low=right.low,
        accuracy_high=right.high,
        ece_noise=noise.high,
        clusters=brier.clusters,
    )


def _calibration(scored: Scored, questions: Sequence[str] | None, rng: np.random.Generator) -> tuple[float, NoiseBand]:
    if questions is not None and len(questions) != scored.n:
        raise ScoreError(f"{len(questions)} question labels do not match {scored.n} answers; give one for each")
    if not scored.answered.any():
        return math.nan, NoiseBand(math.nan, math.nan)
    p, y = scored.p[scored.answered], scored.y[scored.answered]
    labels = None if questions is None else list(compress(questions, scored.answered))
    return ece(p, y), ece_noise_band(p, rng=rng, questions=labels)


def mean_of_samples(samples: Sequence[Sequence[float | None]]) -> list[float | None]:
    """The mean of each question's samples that have an answer; None where none has.

    Raises ScoreError for a question without samples.

    >>> mean_of_samples([[0.25, 0.75], [0.5, None], [None, None]])
    [0.5, 0.5, None]
    """
    means: list[float | None] = []
    for i, question in enumerate(samples):
        if not question:
            raise ScoreError(f"question in row {i} has no samples; an answer that is missing is None")
        answers = [p for p in question if p is not None]
        means.append(math.fsum(answers) / len(answers) if answers else None)
    return means


def flatten(
    samples: Sequence[Sequence[float | None]], y: ArrayLike, clusters: Sequence[str]
) -> tuple[list[float | None], Array, list[str]]:
    """Every sample as a row of its own: answers, outcomes and labels, all (sum of samples).

    `clusters` are labels of the questions (n): their clusters, or their ids.
    """
    outcomes = np.asarray(y, dtype=np.float64)
    if not len(samples) == outcomes.size == len(clusters):
        raise ScoreError(f"{len(samples)} questions, {outcomes.size} outcomes and {len(clusters)} clusters differ")
    sizes = [len(question) for question in samples]
    return (
        [p for question in samples for p in question],
        np.repeat(outcomes, sizes),
        [cluster for cluster, size in zip(clusters, sizes, strict=True) for _ in range(size)],
    )


def question_briers(samples: Sequence[Sequence[float | None]], y: ArrayLike) -> Array:
    """Mean Brier score of each question's samples (n), so that runs of 1 and of 4 samples can be paired."""
    p, ys, _ = flatten(samples, y, [""] * len(samples))
    sizes = np.array([len(question) for question in samples])
    if (sizes == 0).any():
        raise ScoreError(f"{(sizes == 0).sum()} questions have no samples; an answer that is missing is None")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.add.reduceat(with_missing(p, ys).brier, starts) / sizes


def paired_brier(
    first: Sequence[Sequence[float | None]],
    last: Sequence[Sequence[float | None]],
    y: ArrayLike,
    clusters: Sequence[str],
    *,
    rng: np.random.Generator,
    replicates: int = 2000,
) -> Interval:
    """Brier score of `first` minus that of `last` on the same questions: positive where `last` is better."""
    before, after = question_briers(first, y), question_briers(last, y)
    return paired_difference(before, after, clusters, rng=rng, replicates=replicates)


def baseline_rows(predictions: Mapping[str, Array], y: ArrayLike) -> tuple[BaselineRow, ...]:
    """One row for each baseline, in the order given."""
    return tuple(
        BaselineRow(name, ps.size, accuracy(ps, ys), brier_mean(ps, ys), auc(ps, ys), ece(ps, ys))
        for name, (ps, ys) in ((name, check(p, y)) for name, p in predictions.items())
    )


def best_baseline(rows: Sequence[BaselineRow]) -> BaselineRow:
    """The one with the lowest Brier score; the first of equals."""
    if not rows:
        raise ScoreError("there is no baseline to choose the best of")
    return min(rows, key=lambda row: row.brier)


def domain_rows(
    briers: ArrayLike,
    domains: Sequence[str],
    clusters: Sequence[str],
    *,
    rng: np.random.Generator,
    replicates: int = 2000,
) -> tuple[DomainRow, ...]:
    """Mean Brier score by domain, in the order of their names; `briers`, labels all (n)."""
    values, labels, members = np.asarray(briers, dtype=np.float64), np.asarray(domains), np.asarray(clusters)
    if not values.shape == labels.shape == members.shape:
        raise ScoreError(f"{values.shape} scores, {labels.shape} domains and {members.shape} clusters differ")
    rows = []
    for domain in np.unique(labels):
        inside = labels == domain
        found = cluster_bootstrap(mean_of(values[inside]), members[inside].tolist(), rng=rng, replicates=replicates)
        rows.append(DomainRow(str(domain), int(inside.sum()), found.estimate, found.low, found.high))
    return tuple(rows)
