"""The command line as a person meets it: real processes, real exit codes, no tracebacks."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cycle_parts import make_policy

COMMAND = Path(sys.executable).with_name("futureworld")


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)


def refused(result: subprocess.CompletedProcess[str]) -> str:
    assert result.returncode != 0
    assert "Traceback" not in result.stderr + result.stdout
    return result.stderr


def test_help_is_quick_and_light() -> None:
    began = time.monotonic()
    result = call("--help")
    assert result.returncode == 0
    assert "replay" in result.stdout
    assert time.monotonic() - began < 2.0  # 0.1 s on a free core; CI's two are busy
    heavy = ("torch", "pandas", "ray", "numpy")
    code = f"import sys, futureworld.cli.main; print([name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "command",
    ["replay", "collect", "ask", "predict", "resolve", "update", "evaluate", "day", "show", "export", "world"],
)
def test_every_command_explains_itself(command: str) -> None:
    result = call(command, "--help")
    assert result.returncode == 0
    assert len(result.stdout) > 200


def test_dry_run_prints_the_resolved_configuration() -> None:
    import yaml

    result = call("replay", "--dry-run", "--days", "3", "--seed", "7", "--set", "rollout.n=4")
    resolved = yaml.safe_load(result.stdout)
    assert (resolved["days"], resolved["seed"], resolved["rollout"]["n"], resolved["start"]) == (3, 7, 4, "2026-05-04")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "rollout.temprature=1"], "did you mean 'rollout.temperature'"),
        (["--set", "rollout.n=0"], "rollout.n: input should be greater than or equal to 1, got 0"),
        (["--set", "rollout.n"], "not of the form section.key=value"),
        (["--set", "rollout.temperature=0"], "rollout.temperature must be > 0 for training, got 0.0"),
        (["--set", "rollout.top_p=0.9"], "rollout.top_p must be 1 for training"),
        (["--control", "magic"], "control"),
        (["--config", "missing.yaml"], "missing.yaml cannot be read"),
    ],
)
def test_c4_bad_configuration_is_a_sentence(arguments: list[str], said: str) -> None:
    assert said in refused(call("replay", "--dry-run", *arguments))


def test_a_missing_world_and_policy_say_what_to_do(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    assert "nowhere" in refused(call("ask", "--run", run, "--day", "2026-05-04", "--world", "nowhere"))
    message = refused(call("ask", "--run", run + "2", "--day", "2026-05-04", "--policy", str(tmp_path / "none")))
    assert "give a Hugging Face model folder or 'pocket'" in message


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    assert "is no run folder" in refused(call("predict", "--run", str(tmp_path), "--day", "2026-05-04"))


def test_stages_one_by_one(tmp_path: Path) -> None:
    run, policy = str(tmp_path / "run"), str(make_policy(tmp_path / "policy"))
    small = ["--policy", policy, "--set", "questions.per_day=12"]
    asked = call("ask", "--run", run, "--day", "2026-05-04", *small, "--json")
    assert json.loads(asked.stdout)["ask"]["asked"] == 12
    again = call("ask", "--run", run, "--day", "2026-05-04", "--json")
    assert json.loads(again.stdout) == json.loads(asked.stdout)
    resolved = call("resolve", "--run", run, "--day", "2026-05-05", "--json")
    assert json.loads(resolved.stdout)["resolve"]["due"] == 12
    shown = call("show", "--run", run, "2026-05-04")
    assert shown.stdout.count("Will ") == 12
    question = shown.stdout.splitlines()[1].split()[0]
    assert "outcome" in call("show", "--run", run, question).stdout
    assert "is no day, question or trajectory" in refused(call("show", "--run", run, "ffffffffffffffff"))
    other = call("ask", "--run", run, "--day", "2026-05-05", "--policy", policy, "--set", "questions.per_day=13")
    assert "questions.per_day: 12 there, 13 given" in refused(other)
    assert "already holds a run" in refused(call("replay", "--run", run))


def test_world_check_lists_faults_by_file_and_row(tmp_path: Path) -> None:
    (tmp_path / "series.jsonl").write_text('{"id": "a"}\n')
    result = call("world", "check", str(tmp_path))
    assert result.returncode == 1
    assert "series.jsonl" in result.stdout
    assert "Traceback" not in result.stderr


def test_world_show_prints_what_was_knowable() -> None:
    result = call("world", "show", "almanac", "--day", "2026-05-04")
    assert result.returncode == 0
    assert "fuel" in result.stdout
