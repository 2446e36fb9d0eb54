"""prove.py with a part of its own: rows are measured once, kept whole, and told on a page."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import prove
import pytest
from proof.parts import Task

from futureworld.errors import RunError


class Stones(ModuleType):
    """A part that weighs two stones; what it finds can be set."""

    TITLE = "Stones"

    def __init__(self) -> None:
        super().__init__("proof.stones")
        self.weighed: list[str] = []
        self.broken = False
        self.heavy = True

    def tasks(self, short: bool) -> list[Task]:
        return [Task(key, lambda folder, key=key: self.weigh(folder, key)) for key in ("stone 1", "stone 2")]

    def weigh(self, folder: Path, key: str) -> dict[str, object]:
        if self.broken and key == "stone 2":
            raise RunError("the scale is broken; mend it")
        self.weighed.append(key)
        return {"kg": 2, "where": str(folder / "here"), "checks": {"it is heavy": self.heavy or key == "stone 1"}}

    def section(self, rows: dict[str, dict[str, object]], pictures: Path) -> str:
        return ", ".join(f"{key}: {row['kg']} kg" for key, row in rows.items())


@pytest.fixture
def stones(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stones]:
    part = Stones()
    monkeypatch.setitem(sys.modules, "proof.stones", part)
    monkeypatch.setattr(prove, "NAMES", ("stones",))
    yield part


def run(tmp_path: Path, *more: str) -> int:
    return prove.main([*more, "--work", str(tmp_path / "work"), "--out", str(tmp_path / "proof.json")])


def test_a_row_is_measured_once(stones: Stones, tmp_path: Path) -> None:
    assert run(tmp_path) == 0
    assert run(tmp_path) == 0
    assert stones.weighed == ["stone 1", "stone 2"]
    assert "stone 1: 2 kg, stone 2: 2 kg" in (tmp_path / "proof.md").read_text()


def test_what_was_measured_before_an_error_stays(stones: Stones, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    stones.broken = True
    assert run(tmp_path) == 2
    assert "NOT MEASURED  stones, stone 2: the scale is broken; mend it" in capsys.readouterr().err
    stones.broken = False
    assert run(tmp_path) == 0
    assert stones.weighed == ["stone 1", "stone 2"]


def test_what_was_not_found_is_said_and_counted(stones: Stones, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    stones.heavy = False
    assert run(tmp_path) == 1
    assert "NOT FOUND  stones, stone 2: it is heavy" in capsys.readouterr().out
    assert "| it is heavy | 1 of 2 | stone 2 |" in (tmp_path / "proof.md").read_text()


def test_again_forgets_and_only_chooses(stones: Stones, tmp_path: Path) -> None:
    assert run(tmp_path, "--only", "2") == 0
    assert stones.weighed == ["stone 2"]
    assert "Not measured yet: stone 1." in (tmp_path / "proof.md").read_text()
    assert run(tmp_path) == 0
    assert run(tmp_path, "--again", "--only", "2") == 0
    assert stones.weighed == ["stone 2", "stone 1", "stone 2"]


def test_no_path_of_the_machine_is_kept(stones: Stones, tmp_path: Path) -> None:
    run(tmp_path)
    row = json.loads((tmp_path / "proof.json").read_text())["parts"]["stones"]["stone 1"]
    assert row["where"] == "WORK/stones/stone-1/here"
    assert row["machine"] in json.loads((tmp_path / "proof.json").read_text())["machines"]
    assert prove.anywhere({f"{prove.ROOT}/docs": [f"{prove.ROOT}/a", 1.5, None]}, tmp_path) == {
        "docs": ["a", 1.5, None]
    }


@pytest.mark.parametrize("text", ["{", "[]", "{}", "3"])
def test_a_damaged_ledger_is_refused_by_name(
    stones: Stones, tmp_path: Path, capsys: pytest.CaptureFixture, text: str
) -> None:
    (tmp_path / "proof.json").write_text(text)
    assert run(tmp_path) == 2
    assert "proof.json cannot be read" in capsys.readouterr().err


def test_wrong_words_are_refused(stones: Stones, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run(tmp_path, "--only", "wood") == 2
    assert "no measurement has 'wood' in its name; they are: stone 1; stone 2" in capsys.readouterr().err
    assert prove.main(["--out", str(tmp_path / "page.md")]) == 2
    assert "the rows are a .json file" in capsys.readouterr().err
