"""What the terminal shows: rich progress for people, JSON for machines, errors as sentences."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from futureworld.cycle.report import Bar


class RichReporter:
    """Progress bars on a terminal, plain lines elsewhere; everything goes to standard error."""

    def __init__(self) -> None:
        from rich.console import Console

        # The stream of now: libraries that start later may be sent to a log file.
        self._console = Console(file=sys.stderr, highlight=False)

    def line(self, text: str) -> None:
        self._console.print(text, markup=False)

    @contextmanager
    def bar(self, title: str, total: int) -> Iterator[Bar]:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        if not self._console.is_terminal:
            yield _NoBar()
            return
        counted = [BarColumn(), MofNCompleteColumn()] if total else []
        columns = [SpinnerColumn(), TextColumn("{task.description}"), *counted, TimeElapsedColumn()]
        with Progress(*columns, console=self._console, transient=True) as progress:
            task = progress.add_task(title, total=total or None)
            yield _RichBar(progress, task)


class _NoBar:
    def advance(self, steps: int = 1) -> None:
        pass


class _RichBar:
    def __init__(self, progress: Any, task: Any) -> None:
        self._progress, self._task = progress, task

    def advance(self, steps: int = 1) -> None:
        self._progress.advance(self._task, steps)


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")


def print_summary(name: str, summary: dict[str, Any], as_json: bool) -> None:
    """A stage's summary: one line of counts, or JSON."""
    if as_json:
        print_json({name: summary})
        return
    flat = ", ".join(f"{key} {_short(value)}" for key, value in summary.items() if value not in ({}, None))
    print(f"{name}: {flat}")


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "(" + ", ".join(f"{key} {_short(item)}" for key, item in value.items()) + ")"
    return str(value)
