"""Trajectories joined with question, outcome and reward, as one Parquet file for `datasets`."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from futureworld.errors import StoreError
from futureworld.records import Outcome, Question, QuestionState, Trajectory
from futureworld.store.database import file_errors
from futureworld.store.store import Store
from futureworld.store.trajectories import SCHEMA, to_batch

Reward = Callable[[Trajectory, float], float | None]
"""(trajectory, outcome 0.0 or 1.0) -> its reward, None where it has none."""

ROWS = 2000
"""Trajectories read at a time; one row group of the file."""

JOINED = pa.schema(
    [
        ("question", pa.string()),
        ("domain", pa.string()),
        ("family", pa.string()),
        ("asked_at", pa.timestamp("us", tz="UTC")),
        ("resolves_at", pa.timestamp("us", tz="UTC")),
        ("question_state", pa.string()),
        ("outcome", pa.float64()),
        ("outcome_revision", pa.int32()),
        ("observed_at", pa.timestamp("us", tz="UTC")),
        ("reward", pa.float64()),
    ]
)
"""Columns beside the trajectory's own. `outcome` and `reward` are null while the world has not answered."""

_SCHEMA = pa.schema([*SCHEMA, *JOINED], metadata=SCHEMA.metadata)


def export(store: Store, folder: Path, reward: Reward) -> dict[str, Any]:
    """Write `folder/trajectories.parquet`, whole or not at all, over an older one.

    Returns {"path", "trajectories", "with_outcome", "with_reward"}. Raises StoreError where the
    file cannot be written or a trajectory's question is unknown.
    """
    path = folder / "trajectories.parquet"
    counts = {"trajectories": 0, "with_outcome": 0, "with_reward": 0}
    with file_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.tmp")
        with pq.ParquetWriter(partial, _SCHEMA, compression="zstd") as writer:
            for batch in _batches(store, reward):
                writer.write_batch(batch)
                counts["trajectories"] += batch.num_rows
                counts["with_outcome"] += batch.num_rows - batch["outcome"].null_count
                counts["with_reward"] += batch.num_rows - batch["reward"].null_count
        os.replace(partial, path)
    return {"path": str(path), **counts}


def _batches(store: Store, reward: Reward) -> Iterator[pa.RecordBatch]:
    ids = [forecast.id for forecast in store.forecasts()]
    for start in range(0, len(ids), ROWS):
        trajectories = store.trajectories(ids[start : start + ROWS])
        rows = _joined(store, trajectories, reward)
        columns = [pa.array([row[field.name] for row in rows], type=field.type) for field in JOINED]
        yield pa.RecordBatch.from_arrays([*to_batch(trajectories).columns, *columns], schema=_SCHEMA)


def _joined(store: Store, trajectories: Sequence[Trajectory], reward: Reward) -> list[dict[str, Any]]:
    ids = {trajectory.question_id for trajectory in trajectories}
    questions, outcomes, states = store.questions(ids), store.outcomes(ids), store.states(ids)
    unknown = sorted(ids - questions.keys())
    if unknown:
        raise StoreError(f"questions of {len(unknown)} trajectories are not in the store: {unknown[:3]}")
    return [
        _row(trajectory, questions[name], states[name], outcomes.get(name), reward)
        for trajectory in trajectories
        for name in [trajectory.question_id]
    ]


def _row(
    trajectory: Trajectory, question: Question, state: QuestionState, outcome: Outcome | None, reward: Reward
) -> dict[str, Any]:
    value = None if outcome is None else outcome.value
    return {
        "question": question.text,
        "domain": question.domain,
        "family": question.family,
        "asked_at": question.asked_at,
        "resolves_at": question.resolves_at,
        "question_state": state.value,
        "outcome": value,
        "outcome_revision": None if outcome is None else outcome.revision,
        "observed_at": None if outcome is None else outcome.observed_at,
        "reward": None if value is None else reward(trajectory, value),
    }
