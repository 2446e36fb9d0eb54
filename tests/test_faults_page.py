"""docs/faults.md names tests; every name must still be one."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_test_that_the_page_names_exists() -> None:
    page = (ROOT / "docs" / "faults.md").read_text()
    names = [name.rstrip("*") for name in re.findall(r"`(test_[a-z0-9_]+\*?)`", page)]
    code = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    found = re.findall(r"def (test_\w+)", code)
    assert len(names) > 40
    assert [name for name in names if not any(test.startswith(name) for test in found)] == []
