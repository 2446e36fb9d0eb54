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
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from proof import page
from proof.ledger import Ledger
from proof.parts import Part, Task

from futureworld.errors import FutureWorldError

NAMES = ("learning", "controls", "long", "kills", "speed", "leaks")
ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    parts = {name: cast(Part, import_module(f"proof.{name}")) for name in NAMES}
    work = options.work or ROOT / "runs" / ("proof-short" if options.short else "proof")
    out = options.out or (work / "proof.json" if options.short else ROOT / "docs" / "proof.json")
    try:
        ledger = Ledger(out)
        if options.list:
            listing(ledger, parts)
            return 0
        failed = [] if options.page else measure(ledger, parts, options, work)
        page.write(ledger, parts, out.with_suffix(".md"))
    except FutureWorldError as error:
        print(f"prove: {error}", file=sys.stderr)
        return 2
    for line in failed:
        print(f"NOT FOUND  {line}")
    print(f"rows  {out}\npage  {out.with_suffix('.md')}")
    return 1 if failed else 0


def measure(ledger: Ledger, parts: Mapping[str, Part], options: argparse.Namespace, work: Path) -> list[str]:
    """Measure every missing row of the chosen parts; returns what was asked for and not found."""
    failed: list[str] = []
    for name in options.parts or NAMES:
        tasks = [task for task in parts[name].tasks(options.short) if not options.only or options.only in task.key]
        for task in tasks:
            if options.again:
                ledger.forget(name, task.key)
            if task.key not in ledger.rows(name):
                one(ledger, name, task, work)
            checks = ledger.rows(name)[task.key].get("checks", {})
            failed += [f"{name}, {task.key}: {wanted}" for wanted, holds in checks.items() if not holds]
    return failed


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
    parser.add_argument("--again", action="store_true", help="measure the chosen rows anew")
    parser.add_argument("--list", action="store_true", help="what is measured already")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    parser.add_argument("--work", type=Path, help="where runs and other working files are kept")
    parser.add_argument("--out", type=Path, help="the rows; the page stands beside them")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
