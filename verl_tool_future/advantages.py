"""Group-relative advantages and the statistics of an off-policy batch, in float64.

Advantages are those of GRPO (Shao et al. 2024, arXiv:2402.03300, section 4.1.2) with the mean as
the only baseline unless asked otherwise: dividing by the group's standard deviation blows near
ties of a Brier reward up to full size (Liu et al. 2025, arXiv:2503.20783, section 3.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from futureworld.errors import UpdateError

STD_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class GroupStats:
    """What the groups of a batch look like. `advantage_std` is over all rows (population)."""

    groups: int
    zero_variance_groups: int
    reward_mean: float
    reward_std: float
    advantage_std: float


def group_advantages(
    rewards: Sequence[float], groups: Sequence[str], normalize_std: bool = False
) -> NDArray[np.float64]:
    """(N) reward minus the mean reward of its group, optionally over (group std + 1e-6).

    The std is the sample one (ddof 1). Equal rewards give exactly 0. Raises UpdateError for a
    reward that is missing or not finite and for a group of one, which has no baseline.
    """
    if len(rewards) != len(groups):
        raise UpdateError(f"{len(rewards)} rewards for {len(groups)} group names; give one name per reward")
    values = _finite(rewards)
    advantages = np.empty(len(values))
    for name, rows in _rows_by_group(groups).items():
        if len(rows) < 2:
            raise UpdateError(f"group {name} has one member and no baseline; drop it before the update")
        advantages[rows] = _centred(values[rows], normalize_std)
    return advantages


def group_stats(rewards: Sequence[float], groups: Sequence[str], advantages: ArrayLike) -> GroupStats:
    """Statistics over a non-empty batch; standard deviations are population ones."""
    values = _finite(rewards)
    rows_by_group = _rows_by_group(groups)
    constant = sum(bool(np.ptp(values[rows]) == 0.0) for rows in rows_by_group.values())
    return GroupStats(
        groups=len(rows_by_group),
        zero_variance_groups=constant,
        reward_mean=float(values.mean()),
        reward_std=float(values.std()),
        advantage_std=float(np.std(np.asarray(advantages, dtype=np.float64))),
    )


def effective_sample_size(weights: ArrayLike) -> float:
    """Kish's (sum w)^2 / sum w^2: how many equally weighted rows these weights are worth, 1..N."""
    values = np.asarray(weights, dtype=np.float64)
    if values.size == 0 or not np.all(values >= 0) or not np.any(values > 0):
        raise UpdateError("the effective sample size needs weights >= 0 with at least one above 0")
    scaled = values / values.max()  # the size does not depend on the scale, the squares could overflow
    return float(scaled.sum() ** 2 / np.square(scaled).sum())


@dataclass(frozen=True, slots=True)
class RatioStats:
    """Sums over policy tokens of the raw ratio pi(token) / pi_sampler(token), before any clipping.

    Made by `of`, added with `+` (over micro-batches, steps and ranks), read by `metrics`.
    """

    cap: float
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    high: int = 0
    difference: float = 0.0
    largest_difference: float = 0.0

    @classmethod
    def of(cls, log_ratios: ArrayLike, cap: float) -> "RatioStats":
        """From log-ratios of policy tokens only; `cap` (> 1) is the ratio above which one counts as high."""
        logs = np.asarray(log_ratios, dtype=np.float64).ravel()
        if logs.size == 0:
            return cls(cap)
        ratios = np.exp(logs)
        return cls(
            cap=cap,
            count=logs.size,
            total=float(ratios.sum()),
            squares=float(np.square(ratios).sum()),
            largest=float(ratios.max()),
            high=int(np.count_nonzero(ratios > cap)),
            difference=float(np.abs(logs).sum()),
            largest_difference=float(np.abs(logs).max()),
        )

    def __add__(self, other: "RatioStats") -> "RatioStats":
        return replace(
            self,
            count=self.count + other.count,
            total=self.total + other.total,
            squares=self.squares + other.squares,
            largest=max(self.largest, other.largest),
            high=self.high + other.high,
            difference=self.difference + other.difference,
            largest_difference=max(self.largest_difference, other.largest_difference),
        )

    def ratios(self) -> dict[str, float]:
        """ratio_mean, ratio_max, ratio_fraction_high, and ess as a share of the tokens (0..1)."""
        tokens = self._tokens()
        return {
            "ratio_mean": self.total / tokens,
            "ratio_max": self.largest,
            "ratio_fraction_high": self.high / tokens,
            "ess": self.total**2 / (self.squares * tokens),
        }

    def differences(self) -> dict[str, float]:
        """Mean and largest |log pi - log pi_sampler| in nats."""
        return {
            "logprob_diff_mean": self.difference / self._tokens(),
            "logprob_diff_max": self.largest_difference,
        }

    def _tokens(self) -> int:
        if self.count == 0:
            raise UpdateError("no policy token was in the loss; check the trajectories' spans")
        return self.count


def _finite(rewards: Sequence[float]) -> NDArray[np.float64]:
    missing = [i for i, reward in enumerate(rewards) if reward is None]
    if missing:
        raise UpdateError(f"reward {missing[0]} is missing; only resolved trajectories are trained on")
    values = np.asarray(rewards, dtype=np.float64)
    if not np.all(np.isfinite(values)):
        raise UpdateError(f"reward {int(np.argmin(np.isfinite(values)))} is not finite")
    return values


def _rows_by_group(groups: Sequence[str]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for i, name in enumerate(groups):
        rows.setdefault(name, []).append(i)
    return rows


def _centred(values: NDArray[np.float64], normalize_std: bool) -> NDArray[np.float64]:
    if np.ptp(values) == 0.0:  # the rounded mean of equal numbers need not equal them
        return np.zeros_like(values)
    centred = values - values.mean()
    return centred / (values.std(ddof=1) + STD_EPSILON) if normalize_std else centred
