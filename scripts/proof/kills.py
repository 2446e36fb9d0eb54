"""Killed anywhere, nothing is lost."""

from collections.abc import Sequence
from pathlib import Path

from proof import kills_harms, kills_real, kills_scripted
from proof.parts import Rows, Task

TITLE = "Killed anywhere, nothing is lost"


def tasks(short: bool) -> Sequence[Task]:
    return [*kills_scripted.tasks(short), *kills_harms.tasks(short), *kills_real.tasks(short)]


def section(rows: Rows, pictures: Path) -> str:
    scripted, harms = (
        {task.key: rows[task.key] for task in half.tasks(short=False) if task.key in rows}
        for half in (kills_scripted, kills_harms)
    )
    real = {key: row for key, row in rows.items() if key not in scripted and key not in harms}
    parts = [(kills_scripted.section, scripted), (kills_harms.section, harms), (kills_real.section, real)]
    return "\n\n".join(made(some) for made, some in parts if some)
