"""Measurements at a running engine: our loop against a plain client of the same servers, and a day's overhead."""

import asyncio
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from futureworld.agents.base import Policy
from futureworld.clock import FakeClock
from futureworld.config import Config, load
from futureworld.cycle.ask import ask, collect
from futureworld.cycle.day import Workers, do, moments
from futureworld.cycle.predict import predict
from futureworld.cycle.run import Run, open_run
from futureworld.policies import plugin, pocket_folder, policy_folder
from proof.parts import Row

DAYS = 4
"""Days of one run whose questions are predicted; the first warms up."""
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "pocket": {},
    "random": {
        "questions.per_day": 16,
        "rollout.n": 4,
        "rollout.concurrency": 64,
        "rollout.max_turns": 2,
        "rollout.max_turn_tokens": 32,
        "rollout.max_seconds": 1200,
    },
}
"""A random policy hardly ever ends a turn, so its turns are bounded."""
GOALS = {"pocket": 0.85, "random": 0.95}
SHAPE: Mapping[str, Any] = {
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 12,
}
VOCABULARY = 1024
"""The pocket tokenizer's, padded."""


@dataclass(frozen=True, slots=True)
class Request:
    """One turn as it was asked of the servers: when, and how many tokens came back."""

    rollout: str
    prompt: list[int]
    parameters: dict[str, Any]
    began: float
    ended: float
    tokens: int


class Watched:
    """A VerlEngine that writes down every request of the policies that it gives."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.requests: list[Request] = []

    def start(self) -> None:
        self._engine.start()

    def load(self, path: str, version: int) -> None:
        self._engine.load(path, version)

    def restart(self) -> None:
        self._engine.restart()

    def stop(self) -> None:
        self._engine.stop()

    def policy(self) -> Policy:
        policy = self._engine.policy()
        policy.generate = partial(self._generate, policy.generate)
        return policy

    async def _generate(
        self, generate: Any, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]
    ) -> Any:
        kept, began = dict(sampling_params), time.monotonic()  # the server writes into what it gets
        output = await generate(request_id, prompt_ids=prompt_ids, sampling_params=sampling_params)
        self.requests.append(Request(request_id, prompt_ids, kept, began, time.monotonic(), len(output.token_ids)))
        return output

    def servers(self) -> Any:
        return self._engine._alive()  # the plain client asks the very same servers


def predict_ratio(folder: Path, policy: str) -> Row:
    """Tokens a second of our predict stage and of a plain client, in turn; and the ratio of the medians."""
    config = configured(folder, policy)
    ours: list[float] = []
    plain: list[float] = []
    requests: list[Request] = []
    shutil.rmtree(folder / "run", ignore_errors=True)
    clock = FakeClock(config.schedule.schedule().asked_at(config.start))
    with engine(config, folder) as watched, open_run(folder / "run", config, clock=clock) as run:
        for day in run.days:  # the first warms up
            clock.move_to(run.schedule.asked_at(day))
            requests = watched.requests = []
            ours.append(one_predict(run, day, watched))
            plain.append(replay_plain(watched, config.rollout.concurrency))
    ours, plain = ours[1:], plain[1:]
    ratio = statistics.median(ours) / statistics.median(plain)
    return {
        "kind": "predict",
        "policy": policy,
        "questions": config.questions.per_day,
        "rollouts": len({request.rollout for request in requests}),
        "turns": len(requests),
        "tokens": sum(request.tokens for request in requests),
        "ours": rounded(ours),
        "plain": rounded(plain),
        "ratio": round(ratio, 3),
        "checks": {f"tokens/s at least {GOALS[policy]} of a plain client's": ratio >= GOALS[policy]},
    }


def one_predict(run: Run, day: date, watched: Watched) -> float:
    """Tokens a second of one day's predict stage, its writes included."""
    collect(run, day)
    ask(run, day)
    watched.servers().call("clear_kv_cache")
    began = time.monotonic()
    predict(run, day, watched)
    seconds = time.monotonic() - began
    return sum(request.tokens for request in watched.requests) / seconds


