import itertools
import math
import time

import numpy as np
import pytest
from scipy import stats

from futureworld.errors import ScoreError
from futureworld.evaluation.scores import auc, brier
from futureworld.evaluation.statistics import (
    agreement_of,
    auc_of,
    cluster_bootstrap,
    contrast_of,
    mean_of,
    paired_difference,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_estimates_are_those_of_the_rows_as_they_are():
    p, y, clusters = [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], ["a", "a", "b", "c"]
    mean = cluster_bootstrap(mean_of([1.0, 2.0, 3.0, 6.0]), clusters, rng=rng(), replicates=50)
    order = cluster_bootstrap(auc_of(p, y), clusters, rng=rng(), replicates=50)
    assert (mean.estimate, mean.clusters, mean.replicates) == (3.0, 3, 50)
    assert (order.estimate, order.clusters) == (0.75, 3)
    assert order.replicates < 50  # some draws hold one class only: they are counted out, not scored


def test_paired_difference_by_hand():
    same = paired_difference([0.5, 0.7, 0.9], [0.4, 0.6, 0.8], ["a", "b", "c"], rng=rng())
    assert same.estimate == pytest.approx(0.1)
    assert (same.low, same.high) == (pytest.approx(0.1), pytest.approx(0.1))
    assert paired_difference([1.0, 0.0], [0.0, 0.0], ["a", "b"], rng=rng()).estimate == 0.5


def test_interval_of_single_rows_agrees_with_scipy():
    values = rng(1).normal(size=300)
    ours = cluster_bootstrap(mean_of(values), [str(i) for i in range(300)], rng=rng(2), replicates=4000)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=rng(3)).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=0.012)
    assert ours.high == pytest.approx(theirs.high, abs=0.012)


def test_clusters_of_unequal_size_move_as_a_whole():
    # two clusters: a replicate is a twice, b twice or both: means 0, 1 and 0.75 and nothing else
    seen = set()

    def statistic(weights):
        found = mean_of([0.0, 1.0, 1.0, 1.0])(weights)
        seen.update(found.tolist())
        return found

    cluster_bootstrap(statistic, ["a", "b", "b", "b"], rng=rng(), replicates=200)
    assert seen == {0.0, 0.75, 1.0}


def test_intervals_cover_the_truth_only_when_clusters_are_respected():
    covered = {"clusters": 0, "rows": 0}
    clusters = [str(i) for i in range(40) for _ in range(6)]
    alone = [str(i) for i in range(240)]
    for seed in range(200):
        source = rng(seed)
        values = np.repeat(source.normal(size=40), 6) + 0.5 * source.normal(size=240)
        for name, labels in (("clusters", clusters), ("rows", alone)):
            found = cluster_bootstrap(mean_of(values), labels, rng=source, replicates=400)
            covered[name] += found.low <= 0.0 <= found.high
    assert 180 <= covered["clusters"] <= 199  # nominal 190
    assert covered["rows"] < 150


def test_auc_interval_agrees_with_resampling_by_hand():
    source = rng(5)
    p = source.integers(0, 11, 200) / 10
    y = (source.random(200) < p).astype(float)
    member = source.integers(0, 40, 200)
    ours = cluster_bootstrap(auc_of(p, y), [str(m) for m in member], rng=rng(6), replicates=2000)
    rows = [np.flatnonzero(member == m) for m in np.unique(member)]
    drawn = []
    for _ in range(1000):
        picked = np.concatenate([rows[i] for i in source.integers(0, len(rows), len(rows))])
        drawn.append(auc(p[picked], y[picked]))
    assert ours.estimate == pytest.approx(auc(p, y), abs=1e-12)
    assert [ours.low, ours.high] == pytest.approx(np.percentile(drawn, [2.5, 97.5]), abs=0.015)


def test_same_seed_gives_the_same_interval():
    p, y, clusters = rng(1).random(60), rng(2).integers(0, 2, 60), [str(i % 9) for i in range(60)]
    first = cluster_bootstrap(auc_of(p, y), clusters, rng=rng(4), replicates=700)
    assert cluster_bootstrap(auc_of(p, y), clusters, rng=rng(4), replicates=700) == first
    assert cluster_bootstrap(auc_of(p, y), clusters, rng=rng(5), replicates=700) != first
    assert first.estimate == cluster_bootstrap(auc_of(p, y), clusters, rng=rng(5), replicates=700).estimate


def test_one_cluster_says_nothing_about_the_spread():
    found = cluster_bootstrap(mean_of([0.1, 0.3]), ["a", "a"], rng=rng(), replicates=10)
    assert found.estimate == pytest.approx(0.2)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_auc_of_one_class_has_no_interval():
    found = cluster_bootstrap(auc_of([0.1, 0.3], [1, 1]), ["a", "b"], rng=rng(), replicates=10)
    assert math.isnan(found.estimate)
    assert (math.isnan(found.low), found.replicates) == (True, 0)


