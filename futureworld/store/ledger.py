"""Facts about the run, and which jobs of which stage are done."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from futureworld.clock import iso
from futureworld.store import schema
from futureworld.store.codec import from_text, to_text
from futureworld.store.database import insert_new
from futureworld.store.part import Part


class Ledger(Part):
    def meta(self, key: str) -> str | None:
        with self.database.read() as connection:
            return connection.execute(select(schema.meta.c.value).where(schema.meta.c.key == key)).scalar()

    def set_meta(self, key: str, value: str) -> None:
        with self.database.write() as connection:
            if not insert_new(connection, schema.meta, [{"key": key, "value": value}], schema.meta.c.key):
                connection.execute(schema.meta.update().where(schema.meta.c.key == key).values(value=value))

    def finished(self, stage: str, key: str) -> dict[str, Any] | None:
        """The summary of a finished job, None while it is not."""
        table = schema.jobs
        with self.database.read() as connection:
            found = connection.execute(
                select(table.c.summary).where(table.c.stage == stage, table.c.key == key)
            ).scalar()
        return None if found is None else from_text(found)

    def finish(self, stage: str, key: str, summary: Mapping[str, Any]) -> bool:
        """Write a job as finished, once: False, and the first summary stays, where it was already."""
        row = {"stage": stage, "key": key, "summary": to_text(summary), "finished_at": self.clock.now()}
        with self.database.write() as connection:
            return bool(insert_new(connection, schema.jobs, [row], schema.jobs.c.key))

    def jobs(self) -> list[dict[str, Any]]:
        """Every finished job as {stage, key, finished_at (ISO), summary}, by (finished_at, stage, key)."""
        with self.database.read() as connection:
            rows = connection.execute(select(schema.jobs)).mappings().all()
        ordered = sorted(rows, key=lambda row: (row["finished_at"], row["stage"], row["key"]))
        return [
            {
                "stage": row["stage"],
                "key": row["key"],
                "finished_at": iso(row["finished_at"]),
                "summary": from_text(row["summary"]),
            }
            for row in ordered
        ]
