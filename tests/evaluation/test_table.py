import math
from datetime import date

import numpy as np
import pytest

from futureworld.errors import ScoreError
from futureworld.evaluation.table import (
    baseline_rows,
    best_baseline,
    checkpoint_row,
    domain_rows,
    flatten,
    mean_of_samples,
    paired_brier,
    question_briers,
)

DAY = date(2026, 5, 4)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_checkpoint_row_by_hand():
    p, y = [0.2, 0.2, 0.2, 0.8, 0.8, None], [0, 0, 1, 1, 1, 1]
    row = checkpoint_row(3, DAY, p, y, list("aabbcc"), rng=rng(), replicates=300)
    assert (row.version, row.day, row.n, row.clusters) == (3, DAY, 6, 3)
    assert row.accuracy == pytest.approx(4 / 6)
    assert row.brier == pytest.approx((0.04 + 0.04 + 0.64 + 0.04 + 0.04 + 1.0) / 6)
    assert row.auc == pytest.approx(7 / 8)  # 8 pairs: the Yes at 0.2 ties with both No, the others win
    assert row.ece == pytest.approx(0.16)  # over the five answers that exist
    assert row.parse_rate == pytest.approx(5 / 6)
    assert row.brier_low <= row.brier <= row.brier_high
    assert row.accuracy_low <= row.accuracy <= row.accuracy_high
    assert row.auc_low <= row.auc <= row.auc_high
    assert row.ece_noise > 0


def test_d10_an_answer_of_zero_is_an_answer():
    row = checkpoint_row(0, None, [0.0, 0.0], [0, 0], ["a", "b"], rng=rng(), replicates=10)
    assert (row.brier, row.accuracy, row.parse_rate, row.ece) == (0.0, 1.0, 1.0, 0.0)


def test_a_checkpoint_without_any_answer_is_all_wrong_and_has_no_calibration():
    row = checkpoint_row(0, None, [None, None], [0, 1], ["a", "b"], rng=rng(), replicates=10)
    assert (row.brier, row.accuracy, row.auc, row.parse_rate) == (1.0, 0.0, 0.5, 0.0)
    assert math.isnan(row.ece)
    assert math.isnan(row.ece_noise)


def test_noise_band_counts_questions_and_not_samples():
    source = np.random.default_rng(1)
    samples = [[float(p)] * 4 for p in source.random(150)]
    y, ids = source.integers(0, 2, 150), [f"q{i}" for i in range(150)]
    p, outcomes, labels = flatten(samples, y, ids)
    row = checkpoint_row(0, None, p, outcomes, labels, rng=rng(), replicates=10, questions=labels)
    once = checkpoint_row(0, None, [q[0] for q in samples], y, ids, rng=rng(), replicates=10)
    assert row.ece_noise == pytest.approx(once.ece_noise, rel=0.15)
    assert (row.n, once.n) == (600, 150)
    assert row.clusters == once.clusters == 150
    with pytest.raises(ScoreError, match="1 question labels do not match 600 answers"):
        checkpoint_row(0, None, p, outcomes, labels, rng=rng(), replicates=10, questions=["q"])


def test_mean_of_samples_is_over_the_answers_that_exist():
    assert mean_of_samples([[0.25, 0.75], [None, 0.5, None], [None, None], [0.0, None]]) == [0.5, 0.5, None, 0.0]
    with pytest.raises(ScoreError, match="question in row 1 has no samples"):
        mean_of_samples([[0.5], []])


def test_flatten_repeats_outcome_and_label_for_each_sample():
    p, y, labels = flatten([[0.1, None], [0.3]], [1, 0], ["a", "b"])
    assert p == [0.1, None, 0.3]
    assert y.tolist() == [1.0, 1.0, 0.0]
    assert labels == ["a", "a", "b"]
    with pytest.raises(ScoreError, match="1 questions, 2 outcomes and 1 clusters differ"):
        flatten([[0.1]], [1, 0], ["a"])


def test_question_briers_average_samples_and_charge_for_missing_ones():
    assert question_briers([[0.5, None], [1.0]], [1, 1]).tolist() == [0.625, 0.0]
    with pytest.raises(ScoreError, match="1 questions have no samples"):
        question_briers([[0.5], []], [1, 1])


def test_paired_brier_is_positive_where_the_last_checkpoint_is_better():
    y, clusters = [1, 0, 1, 0], ["a", "b", "c", "d"]
    found = paired_brier([[0.5, 0.5]] * 4, [[0.9], [0.1], [0.9], [0.1]], y, clusters, rng=rng())
    assert found.estimate == pytest.approx(0.24)
    assert found.low == pytest.approx(0.24)
    back = paired_brier([[0.9], [0.1], [0.9], [0.1]], [[0.5, 0.5]] * 4, y, clusters, rng=rng())
    assert back.estimate == pytest.approx(-0.24)


def test_baseline_rows_and_the_best_of_them():
    y = [1, 0, 1, 1]
    rows = baseline_rows({"always_half": np.full(4, 0.5), "sharp": np.array([0.8, 0.2, 0.8, 0.2])}, y)
    assert [row.name for row in rows] == ["always_half", "sharp"]
    assert (rows[0].n, rows[0].brier, rows[0].accuracy, rows[0].auc) == (4, 0.25, 0.75, 0.5)
    assert rows[1].brier == pytest.approx((0.04 * 3 + 0.64) / 4)
    assert best_baseline(rows).name == "sharp"
    assert best_baseline((rows[0], rows[0])) is rows[0]
    with pytest.raises(ScoreError, match="no baseline"):
        best_baseline([])


def test_domain_rows_by_hand():
    rows = domain_rows([0.1, 0.3, 0.5], ["fuel", "chess", "fuel"], ["a", "b", "c"], rng=rng(), replicates=200)
    assert [(row.domain, row.n) for row in rows] == [("chess", 1), ("fuel", 2)]
    assert rows[1].brier == pytest.approx(0.3)
    assert (rows[1].low, rows[1].high) == (pytest.approx(0.1), pytest.approx(0.5))
    assert math.isnan(rows[0].low)  # a single cluster says nothing about the spread
    with pytest.raises(ScoreError, match="differ"):
        domain_rows([0.1], ["fuel", "fuel"], ["a"], rng=rng())
