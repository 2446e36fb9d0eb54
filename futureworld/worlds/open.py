"""Worlds by name: `almanac` is shipped, anything else is a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.resources import as_file, files
from pathlib import Path

from futureworld.worlds.recorded import RecordedWorld

ALMANAC = "almanac"


def open_world(name: str | Path, now: datetime | None = None) -> RecordedWorld:
    """The almanac, or the recorded world in the folder `name`.

    `now` is the real time of this machine (None: its clock), never that of a replay: rows known
    only later are refused. Raises WorldError for a folder that is missing or wrong.
    """
    with world_folder(name) as folder:
        return RecordedWorld.load(folder, now)


@contextmanager
def world_folder(name: str | Path) -> Iterator[Path]:
    """The folder behind a world's name, for as long as it is read."""
    if str(name) != ALMANAC:
        yield Path(name).expanduser()
        return
    with as_file(files("futureworld.worlds") / ALMANAC) as folder:
        yield folder
