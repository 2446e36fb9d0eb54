"""The threshold rule: where a question is cut, and which way it is asked.

    step      = population standard deviation of the last 30 known first differences
    threshold = floor((last + z * step) / unit) * unit + unit / 2,   z ~ N(0, 1)

`unit` is the series' resolution (the finest decimal seen), so no value can equal a threshold and
sign(z) alone decides on which side the last value stands (values finer than 1e-6 are taken as
continuous; a threshold on the wrong side of one is drawn again). |z| is drawn from a generator seeded
with (seed, crc32 of the target's id, day, index); direction and side are dealt, see `deal`.
"""

import math
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR, Decimal

import numpy as np

from futureworld.wording import Operator

MAX_DECIMALS = 6
TRIES = 16


@dataclass(frozen=True, slots=True)
class Side:
    """How a threshold question is asked: its direction, and what the last value would answer."""

    operator: Operator
    last_yes: bool

    @property
    def cut_above(self) -> bool:
        """True where the threshold lies above the last value."""
        return self.operator.upward != self.last_yes

    @property
    def turned(self) -> "Side":
        """The other direction with the same answer of the last value."""
        return Side(Operator.BELOW if self.operator is Operator.ABOVE else Operator.ABOVE, self.last_yes)


SIDES: tuple[Side, ...] = tuple(
    Side(operator, last_yes) for operator in (Operator.ABOVE, Operator.BELOW) for last_yes in (True, False)
)


def generator(seed: int, name: str, day: date, index: int = 0, namespace: str = "") -> np.random.Generator:
    """The random numbers of one target (or domain) on one day; the same in every process."""
    key = [seed % 2**32, zlib.crc32(name.encode()), day.toordinal(), index]
    return np.random.default_rng([*key, zlib.crc32(namespace.encode())] if namespace else key)


def deal(count: int, random: np.random.Generator) -> list[Side]:
    """`count` sides, each of the four as often as the others (give or take one), in random order."""
    hands = [SIDES[i] for _ in range(math.ceil(count / 4)) for i in random.permutation(4)]
    return hands[:count]


def resolution(values: Sequence[float]) -> Decimal:
    """The finest decimal step in `values`, at least 1e-6.

    >>> resolution([1.0, 2.25]), resolution([3.0])
    (Decimal('0.01'), Decimal('1'))
    """
    exact = np.round(values, MAX_DECIMALS)
    decimals = next(k for k in range(MAX_DECIMALS + 1) if np.array_equal(np.round(values, k), exact))
    return Decimal(1).scaleb(-decimals)


def cut(last: float, z: float, step: float, unit: Decimal) -> Decimal:
    """The threshold at `last + z * step`: rounded down to `unit`, plus half of it.

    >>> cut(3.0, 0.4, 1.0, Decimal("0.1")), cut(3.0, -0.4, 1.0, Decimal("1"))
    (Decimal('3.45'), Decimal('2.5'))
    """
    # Binary noise would put 3.897 + 0.01 just under 3.907.
    units = (Decimal(repr(round(last + z * step, 9))) / unit).to_integral_value(ROUND_FLOOR)
    return units * unit + unit / 2


def draw(
    values: Sequence[float], step: float, side: Side, random: np.random.Generator, taken: Collection[Decimal] = ()
) -> tuple[Side, Decimal] | None:
    """A threshold that puts the last of `values` on `side`, not one of `taken`; None where there is none.

    Where no known value is below zero, none is asked whether it falls there: that is as good as
    decided. If the last value leaves too little room above zero the direction is turned.
    """
    unit = resolution(values)
    lowest = 0.0 if min(values) >= 0 else -math.inf
    for way in (side, side.turned):
        for _ in range(TRIES):
            z = abs(float(random.standard_normal()))
            threshold = cut(values[-1], z if way.cut_above else -z, step, unit)
            on_side = way.operator.holds(values[-1], float(threshold)) == way.last_yes
            if on_side and threshold > lowest and threshold not in taken:
                return way, threshold
    return None
