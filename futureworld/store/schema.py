"""The tables. A change here that an older store cannot be read with raises SCHEMA by one.

Times are integer microseconds since 1970 in UTC, because SQLite keeps no zones. Records that
nothing filters by are JSON in a `record` column; the bodies of rollouts are bytes in a table of
their own until they move to a Parquet shard.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeDecorator

from futureworld.clock import utc

SCHEMA = 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class UtcTime(TypeDecorator[datetime]):
    """Aware datetime <-> microseconds since 1970; refuses naive ones (RecordError)."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> int | None:
        return None if value is None else (utc(value) - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, dialect: Any) -> datetime | None:
        return None if value is None else _EPOCH + timedelta(microseconds=value)


metadata = MetaData()

schema = Table("schema", metadata, Column("version", Integer, primary_key=True))

meta = Table("meta", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

holder = Table("holder", metadata, Column("id", Integer, primary_key=True), Column("record", Text, nullable=False))

jobs = Table(
    "jobs",
    metadata,
    Column("stage", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("summary", Text, nullable=False),
    Column("finished_at", UtcTime, nullable=False),
)

questions = Table(
    "questions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("resolves_at", UtcTime, nullable=False),
    Column("record", Text, nullable=False),
    Index("questions_waiting", "state", "resolves_at"),
)

question_sets = Table("question_sets", metadata, Column("name", Text, primary_key=True))

set_members = Table(
    "set_members",
    metadata,
    Column("set_name", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("question_id", Text, nullable=False, index=True),
    UniqueConstraint("set_name", "question_id"),
)

outcomes = Table(
    "outcomes",
    metadata,
    Column("question_id", Text, primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("value", Double),
    Column("reason", Text, nullable=False),
    Column("observed_at", UtcTime, nullable=False),
    Column("evidence", Text, nullable=False),
)

forecasts = Table(
    "forecasts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("question_id", Text, nullable=False, index=True),
    Column("agent", Text, nullable=False),
    Column("policy_version", Integer, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("sample", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("probability", Double),
    Column("status", Text, nullable=False),
    Column("stop_reason", Text, nullable=False),
    Column("made_at", UtcTime, nullable=False),
    Column("shard", Text),
    Index("forecasts_of_policy", "purpose", "policy_version", "agent"),
)

bodies = Table(
    "bodies", metadata, Column("forecast_id", Text, primary_key=True), Column("body", LargeBinary, nullable=False)
)

failures = Table(
    "failures",
    metadata,
    Column("forecast_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("status", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("failed_at", UtcTime, nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("version", Integer, primary_key=True),
    Column("path", Text, nullable=False),
    Column("weight_hash", Text, nullable=False),
    Column("update_id", Text),
    Column("day", Date),
)

updates = Table(
    "updates",
    metadata,
    Column("id", Text, primary_key=True),
    Column("version", Integer, nullable=False, unique=True),
    Column("record", Text, nullable=False),
)
