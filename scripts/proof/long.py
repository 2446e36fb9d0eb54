"""Thirty-two days."""

from collections.abc import Sequence
from pathlib import Path

from proof.parts import Rows, Task

TITLE = "Thirty-two days"


def tasks(short: bool) -> Sequence[Task]:
    return []


def section(rows: Rows, pictures: Path) -> str:
    return ""
