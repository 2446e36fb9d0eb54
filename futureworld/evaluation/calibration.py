"""Calibration of P(Yes) in equal-width bins, and how much of it is noise.

Bins are [lo, hi), the last one closed, so that p = 0 and p = 1 both fall into one. This is
calibration of the probability of Yes, not of the confidence in the likelier side.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from futureworld.errors import ScoreError
from futureworld.evaluation.scores import Array, check, check_probabilities

BINS = 10


@dataclass(frozen=True, slots=True)
class ReliabilityRow:
    """One bin [lo, hi): `n` forecasts with mean probability and share of Yes; NaN where n is 0."""

    lo: float
    hi: float
    n: int
    mean_p: float
    mean_y: float


@dataclass(frozen=True, slots=True)
class NoiseBand:
    """ECE of a perfectly calibrated forecaster with the same probabilities: its mean and 95th percentile."""

    mean: float
    high: float


def ece(p: ArrayLike, y: ArrayLike, bins: int = BINS) -> float:
    """Expected calibration error of P(Yes), in 0..1: sum over bins of n_b / n * |mean y - mean p|.

    Naeini, Cooper and Hauskrecht 2015. Raises ScoreError as `scores.check` does.

    >>> round(ece([0.2, 0.2, 0.2, 0.8, 0.8], [0, 0, 1, 1, 1]), 12)
    0.16
    """
    ps, ys = check(p, y)
    return float(_gaps(ps, ys[None, :], bins)[0])


def reliability(p: ArrayLike, y: ArrayLike, bins: int = BINS) -> tuple[ReliabilityRow, ...]:
    """One row for each bin, empty ones included, from 0 to 1."""
    ps, ys = check(p, y)
    member = _member(ps, bins)
    n = np.bincount(member, minlength=bins)
    with np.errstate(invalid="ignore"):
        mean_p = np.bincount(member, ps, bins) / n
        mean_y = np.bincount(member, ys, bins) / n
    edges = _edges(bins)
    return tuple(
        ReliabilityRow(float(edges[b]), float(edges[b + 1]), int(n[b]), float(mean_p[b]), float(mean_y[b]))
        for b in range(bins)
    )


def ece_noise_band(
    p: ArrayLike,
    *,
    rng: np.random.Generator,
    n_sim: int = 1000,
    bins: int = BINS,
    questions: Sequence[str] | None = None,
) -> NoiseBand:
    """What ECE would be by chance alone: outcomes drawn `n_sim` times as y ~ Bernoulli(p).

    An ECE below `high` gives no reason to doubt calibration (Bröcker and Smith 2007). Rows with
    the same label in `questions` (n) are answers to one question and are drawn with one uniform
    number, since they share its outcome; None: every row is a question of its own.
    """
    ps = check_probabilities(p)
    if n_sim < 1:
        raise ScoreError(f"n_sim is {n_sim}, a band needs at least one simulation")
    labels = np.arange(ps.size) if questions is None else np.asarray(questions)
    if labels.shape != ps.shape:
        raise ScoreError(f"{labels.size} question labels do not match {ps.size} probabilities; give one for each")
    _, member = np.unique(labels, return_inverse=True)
    draws = rng.random((n_sim, member.max() + 1))[:, member]
    gaps = _gaps(ps, (draws < ps).astype(np.float64), bins)
    return NoiseBand(float(gaps.mean()), float(np.percentile(gaps, 95)))


def _gaps(p: Array, outcomes: Array, bins: int) -> Array:
    """ECE (simulations) of one `p` (n) against each row of `outcomes` (simulations, n)."""
    inside = np.eye(bins)[_member(p, bins)]  # (n, bins)
    return np.abs((outcomes - p) @ inside).sum(axis=1) / p.size


def _member(p: Array, bins: int) -> NDArray[np.intp]:
    return np.minimum(np.searchsorted(_edges(bins), p, side="right") - 1, bins - 1)


def _edges(bins: int) -> Array:
    if bins < 1:
        raise ScoreError(f"bins is {bins}, calibration needs at least one")
    return np.arange(bins + 1) / bins  # k / bins, not k * (1 / bins): 0.3 must equal the edge 0.3
