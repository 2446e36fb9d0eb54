"""Rows over several ranks, by arithmetic: more than one was never run."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from verl_tool_future.trainer import DelayedTrainer


@pytest.mark.parametrize(
    ("rows", "mini_batches", "nodes", "gpus", "expected"),
    [(9, 4, 1, 1, 3), (8, 4, 1, 1, 2), (9, 4, 1, 2, 4), (4000, 16, 1, 8, 256), (4000, 16, 2, 8, 256), (3, 4, 1, 8, 8)],
)
def test_f10_a_mini_batch_is_the_same_number_of_rows_for_every_rank(
    rows: int, mini_batches: int, nodes: int, gpus: int, expected: int
) -> None:
    """The batch is padded to whole mini-batches, so that no rank waits for one that has none."""
    config = SimpleNamespace(trainer=SimpleNamespace(nnodes=nodes, n_gpus_per_node=gpus))
    size = DelayedTrainer._mini_batch(cast(Any, SimpleNamespace(config=config)), rows, mini_batches)
    assert size == expected
    assert size % (nodes * gpus) == 0
    assert size * mini_batches >= rows
