"""It learns because of outcomes."""

from collections.abc import Sequence
from pathlib import Path

from proof.parts import Rows, Task

TITLE = "It learns because of outcomes"


def tasks(short: bool) -> Sequence[Task]:
    return []


def section(rows: Rows, pictures: Path) -> str:
    return ""
