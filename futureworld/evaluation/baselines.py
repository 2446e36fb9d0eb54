"""Forecasters without a policy, fitted on outcomes known before and applied to later questions.

They see where the last values stand against the threshold (`Row`), as the archive's lookup line
shows it. Outcomes of the rows to be forecast are never read.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from futureworld.errors import ScoreError
from futureworld.evaluation.scores import Array

_Key = TypeVar("_Key")

PERSISTENCE = 0.8
"""P(Yes) of `persistence` where the last value answers Yes; chosen by hand, not fitted."""


@dataclass(frozen=True, slots=True)
class Row:
    """A question to a baseline; see `questions.facts.Facts`.

    `yes_share` is the share of the last values that answer Yes (0..1), `distance` in typical
    steps, positive on the Yes side. `outcome` is 1.0, 0.0 or None where it is not known.
    """

    domain: str
    yes_share: float
    last_yes: bool
    distance: float
    outcome: float | None

    def __post_init__(self) -> None:
        if not 0.0 <= self.yes_share <= 1.0 or not np.isfinite(self.distance):
            raise ScoreError(
                f"row of {self.domain}: yes_share {self.yes_share} or distance {self.distance} is out of range"
            )
        if self.outcome not in (None, 0.0, 1.0):
            raise ScoreError(
                f"row of {self.domain}: outcome {self.outcome} is neither 0 nor 1; leave void questions out"
            )


def predict_baselines(training: Sequence[Row], rows: Sequence[Row]) -> dict[str, Array]:
    """P(Yes) of `rows` (n) by every baseline, in the order of `BASELINES`.

    Fitted on `training` only; without a training row every fitted baseline says 0.5. Raises
    ScoreError where a training row has no outcome.
    """
    unknown = sum(row.outcome is None for row in training)
    if unknown:
        raise ScoreError(f"{unknown} of {len(training)} training rows have no outcome; fit on resolved questions only")
    return {name: np.asarray(forecast(training, rows), dtype=np.float64) for name, forecast in _FORECASTS.items()}


def _always_half(_training: Sequence[Row], rows: Sequence[Row]) -> list[float]:
    return [0.5 for _ in rows]


def _base_rate(training: Sequence[Row], rows: Sequence[Row]) -> list[float]:
    """Rate of Yes in the domain; the overall rate in an unknown one."""
    rates = _rates((row.domain, row) for row in training)
    overall = _overall(training)
    return [rates.get(row.domain, overall) for row in rows]


def _persistence(_training: Sequence[Row], rows: Sequence[Row]) -> list[float]:
    """The last value's answer again, with a fixed confidence."""
    return [PERSISTENCE if row.last_yes else 1.0 - PERSISTENCE for row in rows]


def _domain_side(training: Sequence[Row], rows: Sequence[Row]) -> list[float]:
    """Rate of Yes by domain and side of the last value, else by side, else overall."""
    both = _rates(((row.domain, row.last_yes), row) for row in training)
    side = _rates((row.last_yes, row) for row in training)
    overall = _overall(training)
    return [both.get((row.domain, row.last_yes), side.get(row.last_yes, overall)) for row in rows]


def _logistic(training: Sequence[Row], rows: Sequence[Row]) -> list[float]:
    """Logistic regression (L2, C = 1) on `_features`; the overall rate where training has one class."""
    if len({row.outcome for row in training}) < 2 or not rows:
        return [_overall(training) for _ in rows]
    from sklearn.linear_model import LogisticRegression

    domains = sorted({row.domain for row in training})
    model = LogisticRegression(max_iter=1000)
    model.fit(_features(training, domains), [row.outcome for row in training])
    return model.predict_proba(_features(rows, domains))[:, 1].tolist()


def _features(rows: Sequence[Row], domains: Sequence[str]) -> Array:
    """(n, 3 + 3 d): share, side (+-1) and distance; one-hot domain; distance and side in each domain.

    A domain without training rows has zeros there, which leaves the common coefficients.
    """
    facts = np.array([[row.yes_share, 1.0 if row.last_yes else -1.0, row.distance] for row in rows])
    member = np.array([[row.domain == domain for domain in domains] for row in rows], dtype=np.float64)
    return np.hstack([facts, member, member * facts[:, 1:2], member * facts[:, 2:3]])


def _rates(keyed: Iterable[tuple[_Key, Row]]) -> dict[_Key, float]:
    groups: dict[_Key, list[Row]] = defaultdict(list)
    for key, row in keyed:
        groups[key].append(row)
    return {key: _overall(group) for key, group in groups.items()}


def _overall(rows: Sequence[Row]) -> float:
    """(Yes + 1) / (n + 2): Laplace's rule of succession, 0.5 of no rows."""
    return (sum(row.outcome == 1.0 for row in rows) + 1.0) / (len(rows) + 2.0)


_FORECASTS: Mapping[str, Callable[[Sequence[Row], Sequence[Row]], list[float]]] = {
    "always_half": _always_half,
    "base_rate": _base_rate,
    "persistence": _persistence,
    "domain_side": _domain_side,
    "logistic": _logistic,
}
BASELINES: tuple[str, ...] = tuple(_FORECASTS)
