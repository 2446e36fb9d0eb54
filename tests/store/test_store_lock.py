"""One writer per store, and what a second one is told."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from futureworld.clock import SystemClock
from futureworld.errors import LockedError
from futureworld.store.store import Store

TESTS = Path(__file__).parents[1]


@contextmanager
def holding_child(folder: Path, url: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds the lock until its stdin closes or it is killed."""
    child = subprocess.Popen(
        [sys.executable, str(TESTS / "store_child.py"), str(folder), url, "lock"],
        env={key: value for key, value in os.environ.items() if key != "FUTUREWORLD_FAULT"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def test_second_writer_is_told_who_holds_the_lock(tmp_path: Path, store_url: str) -> None:
    with holding_child(tmp_path, store_url) as child, Store.open(tmp_path, store_url, SystemClock()) as store:
        with pytest.raises(LockedError) as refused, store.lock("me"):
            pass
        assert "predict of 2026-05-04" in str(refused.value)
        assert f"process {child.pid} on {socket.gethostname()}, since 20" in str(refused.value)
        child.communicate()  # closes its stdin; it leaves the lock in good order
        with store.lock("me") as lock:
            assert lock.taken_over_from is None
            assert lock.holder.pid == os.getpid()


def test_f1_lock_of_a_killed_process_is_taken_over(tmp_path: Path, store_url: str) -> None:
    with holding_child(tmp_path, store_url) as child, Store.open(tmp_path, store_url, SystemClock()) as store:
        child.kill()
        child.wait()
        with store.lock("me") as lock:
            assert lock.taken_over_from is not None
            assert (lock.taken_over_from.name, lock.taken_over_from.pid) == ("predict of 2026-05-04", child.pid)
        with store.lock("me again") as lock:
            assert lock.taken_over_from is None


def test_lock_is_free_after_an_error(store: Store) -> None:
    with pytest.raises(RuntimeError), store.lock("me"):
        raise RuntimeError("stage failed")
    with store.lock("me") as lock:
        assert lock.taken_over_from is None


def test_lock_is_not_given_twice_in_one_process(store: Store) -> None:
    with store.lock("outer"), pytest.raises(LockedError, match="outer"), store.lock("inner"):
        pass


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_f1_a_holder_whose_session_was_cut_writes_until_another_takes_over(tmp_path: Path, store_url: str) -> None:
    first, second = (Store.open(tmp_path, store_url, SystemClock()) for _ in range(2))
    with first, second, first.lock("first"):
        end_sessions_that_hold_a_lock(second)
        first.set_meta("world", "almanac")  # the lock is free, but nobody has it
        with second.lock("second") as lock:
            assert lock.taken_over_from is not None
            assert lock.taken_over_from.name == "first"
            with pytest.raises(LockedError, match=r"the lock was cut, and second \(process \d+ on .*took the run over"):
                first.set_meta("policy", "pocket")
            second.set_meta("policy", "other")
    with Store.open(tmp_path, store_url, SystemClock()) as store:
        assert (store.meta("world"), store.meta("policy")) == ("almanac", "other")


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_f1_an_ousted_holder_leaves_the_name_of_the_new_one(tmp_path: Path, store_url: str) -> None:
    first, second, third = (Store.open(tmp_path, store_url, SystemClock()) for _ in range(3))
    with first, second, third, ExitStack() as stack:
        with first.lock("first"):
            end_sessions_that_hold_a_lock(second)
            stack.enter_context(second.lock("second"))
        with pytest.raises(LockedError, match="is held by second"), third.lock("third"):
            pass


def end_sessions_that_hold_a_lock(store: Store) -> None:
    """End the sessions of advisory locks in this store's database, as an administrator may."""
    held = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND objid = :low"
    with store.database.engine.connect() as connection:
        key = connection.execute(text("SELECT hashtextextended(current_schema(), 0) & 4294967295")).scalar()
        ended = connection.execute(text(held), {"low": key}).scalars().all()
    assert ended == [True]
