import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from futureworld.errors import UpdateError
from verl_tool_future.advantages import RatioStats, effective_sample_size, group_advantages, group_stats

REWARDS = st.lists(st.floats(-1.0, 0.0), min_size=2, max_size=12)


def test_advantages_are_rewards_minus_the_group_mean():
    # group a: mean -0.5; group b: mean -0.2
    made = group_advantages([-1.0, -0.1, 0.0, -0.3], ["a", "b", "a", "b"])
    np.testing.assert_allclose(made, [-0.5, 0.1, 0.5, -0.1], rtol=0, atol=1e-15)
    assert made.dtype == np.float64


def test_d1_a_group_of_equal_rewards_has_advantages_of_exactly_zero_and_is_counted():
    rewards = [-0.25] * 8 + [-0.1, -0.3]
    groups = ["same"] * 8 + ["other"] * 2
    for normalize in (False, True):
        made = group_advantages(rewards, groups, normalize)
        assert made[:8].tolist() == [0.0] * 8
        assert group_stats(rewards, groups, made).zero_variance_groups == 1


@given(st.floats(-1.0, 0.0), st.integers(2, 17))
def test_d1_equal_rewards_give_exactly_zero_for_any_value_and_size(reward: float, size: int):
    assert group_advantages([reward] * size, ["q"] * size).tolist() == [0.0] * size


def test_d2_near_ties_keep_their_size_unless_the_spread_is_divided_out():
    near = [-0.2500, -0.2501]
    np.testing.assert_allclose(group_advantages(near, ["q", "q"]), [5e-5, -5e-5], rtol=1e-9)
    # sample std of two values 1e-4 apart is 1e-4 / sqrt(2); 5e-5 / (7.0711e-5 + 1e-6) = 0.69725
    np.testing.assert_allclose(group_advantages(near, ["q", "q"], True), [0.69725, -0.69725], rtol=1e-4)


def test_d3_a_group_of_one_is_refused():
    with pytest.raises(UpdateError, match="group alone has one member"):
        group_advantages([-0.1, -0.2, -0.3], ["pair", "pair", "alone"])


def test_d4_a_member_that_left_does_not_shift_its_siblings():
    with_penalty = group_advantages([-0.04, -0.16, -1.0], ["q"] * 3)
    without_crash = group_advantages([-0.04, -0.16], ["q"] * 2)
    np.testing.assert_allclose(with_penalty, [0.36, 0.24, -0.6], atol=1e-15)
    np.testing.assert_allclose(without_crash, [0.06, -0.06], atol=1e-15)


def test_d5_groups_are_told_apart_by_id_and_not_by_place():
    rewards = [-0.1, -0.5, -0.2, -0.9]
    mixed = group_advantages(rewards, ["a1", "b1", "a1", "b1"])
    np.testing.assert_allclose(mixed, [0.05, 0.2, -0.05, -0.2], atol=1e-15)


def test_d6_division_is_by_the_groups_own_sample_std():
    made = group_advantages([0.0, 1.0, 2.0, 3.0], ["a", "a", "b", "b"], True)
    np.testing.assert_allclose(made, [-0.70711, 0.70711, -0.70711, 0.70711], atol=1e-5)


def test_d10_zero_is_a_reward_and_none_is_missing():
    np.testing.assert_allclose(group_advantages([0.0, -0.5], ["q", "q"]), [0.25, -0.25])
    with pytest.raises(UpdateError, match="reward 1 is missing"):
        group_advantages([0.0, None], ["q", "q"])  # type: ignore[list-item]


def test_rewards_that_are_not_finite_are_refused():
    with pytest.raises(UpdateError, match="reward 1 is not finite"):
        group_advantages([0.0, float("nan")], ["q", "q"])


@given(st.lists(REWARDS, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_advantages_sum_to_zero_in_each_group_and_follow_their_rows(groups: list[list[float]], random):
    rows = [(str(name), reward) for name, group in enumerate(groups) for reward in group]
    made = dict(enumerate(group_advantages([r for _, r in rows], [g for g, _ in rows])))
    for name in range(len(groups)):
        assert sum(made[i] for i, (group, _) in enumerate(rows) if group == str(name)) == pytest.approx(0, abs=1e-12)
    order = list(range(len(rows)))
    random.shuffle(order)
    shuffled = group_advantages([rows[i][1] for i in order], [rows[i][0] for i in order])
    np.testing.assert_allclose(shuffled, [made[i] for i in order], rtol=0, atol=1e-15)


def test_group_stats_by_hand():
    rewards, groups = [-1.0, 0.0, -0.5, -0.5], ["a", "a", "b", "b"]
    stats = group_stats(rewards, groups, [-0.5, 0.5, 0.0, 0.0])
    assert (stats.groups, stats.zero_variance_groups) == (2, 1)
    assert stats.reward_mean == -0.5
    assert stats.reward_std == pytest.approx(0.125**0.5)
    assert stats.advantage_std == pytest.approx(0.125**0.5)


def test_effective_sample_size():
    assert effective_sample_size([1.0, 1.0, 1.0]) == pytest.approx(3)
    assert effective_sample_size([2.0, 0.0]) == pytest.approx(1)
    assert effective_sample_size([1.0, 3.0]) == pytest.approx(16 / 10)
    assert effective_sample_size([1e200, 1e200]) == pytest.approx(2)
    with pytest.raises(UpdateError):
        effective_sample_size([])
    with pytest.raises(UpdateError):
        effective_sample_size([1.0, -1.0])


def test_c9_ratios_are_counted_before_clipping():
    stats = RatioStats.of(np.log([0.9, 5.0]), cap=2.0).ratios()
    assert stats["ratio_fraction_high"] == 0.5
    assert stats["ratio_max"] == pytest.approx(5.0)
    assert stats["ratio_mean"] == pytest.approx(2.95)
    assert stats["ess"] == pytest.approx(5.9**2 / (0.81 + 25) / 2)


def test_ratio_stats_of_parts_add_up_to_those_of_the_whole():
    logs = np.log([0.5, 1.0, 3.0, 0.9, 1.2])
    whole, parts = RatioStats.of(logs, 2.0), RatioStats.of(logs[:2], 2.0) + RatioStats.of(logs[2:], 2.0)
    assert parts.ratios() == pytest.approx(whole.ratios())
    assert parts.differences() == pytest.approx(whole.differences())
    assert whole.differences()["logprob_diff_max"] == pytest.approx(np.log(3.0))
    assert whole.ratios()["ess"] == pytest.approx(effective_sample_size(np.exp(logs)) / 5)


def test_b14_no_policy_token_at_all_is_an_error_and_not_a_mean_of_nothing():
    with pytest.raises(UpdateError, match="no policy token"):
        RatioStats.of([], 2.0).ratios()
