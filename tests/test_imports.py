"""Imports run downhill: a package imports only from those above it in this list, or from itself."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = [
    ["errors", "wording", "faults", "rewards"],
    ["clock"],
    ["records", "config", "policies"],
    ["store"],
    ["worlds"],
    ["evaluation"],
    ["questions"],
    ["agents"],
    ["resolution"],
    ["pages"],
    ["cycle"],
    ["cli"],
]
HEIGHT = {name: level for level, names in enumerate(ORDER) for name in names}
HEAVY = {"torch", "ray", "vllm", "verl", "transformers", "tensordict", "verl_tool_future"}
FILES = sorted((ROOT / "futureworld").rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Every module that a file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names if node.module == "futureworld" else {node.module}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_downhill(path: Path) -> None:
    own = path.relative_to(ROOT / "futureworld").parts[0].removesuffix(".py")
    for module in imported(path):
        head, _, rest = module.partition(".")
        if head != "futureworld" or own == "__init__":
            continue
        other = rest.split(".")[0]
        assert other == own or HEIGHT[other] <= HEIGHT[own], f"{path.name} imports {module}"


def test_the_environment_never_imports_the_heavy_package_by_name() -> None:
    loading = {"cli/show.py"}  # decodes tokens of a trajectory, when asked for one
    for path in FILES:
        heavy = {module.split(".")[0] for module in imported(path)} & HEAVY
        assert not heavy or str(path.relative_to(ROOT / "futureworld")) in loading, f"{path} imports {heavy}"