@pytest.mark.parametrize("n", [560, 2240])
def test_two_thousand_replicates_are_quick(n):
    source = rng(3)
    p, y = source.random(n).round(2), source.integers(0, 2, n)
    clusters = [str(i) for i in source.integers(0, 150, n)]
    start = time.process_time()
    paired_difference(brier(p, y), brier(1 - p, y), clusters, rng=source)
    middle = time.process_time()
    cluster_bootstrap(auc_of(p, y), clusters, rng=source)
    assert middle - start < 0.3
    assert time.process_time() - middle < 5.0


def test_bad_input_is_refused():
    with pytest.raises(ScoreError, match="0 rows"):
        cluster_bootstrap(mean_of([]), [], rng=rng())
    with pytest.raises(ScoreError, match="0 replicates"):
        cluster_bootstrap(mean_of([1.0]), ["a"], rng=rng(), replicates=0)
    with pytest.raises(ScoreError, match="3 cluster labels do not match 2 values"):
        cluster_bootstrap(mean_of([1.0, 2.0]), ["a", "b", "c"], rng=rng())
    with pytest.raises(ScoreError, match="1 of 2 values are not finite"):
        mean_of([1.0, math.nan])
    with pytest.raises(ScoreError, match="cannot be paired"):
        paired_difference([1.0], [1.0, 2.0], ["a"], rng=rng())


def test_contrast_by_hand():
    statistic = contrast_of([1.0, 0.0, 1.0, 0.0], [True, True, False, False])
    assert statistic(np.array([[1.0, 1.0, 1.0, 1.0]])).tolist() == [0.0]
    # inside (3 * 1 + 1 * 0) / 4, elsewhere (1 * 1 + 3 * 0) / 4
    assert statistic(np.array([[3.0, 1.0, 1.0, 3.0]])).tolist() == [0.5]
    assert np.isnan(statistic(np.array([[0.0, 0.0, 1.0, 1.0]]))).all()


def test_contrast_over_clusters_agrees_with_an_enumeration():
    # three clusters: all 27 equally likely draws, as rows drawn one by one and as weights
    values, inside, clusters = [1.0, 0.0, 1.0, 0.0], [True, True, False, False], ["a", "b", "b", "c"]
    drawn, weights = [], []
    for draw in itertools.product("abc", repeat=3):
        rows = [i for name in draw for i, cluster in enumerate(clusters) if cluster == name]
        here = [values[i] for i in rows if inside[i]]
        there = [values[i] for i in rows if not inside[i]]
        drawn.append(np.mean(here) - np.mean(there) if here and there else math.nan)
        weights.append([draw.count(cluster) for cluster in clusters])
    every = contrast_of(values, inside)(np.array(weights, dtype=np.float64))
    assert every == pytest.approx(np.array(drawn), abs=1e-12, nan_ok=True)
    found = cluster_bootstrap(contrast_of(values, inside), clusters, rng=rng(), replicates=20_000)
    assert found.replicates / 20_000 == pytest.approx((~np.isnan(every)).sum() / 27, abs=0.02)
    assert {found.low, found.high} <= set(every.round(12)[~np.isnan(every)])


def test_agreement_is_the_numerator_of_kappa():
    from sklearn.metrics import cohen_kappa_score

    source = rng(3)
    first = [str(i) for i in source.integers(0, 3, 200)]
    second = [a if source.random() < 0.4 else str(source.integers(0, 4)) for a in first]
    found = float(agreement_of(first, second)(np.ones((1, 200)))[0])
    chance = sum(first.count(name) / 200 * second.count(name) / 200 for name in set(first))
    assert found == pytest.approx(cohen_kappa_score(first, second) * (1 - chance), abs=1e-12)
    # by hand, weighted: P(same) = 3/4, by chance 3/4 * 1/2 + 1/4 * 1/2 = 1/2
    weighted = agreement_of(["a", "a", "b"], ["a", "b", "b"])(np.array([[2.0, 1.0, 1.0]]))
    assert weighted.tolist() == [0.25]


def test_labels_that_never_meet_agree_as_by_chance():
    assert agreement_of(["a", "a"], ["x", "y"])(np.ones((2, 2))).tolist() == [0.0, 0.0]
    with pytest.raises(ScoreError, match="2 and 1 labels"):
        agreement_of(["a", "a"], ["x"])
    with pytest.raises(ScoreError, match="one for each"):
        contrast_of([1.0, 2.0], [True])
