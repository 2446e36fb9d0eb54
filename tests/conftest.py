"""Databases to test on, and records to fill them with."""

import os
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from samples import sample_question, sample_rollout
from sqlalchemy import create_engine, make_url, text

from futureworld.clock import FakeClock
from futureworld.records import Forecast, Question, Trajectory
from futureworld.store.store import Store

POSTGRES = "FUTUREWORLD_POSTGRES"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty database: "" (SQLite in the store's folder), then a PostgreSQL schema of its own."""
    if request.param == "sqlite":
        yield ""
        return
    server = os.environ.get(POSTGRES)
    if server is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{POSTGRES} is not set; a skip of PostgreSQL is a failure in CI")
        pytest.skip(f"{POSTGRES} is not set; `scripts/postgres.sh` starts a server and prints its URL")
    name = f"test_{uuid.uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    url = make_url(server).update_query_dict({"options": f"-csearch_path={name}"})
    yield url.render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
    engine.dispose()


@pytest.fixture
def make_question() -> Callable[..., Question]:
    """A binary question about a series; `make_question("q1", domain="fuel", ...)`."""
    return sample_question


@pytest.fixture
def make_rollout() -> Callable[..., tuple[Trajectory, Forecast]]:
    """A rollout of one search and one answer; `make_rollout(sample=1, probability=0.25, ...)`."""
    return sample_rollout


@pytest.fixture
def store(tmp_path: Path, store_url: str) -> Iterator[Store]:
    """An empty store on each database; its clock stands at 2026-05-04 12:00 UTC."""
    with Store.open(tmp_path / "run", store_url, FakeClock(datetime(2026, 5, 4, 12, 0, tzinfo=UTC))) as opened:
        yield opened
