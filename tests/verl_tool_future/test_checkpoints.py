import hashlib
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from futureworld.errors import UpdateError
from verl_tool_future.checkpoints import Checkpoints, Marker, verify

WEIGHTS = {"embed": torch.arange(6.0).reshape(2, 3), "norm": torch.ones(3)}


def model_folder(folder: Path, weights: dict[str, torch.Tensor]) -> Path:
    folder.mkdir(parents=True)
    save_file(weights, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text("words")
    (folder / "config.json").write_text("{}")
    return folder


def saved_by_verl(checkpoints: Checkpoints, step: int, weights: dict[str, torch.Tensor]) -> None:
    """What verl's trainer leaves behind for `step`."""
    export = checkpoints.state(step) / "actor" / "huggingface"
    model_folder(export, weights)
    (export / "tokenizer.json").write_text("other words")
    (checkpoints.state(step) / "actor" / "optim_world_size_1_rank_0.pt").write_bytes(b"optimiser")
    (checkpoints.state(step) / "transfer_queue").mkdir()
    note(checkpoints).write_text(str(step))


def note(checkpoints: Checkpoints) -> Path:
    return checkpoints.verl / "latest_checkpointed_iteration.txt"


def finish(checkpoints: Checkpoints, step: int, model: Path) -> Marker:
    saved_by_verl(checkpoints, step, {name: tensor + step for name, tensor in WEIGHTS.items()})
    folder = checkpoints.export(step, model)
    marker = Marker(f"update{step}", "base", verify(folder, model), {"loss": 0.5})
    checkpoints.mark(step, marker)
    return marker


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return model_folder(tmp_path / "model", WEIGHTS)


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    made = Checkpoints(tmp_path / "checkpoints")
    made.verl.mkdir(parents=True)
    return made


def test_an_export_has_the_new_weights_and_the_models_own_tokenizer(checkpoints: Checkpoints, model: Path):
    marker = finish(checkpoints, 1, model)
    folder = checkpoints.version(1)
    assert (folder / "tokenizer.json").read_text() == "words"
    assert marker.weight_hash == hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()[:16]
    assert checkpoints.marker(1) == marker
    assert checkpoints.newest() == 1


def test_e4_a_version_without_its_marker_never_happened(checkpoints: Checkpoints, model: Path):
    finish(checkpoints, 1, model)
    saved_by_verl(checkpoints, 2, WEIGHTS)
    checkpoints.export(2, model)
    assert checkpoints.marker(2) is None
    assert checkpoints.newest() == 1
    checkpoints.discard_after(checkpoints.newest())
    assert not checkpoints.version(2).exists()
    assert not checkpoints.state(2).exists()
    assert note(checkpoints).read_text() == "1"
    assert checkpoints.marker(1) is not None


def test_e5_verls_note_follows_the_markers(checkpoints: Checkpoints, model: Path):
    saved_by_verl(checkpoints, 1, WEIGHTS)
    checkpoints.discard_after(0)
    assert not note(checkpoints).exists()
    assert list(checkpoints.verl.iterdir()) == []


def test_e4_a_half_written_export_is_removed(checkpoints: Checkpoints):
    (checkpoints.folder / ".v1").mkdir()
    (checkpoints.folder / ".v1" / "model.safetensors").write_bytes(b"half")
    checkpoints.discard_after(0)
    assert [path.name for path in checkpoints.folder.iterdir()] == ["verl"]


def test_e5_a_complete_version_without_a_resume_state_is_refused(checkpoints: Checkpoints):
    with pytest.raises(UpdateError, match="version 3 has no resume state"):
        checkpoints.discard_after(3)


def test_e6_e7_older_states_go_after_the_new_one_is_complete_whatever_their_order(
    checkpoints: Checkpoints, model: Path
):
    for step in (9, 10, 2):
        finish(checkpoints, step, model)
    checkpoints.prune(10)
    assert [path.name for path in checkpoints.verl.glob("global_step_*")] == ["global_step_10"]
    assert not (checkpoints.state(10) / "transfer_queue").exists()
    assert (checkpoints.state(10) / "actor" / "optim_world_size_1_rank_0.pt").exists()
    assert all(checkpoints.version(step).is_dir() for step in (2, 9, 10)), "every version's weights stay"


def test_an_unreadable_marker_is_an_error_and_not_a_missing_one(checkpoints: Checkpoints, model: Path):
    finish(checkpoints, 1, model)
    (checkpoints.version(1) / "COMPLETE").write_text('{"update_id": "half')
    with pytest.raises(UpdateError, match="cannot be read"):
        checkpoints.marker(1)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path, model: Path):
    broken = model_folder(tmp_path / "broken", WEIGHTS | {"norm": torch.tensor([1.0, float("nan"), 1.0])})
    with pytest.raises(UpdateError, match=r"norm in .* is not finite"):
        verify(broken, model)


@pytest.mark.parametrize("change", [{"norm": torch.ones(4)}, {"extra": torch.ones(1)}])
def test_weights_of_another_model_are_refused(tmp_path: Path, model: Path, change: dict[str, torch.Tensor]):
    other = model_folder(tmp_path / "other", WEIGHTS | change)
    with pytest.raises(UpdateError, match="are not those of the model"):
        verify(other, model)


def test_a_tied_head_may_be_stored_once_or_twice(tmp_path: Path, model: Path):
    twice = model_folder(tmp_path / "twice", WEIGHTS | {"lm_head.weight": torch.ones(2, 3)})
    assert verify(model, twice)
