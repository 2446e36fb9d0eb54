"""`proof.md`: the page made from the rows, and nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proof.ledger import Ledger
from proof.parts import Part, Rows, table

HEAD = """# The proof

Every figure here was measured by `scripts/prove.py` and is kept in `proof.json`; this page is made from it.
`python scripts/prove.py PART` measures what is missing of a part and goes on where it was stopped;
`python scripts/prove.py --list` names the parts and what is measured already.
"""


def write(ledger: Ledger, parts: Mapping[str, Part], page: Path) -> None:
    """The whole page; a part without rows is named as not measured."""
    pictures = page.with_suffix("")
    pictures.mkdir(parents=True, exist_ok=True)
    sections = [HEAD, machines(ledger.machines())]
    for name, part in parts.items():
        rows = ledger.rows(name)
        ordered = {task.key: rows[task.key] for task in part.tasks(short=False) if task.key in rows} or dict(rows)
        sections.append(f"## {part.TITLE}\n")
        sections.append(part.section(ordered, pictures) if ordered else f"Not measured yet: `scripts/prove.py {name}`.")
        sections.append(verdicts(ordered))
        missing = [task.key for task in part.tasks(short=False) if task.key not in rows]
        if ordered and missing:
            sections.append("Not measured yet: " + ", ".join(missing) + ".")
    page.write_text("\n\n".join(section.strip() for section in sections if section.strip()) + "\n")


def verdicts(rows: Rows) -> str:
    """What was asked for, in how many of the measurements it was found, and in which it was not."""
    asked: dict[str, dict[str, bool]] = {}
    for key, row in rows.items():
        for wanted, holds in row.get("checks", {}).items():
            asked.setdefault(wanted, {})[key] = holds
    lines = [
        (wanted, f"{sum(found.values())} of {len(found)}", "; ".join(key for key, holds in found.items() if not holds))
        for wanted, found in asked.items()
    ]
    return table(("asked for", "found", "not found in"), lines) if lines else ""


def machines(found: Mapping[str, Any]) -> str:
    lines = []
    for one in found.values():
        packages = ", ".join(f"{name} {version}" for name, version in one["packages"].items())
        lines.append(
            f"Measured on {one['cores']} cores ({one['processor']}), {one['memory_gb']} GB, no GPU;"
            f" Python {one['python']}, {packages}."
        )
    return "\n\n".join(lines)
