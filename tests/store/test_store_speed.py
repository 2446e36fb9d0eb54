"""4,000 rollouts of 2,000 tokens: written durably in under 20 s, read back as one batch in under 10 s.

PostgreSQL gets a quarter of them, in a quarter of the time.
"""

import random
import time

from samples import sample_rollout

from futureworld.records import Forecast, Role, Span, Trajectory
from futureworld.store.store import Store

TOKENS, BATCH = 2000, 32


def rollouts(count: int) -> list[tuple[Trajectory, Forecast]]:
    rng = random.Random(0)
    ids = [tuple(rng.randrange(150_000) for _ in range(TOKENS)) for _ in range(8)]
    half = TOKENS // 2
    log_probs = [tuple(-rng.random() * 5 for _ in range(half)) + (None,) * half for _ in range(8)]
    spans = (Span(0, half, Role.POLICY), Span(half, TOKENS, Role.ENVIRONMENT, "search", "ok"))
    return [
        sample_rollout(f"q{i // 8}", sample=i % 8, ids=ids[i % 8], log_probs=log_probs[i % 8], spans=spans)
        for i in range(count)
    ]


def test_store_keeps_up_with_a_day(store: Store) -> None:
    share = 0.25 if store.database.is_postgres else 1.0
    pairs = rollouts(int(4000 * share))
    started = time.perf_counter()
    for start in range(0, len(pairs), BATCH):
        store.add_rollouts(pairs[start : start + BATCH])
    written = time.perf_counter()
    ids = [trajectory.id for trajectory, _ in pairs]
    store.compact("train", ids)
    compacted = time.perf_counter()
    back = store.trajectories(ids)
    read = time.perf_counter()
    print(f"write {written - started:.1f} s, compact {compacted - written:.1f} s, read {read - compacted:.1f} s")
    assert back == [trajectory for trajectory, _ in pairs]
    assert written - started < 20 * share
    assert read - compacted < 10 * share
