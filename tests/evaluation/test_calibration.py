import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from futureworld.errors import ScoreError
from futureworld.evaluation.calibration import ReliabilityRow, ece, ece_noise_band, reliability


def test_ece_by_hand():
    # bin of 0.2: 3 rows, 1/3 Yes, gap 2/15; bin of 0.8: 2 rows, all Yes, gap 1/5
    assert ece([0.2, 0.2, 0.2, 0.8, 0.8], [0, 0, 1, 1, 1]) == pytest.approx(0.16, abs=1e-12)


def test_l5_certain_and_wrong_forecasts_fall_into_the_closed_last_bin():
    assert ece([1.0, 1.0], [0, 0]) == 1.0
    assert reliability([1.0, 1.0], [0, 0])[-1] == ReliabilityRow(0.9, 1.0, 2, 1.0, 0.0)


def test_l6_zero_falls_into_the_first_bin():
    assert ece([0.0, 0.0], [1, 1]) == 1.0
    assert reliability([0.0, 0.05], [0, 1])[0] == ReliabilityRow(0.0, 0.1, 2, 0.025, 0.5)


def test_l7_equal_forecasts_fill_one_bin():
    assert ece([0.7] * 4, [1, 0, 0, 0]) == pytest.approx(0.45, abs=1e-12)


def test_l8_calibration_is_of_yes_and_not_of_confidence():
    # 0.1 and 0.9 have the same confidence; on the side of Yes both are off by 0.4
    assert ece([0.1, 0.1, 0.9, 0.9], [0, 1, 1, 0]) == pytest.approx(0.4, abs=1e-12)


@pytest.mark.parametrize("bins", [1, 3, 5, 10, 20])
def test_every_edge_opens_its_own_bin(bins):
    edges = [k / bins for k in range(bins)]
    assert [row.n for row in reliability(edges, [1] * bins, bins)] == [1] * bins
    below = [np.nextafter(edge, 0.0) for edge in edges[1:]]
    if below:
        assert [row.n for row in reliability(below, [1] * len(below), bins)] == [1] * (bins - 1) + [0]


def test_reliability_keeps_empty_bins_and_counts_every_row():
    rows = reliability([0.15, 0.12, 0.95], [1, 0, 1])
    assert [row.n for row in rows] == [0, 2, 0, 0, 0, 0, 0, 0, 0, 1]
    assert math.isnan(rows[0].mean_p)
    assert math.isnan(rows[0].mean_y)
    assert (rows[1].mean_p, rows[1].mean_y) == (pytest.approx(0.135), 0.5)
    assert [(row.lo, row.hi) for row in rows] == [(k / 10, (k + 1) / 10) for k in range(10)]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=50), st.integers(1, 15))
def test_ece_is_the_weighted_gap_of_the_reliability_rows(pairs, bins):
    p, y = zip(*pairs, strict=True)
    gaps = [row.n / len(p) * abs(row.mean_y - row.mean_p) for row in reliability(p, y, bins) if row.n]
    assert ece(p, y, bins) == pytest.approx(math.fsum(gaps), abs=1e-9)
    assert 0.0 <= ece(p, y, bins) <= 1.0


def test_noise_floor_of_500_uniform_forecasts():
    rng = np.random.default_rng(7)
    bands = [ece_noise_band(rng.random(500), rng=rng, n_sim=500) for _ in range(5)]
    assert 0.040 < np.mean([band.mean for band in bands]) < 0.048
    assert 0.060 < np.mean([band.high for band in bands]) < 0.068


def test_noise_band_of_certain_forecasts_is_zero():
    band = ece_noise_band([0.0, 1.0, 1.0], rng=np.random.default_rng(0))
    assert (band.mean, band.high) == (0.0, 0.0)


def test_noise_band_of_repeated_answers_is_that_of_their_questions():
    p = np.random.default_rng(1).random(200)
    once = ece_noise_band(p, rng=np.random.default_rng(2))
    questions = [str(i) for i in range(200)] * 4
    again = ece_noise_band(np.tile(p, 4), rng=np.random.default_rng(2), questions=questions)
    apart = ece_noise_band(np.tile(p, 4), rng=np.random.default_rng(2))
    assert again.high == pytest.approx(once.high, rel=0.1)
    assert apart.high < 0.7 * once.high


def test_noise_band_is_deterministic_by_seed():
    p = [0.2, 0.5, 0.9]
    assert ece_noise_band(p, rng=np.random.default_rng(3)) == ece_noise_band(p, rng=np.random.default_rng(3))


def test_bad_input_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ScoreError, match="bins is 0"):
        ece([0.5], [1], 0)
    with pytest.raises(ScoreError, match=r"probability 1\.5"):
        ece_noise_band([1.5], rng=rng)
    with pytest.raises(ScoreError, match="n_sim is 0"):
        ece_noise_band([0.5], rng=rng, n_sim=0)
    with pytest.raises(ScoreError, match="2 question labels do not match 1"):
        ece_noise_band([0.5], rng=rng, questions=["a", "b"])
    with pytest.raises(ScoreError, match=r"outcome 2\.0 in row 0"):
        reliability([0.5], [2])
