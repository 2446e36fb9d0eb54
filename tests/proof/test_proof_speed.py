"""The speed part's short form, and how its figures are made."""

import asyncio
from pathlib import Path

import pytest
from proof import speed, speed_engine
from proof.speed_growth import STAGES

from futureworld.errors import RunError


def test_every_stage_grows_with_the_questions_of_a_day(tmp_path: Path) -> None:
    row = speed.growth(tmp_path, speed.SHORT_SIZES)
    assert [size["questions"] for size in row["sizes"]] == [100, 1000]
    for size in row["sizes"]:
        assert size["rollouts"] == size["trained"] == 2 * size["questions"]
        assert size["held_out"] == size["questions"]
        assert tuple(size["stage_seconds"]) == STAGES
    assert row["checks"]["100 to 1,000 questions: memory is flat"], row  # seconds are not: others use the machine
    page = speed.section({"growth": row}, tmp_path)
    assert "| 1,000 |" in page


def size(questions: int, seconds: float, peak: float) -> dict:
    return {
        "questions": questions,
        "stage_seconds": dict.fromkeys(STAGES, seconds),
        "peak_mb": dict.fromkeys(STAGES, peak),
    }


def test_linear_is_twelve_times_the_seconds_of_a_tenth_beyond_half_a_second() -> None:
    small = size(100, 1.0, 100)
    assert speed.linear(small, size(1000, 12.5, 100), "ask")
    assert not speed.linear(small, size(1000, 12.6, 100), "ask")


def test_memory_is_counted_by_further_question() -> None:
    assert speed.per_question_kb(size(100, 1, 200), size(1100, 1, 300)) == pytest.approx(102.4)


def test_seconds_with_a_request_in_flight_are_counted_once() -> None:
    assert speed_engine.union(iter([(5.0, 7.0), (0.0, 2.0), (1.0, 3.0), (5.5, 6.0)])) == 5.0
    assert speed_engine.union(iter([])) == 0.0


def test_watched_requests_keep_what_was_asked() -> None:
    class Output:
        token_ids = (1, 2, 3)

    class Policy:
        async def generate(self, request_id, *, prompt_ids, sampling_params):
            sampling_params.clear()  # as the server does
            return Output()

    class Engine:
        def policy(self):
            return Policy()

    watched = speed_engine.Watched(Engine())
    policy: Policy = watched.policy()  # type: ignore[assignment]
    asyncio.run(policy.generate("r", prompt_ids=[7], sampling_params={"seed": 1}))
    (request,) = watched.requests
    assert (request.rollout, request.prompt, request.parameters, request.tokens) == ("r", [7], {"seed": 1}, 3)
    assert request.ended >= request.began


def test_a_made_world_with_too_few_questions_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Done:
        returncode, stdout, stderr = 0, '{"questions": 3}', ""

    monkeypatch.setattr(speed.subprocess, "run", lambda *_, **__: Done)
    with pytest.raises(RunError, match="gave 3 questions, 5 were wanted"):
        speed.grown(tmp_path / "x", 5)


def test_the_page_says_every_kind_of_row(tmp_path: Path) -> None:
    ratio = {"ours": [9.0, 8.0], "ratio": 0.9}
    predict = ratio | {"kind": "predict", "plain": [10.0, 9.5], "rollouts": 8, "turns": 16, "tokens": 99}
    counted = {"trajectories": 4, "tokens": 50, "trained_tokens": 9}
    rows = {
        "predict, pocket policy": predict,
        "update": ratio | counted | {"kind": "update", "verl": [10.0, 9.0]},
        "day": {
            "kind": "overhead",
            "days": 3,
            "wall_seconds": 100.0,
            "engine_seconds": 40.0,
            "update_seconds": 55.0,
            "share": 0.05,
        },
        "default replay": {"kind": "wall", "days": 8, "minutes": 9.5, "stage_seconds": {"ask": 1.0}, "peak_mb": 9000},
    }
    page = speed.section(rows, tmp_path)
    for words in (
        "Ratio of the medians 0.900",
        "4 trajectories, 9 of 50 tokens",
        "the rest is 5.0%",
        "9.5 minutes (ask 1 s)",
    ):
        assert words in page
