"""The update actor's life: made, waited for, killed with everything that it held."""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from futureworld.config import Config
from futureworld.errors import UpdateError
from verl_tool_future.runtime import start_ray
from verl_tool_future.transfer import Row
from verl_tool_future.update_config import update_config

RELEASE_SECONDS = 30.0
CAUSE = re.compile(r"[\w.]+(Error|Exception): .")
POOL, QUEUE = "global_pool", "TransferQueue"
"""How verl names a trainer's placement group, and TransferQueue its controller: both one at a time."""


class TrainerHandle:
    """One trainer process. A failed call leaves it unusable: `kill` it and make another.

    Every method raises UpdateError with what happened in the other process.
    """

    def __init__(self, config: Config, model: Path, state: Path, run_folder: Path) -> None:
        start_ray(config, run_folder)
        from verl_tool_future.trainer import UpdateActor

        self._actor: Any = UpdateActor.remote(update_config(config, model, state))

    def version(self) -> int:
        """The version that it resumed from or made last; waits until it is up."""
        return self._call(self._actor.version.remote())

    def step(self, rows: Sequence[Row], mini_batches: int) -> dict[str, float]:
        return self._call(self._actor.step.remote(rows, mini_batches))

    def save(self) -> None:
        self._call(self._actor.save.remote())

    def kill(self) -> None:
        """End it at once, and wait until its workers, queue and slots are free again."""
        import ray

        if not ray.is_initialized():  # it ended with its Ray
            return
        ray.kill(self._actor)
        _remove_pools()
        deadline = time.monotonic() + RELEASE_SECONDS
        while _held():
            if time.monotonic() > deadline:
                raise UpdateError(f"the trainer's Ray actors did not end within {RELEASE_SECONDS:.0f} s; end the run")
            time.sleep(0.1)

    def _call(self, reference: Any) -> Any:
        import ray
        from ray.exceptions import RayActorError, RayError

        try:
            return ray.get(reference)
        except RayError as error:
            cause = getattr(error, "cause", None) or error  # what was raised in the other process, if anything
            if isinstance(cause, RayActorError):  # of the trainer itself, or of a worker that it waited for
                raise UpdateError(
                    f"a trainer process died ({type(cause).__name__}: {_said(cause)}); see logs/ray in the run folder;"
                    " run again, the update starts from its base"
                ) from error
            if type(cause).__name__ == "OutOfMemoryError":  # of Ray, which says a page about its own settings
                raise UpdateError(
                    "the machine's memory ran out and Ray ended a worker of the trainer; leave the run more of it,"
                    " and run again, the update starts from its base"
                ) from error
            lines = str(cause).strip().splitlines() or ["no message"]
            raise UpdateError(
                f"the update failed in the trainer: {type(cause).__name__}: {lines[-1]}; see logs/ray in the run folder"
            ) from error


def _said(error: Exception) -> str:
    """The error that ended an actor's creation where its long message holds one, else its first sentence."""
    lines = str(error).strip().splitlines() or ["no message"]
    causes = [line.strip() for line in lines if CAUSE.match(line.strip())]
    return causes[-1] if causes else lines[0].partition(". ")[0].removesuffix(".")


def _pools() -> list[str]:
    import ray

    table = ray.util.placement_group_table().items()
    return [key for key, value in table if value["state"] != "REMOVED" and value["name"].startswith(POOL)]


def _remove_pools() -> None:
    """A dead actor's placement group stays and keeps its slot; the next trainer would find none."""
    import ray
    from ray._raylet import PlacementGroupID
    from ray.util.placement_group import PlacementGroup

    for key in _pools():
        ray.util.remove_placement_group(PlacementGroup(PlacementGroupID(bytes.fromhex(key))))


def _held() -> bool:
    import ray

    named: list[Any] = ray.util.list_named_actors(all_namespaces=True)
    return any(actor["name"].startswith(QUEUE) for actor in named) or bool(_pools())
