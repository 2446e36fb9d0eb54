"""Finished rollouts once each, failed attempts counted, bodies moved to shards."""

import pytest
from samples import sample_rollout

from futureworld.errors import StoreError
from futureworld.records import AnswerStatus, Purpose
from futureworld.store.store import Store


def test_one_finished_row_for_a_forecast_id(store: Store) -> None:
    first = sample_rollout(probability=0.0)
    second = sample_rollout(probability=1.0, attempt=1)
    other = sample_rollout(sample=1)
    assert store.add_rollouts([first]) == [True]
    assert store.add_rollouts([second, other, other]) == [False, True, False]
    assert store.add_rollouts([]) == []
    assert store.forecasts() == [first[1], other[1]]
    assert store.trajectories([other[0].id, first[0].id]) == [other[0], first[0]]
    with pytest.raises(StoreError, match="ids must be equal"):
        store.add_rollouts([(first[0], other[1])])


def test_forecasts_are_filtered_and_ordered(store: Store) -> None:
    pairs = [
        sample_rollout("q2", policy_version=0),
        sample_rollout("q1", policy_version=1, sample=1),
        sample_rollout("q1", policy_version=1, sample=0),
        sample_rollout("q1", policy_version=0, purpose=Purpose.EVALUATE),
        sample_rollout("q1", policy_version=0, agent="chat"),
    ]
    store.add_rollouts(pairs)
    q2, q1_v1_s1, q1_v1_s0, evaluated, chat = (forecast for _, forecast in pairs)
    assert store.forecasts() == [chat, evaluated, q1_v1_s0, q1_v1_s1, q2]
    assert store.forecasts(policy_version=0, agent="pocket") == [evaluated, q2]
    assert store.forecasts(purpose=Purpose.TRAIN, question_ids=["q1", "nobody"]) == [chat, q1_v1_s0, q1_v1_s1]
    assert store.forecasts(question_ids=[]) == []
    assert store.finished_ids(Purpose.TRAIN, "pocket", 1) == {q1_v1_s0.id, q1_v1_s1.id}
    assert store.finished_ids(Purpose.BENCHMARK, "pocket", 1) == set()


def test_failed_attempts_are_counted(store: Store) -> None:
    store.add_failure("f1", 0, AnswerStatus.TIMEOUT, "300 s\0")
    store.add_failure("f1", 0, AnswerStatus.TIMEOUT, "noted twice")
    store.add_failure("f1", 1, AnswerStatus.ERROR, "engine died")
    assert store.attempts(["f1", "f2"]) == {"f1": 2, "f2": 0}
    assert store.forecasts() == []


def test_missing_trajectories_are_named(store: Store) -> None:
    trajectory, _ = pair = sample_rollout()
    store.add_rollouts([pair])
    with pytest.raises(StoreError, match="1 of 2 trajectories are not in the store: \\['nobody'\\]"):
        store.trajectories([trajectory.id, "nobody"])
    assert store.trajectories([]) == []


def test_a1_compaction_moves_bodies_and_changes_nothing(store: Store) -> None:
    pairs = [sample_rollout(sample=i, seed=i) for i in range(5)]
    store.add_rollouts(pairs)
    expected = {trajectory.id: trajectory for trajectory, _ in pairs}
    ids = list(expected)
    forecasts = store.forecasts()
    first = store.compact("train-1", ids[:3])
    assert first is not None
    assert store.trajectories(ids) == [expected[id_] for id_ in ids]  # from shard and body together
    assert store.forecasts() == forecasts
    second = store.compact("train-1", ids)  # the rest, under a name of its own
    assert second not in (None, first)
    assert store.compact("train-1", ids) is None
    assert store.compact("train-1", ["nobody"]) is None
    assert store.trajectories(ids[::-1]) == [expected[id_] for id_ in ids[::-1]]
    assert store.add_rollouts(pairs) == [False] * 5


def test_shard_names_stay_in_their_folder(store: Store) -> None:
    with pytest.raises(StoreError, match="may only hold"):
        store.compact("../x", [])


def test_e4_orphans_are_removed_and_shards_in_use_are_not(store: Store) -> None:
    pair = sample_rollout()
    store.add_rollouts([pair])
    path = store.compact("train", [pair[0].id])
    (store.shards / "left.parquet").write_bytes(b"half")
    (store.shards / ".left.parquet.tmp").write_bytes(b"half")
    assert store.remove_orphans() == 2
    assert list(store.shards.iterdir()) == [path]
    assert store.trajectories([pair[0].id]) == [pair[0]]


def test_a_lost_shard_is_named(store: Store) -> None:
    pair = sample_rollout()
    store.add_rollouts([pair])
    path = store.compact("train", [pair[0].id])
    assert path is not None
    path.unlink()
    with pytest.raises(StoreError, match=f"{path.name} is missing"):
        store.trajectories([pair[0].id])
