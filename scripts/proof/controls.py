"""Controls: where learning must fail, it fails."""

from collections.abc import Sequence
from pathlib import Path

from proof.parts import Rows, Task

TITLE = "Controls: where learning must fail, it fails"


def tasks(short: bool) -> Sequence[Task]:
    return []


def section(rows: Rows, pictures: Path) -> str:
    return ""
