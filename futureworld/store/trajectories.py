"""Trajectories as Arrow: one explicit schema for a rollout's body and for Parquet shards.

A body is the Arrow IPC message of a one-row record batch (without the schema, which is fixed by
SCHEMA_VERSION), so compaction moves rows without decoding them. Log-probs are float64, in which
a sampler's float32 survives exactly.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from futureworld import faults
from futureworld.errors import StoreError
from futureworld.records import (
    SCHEMA_VERSION,
    AnswerStatus,
    Message,
    Purpose,
    Role,
    Span,
    StopReason,
    ToolCall,
    Trajectory,
    as_json,
)
from futureworld.store.database import file_errors

_VERSION_KEY = b"futureworld.schema_version"
_TEXT = pa.string()
_SPAN = pa.struct([("start", pa.int32()), ("end", pa.int32()), ("role", _TEXT), ("tool", _TEXT), ("status", _TEXT)])
_MESSAGE = pa.struct([("role", _TEXT), ("text", _TEXT)])
_CALL = pa.struct(
    [
        ("turn", pa.int32()),
        ("tool", _TEXT),
        ("arguments", _TEXT),
        ("status", _TEXT),
        ("text", _TEXT),
        ("filtered", pa.list_(_TEXT)),
    ]
)

SCHEMA = pa.schema(
    [
        ("schema_version", pa.int32()),
        ("id", _TEXT),
        ("question_id", _TEXT),
        ("day", pa.date32()),
        ("purpose", _TEXT),
        ("agent", _TEXT),
        ("policy_version", pa.int32()),
        ("sample", pa.int32()),
        ("attempt", pa.int32()),
        ("as_of", pa.timestamp("us", tz="UTC")),
        ("prompt_ids", pa.list_(pa.int32())),
        ("ids", pa.list_(pa.int32())),
        ("spans", pa.list_(_SPAN)),
        ("log_probs", pa.list_(pa.float64())),
        ("logprobs_mode", _TEXT),
        ("temperature", pa.float64()),
        ("top_p", pa.float64()),
        ("seed", pa.int64()),
        ("stop_reason", _TEXT),
        ("answer", _TEXT),
        ("probability", pa.float64()),
        ("answer_status", _TEXT),
        ("messages", pa.list_(_MESSAGE)),
        ("calls", pa.list_(_CALL)),
        ("template_hash", _TEXT),
        ("trainable", pa.bool_()),
    ],
    metadata={_VERSION_KEY: str(SCHEMA_VERSION).encode()},
)

_NUMBERS = ("prompt_ids", "ids", "log_probs")
"""Columns of long lists, read through numpy; the others are small."""
_AS_THEY_ARE = {"day", "as_of", *_NUMBERS}


def to_batch(trajectories: Sequence[Trajectory]) -> pa.RecordBatch:
    columns = []
    for field in SCHEMA:
        values: list[Any] = [getattr(trajectory, field.name) for trajectory in trajectories]
        if field.name not in _AS_THEY_ARE:
            values = as_json(values)
        columns.append(pa.array(values, type=field.type))
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def encode(trajectories: Sequence[Trajectory]) -> list[bytes]:
    """A body for each trajectory. Raises StoreError for one of another schema version."""
    for trajectory in trajectories:
        if trajectory.schema_version != SCHEMA_VERSION:
            raise StoreError(
                f"trajectory {trajectory.id} has schema version {trajectory.schema_version}, expected {SCHEMA_VERSION}"
            )
    batch = to_batch(trajectories)
    return [batch.slice(i, 1).serialize().to_pybytes() for i in range(batch.num_rows)]


def bodies_table(bodies: Iterable[bytes]) -> pa.Table:
    """The rows of `bodies` as one table, not decoded."""
    batches = [pa.ipc.read_record_batch(pa.py_buffer(body), SCHEMA) for body in bodies]
    return pa.Table.from_batches(batches, SCHEMA).combine_chunks()


def from_table(table: pa.Table) -> Iterator[Trajectory]:
    """The rows of a table of SCHEMA as checked records, in order."""
    numbers = [_lists(table[name]) for name in _NUMBERS]
    rest = table.drop_columns(list(_NUMBERS)).to_pylist()
    for row, prompt_ids, ids, log_probs in zip(rest, *numbers, strict=True):
        yield Trajectory(
            **{
                **row,
                "purpose": Purpose(row["purpose"]),
                "prompt_ids": prompt_ids,
                "ids": ids,
                "spans": tuple(Span(**{**span, "role": Role(span["role"])}) for span in row["spans"]),
                "log_probs": log_probs,
                "stop_reason": StopReason(row["stop_reason"]),
                "answer_status": AnswerStatus(row["answer_status"]),
                "messages": tuple(Message(**message) for message in row["messages"]),
                "calls": tuple(ToolCall(**{**call, "filtered": tuple(call["filtered"])}) for call in row["calls"]),
            }
        )


def write_shard(path: Path, tables: Iterable[pa.Table]) -> None:
    """Write `tables` of one schema as row groups of `path`; it is whole and durable, or not there."""
    partial = path.with_name(f".{path.name}.tmp")
    with file_errors(path):
        _write_parquet(partial, iter(tables))
        _sync(partial)
        faults.at("compact.written")
        os.replace(partial, path)
        _sync(path.parent)
        faults.at("compact.renamed")


def read_shard(path: Path, ids: Sequence[str]) -> pa.Table:
    """The rows of a shard with these ids. Raises StoreError for a missing, broken or foreign one."""
    try:
        found = (pq.read_schema(path).metadata or {}).get(_VERSION_KEY, b"none").decode()
        if found != str(SCHEMA_VERSION):
            raise StoreError(f"shard {path} has schema version {found}, expected {SCHEMA_VERSION}")
        return pq.read_table(path, schema=SCHEMA, filters=[("id", "in", list(ids))])
    except FileNotFoundError:
        raise StoreError(f"shard {path} is missing; bring it back into its folder") from None
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"shard {path} cannot be read: {error}; bring back a good copy") from error


def _write_parquet(path: Path, tables: Iterator[pa.Table]) -> None:
    first = next(tables)
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lists(column: pa.ChunkedArray) -> Iterator[tuple[Any, ...]]:
    """Rows of a list column as tuples of Python numbers, None where null."""
    for chunk in column.chunks:
        values = chunk.flatten()
        plain = values.to_numpy(zero_copy_only=False)
        if values.null_count:
            nulls = values.is_null().to_numpy(zero_copy_only=False)
            plain = plain.astype(object)
            plain[nulls] = None
        numbers = plain.tolist()
        offsets = chunk.offsets.to_numpy()
        starts = (offsets - offsets[0]).tolist()
        for start, end in itertools.pairwise(starts):
            yield tuple(numbers[start:end])
