"""Two days through verl and vLLM: its engine killed with -9, and itself in predict and in update.

The short form of scripts/proof/kills_real.py: the same commands a person would type, in processes of
their own; what they leave in the run's folder is read back and held against transformers, and against
what was stored at each kill.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from proof.kills_command import (
    DAYS,
    GROUP,
    MINI_BATCHES,
    PER_DAY,
    Ended,
    Snapshot,
    Strike,
    doubled,
    lost,
    optimiser_steps,
    replay,
    snapshot,
)

from futureworld.clock import SystemClock
from futureworld.policies import pocket_folder
from futureworld.records import Purpose, Role, Trajectory
from futureworld.store.store import Store

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]


@dataclass(frozen=True)
class Story:
    """The run's folder, how each of its processes ended, and what its store said then."""

    run: Path
    ends: tuple[Ended, Ended, Ended]
    predict_killed: Snapshot
    update_killed: Snapshot
    end: Snapshot


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    run = tmp_path_factory.mktemp("real") / "run"
    first = replay(run, fault="predict.stored:70", strike=Strike("VLLM::EngineCore", forecasts=20))
    assert first.killed, first.said[-2000:]
    predict_killed = snapshot(run)
    second = replay(run, fault="update.saved")
    assert second.killed, second.said[-2000:]
    update_killed = snapshot(run)
    third = replay(run)
    assert third.code == 0, third.said[-4000:]
    return Story(run, (first, second, third), predict_killed, update_killed, snapshot(run))


def test_f3_a_killed_engine_is_replaced_and_the_stage_goes_on(story: Story) -> None:
    first = story.ends[0]
    assert first.struck
    assert first.said.count("the engine died (engine ") == 1
    assert first.output == ""  # results only: Ray would print the deaths there


def test_no_process_outlives_its_command(story: Story) -> None:
    assert [end.left for end in story.ends] == [(), (), ()]


def test_killed_in_predict_nothing_stored_is_lost_and_nothing_doubled(story: Story) -> None:
    killed, end = story.predict_killed, story.end
    assert 70 <= len(killed.forecasts) < PER_DAY * GROUP
    assert lost(killed, end) == lost(story.update_killed, end) == 0
    assert doubled(end) == 0
    trained = [forecast for forecast in end.forecasts.values() if forecast.purpose is Purpose.TRAIN]
    assert Counter(len(questions) for questions in end.asked.values()) == {PER_DAY: len(DAYS)}
    assert len(trained) == len(DAYS) * PER_DAY * GROUP


def test_killed_in_update_it_is_applied_exactly_once(story: Story) -> None:
    assert story.update_killed.updates == {}
    assert list(story.update_killed.versions) == [0]
    assert list(story.end.versions) == [0, 1, 2]
    assert [(update.base_version, update.version) for update in story.end.updates.values()] == [(0, 1), (1, 2)]
    assert optimiser_steps(story.run, 2) == {len(DAYS) * MINI_BATCHES}


def test_evaluation_summary_and_pictures_are_there(story: Story) -> None:
    summary = json.loads((story.run / "summary.json").read_text())
    assert [row["version"] for row in summary["checkpoints"]] == [0, 1, 2]
    assert [row["n"] for row in summary["checkpoints"]] == [40, 20, 40]
    assert summary["days"][0]["rollouts"] == PER_DAY * GROUP
    assert set(summary["baselines"]) == {"always_half", "base_rate", "persistence", "domain_side", "logistic"}
    assert {path.name for path in (story.run / "plots").iterdir()} >= {"curves.png", "reliability.png", "by-domain.png"}
    assert "checkpoint 2" in story.ends[-1].output
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
