import math
import time

import numpy as np
import pytest
from scipy import stats

from futureworld.errors import ScoreError
from futureworld.evaluation.scores import auc, brier
from futureworld.evaluation.statistics import auc_of, cluster_bootstrap, mean_of, paired_difference


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
