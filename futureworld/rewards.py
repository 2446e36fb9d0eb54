"""What an answer is paid: proper scoring rules of a binary forecast, higher is better.

Gneiting and Raftery (2007), "Strictly proper scoring rules, prediction, and estimation", JASA 102,
section 3, for two categories. `p` is the probability of Yes (0..1), `y` the outcome (1 Yes, 0 No).
Scales differ and are left as they are: advantages are differences to a group's mean, and Adam
divides the size of a gradient out.
"""

import math
from collections.abc import Callable, Mapping
from typing import Literal

Score = Literal["brier", "log", "spherical"]

LOG_CLIP = 0.01
"""The log score sees p cut to LOG_CLIP..1 - LOG_CLIP: finite at a sure and wrong answer, and still proper there."""


def brier(p: float, y: float) -> float:
    """-(p - y)^2, in -1..0 (Brier 1950, one category).

    >>> brier(0.5, 1.0), brier(0.0, 1.0)
    (-0.25, -1.0)
    """
    return 0.0 - (p - y) ** 2  # 0.0 - x: a perfect reward is 0.0 and not -0.0


def log(p: float, y: float) -> float:
    """ln of the probability given to the outcome, in ln(LOG_CLIP)..ln(1 - LOG_CLIP) (Good 1952).

    >>> round(log(0.5, 0.0), 4), round(log(0.0, 1.0), 4)
    (-0.6931, -4.6052)
    """
    cut = min(max(p, LOG_CLIP), 1.0 - LOG_CLIP)
    return math.log(cut if y == 1.0 else 1.0 - cut)


def spherical(p: float, y: float) -> float:
    """p_y / sqrt(p^2 + (1 - p)^2) with p_y the probability given to the outcome, in 0..1 (Roby 1965).

    >>> round(spherical(0.5, 1.0), 4), spherical(0.0, 1.0)
    (0.7071, 0.0)
    """
    return (p if y == 1.0 else 1.0 - p) / math.hypot(p, 1.0 - p)


SCORES: Mapping[Score, Callable[[float, float], float]] = {"brier": brier, "log": log, "spherical": spherical}
WORST: Mapping[Score, float] = {name: score(0.0, 1.0) for name, score in SCORES.items()}
"""What a sure and wrong answer is paid."""
