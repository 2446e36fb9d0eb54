"""Measure what is claimed of FutureWorld: rows in docs/proof.json, and docs/proof.md made from them.

    python scripts/prove.py [PART ...]       all parts, or the named ones; goes on where it was stopped
    python scripts/prove.py --short PART     a form of minutes, kept apart (runs/proof-short)
    python scripts/prove.py --list           the parts, and how many of their rows are there
    python scripts/prove.py --page           write the page again from the rows

Exit code 1: something that was asked for was not found; 2: it could not be measured.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from proof import page
from proof.ledger import Ledger
from proof.parts import Part, Task

from futureworld.errors import FutureWorldError, RunError

NAMES = ("learning", "controls", "long", "kills", "speed", "leaks")
ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    parts = {name: cast(Part, import_module(f"proof.{name}")) for name in NAMES}
    work = options.work or ROOT / "runs" / ("proof-short" if options.short else "proof")
    out = options.out or (work / "proof.json" if options.short else ROOT / "docs" / "proof.json")
    try:
        if out.suffix != ".json":
            raise RunError(f"--out {out}: the rows are a .json file; the page stands beside it")
        ledger = Ledger(out)
        if options.list:
            listing(ledger, parts)
            return 0
        outcome = Outcome() if options.page else measure(ledger, parts, options, work)
        page.write(ledger, parts, out.with_suffix(".md"))
    except (FutureWorldError, OSError) as error:
        print(f"prove: {error}", file=sys.stderr)
        return 2
    for line in outcome.not_found:
        print(f"NOT FOUND  {line}")
    for line in outcome.not_measured:
        print(f"NOT MEASURED  {line}", file=sys.stderr)
    print(f"rows  {out}\npage  {out.with_suffix('.md')}")
    return 2 if outcome.not_measured else 1 if outcome.not_found else 0


@dataclass(slots=True)
class Outcome:
    """What was asked for and not found, and what could not be measured, a line each."""

    not_found: list[str] = field(default_factory=list)
    not_measured: list[str] = field(default_factory=list)


def measure(ledger: Ledger, parts: Mapping[str, Part], options: argparse.Namespace, work: Path) -> Outcome:
    """Measure every missing row of the chosen parts. One that cannot be measured does not stop the others."""
    found = Outcome()
    tasks = [(name, task) for name in options.parts or NAMES for task in parts[name].tasks(options.short)]
    chosen = [(name, task) for name, task in tasks if not options.only or options.only in task.key]
    if not chosen:
        names = "; ".join(task.key for _, task in tasks)
        raise RunError(f"no measurement has {options.only!r} in its name; they are: {names}")
    for name, task in chosen:
        if options.again:
            ledger.forget(name, task.key)
        if task.key not in ledger.rows(name):
            try:
                one(ledger, name, task, work)
            except FutureWorldError as error:
                found.not_measured.append(f"{name}, {task.key}: {error}")
                continue
        checks = ledger.rows(name)[task.key].get("checks", {})
        found.not_found += [f"{name}, {task.key}: {wanted}" for wanted, holds in checks.items() if not holds]
    return found


def one(ledger: Ledger, name: str, task: Task, work: Path) -> None:
    print(f"{name}: {task.key} ...", flush=True)
    folder = work / name / "".join(c if c.isalnum() or c in "-." else "-" for c in task.key)
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    row = task.work(folder)
    seconds = time.monotonic() - began
    ledger.add(name, task.key, anywhere(row, work) | {"seconds": round(seconds, 1)})
    print(f"{name}: {task.key} done ({seconds:.0f} s)", flush=True)


def anywhere(value: Any, work: Path) -> Any:
    """`value` without this machine's paths: the working folder is WORK, the project's root is dropped."""
    if isinstance(value, str):
        return value.replace(str(work), "WORK").replace(f"{ROOT}/", "")
    if isinstance(value, dict):
        return {anywhere(key, work): anywhere(item, work) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [anywhere(item, work) for item in value]
    return value


def listing(ledger: Ledger, parts: Mapping[str, Part]) -> None:
    for name, part in parts.items():
        tasks = part.tasks(short=False)
        done = sum(task.key in ledger.rows(name) for task in tasks)
        print(f"{name:<10} {done:>3} of {len(tasks):>3} rows  {part.TITLE}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[*NAMES, []], help=", ".join(NAMES))
    parser.add_argument("--only", metavar="TEXT", help="only measurements whose name holds TEXT")
    parser.add_argument("--short", action="store_true", help="the short form, kept apart")
    parser.add_argument("--again", action="store_true", help="make the chosen rows anew, from the runs that are there")
    parser.add_argument("--list", action="store_true", help="what is measured already")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    parser.add_argument("--work", type=Path, help="where runs and other working files are kept")
    parser.add_argument("--out", type=Path, help="the rows; the page stands beside them")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
