"""One writer per store: who holds it, and what happens when the holder was killed.

The lock itself is the operating system's (a lock on a file) or PostgreSQL's (an advisory lock of
a connection), so it ends with its process. The holder's name stands beside it for people; a name
without a lock is a predecessor that was killed.
"""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import DBAPIError

from futureworld.clock import SystemClock, iso, parse_utc
from futureworld.errors import LockedError, RecordError
from futureworld.store import codec, schema
from futureworld.store.database import Database, file_errors

_DEAD_MS = 10_000
"""How long PostgreSQL may take to notice that a killed client is gone."""


@dataclass(frozen=True, slots=True)
class Holder:
    name: str
    host: str
    pid: int
    since: datetime

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid} on {self.host}, since {iso(self.since)})"

    @property
    def is_dead(self) -> bool:
        """True where it ran on this machine and does not any more."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return False


@dataclass(frozen=True, slots=True)
class Lock:
    """A held lock. `taken_over_from` is the killed predecessor, if there was one."""

    holder: Holder
    taken_over_from: Holder | None


def this_process(name: str) -> Holder:
    """`since` is the machine's time, in a replay too: it is about a process, not about the world."""
    return Holder(name, socket.gethostname(), os.getpid(), SystemClock().now())


@contextmanager
def file_lock(path: Path, holder: Holder) -> Iterator[Lock]:
    """Hold the lock file. Raises LockedError naming the holder while another one has it."""
    with file_errors(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(str(path), _read(handle)) from None
        predecessor = _read(handle)
        with file_errors(path):
            _write(handle, codec.to_text(holder))
        try:
            yield Lock(holder, predecessor)
        finally:
            _write(handle, "")
    finally:
        os.close(handle)


@contextmanager
def postgres_lock(database: Database, holder: Holder) -> Iterator[Lock]:
    """Hold PostgreSQL's advisory lock of the store's schema. Raises LockedError as `file_lock`.

    The server may end the session and so the lock while we live. Writes go on until another holder
    has put its name in place of ours; from then on they are refused with LockedError.
    """
    record = codec.to_text(holder)
    with database.errors(), database.engine.connect() as connection:
        try:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            predecessor = _acquire(connection, database.name)
            connection.execute(schema.holder.delete())
            connection.execute(schema.holder.insert().values(id=1, record=record))
            database.guard = partial(_refuse_after_another, database.name, record)
            try:
                yield Lock(holder, predecessor)
            finally:
                database.guard = None
                with database.engine.begin() as living:  # the session of the lock may be gone
                    living.execute(schema.holder.delete().where(schema.holder.c.record == record))
        finally:
            connection.invalidate()  # ends the session and with it the lock


def _refuse_after_another(name: str, record: str, connection: Connection) -> None:
    """Refuse a write where the holder's row is not `record`; it cannot be replaced before the write has ended."""
    found = connection.execute(select(schema.holder.c.record).with_for_update(read=True)).scalar()
    if found != record:
        raise LockedError(
            f"{name}: the connection that held the lock was cut, and {_parse(found or '') or 'another process'} took"
            " the run over; nothing more is written here, what was reported as stored is stored"
        )


def _acquire(connection: Connection, name: str) -> Holder | None:
    """Take the lock; the holder that stands beside it. A killed holder's session may take a moment to end."""
    if not connection.execute(select(func.pg_try_advisory_lock(_KEY))).scalar():
        found = _row(connection)
        if found is None or not found.is_dead or not _wait(connection):
            raise _busy(name, found)
    return _row(connection)


_KEY = func.hashtextextended(func.current_schema(), 0)


def _wait(connection: Connection) -> bool:
    connection.execute(text(f"SET lock_timeout = {_DEAD_MS}"))
    try:
        connection.execute(select(func.pg_advisory_lock(_KEY)))
    except DBAPIError:
        return False
    return True


def _row(connection: Connection) -> Holder | None:
    return _parse(connection.execute(select(schema.holder.c.record)).scalar() or "")


def _read(handle: int) -> Holder | None:
    return _parse(os.pread(handle, 4096, 0).decode(errors="replace"))


def _write(handle: int, content: str) -> None:
    os.ftruncate(handle, 0)
    os.pwrite(handle, content.encode(), 0)


def _parse(content: str) -> Holder | None:
    """None also where the name is unreadable, as a full disk may leave it: it only tells people."""
    try:
        fields = codec.from_text(content)
        return Holder(fields["name"], fields["host"], fields["pid"], parse_utc(fields["since"]))
    except (ValueError, TypeError, KeyError, RecordError):
        return None


def _busy(what: str, holder: Holder | None) -> LockedError:
    return LockedError(
        f"{what} is held by {holder or 'another process'}; wait until it ends, or stop it and run the command again"
    )
