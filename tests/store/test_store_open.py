"""Opening a store, its ledger, and what goes wrong with disks and versions."""

import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
from samples import sample_question, sample_rollout
from sqlalchemy import text

from futureworld.clock import FakeClock
from futureworld.errors import StoreError
from futureworld.store.store import Store

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_what_was_stored_is_there_after_opening_again(tmp_path: Path, store_url: str) -> None:
    pair = sample_rollout()
    with Store.open(tmp_path, store_url, FakeClock(NOON)) as store:
        store.set_meta("world", "almanac-1")
        store.save_questions("train/1", [sample_question()])
        store.add_rollouts([pair])
    with Store.open(tmp_path, store_url, FakeClock(NOON)) as store:
        assert store.meta("world") == "almanac-1"
        assert store.question_set("train/1") == (sample_question(),)
        assert store.trajectories([pair[0].id]) == [pair[0]]


def test_meta_is_missing_until_it_is_set(store: Store) -> None:
    assert store.meta("seed") is None
    store.set_meta("seed", "0")
    store.set_meta("seed", "")
    assert store.meta("seed") == ""


def test_a_job_is_finished_once(store: Store) -> None:
    assert store.finished("ask", "2026-05-04") is None
    assert store.finish("ask", "2026-05-04", {"asked": 0, "text": "\u2028"}) is True
    assert store.finish("ask", "2026-05-04", {"asked": 9}) is False
    assert store.finish("ask", "2026-05-05", {}) is True
    assert store.finish("predict", "2026-05-04", {}) is True
    assert store.finished("ask", "2026-05-04") == {"asked": 0, "text": "\u2028"}
    assert store.finished("ask", "2026-05-05") == {}
    assert [(job["stage"], job["key"]) for job in store.jobs()] == [
        ("ask", "2026-05-04"),
        ("ask", "2026-05-05"),
        ("predict", "2026-05-04"),
    ]
    assert store.jobs()[0]["finished_at"] == "2026-05-04T12:00:00Z"


def test_a_store_of_another_schema_version_is_refused(tmp_path: Path, store_url: str) -> None:
    with Store.open(tmp_path, store_url, FakeClock(NOON)) as store, store.database.write() as connection:
        connection.execute(text("UPDATE schema SET version = 99"))
    with pytest.raises(StoreError, match="has schema version 99, expected 1; open it with"):
        Store.open(tmp_path, store_url, FakeClock(NOON))


def test_sqlite_is_durable_at_every_commit(tmp_path: Path) -> None:
    with Store.open(tmp_path, "", FakeClock(NOON)) as store, store.database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000


def test_a_full_disk_is_said_and_loses_nothing(tmp_path: Path) -> None:
    kept = sample_rollout(sample=0)
    with Store.open(tmp_path, "", FakeClock(NOON)) as store:
        store.add_rollouts([kept])
        with store.database.read() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="disk is full; free some space and run the command again"):
            store.add_rollouts([sample_rollout(sample=i, answer="x" * 9000) for i in range(1, 9)])
        assert store.forecasts() == [kept[1]]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a Linux device on which every write fails")
def test_a_full_disk_under_the_shards_is_said(tmp_path: Path) -> None:
    pair = sample_rollout()
    with Store.open(tmp_path, "", FakeClock(NOON)) as store:
        store.add_rollouts([pair])
        path = store.compact("train", [pair[0].id])
        assert path is not None
        other = sample_rollout(sample=1)
        store.add_rollouts([other])
        expected = store.shards / path.name.replace(path.stem, _stem("train", other[0].id))
        os.symlink("/dev/full", expected.with_name(f".{expected.name}.tmp"))
        with pytest.raises(StoreError, match="No space left on device; free some space"):
            store.compact("train", [other[0].id])
        assert store.trajectories([other[0].id]) == [other[0]]


def _stem(name: str, id_: str) -> str:
    from futureworld.records import content_id

    return f"{name}-{content_id([id_])}"


def test_a_read_only_store_is_said(tmp_path: Path) -> None:
    Store.open(tmp_path, "", FakeClock(NOON)).close()
    with (
        pytest.raises(StoreError, match="readonly database; make the folder and its files writable"),
        Store.open(tmp_path, f"sqlite:///file:{tmp_path / 'store.db'}?mode=ro&uri=true", FakeClock(NOON)) as store,
    ):
        store.set_meta("a", "b")


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("hello " * 1000)
    with pytest.raises(StoreError, match=r"store\.db: file is not a database"):
        Store.open(tmp_path, "", FakeClock(NOON))


def test_a_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(StoreError, match="Not a directory"):
        Store.open(tmp_path / "run", "", FakeClock(NOON))


def test_urls_that_cannot_be_used(tmp_path: Path) -> None:
    for url in ("what", "oracle9://x"):
        with pytest.raises(StoreError, match=f"store URL '{url}' cannot be used"):
            Store.open(tmp_path, url, FakeClock(NOON))
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match=r"store postgresql\+psycopg://me:\*\*\*@127\.0\.0\.1:1/x: ") as refused:
        Store.open(tmp_path, "postgresql+psycopg://me:secret@127.0.0.1:1/x", FakeClock(NOON))
    assert "secret" not in str(refused.value)


def test_two_connections_wait_for_each_other(tmp_path: Path) -> None:
    with Store.open(tmp_path, "", FakeClock(NOON)) as store:
        other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert store.meta("a") is None  # readers do not wait for a writer
        other.execute("COMMIT")
        other.close()
        store.set_meta("a", "b")
