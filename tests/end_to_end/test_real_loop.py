"""Two days through verl and vLLM, killed with -9 in the middle of predict and of update.

The same commands a person would type, in processes of their own; what they leave in the run's
folder is read back and held against transformers, and against what was reported before each kill.
"""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import psutil
import pytest

from futureworld import faults
from futureworld.clock import SystemClock
from futureworld.cycle.ask import train_set
from futureworld.policies import pocket_folder
from futureworld.records import Forecast, Purpose, Question, Role, Trajectory, Update
from futureworld.store.store import Store

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]

COMMAND = Path(sys.executable).with_name("futureworld")
MARK = "FUTUREWORLD_TEST_MARK"
DAYS = (date(2026, 5, 4), date(2026, 5, 5))
PER_DAY, GROUP = 24, 4
SMALL = {
    "questions.per_day": PER_DAY,
    "rollout.n": GROUP,
    "rollout.concurrency": 16,
    "update.mini_batches": 4,
    "evaluate.days": 2,
    "evaluate.per_day": 10,
    "evaluate.end_samples": 2,
    "evaluate.bootstrap": 200,
}


@dataclass(frozen=True)
class Snapshot:
    """What the store says at one moment."""

    questions: tuple[Question, ...]
    forecasts: dict[str, Forecast]
    updates: list[Update]
    versions: list[int]


def snapshot(run: Path) -> Snapshot:
    with Store.open(run, "", SystemClock()) as store:
        asked = [q for day in DAYS for q in store.question_set(train_set(day)) or ()]
        forecasts = {f.id: f for f in store.forecasts()}
        return Snapshot(tuple(asked), forecasts, store.updates(), [c.version for c in store.checkpoints()])


def replay(run: Path, *extra: str, fault: str | None = None) -> subprocess.CompletedProcess[str]:
    """`futureworld replay --days 2`, small; with `fault` it dies at that place. Nothing may outlive it."""
    mark = uuid.uuid4().hex
    environment = os.environ | {MARK: mark, "WANDB_MODE": "offline"}
    environment.pop(faults.ENVIRONMENT_VARIABLE, None)
    if fault is not None:
        environment[faults.ENVIRONMENT_VARIABLE] = fault
    settings = [f"--set={key}={value}" for key, value in SMALL.items()]
    command = [COMMAND, "replay", "--run", run, "--days", "2", *settings, *extra]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    wait_for_none(mark)
    return done


def wait_for_none(mark: str, seconds: float = 90.0) -> None:
    """Wait until every process that carries `mark` in its environment has ended."""
    deadline = time.monotonic() + seconds
    while left := [process for process in psutil.process_iter() if carries(process, mark)]:
        assert time.monotonic() < deadline, f"left over: {[process.cmdline()[:3] for process in left]}"
        psutil.wait_procs(left, timeout=1.0)


