"""The store: everything the stages leave for each other. Append-only, exactly once.

A database (SQLite in the run's folder, or PostgreSQL by URL) and a folder of Parquet shards.
What a method reports as stored is on disk when it returns. All times in and out are aware UTC.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from futureworld.clock import Clock
from futureworld.store.database import Database, file_errors
from futureworld.store.ledger import Ledger
from futureworld.store.lock import Lock, file_lock, postgres_lock, this_process
from futureworld.store.questions import Questions
from futureworld.store.rollouts import Rollouts
from futureworld.store.updates import Updates


class Store(Ledger, Questions, Rollouts, Updates):
    """Open one with `Store.open`; every method raises StoreError where the database or a shard fails."""

    @classmethod
    def open(cls, folder: Path, url: str, clock: Clock) -> Self:
        """The store of a run; its tables are made when it is new.

        An empty `url` means SQLite, `store.db` in `folder`; shards are in `folder` either way.
        Raises StoreError for another schema version, a full or read-only disk, a bad URL.
        """
        shards = folder / "trajectories"
        with file_errors(shards):
            shards.mkdir(parents=True, exist_ok=True)
        database = Database(url or f"sqlite:///{folder.resolve() / 'store.db'}")
        try:
            database.prepare()
        except BaseException:
            database.close()
            raise
        return cls(folder, database, clock)

    @contextmanager
    def lock(self, holder: str) -> Iterator[Lock]:
        """Be the only writer; `holder` is what others are told. Raises LockedError while another is.

        The lock of a killed process is free; `Lock.taken_over_from` names that process.
        """
        me = this_process(holder)
        database = self.database
        held = postgres_lock(database, me) if database.is_postgres else file_lock(self.folder / "store.lock", me)
        with held as lock:
            yield lock

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