def replay_plain(watched: Watched, concurrency: int) -> float:
    """Tokens a second where nothing is done but asking for the same turns, in order within a rollout."""
    turns: dict[str, list[Request]] = defaultdict(list)
    for request in watched.requests:
        turns[request.rollout].append(request)
    servers = watched.servers()
    servers.call("clear_kv_cache")
    (server,) = servers.handles().values()

    async def one(rollout: str, gate: asyncio.Semaphore) -> int:
        tokens = 0
        async with gate:
            for i, turn in enumerate(turns[rollout]):
                output = await server.generate.remote(
                    request_id=f"plain-{rollout}-{i}", prompt_ids=turn.prompt, sampling_params=dict(turn.parameters)
                )
                tokens += len(output.token_ids)
        return tokens

    async def every() -> int:
        gate = asyncio.Semaphore(concurrency)
        return sum(await asyncio.gather(*(one(rollout, gate) for rollout in turns)))

    began = time.monotonic()
    tokens = asyncio.run(every())
    return tokens / (time.monotonic() - began)


def day_overhead(folder: Path, days: int = 3) -> Row:
    """What of a replay's wall time after start-up is neither the engine's nor the update's."""
    config = load(None, ["tracking=none", f"days={days}"])
    shutil.rmtree(folder / "run", ignore_errors=True)
    clock = FakeClock(config.schedule.schedule().asked_at(config.start))
    with engine(config, folder) as watched, open_run(folder / "run", config, clock=clock) as run:
        learner = plugin("learners")(config, run.folder, run.policy)
        learner.start()
        try:
            seconds, waited, stepped = moments_timed(run, clock, Workers(lambda: watched, lambda: learner))
        finally:
            learner.stop()
        busy = union((request.began, request.ended) for request in watched.requests)
    wall = seconds - waited
    share = (wall - busy - stepped) / wall
    return {
        "kind": "overhead",
        "days": days,
        "wall_seconds": round(wall, 1),
        "engine_seconds": round(busy, 1),
        "update_seconds": round(stepped, 1),
        "share": round(share, 4),
        "checks": {"overhead at most 10 % of a day": share <= 0.10},
    }


def moments_timed(run: Run, clock: FakeClock, crew: Workers) -> tuple[float, float, float]:
    """Seconds of all moments, of waiting for the trainer to start, and of the update steps."""
    waited = stepped = 0.0
    began = time.monotonic()
    for moment in moments(run):
        clock.move_to(moment.at)
        metrics = do(run, moment, crew).get("update", {}).get("metrics", {})
        waited += metrics.get("seconds_start", 0.0)
        stepped += metrics.get("seconds_step", 0.0)
    return time.monotonic() - began, waited, stepped


def union(spans: Iterator[tuple[float, float]]) -> float:
    """Seconds covered by at least one of `spans`."""
    covered, reached = 0.0, float("-inf")
    for began, ended in sorted(spans):
        covered += max(0.0, ended - max(began, reached))
        reached = max(reached, ended)
    return covered


@contextmanager
def engine(config: Config, folder: Path) -> Iterator[Watched]:
    """A started engine, and afterwards neither it nor its Ray."""
    from verl_tool_future.runtime import stop_ray

    made = plugin("engines")(config, folder, policy_folder(config.policy))
    try:
        made.start()
        yield Watched(made)
    finally:
        made.stop()
        stop_ray()


def configured(folder: Path, policy: str) -> Config:
    keys = dict(CONFIGS[policy]) | {"tracking": "none", "days": DAYS}
    if policy == "random":
        keys["policy"] = random_policy(folder / "random-policy")
    return load(None, [f"{key}={value}" for key, value in keys.items()])


def random_policy(folder: Path) -> Path:
    """About 115 million random parameters under the pocket policy's tokenizer and template."""
    if (folder / "model.safetensors").exists():
        return folder
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    shutil.copytree(pocket_folder(), folder, ignore=shutil.ignore_patterns("*.safetensors"), dirs_exist_ok=True)
    torch.manual_seed(0)
    shape = LlamaConfig(vocab_size=VOCABULARY, max_position_embeddings=512, pad_token_id=0, eos_token_id=2, **SHAPE)
    shape.tie_word_embeddings = False
    LlamaForCausalLM(shape).save_pretrained(folder)
    return folder


def rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 1) for value in values]
