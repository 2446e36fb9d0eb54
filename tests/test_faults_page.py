"""docs/faults.md names tests; every name must still be one, and no fault of a family may be passed over."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LIST = ROOT.parent / "shared" / "known-faults.md"


def page() -> str:
    return (ROOT / "docs" / "faults.md").read_text()


def defined() -> list[str]:
    code = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    return re.findall(r"def (test_\w+)", code)


def rows() -> set[str]:
    """The letters of the page's rows: A1, A2, ..."""
    first = [line.split("|")[1] for line in page().splitlines() if line.startswith("| ")]
    return {name for cell in first for name in re.findall(r"\b[A-L]\d+\b", cell)}


def test_every_test_that_the_page_names_exists() -> None:
    names = [name.rstrip("*") for name in re.findall(r"`(test_[a-z0-9_]+\*?)`", page())]
    found = defined()
    assert len(names) > 70
    assert [name for name in names if not any(test.startswith(name) for test in found)] == []


def test_every_letter_of_a_test_is_a_row_of_its_family() -> None:
    families = set(re.findall(r"^## ([A-L])\.", page(), re.MULTILINE))
    for test in defined():
        letters = re.match(r"test_((?:[a-l]\d+_)+)", test)
        for name in (letters[1].upper().split("_") if letters else ())[:-1]:
            assert name in rows() or name[0] not in families, f"{test}: {name} is no row of docs/faults.md"


def test_no_fault_of_a_family_on_the_page_is_passed_over() -> None:
    if not LIST.exists():
        pytest.skip("../shared/known-faults.md is not beside this checkout")
    known = set(re.findall(r"^- \*\*([A-L]\d+) ", LIST.read_text(), re.MULTILINE))
    families = set(re.findall(r"^## ([A-L])\.", page(), re.MULTILINE))
    assert len(known) > 120
    assert families >= {"A", "B", "C", "D", "E", "F", "G", "J", "K"}
    assert sorted(name for name in known - rows() if name[0] in families) == []
