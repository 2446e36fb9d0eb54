"""kill -9 at every durable step of the store: nothing reported is lost, nothing is doubled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from samples import sample_rollout

from futureworld import faults
from futureworld.clock import SystemClock
from futureworld.store.store import Store

TESTS = Path(__file__).parents[1]


def run_child(folder: Path, url: str, action: str, fault: str) -> tuple[int, list[str]]:
    """Exit code and the ids that the child reported as stored."""
    done = subprocess.run(
        [sys.executable, str(TESTS / "store_child.py"), str(folder), url, action],
        env={**os.environ, "FUTUREWORLD_FAULT": fault},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.split()


@pytest.mark.parametrize(("fault", "kept"), [("rollouts.inserted:3", 6), ("rollouts.stored:3", 9)])
def test_e9_killed_while_storing_rollouts(tmp_path: Path, store_url: str, fault: str, kept: int) -> None:
    code, reported = run_child(tmp_path, store_url, "add", fault)
    assert (code, len(reported)) == (-9, 6)
    pairs = [sample_rollout(sample=i) for i in range(12)]
    with Store.open(tmp_path, store_url, SystemClock()) as store, store.lock("second try"):
        there = {forecast.id for forecast in store.forecasts()}
        assert set(reported) <= there
        assert len(there) == kept
        assert store.add_rollouts(pairs) == [False] * kept + [True] * (12 - kept)
        assert len(store.forecasts()) == 12
        assert store.trajectories([t.id for t, _ in pairs]) == [t for t, _ in pairs]


@pytest.mark.parametrize(
    ("place", "orphans"),
    [("compact.written", 1), ("compact.renamed", 1), ("compact.pointed", 1), ("compact.stored", 0)],
)
def test_e4_killed_while_compacting(tmp_path: Path, store_url: str, place: str, orphans: int) -> None:
    code, reported = run_child(tmp_path, store_url, "compact", place)
    assert (code, len(reported)) == (-9, 12)
    expected = {t.id: t for t, _ in (sample_rollout(sample=i) for i in range(12))}
    with Store.open(tmp_path, store_url, SystemClock()) as store, store.lock("second try"):
        assert store.trajectories(reported) == [expected[id_] for id_ in reported]
        assert store.remove_orphans() == orphans
        path = store.compact("train", reported)
        assert (path is None) == (orphans == 0)
        assert store.trajectories(reported) == [expected[id_] for id_ in reported]
        assert len(list(store.shards.iterdir())) == 1
        assert store.compact("train", reported) is None
        assert store.remove_orphans() == 0


def test_writing_rollouts_fails_whole(store: Store) -> None:
    faults.arm("rollouts.inserted", RuntimeError("power"))
    pairs = [sample_rollout(sample=i) for i in range(3)]
    with pytest.raises(RuntimeError, match="power"):
        store.add_rollouts(pairs)
    assert store.forecasts() == []
    assert store.add_rollouts(pairs) == [True] * 3
