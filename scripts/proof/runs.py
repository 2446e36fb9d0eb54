"""Real runs for the proof: made by the command line in processes of their own, kept, and gone on with.

A run stands at NAME/run of a shared folder, its log beside it; parts that need the same run find it there.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from futureworld.config import load
from futureworld.cycle.run import CONFIG_FILE, Run, check_config, open_run, read_config
from futureworld.errors import RunError

COMMAND = Path(sys.executable).with_name("futureworld")
ENVIRONMENT = {"WANDB_MODE": "offline", "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
TAIL = 12
"""Lines of a failed process's log that the error shows."""

Settings = Mapping[str, object]
"""Keys of the configuration that differ from the defaults; values as `--set` reads them."""


def shared(folder: Path) -> Path:
    """Where the parts keep the runs that they share, from the folder of one task."""
    return folder.parent.parent / "runs"


def replayed(folder: Path, settings: Settings, recipe: Path | None = None) -> Path:
    """The finished run in `folder`, made or gone on with by `futureworld replay`; `recipe` is a YAML file.

    Raises RunError with the end of its log where the command fails, and where the run was made with
    another configuration than this one.
    """
    run = folder / "run"
    overrides = [f"{key}={value}" for key, value in settings.items()]
    check_config(run, load(recipe, overrides))
    if not (run / "summary.json").exists():
        resume = ["--resume"] if (run / CONFIG_FILE).exists() else []
        given = ["--config", str(recipe)] if recipe is not None else []
        called(["replay", "--run", str(run), *resume, *given, *(f"--set={one}" for one in overrides)], folder)
    return run


def more_answers(run: Path, versions: Sequence[int], samples: int) -> None:
    """Let checkpoints `versions` answer the held-out set `samples` times; what is there already stays."""
    arguments = [str(run), str(samples), *map(str, versions)]
    child([sys.executable, "-m", "proof.answers", *arguments], run.parent / "answers.log")


def evaluated_as(run: Path, folder: Path, control: str, versions: Sequence[int]) -> Path:
    """A run in `folder` that trains nothing: checkpoints of `run`, evaluated under `control`."""
    made = folder / "run"
    config = read_config(run).model_copy(update={"control": control})
    with opened(run) as source:
        chosen = [
            replace(one, path=str(source.checkpoint_path(one).resolve()), update_id=None)
            for one in source.store.checkpoints()
            if one.version in versions and one.version > 0  # every run has version 0 by itself
        ]
    with open_run(made, config) as target:
        for checkpoint in chosen:
            target.store.add_checkpoint(checkpoint)
    if not (made / "summary.json").exists():
        called(["evaluate", "--run", str(made)], folder)
    return made


@contextmanager
def opened(run: Path) -> Iterator[Run]:
    """A finished run, to be read."""
    with open_run(run, read_config(run), holder="proof") as found:
        yield found


def called(arguments: Sequence[str], folder: Path) -> None:
    """`futureworld ARGUMENTS`, its log in `folder`. Raises RunError where it fails."""
    child([str(COMMAND), *arguments], folder / f"{arguments[0]}.log")


def child(command: Sequence[str], log: Path) -> None:
    """Run `command`; what it says goes to the terminal and into `log`. Raises RunError with the log's end."""
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | ENVIRONMENT | {"PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    environment.pop("WANDB_API_KEY", None)
    with (
        log.open("a") as kept,
        subprocess.Popen(
            list(command), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as running,
    ):
        assert running.stdout is not None
        for line in running.stdout:
            kept.write(line)
            kept.flush()
            print(f"    {line}", end="", flush=True)
    if running.returncode:
        tail = "\n".join(log.read_text().splitlines()[-TAIL:])
        raise RunError(f"{' '.join(command[:3])} ended with {running.returncode}; the end of {log}:\n{tail}")