def carries(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark
    except psutil.Error:
        return False


@dataclass(frozen=True)
class Story:
    """The run's folder, and what its store said after each kill and at the end."""

    run: Path
    predict_killed: Snapshot
    update_killed: Snapshot
    end: Snapshot
    output: str


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    run = tmp_path_factory.mktemp("real") / "run"
    first = replay(run, fault="predict.stored:40")
    assert first.returncode == -signal.SIGKILL, first.stderr[-2000:]
    predict_killed = snapshot(run)
    second = replay(run, "--resume", fault="update.saved")
    assert second.returncode == -signal.SIGKILL, second.stderr[-2000:]
    update_killed = snapshot(run)
    third = replay(run, "--resume")
    assert third.returncode == 0, third.stderr[-4000:]
    return Story(run, predict_killed, update_killed, snapshot(run), third.stdout)


def test_killed_in_predict_nothing_reported_is_lost_and_nothing_doubled(story: Story) -> None:
    killed, end = story.predict_killed, story.end
    assert 40 <= len(killed.forecasts) < PER_DAY * GROUP
    assert end.questions[:PER_DAY] == killed.questions
    assert all(end.forecasts[name] == forecast for name, forecast in killed.forecasts.items())
    slots = Counter((f.question_id, f.sample) for f in end.forecasts.values() if f.purpose is Purpose.TRAIN)
    assert len(slots) == len(DAYS) * PER_DAY * GROUP
    assert set(slots.values()) == {1}


def test_killed_in_update_it_is_applied_exactly_once(story: Story) -> None:
    assert story.update_killed.updates == []
    assert story.update_killed.versions == [0]
    assert story.end.versions == [0, 1, 2]
    assert [(update.base_version, update.version) for update in story.end.updates] == [(0, 1), (1, 2)]
    used = [name for update in story.end.updates for name in update.trajectory_ids]
    assert len(used) == len(set(used))
    # Optimiser steps: four mini-batches a day, counted by Adam's own state after two updates.
    import torch

    (state,) = (story.run / "checkpoints" / "verl").glob("global_step_2/actor/optim_*.pt")
    steps = {int(s["step"]) for s in torch.load(state, weights_only=False)["state"].values()}
    assert steps == {8}


def test_evaluation_summary_and_pictures_are_there(story: Story) -> None:
    summary = json.loads((story.run / "summary.json").read_text())
    assert [row["version"] for row in summary["checkpoints"]] == [0, 1, 2]
    assert [row["n"] for row in summary["checkpoints"]] == [40, 20, 40]
    assert summary["days"][0]["rollouts"] == PER_DAY * GROUP
    assert set(summary["baselines"]) == {"always_half", "base_rate", "persistence", "domain_side", "logistic"}
    assert {path.name for path in (story.run / "plots").iterdir()} >= {"curves.png", "reliability.png", "by-domain.png"}
    assert "checkpoint 2" in story.output
    assert list((story.run / "wandb").glob("offline-run-*"))


def test_mask_covers_exactly_what_the_policy_said(story: Story) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(pocket_folder()))
    with Store.open(story.run, "", SystemClock()) as store:
        ids = [f.id for f in story.end.forecasts.values() if f.purpose is Purpose.TRAIN]
        trajectories = store.trajectories(ids[:64])
    for trajectory in trajectories:
        said = [
            tokenizer.decode(list(trajectory.ids[span.start : span.end]))
            for span in trajectory.spans
            if span.role is Role.POLICY
        ]
        assert sum(trajectory.mask) == sum(log_prob is not None for log_prob in trajectory.log_probs)
        assert len(said) == sum(message.role == "assistant" for message in trajectory.messages)
        for text, message in zip(said, (m for m in trajectory.messages if m.role == "assistant"), strict=True):
            assert text.removesuffix("<|im_end|>") == message.text


def test_c1_log_probs_of_the_unmoved_policy_agree_with_transformers(story: Story) -> None:
    with Store.open(story.run, "", SystemClock()) as store:
        first = store.forecasts(purpose=Purpose.TRAIN, policy_version=0)
        trajectories = store.trajectories([forecast.id for forecast in first])
    differences = log_prob_differences(trajectories, pocket_folder())
    assert len(differences) > 1000
    assert sum(differences) / len(differences) <= 1e-5
    assert max(differences) <= 1e-4


def log_prob_differences(trajectories: list[Trajectory], policy: Path) -> list[float]:
    """|sampler's log-prob - transformers' log-prob| of every policy token, fp32."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(str(policy), dtype=torch.float32).eval()
    differences: list[float] = []
    for trajectory in trajectories:
        ids = torch.tensor([[*trajectory.prompt_ids, *trajectory.ids]])
        with torch.no_grad():
            scores = torch.log_softmax(model(ids).logits[0].double() / trajectory.temperature, dim=-1)
        first = len(trajectory.prompt_ids)
        for i, (token, given) in enumerate(zip(trajectory.ids, trajectory.log_probs, strict=True)):
            if given is not None:
                differences.append(abs(given - float(scores[first + i - 1, token])))
    return differences
