"""Bad input through the command's own entry: a sentence, exit code 1, nothing lost, no traceback."""

import sqlite3
import sys
from pathlib import Path

import pytest
from cycle_parts import make_policy, opened, small_config

from futureworld.cli import main as cli
from futureworld.config import load
from futureworld.cycle.day import Workers, predict_newest, update_next
from futureworld.errors import ConfigError, RunError

DAY = "2026-05-04"


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs a command line in this process; any exception but an expected one fails the test."""

    def call(*arguments: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", ["futureworld", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert stopped.value.code == 1
        return capsys.readouterr().err

    return call


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A run folder with one asked day."""
    from futureworld.cycle.ask import ask

    config = small_config(tmp_path)
    with opened(tmp_path, config) as (run, _, _):
        ask(run, config.start)
    return tmp_path / "run"


def no_worker() -> None:
    raise AssertionError("started although the stage must be refused")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("schedule.ask_at=20:00", "put it in quotes"),
        ("schedule.ask_at='20:00+02:00'", "has no zone of its own"),
        ("schedule.zone=Mars/X", "unknown zone"),
        ("rollout.n=true", "a number is expected"),
        ("seed=true", "a number is expected"),
        ("reward.missing=-.inf", "finite"),
        ("rollout.max_seconds=.inf", "finite"),
        ("start=9999-12-31", "less than or equal to"),
    ],
)
def test_values_that_would_mean_something_else_are_refused(override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(None, [override])
    assert load(None, ["schedule.ask_at='19:30'"]).schedule.ask_at.hour == 19


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\xff\xfe\x00", "codec"), (b"", "NoneType"), (b"5", "int"), (b": : x", "block"), (b"old: 1", "unknown")],
)
def test_an_unreadable_configuration_says_what_to_do(refused, asked: Path, content: bytes, said: str) -> None:
    (asked / "config.yaml").write_bytes(content)
    message = refused("show", "--run", asked, DAY)
    assert said in message
    assert "restore the file" in message
    (asked / "other.yaml").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in refused("replay", "--dry-run", "--config", asked / "other.yaml")


def test_what_cannot_be_opened_leaves_the_folder_free(refused, tmp_path: Path) -> None:
    run, policy = tmp_path / "run", make_policy(tmp_path / "policy")
    ask = ("ask", "--run", run, "--day", DAY, "--policy", policy)
    refused(*ask, "--world", tmp_path / "nowhere")
    refused(*ask, "--set", "store=postgresql+psycopg://x@127.0.0.1:1/db")
    refused("ask", "--run", run, "--day", DAY, "--policy", tmp_path / "none")
    assert not (run / "config.yaml").exists()


def test_a_store_that_was_lost_is_not_begun_anew(refused, asked: Path) -> None:
    (asked / "store.db").unlink()
    assert "holds nothing of the run; restore the store" in refused("show", "--run", asked, DAY)


def test_a_damaged_store_says_what_to_do(refused, asked: Path) -> None:
    with sqlite3.connect(asked / "store.db") as connection:
        connection.execute("UPDATE questions SET record = '{}'")
    assert "is damaged" in refused("show", "--run", asked, DAY)
    (asked / "store.db").write_text("garbage")
    assert "restore the store from a copy" in refused("show", "--run", asked, DAY)


def test_a_lock_file_that_names_nobody_locks_nobody(asked: Path, refused) -> None:
    (asked / "store.lock").write_bytes(b'{"name": "as\xff')
    assert "was not asked" in refused("show", "--run", asked, "2026-05-05")


@pytest.mark.parametrize("name", ["", "../x", "'; drop", "\udcff", "ffffffffffffffff"])
def test_show_of_a_strange_id(refused, asked: Path, name: str) -> None:
    refused("show", "--run", asked, name)


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "mysql://u:secret@h/d", "foo://u:secret@h", "u:secret@h and no url"]
)
def test_a_store_that_could_not_keep_a_run_is_refused(refused, tmp_path: Path, url: str) -> None:
    policy = make_policy(tmp_path / "policy")
    message = refused("ask", "--run", tmp_path / "run", "--day", DAY, "--policy", policy, "--set", f"store='{url}'")
    assert "leave it empty for SQLite" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("stage", "day"),
    [
        ("ask", "2026-05-06"),
        ("ask", "0001-01-01"),
        ("collect", "9999-12-31"),
        ("predict", "2026-05-03"),
        ("resolve", DAY),
        ("resolve", "2026-12-04"),
        ("update", DAY),
        ("day", "2025-01-01"),
    ],
)
def test_a_day_that_is_none_of_the_run_is_refused(refused, asked: Path, stage: str, day: str) -> None:
    message = refused(stage, "--run", asked, "--day", day)
    assert f"the run has no {stage} on {day}, only from 2026-05-0" in message


def test_a_stage_before_its_time_is_refused_and_not_taken_for_an_empty_day(tmp_path: Path) -> None:
    from futureworld.cycle.ask import ask
    from futureworld.cycle.resolve import resolve

    config = small_config(tmp_path)
    idle = Workers(no_worker, no_worker)  # type: ignore[arg-type]
    with opened(tmp_path, config) as (run, _, _):
        first, second = run.days
        with pytest.raises(RunError, match="was not asked yet"):
            resolve(run, second)
        with pytest.raises(RunError, match=r"run `futureworld resolve --run .* --day 2026-05-05` first"):
            update_next(run, second, idle)
        with pytest.raises(RunError, match=r"run `futureworld ask --run .* --day 2026-05-04` first"):
            predict_newest(run, first, idle)
        ask(run, first)
        assert resolve(run, second)["due"] == 12


@pytest.mark.parametrize(("start", "said"), [("2026-07-20", "start earlier"), ("2025-06-01", "start later")])
def test_a_start_that_allows_no_evaluation_leaves_the_folder_free(
    tmp_path: Path, refused, start: str, said: str
) -> None:
    run = tmp_path / "run"
    assert said in refused("replay", "--run", str(run), "--start", start)
    assert not run.exists()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", b"[]", "config.json cannot be read"),
        ("config.json", b"\xff\xfe", "config.json cannot be read"),
        ("config.json", b'{"max_position_embeddings": "9"}', "config.json cannot be read"),
        ("config.json", b'{"max_position_embeddings": 9}', "has 9 positions, fewer than rollout.max_tokens=512"),
        ("generation_config.json", b"{", "generation_config.json cannot be read"),
        ("generation_config.json", b'{"eos_token_id": "x"}', "generation_config.json cannot be read"),
    ],
)
def test_a_policy_folder_with_damaged_files_is_refused(tmp_path: Path, file: str, content: bytes, said: str) -> None:
    import shutil

    pytest.importorskip("transformers", reason="the policy's tokenizer needs the training extra")
    from futureworld.errors import PolicyError
    from futureworld.policies import pocket_folder
    from verl_tool_future.engine import renderer

    shutil.copytree(pocket_folder(), tmp_path / "policy")
    (tmp_path / "policy" / "pocket.json").unlink()
    (tmp_path / "policy" / file).write_bytes(content)
    with pytest.raises(PolicyError, match=said):
        renderer(tmp_path / "policy", 512)
