"""The short form of the part `leaks`, and what it says when something is wrong."""

import json
from pathlib import Path

import prove
import pytest
from proof import leaks

from futureworld.errors import RunError


@pytest.mark.timeout(600)
def test_the_short_form_finds_no_leak_and_every_planted_one(tmp_path: Path) -> None:
    assert prove.main(["leaks", "--short", "--work", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "proof.json").read_text())["parts"]["leaks"]
    assert rows["almanac"]["violations"] == 0
    assert (rows["almanac"]["questions"], rows["almanac"]["observations"]) == (40, 400)
    planted = [row for key, row in rows.items() if key.startswith("planted")]
    assert len(planted) == 4
    assert all(row["found"] == row["spoiled"] > 0 and row["others"] == 0 for row in planted)
    page = (tmp_path / "proof.md").read_text()
    assert "| almanac@" in page and "| planted early in questions |" in page


def test_without_a_finished_run_the_real_runs_are_not_measured(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="measure that part first"):
        leaks.real(tmp_path / "leaks" / "real-runs", leaks.ENOUGH)


def test_a_missing_recording_is_a_row_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "RECORDING", tmp_path / "nothing")
    row = leaks.recorded(5, 500, leaks.ENOUGH)
    assert row == {"skipped": "shared/worlds/2026 is not beside this checkout"}
    assert "recording 2026: not measured, shared/worlds/2026 is not" in leaks.section({"recording 2026": row}, tmp_path)
