"""The engine: refusals before anything starts, and a real vLLM through verl on a tiny random Llama."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from chat_policy import TOOLS, save_tiny_policy, tiny_tokenizer

from futureworld.agents.base import Feedback, Sampling, Tape, Turn
from futureworld.config import Config, build
from futureworld.errors import EngineDeadError, EngineError, PolicyError
from futureworld.records import Message, Role
from verl_tool_future.engine import VerlEngine, renderer

OPENING = (Message("system", "You forecast."), Message("user", "Will it rain tomorrow in the valley?"))
RESULT = Feedback("tool", "It was wet on three days of four.", "search", "ok")
TURN = 32
MEAN, MOST = 1e-5, 1e-4
"""Differences of log-probs between vLLM and transformers in float32."""


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two policies of one shape and other weights."""
    root = tmp_path_factory.mktemp("policies")
    return save_tiny_policy(root / "first", 0), save_tiny_policy(root / "second", 1)


def small() -> Config:
    return build({"device": "cpu", "rollout": {"max_tokens": 512}})


# --- refusals ---------------------------------------------------------------------------------


def test_a_folder_without_tokenizer_is_refused(policies: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((policies[0] / "config.json").read_text())
    with pytest.raises(PolicyError, match=r"lacks tokenizer_config\.json"):
        renderer(tmp_path, 512)


def test_a_folder_without_template_is_refused(policies: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((policies[0] / "config.json").read_text())
    tiny_tokenizer(None).save_pretrained(tmp_path)
    with pytest.raises(PolicyError, match="no chat template"):
        renderer(tmp_path, 512)


def test_too_few_positions_are_refused(policies: tuple[Path, Path]) -> None:
    with pytest.raises(PolicyError, match=r"1024 positions, fewer than rollout\.max_tokens=1025"):
        renderer(policies[0], 1025)


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"config\.json cannot be read"):
        renderer(tmp_path, 512)


def test_an_engine_that_was_not_started_has_no_policy(policies: tuple[Path, Path], tmp_path: Path) -> None:
    engine = VerlEngine(small(), tmp_path, policies[0])
    assert not engine.healthy()
    with pytest.raises(EngineError, match="not started"):
        engine.policy()
    engine.stop()


# --- the real thing ---------------------------------------------------------------------------


@dataclass
class Served:
    engine: VerlEngine
    run_folder: Path
    first: Path
    second: Path


@pytest.fixture(scope="module")
def served(policies: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One engine for the whole module; nothing of it is left at the end."""
    from verl_tool_future.runtime import stop_ray

    before = set(psutil.Process().children(recursive=True))
    folder = tmp_path_factory.mktemp("run")
    engine = VerlEngine(small(), folder, policies[0])
    try:
        engine.start()
        yield Served(engine, folder, *policies)
    finally:
        started = [p for p in psutil.Process().children(recursive=True) if p not in before]
        engine.stop()
        stop_ray()
        _, left = psutil.wait_procs(started, timeout=30)
    assert not left, f"left behind: {left}"


async def two_turns(engine: VerlEngine, seed: int, temperature: float) -> Tape:
    talk = engine.policy().open(OPENING, TOOLS, Sampling(temperature, 1.0, seed), f"{seed}-{temperature}")
    await talk.next([], TURN)
    await talk.next([RESULT], TURN)
    return talk.tape()


def roll_out(engine: VerlEngine, count: int, temperature: float = 1.0) -> list[Tape]:
    async def together() -> list[Tape]:
        return await asyncio.gather(*(two_turns(engine, seed, temperature) for seed in range(count)))

    return asyncio.run(together())


def differences(tapes: Sequence[Tape], model: Path, temperature: float) -> list[float]:
    """|sampler - transformers| of every policy token, transformers in one float32 forward pass."""
    import torch
    from transformers import AutoModelForCausalLM

    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    found = []
    for tape in tapes:
        ids = torch.tensor([[*tape.prompt_ids, *tape.ids]])
        with torch.no_grad():
            expected = torch.log_softmax(network(ids).logits[0] / temperature, dim=-1)
        for i, value in enumerate(tape.log_probs):
            if value is not None:
                place = len(tape.prompt_ids) + i
                found.append(abs(value - float(expected[place - 1, tape.ids[i]])))
    return found


@pytest.mark.engine
@pytest.mark.timeout(400)
def test_two_turns_are_policy_environment_policy(served: Served) -> None:
    tape, again = roll_out(served.engine, 1)[0], roll_out(served.engine, 1)[0]
    assert [span.role for span in tape.spans] == [Role.POLICY, Role.ENVIRONMENT, Role.POLICY]
    assert (tape.policy_version, tape.seed) == (0, 0)
    assert again == tape  # seeded
    assert served.engine.healthy()
    assert list((served.run_folder / "logs" / "ray").iterdir())


@pytest.mark.engine
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_c1_c2_log_probs_are_those_of_the_weights_at_the_sampling_temperature(
    served: Served, temperature: float
) -> None:
    found = differences(roll_out(served.engine, 24, temperature), served.first, temperature)
    assert len(found) > 200
    assert sum(found) / len(found) <= MEAN and max(found) <= MOST


@pytest.mark.engine
def test_siblings_with_other_seeds_differ(served: Served) -> None:
    assert len({tape.ids for tape in roll_out(served.engine, 8)}) == 8


@pytest.mark.engine
def test_c8_other_weights_are_served_without_memory_of_the_old(served: Served) -> None:
    """The prefixes of the first weights are in the cache when the second ones arrive."""
    old = served.engine.policy()
    roll_out(served.engine, 4)
    served.engine.load(str(served.second), 1)
    tapes = roll_out(served.engine, 4)
    assert {tape.policy_version for tape in tapes} == {1}
    assert max(differences(tapes, served.second, 1.0)) <= MOST
    assert max(differences(tapes, served.first, 1.0)) > 0.1
    with pytest.raises(EngineError, match="sampled by policy version 1, expected 0"):
        asyncio.run(old.open(OPENING, TOOLS, Sampling(), "old").next([], TURN))


@pytest.mark.engine
def test_c11_a_load_ends_what_still_runs(served: Served) -> None:
    """A rollout that was given up keeps its request running in the engine; it may not outlive the weights."""

    async def give_up() -> list[object]:
        policy = served.engine.policy()
        talks = [policy.open(OPENING, TOOLS, Sampling(1.0, 1.0, seed), f"long-{seed}") for seed in range(16)]
        tasks = [asyncio.create_task(talk.next([], 400)) for talk in talks]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)  # some ended: the others are running
        await asyncio.to_thread(served.engine.load, str(served.first), 2)
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    ended = asyncio.run(give_up())
    failed = [str(item) for item in ended if isinstance(item, EngineError)]
    assert failed and len(failed) + sum(isinstance(item, Turn) for item in ended) == 16
    assert all("'aborted'" in text or "policy version 2, expected 1" in text for text in failed)
    tapes = roll_out(served.engine, 2)
    assert {tape.policy_version for tape in tapes} == {2}
    assert max(differences(tapes, served.first, 1.0)) <= MOST


@pytest.mark.engine
def test_a_folder_without_weights_is_refused_and_the_old_ones_stay(served: Served, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"no config\.json"):
        served.engine.load(str(tmp_path), 3)
    assert roll_out(served.engine, 1)[0].policy_version == 2


@pytest.mark.engine
def test_f3_a_dead_engine_core_is_an_error_at_once_and_leaves_nothing(served: Served) -> None:
    """Runs last: the fixture then checks that no process is left."""
    cores = [p for p in psutil.Process().children(recursive=True) if "EngineCore" in " ".join(p.cmdline())]
    assert len(cores) == 1
    cores[0].kill()
    psutil.wait_procs(cores, timeout=10)
    began = time.monotonic()
    with pytest.raises(EngineError, match="EngineDeadError"):
        roll_out(served.engine, 4)
    assert time.monotonic() - began < 10
    assert not served.engine.healthy()
    with pytest.raises(EngineError, match="restart"):
        served.engine.policy()


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_dead_servers_are_replaced(served: Served) -> None:
    served.engine.restart()
    assert served.engine.healthy()
    tape = roll_out(served.engine, 1)[0]
    assert tape.policy_version == served.engine.policy().version
    assert max(differences([tape], served.first, 1.0)) <= MOST


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("words", ["vLLMHttpServer", "GlobalRequestLoadBalancer"])
def test_a_dead_actor_is_replaced(served: Served, words: str) -> None:
    (actor,) = [p for p in psutil.Process().children(recursive=True) if words in " ".join(p.cmdline())]
    actor.kill()
    with pytest.raises(EngineDeadError, match="The actor is dead because its worker process has died;"):
        roll_out(served.engine, 4)
    served.engine.restart()
    assert served.engine.healthy()
    assert roll_out(served.engine, 1)[0].policy_version == served.engine.policy().version
