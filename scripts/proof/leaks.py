"""Nothing from later was used or shown."""

from collections.abc import Sequence
from pathlib import Path

from proof.parts import Rows, Task

TITLE = "Nothing from later was used or shown"


def tasks(short: bool) -> Sequence[Task]:
    return []


def section(rows: Rows, pictures: Path) -> str:
    return ""
