"""The short form of the part `leaks`, and what it says when something is wrong."""

import json
from pathlib import Path

import prove
import pytest
from cycle_parts import opened, small_config
from cycle_parts import play as play_days
from proof import leaks
from proof.plays import Play

from futureworld.agents.scripted import ScriptedEngine, search_then
from futureworld.cycle.evaluate import evaluate
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


def test_a_real_run_is_audited_once_it_is_finished(tmp_path: Path) -> None:
    play, folder = Play("some", {}), tmp_path / "leaks" / "real-run"
    with pytest.raises(RunError, match="measure the part `learning` first"):
        leaks.real(play, 0, folder)
    small = ("days=1", "evaluate.days=2", "evaluate.per_day=6", "evaluate.end_samples=2", "evaluate.bootstrap=100")
    with opened(tmp_path / "runs" / "some", small_config(tmp_path, *small)) as (run, clock, learner):
        play_days(run, clock, learner)
        evaluate(run, lambda: ScriptedEngine(search_then(lambda _: 0.7)))
    (tmp_path / "runs" / "some" / "run" / "summary.json").write_text("{}")
    row = leaks.real(play, 0, folder)
    assert (row["questions"], row["rollouts"], row["violations"]) == (12 + 12, 36 + 48, 0)
    assert row["checks"] == {"nothing from after asking was used or shown": True}
    assert leaks.real(play, 100, folder)["checks"]["at least 100 observations"] is False


def test_a_missing_recording_is_a_row_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "RECORDING", tmp_path / "nothing")
    row = leaks.recorded(5, 500, leaks.ENOUGH)
    assert row == {"skipped": "shared/worlds/2026 is not beside this checkout"}
    assert "recording 2026: not measured, shared/worlds/2026 is not" in leaks.section({"recording 2026": row}, tmp_path)
