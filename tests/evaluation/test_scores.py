import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, roc_auc_score

from futureworld.errors import ScoreError
from futureworld.evaluation import scores

PROBABILITY = st.floats(0.0, 1.0)
PAIRS = st.lists(st.tuples(st.integers(0, 20).map(lambda k: k / 20), st.integers(0, 1)), min_size=1, max_size=40)


def test_brier_by_hand():
    assert scores.brier([0.5, 1.0, 0.0, 0.25], [1, 0, 0, 1]).tolist() == [0.25, 1.0, 0.0, 0.5625]
    assert scores.brier_mean([0.5, 1.0], [0, 0]) == 0.625
    assert scores.brier_mean([0.5] * 3, [0, 1, 1]) == scores.HALF


def test_brier_mean_agrees_with_sklearn():
    rng = np.random.default_rng(1)
    p, y = rng.random(200), rng.integers(0, 2, 200)
    assert scores.brier_mean(p, y) == pytest.approx(brier_score_loss(y, p), abs=1e-15)


@given(PROBABILITY, PROBABILITY)
def test_brier_is_proper_no_report_beats_the_true_probability(report, truth):
    def expected(p: float) -> float:
        return truth * scores.brier_mean([p], [1]) + (1 - truth) * scores.brier_mean([p], [0])

    assert expected(report) >= expected(truth) - 1e-12
    assert expected(report) - expected(truth) == pytest.approx((report - truth) ** 2, abs=1e-12)


def test_d10_a_reward_of_zero_is_a_reward_and_none_is_a_missing_answer():
    perfect = scores.reward(1.0, 1.0)
    assert perfect == 0.0
    assert math.copysign(1.0, perfect) == 1.0
    assert scores.reward(0.0, 0.0, missing=-0.5) == 0.0
    assert scores.reward(0.0, 1.0, missing=-0.5) == -1.0
    assert scores.reward(None, 1.0) == -1.0
    assert scores.reward(None, 0.0, missing=-0.5) == -0.5
    assert scores.reward(0.7, 1.0) == pytest.approx(-0.09, abs=1e-15)


def test_l2_small_probabilities_are_not_clipped():
    assert scores.brier_mean([0.001], [0]) == pytest.approx(1e-6, abs=1e-18)


def test_l19_exactly_half_counts_as_yes():
    assert scores.accuracy([0.5, 0.5, 0.5], [1, 1, 0]) == pytest.approx(2 / 3)
    assert scores.accuracy([0.49, 0.51, 0.0, 1.0], [0, 1, 1, 1]) == 0.75


def test_auc_by_hand():
    assert scores.auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]) == 0.75  # 3 of 4 pairs in order
    assert scores.auc([0.3, 0.3], [0, 1]) == 0.5
    assert scores.auc([0.9, 0.1], [0, 1]) == 0.0
    assert math.isnan(scores.auc([0.2, 0.9], [1, 1]))
    assert math.isnan(scores.auc([0.2], [0]))


@pytest.mark.parametrize("seed", range(8))
def test_auc_agrees_with_sklearn_with_ties_and_weights(seed):
    rng = np.random.default_rng(seed)
    p, y = rng.integers(0, 11, 120) / 10, rng.integers(0, 2, 120)
    weights = rng.integers(0, 4, (3, 120)).astype(float)
    assert scores.auc(p, y) == pytest.approx(roc_auc_score(y, p), abs=1e-12)
    expected = np.array([roc_auc_score(y, p, sample_weight=row) for row in weights])
    np.testing.assert_allclose(scores.weighted_auc(p, y, weights), expected, atol=1e-12)


def test_weighted_auc_of_weights_without_a_class_is_nan():
    found = scores.weighted_auc([0.2, 0.8], [0, 1], np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 0.0]]))
    assert found[0] == 1.0
    assert np.isnan(found[1:]).all()


@given(PAIRS, st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_of_rows(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    for score in (scores.brier_mean, scores.accuracy, scores.auc):
        np.testing.assert_allclose(score(*zip(*pairs, strict=True)), score(*zip(*shuffled, strict=True)), atol=1e-12)


@given(PAIRS)
def test_auc_is_symmetric(pairs):
    p, y = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    np.testing.assert_allclose(scores.auc(1 - p, y), 1 - scores.auc(p, y), atol=1e-12)
    np.testing.assert_allclose(scores.auc(1 - p, 1 - y), scores.auc(p, y), atol=1e-12)


@pytest.mark.parametrize("score", [scores.brier, scores.brier_mean, scores.accuracy, scores.auc, scores.with_missing])
@pytest.mark.parametrize(
    ("p", "y", "message"),
    [
        ([0.5, 45.0], [1, 0], r"probability 45.0 in row 1 is outside 0..1"),
        ([-0.01], [1], r"probability -0.01 in row 0"),
        ([math.nan], [1], r"probability nan in row 0"),
        ([math.inf], [1], r"probability inf in row 0"),
        ([0.5], [0.49], r"outcome 0.49 in row 0 is neither 0 nor 1"),
        ([0.5], [math.nan], r"outcome nan in row 0"),
        ([0.5, 0.5], [1], r"\(2,\) probabilities cannot be scored against \(1,\) outcomes"),
        ([], [], r"shape \(0,\), expected \(n\) with n >= 1"),
    ],
)
def test_l1_bad_input_is_refused_by_name(score, p, y, message):
    with pytest.raises(ScoreError, match=message):
        score(p, y)


@pytest.mark.parametrize(("p", "y"), [(1.01, 1.0), (math.nan, 1.0), (0.5, 0.5), (None, 0.5), (None, math.nan)])
def test_reward_refuses_what_cannot_be_scored(p, y):
    with pytest.raises(ScoreError):
        scores.reward(p, y)


def test_l9_a_missing_answer_costs_as_much_as_a_certain_wrong_one():
    scored = scores.with_missing([0.5, None, 0.0, None], [1, 1, 0, 0])
    assert scored.brier.tolist() == [0.25, 1.0, 0.0, 1.0]
    assert scored.correct.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert scored.p.tolist() == [0.5, 0.5, 0.0, 0.5]
    assert scored.answered.tolist() == [True, False, True, False]
    assert (scored.n, scored.missing) == (4, 2)
    assert scored.brier.tolist() == [
        -scores.reward(p, y) for p, y in zip([0.5, None, 0.0, None], [1, 1, 0, 0], strict=True)
    ]


def test_skill_is_one_at_the_reference_and_zero_at_always_half():
    assert scores.skill(0.15, 0.15).value == 1.0
    assert scores.skill(0.25, 0.15).value == 0.0
    assert scores.skill(0.30, 0.15).value == pytest.approx(-0.5)
    assert scores.skill(0.20, 0.15).reason is None


@pytest.mark.parametrize("reference", [0.25, 0.31])
def test_skill_against_a_useless_reference_is_nan_with_its_reason(reference):
    found = scores.skill(0.2, reference)
    assert math.isnan(found.value)
    assert found.reason is not None
    assert "no better than always 0.5" in found.reason


@pytest.mark.parametrize(("brier", "reference"), [(math.nan, 0.2), (0.2, math.nan), (1.2, 0.2), (0.2, -0.1)])
def test_skill_refuses_what_is_no_brier_score(brier, reference):
    with pytest.raises(ScoreError, match="must both lie in"):
        scores.skill(brier, reference)
