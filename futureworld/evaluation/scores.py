"""Scores of binary forecasts in float64. Rewards stand in `futureworld.rewards`.

`p` is the probability of Yes (0..1), `y` the outcome (1 Yes, 0 No); both have shape (n), n >= 1.
Every function raises ScoreError for p outside 0..1 or NaN, y other than 0 or 1, shapes that
differ and empty input.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from futureworld.errors import ScoreError
from futureworld.rewards import SCORES, Score

Array = NDArray[np.float64]

HALF = 0.25
"""Brier score of a forecaster that always says 0.5."""
MISSING_BRIER = 1.0
"""Brier score of a question without an answer: that of a certain and wrong one."""
MISSING_P = 0.5
"""Where a question without an answer stands in a ranking."""


def check(p: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """`p` and `y` as float64 arrays (n). Raises ScoreError naming the first bad value and its row."""
    ps, ys = np.asarray(p, dtype=np.float64), check_outcomes(y)
    if ps.shape != ys.shape:
        raise ScoreError(f"{ps.shape} probabilities cannot be scored against {ys.shape} outcomes; give one of each")
    check_probabilities(ps)
    return ps, ys


def check_probabilities(p: ArrayLike) -> Array:
    """`p` as a float64 array (n). Raises ScoreError unless every value lies in 0..1."""
    ps = np.asarray(p, dtype=np.float64)
    _check_shape(ps, "probabilities")
    bad = np.flatnonzero(~((ps >= 0.0) & (ps <= 1.0)))
    if bad.size:
        raise ScoreError(
            f"probability {ps[bad[0]]} in row {bad[0]} is outside 0..1; a missing answer is None, not a number"
        )
    return ps


def check_outcomes(y: ArrayLike) -> Array:
    """`y` as a float64 array (n). Raises ScoreError unless every value is 0 or 1."""
    ys = np.asarray(y, dtype=np.float64)
    _check_shape(ys, "outcomes")
    bad = np.flatnonzero((ys != 0.0) & (ys != 1.0))
    if bad.size:
        raise ScoreError(f"outcome {ys[bad[0]]} in row {bad[0]} is neither 0 nor 1; leave void questions out")
    return ys


def _check_shape(values: Array, what: str) -> None:
    if values.ndim != 1 or values.size == 0:
        raise ScoreError(f"{what} have shape {values.shape}, expected (n) with n >= 1")


def brier(p: ArrayLike, y: ArrayLike) -> Array:
    """(p - y)^2 of each row (n), in 0..1, lower is better (Brier 1950, one category).

    >>> brier([0.5, 1.0], [1, 0]).tolist()
    [0.25, 1.0]
    """
    ps, ys = check(p, y)
    return (ps - ys) ** 2


def brier_mean(p: ArrayLike, y: ArrayLike) -> float:
    """Mean Brier score, in 0..1; always 0.5 scores 0.25."""
    return float(brier(p, y).mean())


def reward(p: float | None, y: float, missing: float = -1.0, score: Score = "brier") -> float:
    """The answer's reward under `score` (of `futureworld.rewards`), -(p - y)^2 unless told otherwise; `missing` where
    there is no answer. A Brier reward of 0.0 is a perfect one.

    >>> reward(1.0, 1.0), reward(0.5, 0.0), reward(None, 1.0)
    (0.0, -0.25, -1.0)
    """
    if p is None:
        check_outcomes([y])
        return missing
    check([p], [y])
    return SCORES[score](float(p), float(y))


def correct(p: ArrayLike, y: ArrayLike) -> Array:
    """1.0 where the forecast is on the outcome's side, else 0.0 (n). p = 0.5 counts as Yes."""
    ps, ys = check(p, y)
    return ((ps >= 0.5) == (ys == 1.0)).astype(np.float64)


def accuracy(p: ArrayLike, y: ArrayLike) -> float:
    """Share of forecasts on the outcome's side; p = 0.5 counts as Yes."""
    return float(correct(p, y).mean())


def auc(p: ArrayLike, y: ArrayLike) -> float:
    """P(p of a Yes > p of a No) + half P(equal), in 0..1; NaN where one class is missing.

    The rank (Mann-Whitney) form of the area under the ROC curve (Hanley and McNeil 1982).

    >>> auc([0.9, 0.5, 0.5], [1, 1, 0])
    0.75
    """
    ps, ys = check(p, y)
    return float(weighted_auc(ps, ys, np.ones((1, ps.size)))[0])


def weighted_auc(p: ArrayLike, y: ArrayLike, weights: Array) -> Array:
    """AUC under each row of `weights` (replicates, n), all >= 0 -> (replicates); NaN as in `auc`."""
    ps, ys = check(p, y)
    order = np.argsort(ps, kind="stable")
    starts = np.flatnonzero(np.diff(ps[order], prepend=-1.0))  # where each group of equal p begins
    ranked = weights[:, order]
    yes = np.add.reduceat(ranked * ys[order], starts, axis=1)
    no = np.add.reduceat(ranked, starts, axis=1) - yes
    below = np.cumsum(no, axis=1) - no
    pairs = yes.sum(axis=1) * no.sum(axis=1)
    won = (yes * (below + 0.5 * no)).sum(axis=1)
    return np.divide(won, pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Answers of one forecaster with their scores, row by row; every array has shape (n).

    `p` holds 0.5 where `answered` is False; `brier` is 1.0 and `correct` 0.0 there.
    """

    p: Array
    y: Array
    answered: NDArray[np.bool_]
    brier: Array
    correct: Array

    @property
    def n(self) -> int:
        return self.p.size

    @property
    def missing(self) -> int:
        return int((~self.answered).sum())


def with_missing(p: Sequence[float | None], y: ArrayLike) -> Scored:
    """Score answers of which some are missing (None), so that silence never pays.

    A missing answer has Brier score 1.0 (its reward is -1), is wrong in accuracy, and ranks at
    0.5 in AUC: it says nothing about the order. `missing` tells how many there were. NaN is an
    error and not a missing answer.
    """
    answered = np.array([value is not None for value in p], dtype=np.bool_)
    ps, ys = check([MISSING_P if value is None else value for value in p], y)
    return Scored(
        p=ps,
        y=ys,
        answered=answered,
        brier=np.where(answered, brier(ps, ys), MISSING_BRIER),
        correct=np.where(answered, correct(ps, ys), 0.0),
    )


@dataclass(frozen=True, slots=True)
class Skill:
    """`value` is NaN where `reason` says why there is none."""

    value: float
    reason: str | None = None


def skill(brier: float, reference_brier: float) -> Skill:
    """(0.25 - brier) / (0.25 - reference): 0 is always 0.5, 1 is as good as the reference.

    >>> round(skill(0.20, 0.15).value, 12)
    0.5
    """
    if not (0.0 <= brier <= 1.0 and 0.0 <= reference_brier <= 1.0):
        raise ScoreError(f"Brier scores {brier} and {reference_brier} must both lie in 0..1")
    if reference_brier >= HALF:
        return Skill(math.nan, f"the reference's Brier score {reference_brier:.4f} is no better than always 0.5")
    return Skill((HALF - brier) / (HALF - reference_brier))
