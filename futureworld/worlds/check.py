"""What is wrong with a world's folder, by file and row."""

from datetime import datetime
from pathlib import Path

from futureworld.clock import SystemClock
from futureworld.errors import WorldError
from futureworld.worlds.reading import FILES, Problem, read


def check(folder: Path, now: datetime | None = None) -> list[Problem]:
    """Every problem of `folder`, by file and row; an empty list means it loads.

    `now` bounds the moments from which rows may be known; None is this machine's time. Raises
    WorldError where there is no such folder.
    """
    if not folder.is_dir():
        raise WorldError(f"world folder {folder} does not exist; name a folder that holds series.jsonl")
    problems = read(folder, now or SystemClock().now()).problems
    return sorted(problems, key=lambda problem: (FILES.index(problem.file), problem.row))
