"""What is logged and summed up: on the right axis, under the right name, and nothing late dropped."""

import json
import math
import struct
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cycle_parts import opened, play, small_config

from futureworld.agents.scripted import ScriptedEngine, search_then
from futureworld.cli.table import closing_table
from futureworld.cycle.evaluate import evaluate
from futureworld.cycle.heldout import HELD_OUT
from futureworld.cycle.replay import Replayed
from futureworld.cycle.summary import day_row, finite, summarize
from futureworld.cycle.tracking import WandbTracker, numbers, tracker
from futureworld.records import Purpose

DAY = date(2026, 5, 4)


def logged(folder: Path) -> list[dict[str, Any]]:
    """The history rows of an offline wandb run, read back from its file."""
    from wandb.proto import wandb_internal_pb2

    (path,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    found = []
    for data in log_records(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            found.append({"/".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item})
    return found


def log_records(data: bytes) -> Iterator[bytes]:
    """Records of a LevelDB log behind a header of 7 bytes: blocks of 32 KiB, chunks of (crc, length, type)."""
    position, whole = 7, b""
    while position + 7 <= len(data):
        if 32768 - position % 32768 < 7:
            position += 32768 - position % 32768
            continue
        _crc, length, kind = struct.unpack_from("<IHB", data, position)
        whole += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # a whole record, or the last chunk of one
            yield whole
            whole = b""


def test_g1_g2_late_values_keep_their_own_axis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    tracking = tracker(small_config(tmp_path, "tracking=wandb"), tmp_path)
    tracking.log({"day": 5, "resolve/resolved": 3})
    tracking.log({"day": 2, "resolve/resolved": 7})  # late
    tracking.log({"update": 0, "update/trained": 11})  # an axis value of 0 stays 0 (G3)
    tracking.finish()
    rows = [{k: v for k, v in row.items() if not k.startswith("_")} for row in logged(tmp_path)]
    assert rows == [
        {"day": 5, "resolve/resolved": 3},
        {"day": 2, "resolve/resolved": 7},
        {"update": 0, "update/trained": 11},
    ]
    assert WandbTracker.AXES["resolve"] == "day"


def test_g4_values_of_a_day_describe_that_day(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path)) as (run, clock, learner):
        play(run, clock, learner, answer=lambda _: 1.0)
        for day in run.days:
            row = day_row(run, day)
            outcomes = run.store.outcomes([q.id for q in run.store.question_set(f"train/{day}") or ()])
            noes = [outcome.value == 0.0 for outcome in outcomes.values()]
            assert row["brier"] == pytest.approx(sum(noes) / len(noes))
            assert row["reward_mean"] == pytest.approx(-row["brier"])


def test_g5_a_rollout_is_in_one_days_figures(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path)) as (run, clock, learner):
        play(run, clock, learner)
        rows = [day_row(run, day) for day in run.days]
        assert sum(row["rollouts"] for row in rows) == len(run.store.forecasts(purpose=Purpose.TRAIN))
        assert sum(row["trained"] for row in rows) == len(run.store.trained_ids())


def test_g7_rates_say_their_denominator(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, "days=1")) as (run, clock, learner):
        said = iter([0.7, 7.0] * 100)  # every second answer is out of range
        play(run, clock, learner, answer=lambda _: next(said))
        row = day_row(run, DAY)
        assert row["rollouts"] == 36
        assert row["answered_rate"] == pytest.approx(0.5)
        # The Brier score is over answers, the reward over all rollouts with -1 where there is none.
        assert row["reward_mean"] == pytest.approx(0.5 * -row["brier"] + 0.5 * -1.0)


def test_d9_the_logged_reward_is_the_trained_one(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, "days=1")) as (run, clock, learner):
        done = play(run, clock, learner)
        (batch,) = learner.batches
        trained = [member.reward for member in batch.members]
        assert done[-1]["update"]["metrics"]["reward_mean"] == pytest.approx(sum(trained) / len(trained))
        assert day_row(run, DAY)["reward_mean"] == pytest.approx(sum(trained) / len(trained))


def test_c12_lag_is_one_update_by_one_definition(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path, "days=4")) as (run, clock, learner):
        play(run, clock, learner)
        lags = [
            {batch.base.version - member.trajectory.policy_version for member in batch.members}
            for batch in learner.batches
        ]
        assert lags == [{0}, {1}, {1}, {1}]


def test_g9_numbers_are_plain_and_nan_is_null() -> None:
    assert finite({"a": [math.nan, 1.5], "b": {"c": math.inf}}) == {"a": [None, 1.5], "b": {"c": None}}
    flat = numbers("update", {"loss": np.float64(0.5), "metrics": {"lr": 1e-4}, "name": "x", "skipped": True})
    assert flat == {"update/loss": 0.5, "update/metrics/lr": 1e-4}


def test_g11_metrics_are_the_stored_rows(tmp_path: Path) -> None:
    with opened(tmp_path, small_config(tmp_path)) as (run, clock, learner):
        play(run, clock, learner)
        lines = (run.folder / "metrics.jsonl").read_text().split("\n")
        assert [json.loads(line) for line in lines if line] == run.store.jobs()
        assert HELD_OUT not in {job["key"] for job in run.store.jobs()}


def test_g8_a_mean_of_samples_is_named_after_how_many_there_were(tmp_path: Path) -> None:
    config = small_config(
        tmp_path, "evaluate.days=2", "evaluate.per_day=6", "evaluate.end_samples=3", "evaluate.bootstrap=100"
    )
    with opened(tmp_path, config) as (run, clock, learner):
        play(run, clock, learner)
        engine = ScriptedEngine(search_then(lambda _: 0.7))
        evaluation = evaluate(run, lambda: engine)
        summary = summarize(run, evaluation, 1.0, 1)
    assert "skill_mean3" in summary
    assert summary["controls"] == {}
    assert "brier_mean3" in summary["checkpoints"][-1]
    assert [row["n"] for row in summary["checkpoints"]] == [36, 12, 36]
    assert "mean of 3, v2" in closing_table(Replayed(summary, evaluation))
