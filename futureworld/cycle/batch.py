"""What an update is made of: trajectories joined with their rewards, in whole groups."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Protocol

from futureworld.records import Checkpoint, Trajectory


@dataclass(frozen=True, slots=True)
class Member:
    """A trajectory of the batch. `age` is days between asking and training."""

    trajectory: Trajectory
    reward: float
    age: int


@dataclass(frozen=True, slots=True)
class Batch:
    """One update's input: members in question order, every group of at least two.

    `step` is the version that the update makes; `base` the checkpoint it starts from.
    `dropped` counts what was left out, by reason.
    """

    day: date
    step: int
    base: Checkpoint
    members: tuple[Member, ...]
    dropped: Mapping[str, int]

    @property
    def groups(self) -> int:
        return len({member.trajectory.question_id for member in self.members})


@dataclass(frozen=True, slots=True)
class Learned:
    """What a learner made: a Hugging Face folder, the hash of its weights, its metrics."""

    path: Path
    weight_hash: str
    metrics: Mapping[str, float]


class Learner(Protocol):
    """Takes one optimiser pass over a batch. Stays up over days.

    `update` is repeatable: when `step` was already made from this batch and its marker stands,
    it returns that result; a half-made one is thrown away and made again. Raises UpdateError.
    """

    def start(self) -> None: ...

    def update(self, batch: Batch) -> Learned: ...

    def stop(self) -> None: ...


def whole_groups(members: Iterable[Member]) -> tuple[tuple[Member, ...], int]:
    """Members of groups of at least two, ordered by (question, sample); and how many were alone."""
    groups: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        groups[member.trajectory.question_id].append(member)
    kept = [member for group in groups.values() if len(group) > 1 for member in group]
    alone = sum(len(group) for group in groups.values() if len(group) == 1)
    kept.sort(key=lambda member: (member.trajectory.question_id, member.trajectory.sample))
    return tuple(kept), alone
