"""What `datasets` gets: trajectories with question, outcome and reward."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from samples import sample_question, sample_rollout

from futureworld.clock import FakeClock
from futureworld.errors import StoreError
from futureworld.records import AnswerStatus, Outcome, Trajectory
from futureworld.store.export import export
from futureworld.store.store import Store

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def brier(trajectory: Trajectory, y: float) -> float | None:
    return None if trajectory.probability is None else -((trajectory.probability - y) ** 2)


def fill(store: Store) -> None:
    store.save_questions("train/1", [sample_question("q1"), sample_question("q2"), sample_question("q3")])
    pairs = [
        sample_rollout("q1", sample=0, probability=0.0),
        sample_rollout("q1", sample=1, probability=None, answer_status=AnswerStatus.NO_ANSWER),
        sample_rollout("q2", probability=0.25),
        sample_rollout("q3", probability=0.25),
    ]
    store.add_rollouts(pairs)
    store.compact("train", [pairs[0][0].id])
    store.add_outcome(Outcome("q1", 0, 1.0, "", NOON, "e1"))
    store.add_outcome(Outcome("q1", 1, 0.0, "", NOON, "e2"))
    store.add_outcome(Outcome("q3", 0, None, "cancelled", NOON, "e3"))


def test_d10_export_joins_outcomes_and_rewards(store: Store, tmp_path: Path) -> None:
    fill(store)
    summary = export(store, tmp_path / "out", brier)
    assert summary == {
        "path": str(tmp_path / "out" / "trajectories.parquet"),
        "trajectories": 4,
        "with_outcome": 2,
        "with_reward": 1,
    }
    rows = pq.read_table(summary["path"]).to_pylist()
    joined = [(r["question_id"], r["question_state"], r["outcome"], r["outcome_revision"], r["reward"]) for r in rows]
    assert joined == [
        ("q1", "resolved", 0.0, 1, 0.0),
        ("q1", "resolved", 0.0, 1, None),
        ("q2", "pending", None, None, None),
        ("q3", "void", None, 0, None),
    ]
    assert rows[0]["question"] == sample_question().text
    assert export(store, tmp_path / "out", brier) == summary
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["trajectories.parquet"]


def test_export_loads_with_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    with Store.open(tmp_path / "run", "", FakeClock(NOON)) as store:
        fill(store)
        path = export(store, tmp_path / "out", brier)["path"]
        shard = next(store.shards.iterdir())
    loaded = datasets.load_dataset("parquet", data_files=path, split="train", cache_dir=str(tmp_path / "cache"))
    assert len(loaded) == 4
    row = loaded[0]
    assert row["ids"] == [12, 907, 40, 41, 55]
    assert row["log_probs"] == [-0.5, -1.25, None, None, 0.0]
    assert row["spans"][1] == {"start": 2, "end": 4, "role": "environment", "tool": "search", "status": "ok"}
    assert (row["outcome"], row["reward"], row["as_of"]) == (0.0, 0.0, NOON)
    one = datasets.load_dataset("parquet", data_files=str(shard), split="train", cache_dir=str(tmp_path / "cache"))
    assert one[0]["messages"][0] == {"role": "user", "text": "Will it rise?"}


def test_an_empty_store_and_an_unknown_question(store: Store, tmp_path: Path) -> None:
    summary = export(store, tmp_path / "out", brier)
    assert (summary["trajectories"], pq.read_table(summary["path"]).num_rows) == (0, 0)
    store.add_rollouts([sample_rollout("nobody")])
    with pytest.raises(StoreError, match=r"not in the store: \['nobody'\]"):
        export(store, tmp_path / "out", brier)
