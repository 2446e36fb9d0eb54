"""Policy versions on disk, and the order that makes an update happen exactly once.

    checkpoints/
      verl/global_step_<N>/   verl's resume state (shards, optimiser, schedule) of the newest version
      verl/latest_...txt      verl's note of it; corrected to follow our markers, never to lead
      v<N>/                   the Hugging Face folder of version N, kept for every version
      v<N>/COMPLETE           written last: update, base and weight hashes, metrics

A version without its marker never happened: `discard_after` removes it and whatever verl noted.
"""

import json
import math
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from futureworld.errors import UpdateError
from futureworld.policies import weight_hash

MARKER = "COMPLETE"
WEIGHTS = ("*.safetensors", "*.safetensors.index.json", "*.bin", "*.bin.index.json")


@dataclass(frozen=True, slots=True)
class Marker:
    """What a finished update was: made once, after everything else is on disk."""

    update_id: str
    base_hash: str
    weight_hash: str
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoint folder of a run."""

    folder: Path

    @property
    def verl(self) -> Path:
        return self.folder / "verl"

    def version(self, step: int) -> Path:
        return self.folder / f"v{step}"

    def state(self, step: int) -> Path:
        return self.verl / f"global_step_{step}"

    def newest(self) -> int:
        """The newest complete version; 0 where none was made."""
        steps = [int(path.parent.name.removeprefix("v")) for path in self.folder.glob(f"v*/{MARKER}")]
        return max(steps, default=0)

    def marker(self, step: int) -> Marker | None:
        """The marker of version `step`, None where it was not finished. Raises UpdateError when unreadable."""
        path = self.version(step) / MARKER
        try:
            return Marker(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise UpdateError(
                f"marker {path} cannot be read ({error}); remove its folder to make the version again"
            ) from None

    def mark(self, step: int, marker: Marker) -> None:
        """Flush the version's files and its resume state, then write its marker through a rename."""
        version = self.version(step)
        for path in [*version.rglob("*"), *self.verl.rglob("*")]:
            _flush(path)
        temporary = version / f".{MARKER}"
        temporary.write_text(json.dumps(asdict(marker), sort_keys=True), encoding="utf-8")
        _flush(temporary)
        temporary.rename(version / MARKER)
        _flush(version)
        _flush(self.folder)

    def export(self, step: int, model: Path) -> Path:
        """Move verl's exported weights to `v<step>`; every other file is version 0's, unchanged."""
        source, target = self.state(step) / "actor" / "huggingface", self.version(step)
        temporary = self.folder / f".v{step}"
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(model, temporary, ignore=shutil.ignore_patterns(*WEIGHTS, MARKER, ".*"))
        for pattern in WEIGHTS[:2]:
            for path in source.glob(pattern):
                shutil.move(path, temporary / path.name)
        temporary.rename(target)
        return target

    def discard_after(self, step: int) -> None:
        """Remove every version above `step` and point verl at `step`, the newest that is complete."""
        for path in [*self.folder.glob("v[0-9]*"), *self.folder.glob(".v[0-9]*")]:
            if int(path.name.lstrip(".v")) > step:
                shutil.rmtree(path)
        for path in self.verl.glob("global_step_*"):
            if int(path.name.removeprefix("global_step_")) > step:
                shutil.rmtree(path)
        self._point_verl_at(step)

    def prune(self, step: int) -> None:
        """Remove resume states older than the complete version `step`, and its copy of the batch."""
        for path in self.verl.glob("global_step_*"):
            if int(path.name.removeprefix("global_step_")) < step:
                shutil.rmtree(path)
        shutil.rmtree(self.state(step) / "transfer_queue", ignore_errors=True)

    def _point_verl_at(self, step: int) -> None:
        note = self.verl / "latest_checkpointed_iteration.txt"
        if step == 0:
            note.unlink(missing_ok=True)
            return
        if not self.state(step).is_dir():
            raise UpdateError(
                f"version {step} has no resume state at {self.state(step)}; restore the folder, or start a new run from"
                f" {self.version(step)}"
            )
        temporary = note.with_suffix(".tmp")
        temporary.write_text(str(step), encoding="utf-8")
        temporary.replace(note)


TIED = "lm_head.weight"
"""Left out of an export where it is the embedding, which some folders store twice."""


def verify(folder: Path, model: Path) -> str:
    """The weight hash of `folder` after reading every tensor back.

    Raises UpdateError unless names and shapes are those of `model` and every value is finite.
    """
    made, wanted = shapes(folder), shapes(model)
    odd = [item for item in made.items() ^ wanted.items() if item[0] != TIED or item[0] in made]
    if odd:
        raise UpdateError(f"weights in {folder} are not those of the model in {model}: {sorted(odd)[:3]}")
    for path in sorted(folder.glob("*.safetensors")):
        _check_finite(path)
    return weight_hash(folder)


def shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Tensor name -> shape over the folder's safetensors files."""
    from safetensors import safe_open

    found: dict[str, tuple[int, ...]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            found |= {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    return found


def _check_finite(path: Path) -> None:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        for name in file.keys():  # noqa: SIM118
            if not math.isfinite(file.get_tensor(name).double().abs().sum().item()):
                raise UpdateError(f"{name} in {path} is not finite; the update diverged, lower update.learning_rate")


def _flush(path: Path) -> None:
    """fsync a file or a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
