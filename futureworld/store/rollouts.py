"""Finished rollouts: forecast rows, bodies, Parquet shards; and failed attempts."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from sqlalchemy import func, select

from futureworld import faults
from futureworld.errors import StoreError
from futureworld.records import AnswerStatus, Forecast, Purpose, Trajectory, content_id
from futureworld.store import codec, schema
from futureworld.store.database import chunks, file_errors, insert_new
from futureworld.store.part import Part
from futureworld.store.trajectories import bodies_table, encode, from_table, read_shard, write_shard


class Rollouts(Part):
    @property
    def shards(self) -> Path:
        """The folder of the Parquet shards."""
        return self.folder / "trajectories"

    def add_rollouts(self, pairs: Sequence[tuple[Trajectory, Forecast]]) -> list[bool]:
        """Store finished rollouts; they are durable, body and row, when this returns.

        True for each that was stored, False where a finished one of that id is there already
        (the first stays). Raises StoreError where a trajectory's id is not its forecast's.
        """
        for trajectory, forecast in pairs:
            if trajectory.id != forecast.id:
                raise StoreError(f"trajectory {trajectory.id} comes with forecast {forecast.id}; ids must be equal")
        first: dict[str, int] = {}
        for i, (trajectory, _) in enumerate(pairs):
            first.setdefault(trajectory.id, i)
        bodies = encode([pairs[i][0] for i in first.values()])
        with self.database.write() as connection:
            rows = [codec.forecast_row(pairs[i][1]) for i in first.values()]
            new = insert_new(connection, schema.forecasts, rows, schema.forecasts.c.id)
            body_rows = [
                {"forecast_id": id_, "body": body} for id_, body in zip(first, bodies, strict=True) if id_ in new
            ]
            if body_rows:
                connection.execute(schema.bodies.insert(), body_rows)
            faults.at("rollouts.inserted")
        faults.at("rollouts.stored")
        return [trajectory.id in new and first[trajectory.id] == i for i, (trajectory, _) in enumerate(pairs)]

    def add_failure(self, forecast_id: str, attempt: int, status: AnswerStatus, reason: str) -> None:
        """Note a failed attempt; noting the same attempt again changes nothing."""
        row = {
            "forecast_id": forecast_id,
            "attempt": attempt,
            "status": status.value,
            "reason": reason.replace("\0", "\N{REPLACEMENT CHARACTER}"),  # PostgreSQL's text has no NUL
            "failed_at": self.clock.now(),
        }
        with self.database.write() as connection:
            insert_new(connection, schema.failures, [row], schema.failures.c.attempt)

    def attempts(self, ids: Iterable[str]) -> dict[str, int]:
        """How many attempts failed, for every one of `ids` (0 where none)."""
        table = schema.failures
        counts = dict.fromkeys(ids, 0)
        with self.database.read() as connection:
            for part in chunks(counts):
                query = select(table.c.forecast_id, func.count()).where(table.c.forecast_id.in_(part))
                counts.update((id_, n) for id_, n in connection.execute(query.group_by(table.c.forecast_id)))
        return counts

    def finished_ids(self, purpose: Purpose, agent: str, policy_version: int) -> set[str]:
        table = schema.forecasts
        query = select(table.c.id).where(
            table.c.purpose == purpose.value, table.c.agent == agent, table.c.policy_version == policy_version
        )
        with self.database.read() as connection:
            return set(connection.execute(query).scalars())

    def forecasts(
        self,
        purpose: Purpose | None = None,
        policy_version: int | None = None,
        question_ids: Iterable[str] | None = None,
        agent: str | None = None,
    ) -> list[Forecast]:
        """Finished forecasts that match all that is given, by (question_id, policy_version, sample)."""
        table = schema.forecasts
        query = select(table)
        if purpose is not None:
            query = query.where(table.c.purpose == purpose.value)
        if policy_version is not None:
            query = query.where(table.c.policy_version == policy_version)
        if agent is not None:
            query = query.where(table.c.agent == agent)
        queries = (
            [query]
            if question_ids is None
            else [query.where(table.c.question_id.in_(part)) for part in chunks(question_ids)]
        )
        with self.database.read() as connection:
            found = [codec.forecast(row) for q in queries for row in connection.execute(q).mappings()]
        return sorted(found, key=lambda f: (f.question_id, f.policy_version, f.sample, f.agent, f.purpose))

    def trajectories(self, ids: Sequence[str]) -> list[Trajectory]:
        """The rollouts of `ids`, in their order. Raises StoreError naming those that are missing."""
        found: dict[str, Trajectory] = {}
        for table in self._tables(ids):
            found.update((trajectory.id, trajectory) for trajectory in from_table(table))
        missing = [id_ for id_ in ids if id_ not in found]
        if missing:
            raise StoreError(f"{len(missing)} of {len(ids)} trajectories are not in the store: {missing[:3]}")
        return [found[id_] for id_ in ids]

    def compact(self, name: str, ids: Iterable[str]) -> Path | None:
        """Move the bodies of these finished rollouts into one Parquet shard; None where none are left.

        Killed before its last step it leaves a file that no row points to (`remove_orphans`).
        """
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", name):
            raise StoreError(f"shard name {name!r} may only hold letters, digits, '.' and '-'")
        loose = self._loose(ids)
        if not loose:
            return None
        path = self.shards / f"{name}-{content_id(loose)}.parquet"
        write_shard(path, self._body_tables(loose))
        with self.database.write() as connection:
            for part in chunks(loose):
                rows = schema.forecasts.update().where(schema.forecasts.c.id.in_(part))
                connection.execute(rows.values(shard=path.name))
                connection.execute(schema.bodies.delete().where(schema.bodies.c.forecast_id.in_(part)))
            faults.at("compact.pointed")
        faults.at("compact.stored")
        return path

    def remove_orphans(self) -> int:
        """Delete shard files that no row points to; how many. Only the holder of the lock may."""
        with self.database.read() as connection:
            kept = set(connection.execute(select(schema.forecasts.c.shard).distinct()).scalars())
        orphans = [path for path in self.shards.iterdir() if path.name not in kept]
        for path in orphans:
            with file_errors(path):
                path.unlink()
        return len(orphans)

    def _tables(self, ids: Iterable[str]) -> Iterator[pa.Table]:
        rows, bodies = schema.forecasts, schema.bodies
        in_shards: dict[str, list[str]] = defaultdict(list)
        for part in chunks(ids):
            # One statement: a rollout is never seen between its body and its shard.
            query = select(rows.c.id, rows.c.shard, bodies.c.body).outerjoin(bodies, bodies.c.forecast_id == rows.c.id)
            with self.database.read() as connection:
                found = connection.execute(query.where(rows.c.id.in_(part))).all()
            yield bodies_table(body for _, shard, body in found if shard is None)
            for id_, shard, _ in found:
                if shard is not None:
                    in_shards[shard].append(id_)
        for shard, members in in_shards.items():
            yield read_shard(self.shards / shard, members)

    def _loose(self, ids: Iterable[str]) -> list[str]:
        table = schema.bodies
        with self.database.read() as connection:
            return [
                id_
                for part in chunks(ids)
                for id_ in sorted(
                    connection.execute(select(table.c.forecast_id).where(table.c.forecast_id.in_(part))).scalars()
                )
            ]

    def _body_tables(self, ids: Sequence[str]) -> Iterator[pa.Table]:
        table = schema.bodies
        for part in chunks(ids):
            with self.database.read() as connection:
                query = select(table.c.body).where(table.c.forecast_id.in_(part)).order_by(table.c.forecast_id)
                yield bodies_table(connection.execute(query).scalars())
