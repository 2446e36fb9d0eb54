"""From a Batch to the rows that travel through TransferQueue into verl's trainer.

A row is one trajectory: arrays on the driver's side (they pickle without copies), tensors and
keys on the trainer's side. verl finds a group's rows by the part of the key before the first
`_`, which is the group's name; it is unique per step, so that no earlier day's rows can join.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from futureworld.config import Config
from futureworld.cycle.batch import Batch, Member
from futureworld.errors import UpdateError
from futureworld.records import Trajectory, content_id

PARTITION = "train"


@dataclass(frozen=True, slots=True)
class Row:
    """One trajectory as trained on: prompt (P), response (R), mask (R, 1 on policy tokens),
    the sampler's log-probs (R, 0.0 where the mask is 0) and the reward of the whole."""

    group: str
    number: int
    prompt: NDArray[np.int64]
    response: NDArray[np.int64]
    mask: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    reward: float
    version: int

    @property
    def key(self) -> str:
        return f"{self.group}_{self.number}_0"

    def __len__(self) -> int:
        return len(self.prompt) + len(self.response)


def rows(batch: Batch, config: Config) -> list[Row]:
    """The batch's rows in its order. Raises UpdateError for one that must not be trained on."""
    if not batch.members:
        raise UpdateError(f"update {batch.step} has no members; skip it, a version needs a batch")
    made = [_row(member, batch.step, config) for member in batch.members]
    keys = [row.key for row in made]
    if len(set(keys)) != len(keys):
        raise UpdateError(f"update {batch.step} names a (question, sample) twice; every member must be another rollout")
    return made


def _row(member: Member, step: int, config: Config) -> Row:
    trajectory = member.trajectory
    _check(trajectory, config)
    return Row(
        group=content_id("group", step, trajectory.question_id),
        number=trajectory.sample,
        prompt=np.array(trajectory.prompt_ids, dtype=np.int64),
        response=np.array(trajectory.ids, dtype=np.int64),
        mask=np.array(trajectory.mask, dtype=np.int64),
        log_probs=np.array([p or 0.0 for p in trajectory.log_probs], dtype=np.float32),
        reward=member.reward,
        version=trajectory.policy_version,
    )


def _check(trajectory: Trajectory, config: Config) -> None:
    wanted = config.rollout
    fault = None
    if not trajectory.trainable or not any(trajectory.mask):
        fault = "has no token of the policy"
    elif not trajectory.prompt_ids:
        fault = "has no prompt"
    elif trajectory.logprobs_mode != "processed":
        fault = f"has {trajectory.logprobs_mode} log-probs, the trainer's are processed (after temperature)"
    elif (trajectory.temperature, trajectory.top_p) != (wanted.temperature, wanted.top_p):
        fault = (
            f"was sampled at temperature {trajectory.temperature}, top_p {trajectory.top_p}; the trainer's are"
            f" {wanted.temperature}, {wanted.top_p}"
        )
    if fault:
        raise UpdateError(f"trajectory {trajectory.id} {fault}; it cannot be trained on, leave it out of the batch")


def fields(row: Row) -> dict[str, Any]:
    """The tensors and plain values of one TransferQueue entry, under verl's names."""
    import torch

    prompt, response = torch.from_numpy(row.prompt), torch.from_numpy(row.response)
    mask = torch.from_numpy(row.mask)
    scores = torch.zeros(len(response), dtype=torch.float32)
    scores[-1] = row.reward
    return {
        "prompts": prompt,
        "responses": response,
        "input_ids": torch.cat([prompt, response]),
        "position_ids": torch.arange(len(row)),
        "response_mask": mask,
        "loss_mask": mask.clone(),
        "rollout_log_probs": torch.from_numpy(row.log_probs),
        "rm_scores": scores,
        "uid": row.group,
        "session_id": row.number,
        "num_turns": 1,
        "multi_modal_inputs": {},
        "extra_fields": {},
    }


def tag(row: Row) -> dict[str, Any]:
    return {
        "status": "success",
        "prompt_len": len(row.prompt),
        "response_len": len(row.response),
        "seq_len": len(row),
        "global_steps": row.version,
        "min_global_steps": row.version,
        "max_global_steps": row.version,
    }


def put(made: Sequence[Row], step: int) -> None:
    """Write rows and the markers of their finished groups into TransferQueue."""
    import transfer_queue as tq
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    tq.kv_batch_put(
        keys=[row.key for row in made],
        fields=list_of_dict_to_tensordict([fields(row) for row in made]),
        tags=[tag(row) for row in made],
        partition_id=PARTITION,
    )
    groups = list(dict.fromkeys(row.group for row in made))
    marker = {"is_prompt": True, "status": "finished", "global_steps": step}
    tq.kv_batch_put(keys=groups, tags=[dict(marker) for _ in groups], partition_id=PARTITION)


def clear() -> None:
    """Empty the partition: a resumed trainer brings the last day's rows back with it."""
    import transfer_queue as tq

    keys = list((tq.kv_list(PARTITION) or {}).get(PARTITION, {}))
    if keys:
        tq.kv_clear(keys=keys, partition_id=PARTITION)
