"""Intervals by cluster bootstrap: rows that share a cluster (a target, a day) move together.

A replicate draws whole clusters with replacement; it is held as a weight for each row, so that a
statistic of all replicates is a few array operations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from futureworld.errors import ScoreError
from futureworld.evaluation.scores import Array, check, weighted_auc

Statistic = Callable[[Array], Array]
"""Weights (replicates, n) -> values (replicates); NaN where a replicate has none."""

CHUNK = 256
"""Replicates held in memory at a time."""


@dataclass(frozen=True, slots=True)
class Interval:
    """`low`..`high` is the 95% percentile interval over `clusters` resampled clusters.

    `replicates` counts those in which the statistic was defined. With a single cluster nothing
    is known about the spread: `low` and `high` are NaN.
    """

    estimate: float
    low: float
    high: float
    clusters: int
    replicates: int


def cluster_bootstrap(
    statistic: Statistic, clusters: Sequence[str], *, rng: np.random.Generator, replicates: int = 2000
) -> Interval:
    """95% percentile interval of `statistic` over rows with the labels `clusters` (n).

    Resampling of whole clusters: Davison and Hinkley 1997, section 3.8. The same `rng` state
    gives the same interval, whatever the order of the rows' clusters. Raises ScoreError for
    empty input or less than one replicate.
    """
    if len(clusters) == 0 or replicates < 1:
        raise ScoreError(f"{len(clusters)} rows and {replicates} replicates give no interval; both must be at least 1")
    names, member = np.unique(np.asarray(clusters), return_inverse=True)
    estimate = float(statistic(np.ones((1, member.size)))[0])
    values = np.concatenate([statistic(draw[:, member]) for draw in _draws(len(names), replicates, rng)])
    defined = values[~np.isnan(values)]
    if len(names) == 1 or defined.size == 0:
        return Interval(estimate, np.nan, np.nan, len(names), defined.size)
    low, high = np.percentile(defined, [2.5, 97.5])
    return Interval(estimate, float(low), float(high), len(names), defined.size)


def _draws(clusters: int, replicates: int, rng: np.random.Generator) -> list[Array]:
    """How often each cluster is drawn (replicates, clusters), in chunks."""
    sizes = [min(CHUNK, replicates - start) for start in range(0, replicates, CHUNK)]
    odds = np.full(clusters, 1.0 / clusters)
    return [rng.multinomial(clusters, odds, size=size).astype(np.float64) for size in sizes]


def mean_of(values: ArrayLike) -> Statistic:
    """The weighted mean of `values` (n). Raises ScoreError for values that are not finite."""
    rows = np.asarray(values, dtype=np.float64)
    if not np.isfinite(rows).all():
        raise ScoreError(
            f"{(~np.isfinite(rows)).sum()} of {rows.size} values are not finite; score missing answers first"
        )

    def statistic(weights: Array) -> Array:
        return _matching(weights, rows.size) @ rows / weights.sum(axis=1)

    return statistic


def auc_of(p: ArrayLike, y: ArrayLike) -> Statistic:
    """The weighted AUC of `p` against `y` (n); NaN in replicates that lack a class."""
    ps, ys = check(p, y)

    def statistic(weights: Array) -> Array:
        return weighted_auc(ps, ys, _matching(weights, ps.size))

    return statistic


def contrast_of(values: ArrayLike, inside: ArrayLike) -> Statistic:
    """Mean of `values` (n) where `inside` (n, true or false) minus their mean elsewhere.

    NaN in replicates where one side is empty.
    """
    rows, within = np.asarray(values, dtype=np.float64), np.asarray(inside, dtype=np.float64)
    if rows.shape != within.shape:
        raise ScoreError(f"{rows.shape} values and {within.shape} marks of who is inside differ; give one for each")

    def statistic(weights: Array) -> Array:
        here, there = _matching(weights, rows.size) * within, weights * (1.0 - within)
        with np.errstate(invalid="ignore"):
            return here @ rows / here.sum(axis=1) - there @ rows / there.sum(axis=1)

    return statistic


def agreement_of(first: Sequence[str], second: Sequence[str]) -> Statistic:
    """P(first = second) minus what it were by chance, sum over labels of P(first = label) P(second = label).

    The numerator of Cohen's kappa (Cohen 1960): 0 where the two labels (n) are dealt without regard
    to each other. Raises ScoreError where they differ in number.
    """
    if len(first) != len(second):
        raise ScoreError(f"{len(first)} and {len(second)} labels cannot agree or not; give one of each")
    same = np.array([a == b for a, b in zip(first, second, strict=True)], dtype=np.float64)
    labels = sorted(set(first) & set(second))
    one, other = (np.array([[label == name for name in labels] for label in side]) for side in (first, second))

    def statistic(weights: Array) -> Array:
        total = _matching(weights, same.size).sum(axis=1)
        if not labels:
            return np.zeros(total.size)
        chance = (weights @ one) * (weights @ other)
        return weights @ same / total - chance.sum(axis=1) / total**2

    return statistic


def paired_difference(
    a: ArrayLike, b: ArrayLike, clusters: Sequence[str], *, rng: np.random.Generator, replicates: int = 2000
) -> Interval:
    """Mean of a - b over the same rows (n), with its interval.

    Of two Brier scores it is positive where `b` is the better one. Raises ScoreError where the
    rows differ in number.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ScoreError(f"{first.shape} and {second.shape} scores cannot be paired; score the same questions twice")
    return cluster_bootstrap(mean_of(first - second), clusters, rng=rng, replicates=replicates)


def _matching(weights: Array, n: int) -> Array:
    if weights.shape[1] != n:
        raise ScoreError(f"{weights.shape[1]} cluster labels do not match {n} values; give one label for each row")
    return weights
