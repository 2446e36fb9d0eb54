import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from futureworld.config import load
from futureworld.errors import ConfigError, ScoreError
from futureworld.evaluation.scores import reward
from futureworld.rewards import LOG_CLIP, SCORES, WORST, Score

PROBABILITY = st.floats(0.0, 1.0)
everywhere = pytest.mark.parametrize("score", list(SCORES))


@pytest.mark.parametrize(
    ("score", "p", "y", "wanted"),
    [
        ("brier", 0.25, 1, -0.5625),
        ("brier", 0.25, 0, -0.0625),
        ("log", 0.25, 1, -2 * math.log(2)),
        ("log", 0.75, 0, -2 * math.log(2)),
        ("log", 0.0, 1, math.log(0.01)),
        ("log", 1.0, 1, math.log(0.99)),
        ("spherical", 0.6, 1, 0.6 / math.sqrt(0.52)),
        ("spherical", 0.6, 0, 0.4 / math.sqrt(0.52)),
        ("spherical", 1.0, 1, 1.0),
    ],
)
def test_rewards_by_hand(score: Score, p: float, y: float, wanted: float) -> None:
    assert reward(p, y, score=score) == pytest.approx(wanted, abs=1e-12)


@everywhere
@given(report=PROBABILITY, truth=PROBABILITY)
def test_every_score_is_proper_no_report_beats_the_true_probability(score: Score, report: float, truth: float) -> None:
    def expected(p: float) -> float:
        return truth * SCORES[score](p, 1.0) + (1 - truth) * SCORES[score](p, 0.0)

    assert expected(truth) >= expected(report) - 1e-12


@everywhere
@given(p=PROBABILITY, y=st.sampled_from([0.0, 1.0]))
def test_d10_silence_never_pays_more_than_the_worst_answer(score: Score, p: float, y: float) -> None:
    missing = load(None, [f"reward.score={score}"]).reward.missing
    assert reward(None, y, missing, score) == missing == WORST[score] <= reward(p, y, missing, score)
    assert SCORES[score](p, y) == pytest.approx(SCORES[score](1.0 - p, 1.0 - y), abs=1e-12), "Yes and No are alike"


def test_a_missing_reward_above_the_worst_is_refused() -> None:
    assert load(None, ["reward.score=log", "reward.missing=-6"]).reward.missing == -6
    with pytest.raises(ConfigError, match=r"paid -4.6052 under log"):
        load(None, ["reward.score=log", "reward.missing=-1"])
    with pytest.raises(ConfigError, match=r"^reward.score: input should be 'brier', 'log' or 'spherical', got 'best'$"):
        load(None, ["reward.score=best"])


@everywhere
def test_what_is_no_forecast_is_refused(score: Score) -> None:
    with pytest.raises(ScoreError, match="outside"):
        reward(1.2, 1.0, score=score)
    with pytest.raises(ScoreError, match="neither 0 nor 1"):
        reward(0.5, 0.5, score=score)


def test_the_log_scores_clip_is_the_stated_one() -> None:
    assert reward(LOG_CLIP / 2, 1.0, score="log") == reward(LOG_CLIP, 1.0, score="log") == WORST["log"]
