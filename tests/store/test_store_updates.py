"""Updates and checkpoints: each version once."""

import math
from dataclasses import replace
from datetime import date

import pytest

from futureworld import faults
from futureworld.errors import StoreError
from futureworld.records import Checkpoint, Update
from futureworld.store.store import Store

DAY = date(2026, 5, 5)
START = Checkpoint(0, "policy", "h0", None, None)
UPDATE = Update("u1", DAY, 0, 1, ("t1", "t2"), (1, 3), "h1", {"loss": 0.0, "kl": 1e-17})
MADE = Checkpoint(1, "checkpoints/1", "h1", "u1", DAY)


def test_an_update_is_stored_once_with_its_checkpoint(store: Store) -> None:
    assert store.add_checkpoint(START) is True
    assert store.add_checkpoint(START) is False
    assert store.add_update(UPDATE, MADE) is True
    assert store.add_update(replace(UPDATE, metrics={"loss": 1.0}), MADE) is False
    second = Update("u0", DAY, 1, 2, ("t3",), (0,), "h2", {"loss": math.inf})
    assert store.add_update(second, Checkpoint(2, "checkpoints/2", "h2", "u0", DAY)) is True
    assert store.updates() == [UPDATE, second]
    assert [checkpoint.version for checkpoint in store.checkpoints()] == [0, 1, 2]
    assert store.checkpoints()[:2] == [START, MADE]
    assert store.trained_ids() == {"t1", "t2", "t3"}


def test_a_version_is_made_once(store: Store) -> None:
    store.add_checkpoint(START)
    store.add_update(UPDATE, MADE)
    with pytest.raises(StoreError, match="version 1 was made by update u1, found u9"):
        store.add_update(replace(UPDATE, id="u9"), replace(MADE, update_id="u9"))
    with pytest.raises(StoreError, match="checkpoint 0 is stored with weights h0 at policy, found h7 at policy"):
        store.add_checkpoint(replace(START, weight_hash="h7"))
    with pytest.raises(StoreError, match="its checkpoint says"):
        store.add_update(replace(UPDATE, id="u2", version=2), MADE)
    assert store.updates() == [UPDATE]
    assert store.checkpoints() == [START, MADE]


def test_update_and_checkpoint_are_one_step(store: Store) -> None:
    faults.arm("update.inserted", RuntimeError("power"))
    with pytest.raises(RuntimeError):
        store.add_update(UPDATE, MADE)
    assert (store.updates(), store.checkpoints(), store.trained_ids()) == ([], [], set())
