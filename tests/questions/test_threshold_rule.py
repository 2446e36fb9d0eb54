import zlib
from collections import Counter
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from futureworld.questions.thresholds import SIDES, Side, cut, deal, draw, generator, resolution
from futureworld.wording import Operator

DAY = date(2026, 6, 10)
finite = st.floats(-1e5, 1e5, allow_nan=False).map(lambda value: round(value, 3))


def test_rule_worked_by_hand():
    # 3.897 + 0.5 * 0.02 = 3.907 -> 3.907 + 0.0005; down from 3.9074 as well.
    assert cut(3.897, 0.5, 0.02, Decimal("0.001")) == Decimal("3.9075")
    assert cut(3.897, 0.52, 0.02, Decimal("0.001")) == Decimal("3.9075")
    # Rounded down, not toward zero: -0.3 -> -1, plus half.
    assert cut(0.0, -0.3, 1.0, Decimal("1")) == Decimal("-0.5")


@pytest.mark.parametrize(
    ("values", "unit"),
    [([1.0, 2.25], "0.01"), ([3.0], "1"), ([100.0, 20.0], "1"), ([0.1 + 0.2], "0.1"), ([1 / 3], "0.000001")],
)
def test_resolution_is_the_finest_decimal(values, unit):
    assert resolution(values) == Decimal(unit)


@given(st.lists(finite, min_size=2, max_size=20), st.sampled_from(SIDES), st.integers(0, 99), st.floats(0.01, 100))
def test_j2_no_value_can_equal_a_threshold_and_the_last_is_on_its_side(values, side, seed, step):
    found = draw(values, step, side, np.random.default_rng(seed))
    assert found is not None
    used, threshold = found
    unit = resolution(values)
    assert (threshold - unit / 2) % unit == 0
    assert used.operator.holds(values[-1], float(threshold)) == side.last_yes
    assert used == side or min(values) >= 0
    assert threshold > 0 or min(values) < 0


@pytest.mark.parametrize(
    ("operator", "answer"),
    [(Operator.ABOVE, False), (Operator.BELOW, False), (Operator.AT_LEAST, True), (Operator.AT_MOST, True)],
)
def test_j2_equality_has_a_stated_answer(operator, answer):
    assert operator.holds(2.0, 2.0) is answer


def test_j1_smaller_ranks_answer_a_question_below():
    assert Operator.BELOW.holds(2.0, 2.5)
    assert not Operator.BELOW.holds(3.0, 2.5)


def test_last_at_zero_turns_the_direction_and_keeps_the_side():
    found = draw([1.0, 0.0], 1.0, Side(Operator.ABOVE, True), np.random.default_rng(0))
    assert found is not None
    assert found[0] == Side(Operator.BELOW, True)
    assert found[1] > 0


def test_taken_thresholds_are_not_drawn_again():
    taken: set[Decimal] = set()
    for _ in range(3):
        found = draw([0.0, 1.0, 2.0], 1.0, SIDES[1], np.random.default_rng(5), taken)
        assert found is not None and found[1] not in taken
        taken.add(found[1])


@given(st.integers(0, 200), st.integers(0, 10))
def test_sides_are_dealt_evenly(count, seed):
    counts = Counter(deal(count, np.random.default_rng(seed)))
    assert sum(counts.values()) == count
    assert max(counts.values(), default=0) - min((counts[side] for side in SIDES), default=0) <= 1


def test_z_is_seeded_with_seed_target_day_and_index():
    expected = np.random.default_rng([7, zlib.crc32(b"fuel.ca"), DAY.toordinal(), 1]).standard_normal()
    assert generator(7, "fuel.ca", DAY, 1).standard_normal() == expected
    assert generator(7, "fuel.ca", DAY, 1, "other").standard_normal() != expected
