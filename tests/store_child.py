"""A process for the store's crash tests: `store_child.py FOLDER URL add|compact|lock`.

It prints what the store has reported, line by line, so that the test knows what must be there.
"""

import sys
from pathlib import Path

from samples import sample_rollout

from futureworld.clock import SystemClock
from futureworld.store.store import Store


def main(folder: str, url: str, action: str) -> None:
    with Store.open(Path(folder), url, SystemClock()) as store:
        if action == "lock":
            with store.lock("predict of 2026-05-04"):
                print("held", flush=True)
                sys.stdin.read()
            return
        for start in range(0, 12, 3):
            batch = [sample_rollout(sample=i) for i in range(start, start + 3)]
            store.add_rollouts(batch)
            print("\n".join(trajectory.id for trajectory, _ in batch), flush=True)
        if action == "compact":
            store.compact("train", [forecast.id for forecast in store.forecasts()])


if __name__ == "__main__":
    main(*sys.argv[1:])
