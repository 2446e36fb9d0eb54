"""What a part of the proof is: tasks that each leave one row, and a section of the page made from the rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

Row = dict[str, Any]
"""Plain JSON values. `checks` maps what was asked for, in words, to whether it was found."""

Rows = Mapping[str, Row]
"""The rows of a part by their task's key, in the order of the tasks."""


@dataclass(frozen=True, slots=True)
class Task:
    """One measurement. `work` gets a folder of its own, which it finds again when it was interrupted."""

    key: str
    work: Callable[[Path], Row]


class Part(Protocol):
    """A module of this package."""

    TITLE: str

    def tasks(self, short: bool) -> Sequence[Task]:
        """Every measurement, in order; `short` ones show in minutes that the long ones would run."""
        ...

    def section(self, rows: Rows, pictures: Path) -> str:
        """Markdown below the part's title; pictures are drawn into the folder `pictures`, beside the page."""
        ...


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is words, the others are figures."""
    marks = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, marks, *lines])


def interval(estimate: float, low: float, high: float, digits: int = 3) -> str:
    return f"{estimate:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"
