"""One SQLAlchemy engine, SQLite or PostgreSQL: transactions, durability, and errors in words."""

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Engine, Table, create_engine, event, func, inspect, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError, StatementError

from futureworld.errors import FutureWorldError, StoreError
from futureworld.store import schema

BUSY_MS = 30_000
"""How long a writer waits for another connection's transaction."""
CHUNK = 1000
"""Ids in one IN list; both databases take more."""

_WAY_OUT = {
    "disk is full": "free some space and run the command again; what was reported as stored is stored",
    "no space left": "free some space and run the command again; what was reported as stored is stored",
    "readonly": "make the folder and its files writable",
    "read-only": "make the folder and its files writable",
    "unable to open": "the folder must exist and be writable",
    "malformed": "restore the store from a copy, or start a new run folder",
    "not a database": "restore the store from a copy, or start a new run folder",
    "no such table": "restore the store from a copy, or start a new run folder",
    "connection failed": "start the server, or mend `store`",
    "resolve host": "start the server, or mend `store`",
    "file exists": "a file stands where a folder is needed; move it, or choose another name",
    "not a directory": "a file stands where a folder is needed; move it, or choose another name",
    "is a directory": "a folder stands where a file is needed; move it",
    "locked": "another process writes to it; wait for it or stop it",
}


_KINDS = "use sqlite:///FILE, or postgresql+psycopg://... with futureworld[postgres], or leave it empty for SQLite"


class Database:
    """Transactions on one database. Every method raises StoreError where the database fails."""

    def __init__(self, url: str) -> None:
        try:
            parsed = make_url(url)
            self.name = parsed.render_as_string(hide_password=True)
            self.engine: Engine = create_engine(parsed)
        except (ArgumentError, NoSuchModuleError) as error:
            shown = getattr(self, "name", url.rpartition("@")[2])  # without a password
            raise StoreError(f"store URL {shown!r} cannot be used: {error}; {_KINDS}") from None
        except ModuleNotFoundError as error:
            raise StoreError(f"store {self.name} needs the package {error.name}; {_KINDS}") from None
        self.is_postgres = self.engine.dialect.name == "postgresql"
        if not self.is_postgres and (self.engine.dialect.name != "sqlite" or parsed.database in (None, "", ":memory:")):
            raise StoreError(f"store {self.name} would not keep a run; {_KINDS}")
        if not self.is_postgres:
            event.listen(self.engine, "connect", _configure_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        self._writer = self.engine.execution_options(fw_write=True)
        self.guard: Callable[[Connection], None] | None = None
        """Begins every write; what it raises ends the transaction."""

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is durable when the block has ended, or had no effect."""
        with self.errors(), self._writer.begin() as connection:
            if self.guard is not None:
                self.guard(connection)
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self.errors(), self.engine.begin() as connection:
            yield connection

    def prepare(self) -> None:
        """Make the tables of a new store; refuse one of another schema version."""
        with self.write() as connection:
            if self.is_postgres:  # SQLite's writers are alone already
                connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(func.current_schema()))))
            if not inspect(connection).has_table(schema.schema.name):
                schema.metadata.create_all(connection)
                connection.execute(schema.schema.insert().values(version=schema.SCHEMA))
            found = connection.execute(select(schema.schema.c.version)).scalars().all()
        if list(found) != [schema.SCHEMA]:
            raise StoreError(
                f"store {self.name} has schema version {', '.join(map(str, found)) or 'none'}, expected"
                f" {schema.SCHEMA}; open it with the FutureWorld that made it, or start a new run folder"
            )

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what the database raises into a StoreError that says what to do."""
        try:
            yield
        except UnicodeEncodeError as error:
            raise StoreError(f"store {self.name}: {error.object!r} is no text") from None
        except SQLAlchemyError as error:
            cause = error.orig if isinstance(error, StatementError) else error
            if isinstance(cause, FutureWorldError):  # a value that a column refused
                raise cause from None
            text = str(cause).strip()
            raise StoreError(f"store {self.name}: {text}{_way_out(text)}") from error


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn an OSError about `path` into a StoreError that says what to do."""
    try:
        yield
    except OSError as error:
        text = error.strerror or str(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise StoreError(f"{path}: {text}{_way_out('no space left' if full else text)}") from error


def insert_new(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], key: Column[Any]) -> set[Any]:
    """Insert the rows whose keys are free; the set of `key` values that were inserted."""
    if not rows:
        return set()
    build = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = build(table).on_conflict_do_nothing().returning(key)
    return set(connection.execute(statement, [dict(row) for row in rows]).scalars())


def chunks(ids: Iterable[str], size: int = CHUNK) -> Iterator[list[str]]:
    """Distinct `ids` in their order, at most `size` at a time."""
    distinct = list(dict.fromkeys(ids))
    for start in range(0, len(distinct), size):
        yield distinct[start : start + size]


def _configure_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where SQLAlchemy says, see _begin_sqlite
    for pragma in (f"busy_timeout={BUSY_MS}", "journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    # A writer asks for the write lock at once: one that read first would fail, not wait.
    write = connection.get_execution_options().get("fw_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _way_out(text: str) -> str:
    lowered = text.lower()
    return next((f"; {advice}" for sign, advice in _WAY_OUT.items() if sign in lowered), "")
