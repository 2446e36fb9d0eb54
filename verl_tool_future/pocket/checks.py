"""What a warm start must show before it may be shipped, measured on sampled dialogues."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import GenerationConfig, GenerationMixin, LlamaForCausalLM, PreTrainedTokenizerFast

from futureworld.questions.facts import lookup_line
from futureworld.questions.prompts import messages
from verl_tool_future.pocket.dialogue import (
    HABITS,
    NO_RESULTS,
    Answer,
    call_text,
    fact_text,
    read_answer,
)
from verl_tool_future.pocket.lessons import Known
from verl_tool_future.pocket.tokenizer import END_OF_TEXT, TURN_END, decode, render, token

CALL_TOKENS, ANSWER_TOKENS = 24, 32
FLOORS: Mapping[str, float] = {"query": 0.97, "parse": 0.985, "correlation": 0.95, "copied": 0.97}
SHARE_LOW, SHARE_HIGH = 0.10, 0.20
SHARE_SLACK = 2.0
"""Standard errors by which a domain's share of a habit may lie outside, being a sample."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A dialogue as the policy had it. `answer` is None where its turn does not fit the sentence."""

    known: Known
    exact: bool
    answer: Answer | None
    tokens: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Checks:
    """Shares of sampled dialogues, but `correlation` (of p with its habit's p) and `error` (mean absolute).

    `query`: the call is exact; `parse`: the answer fits the sentence; `copied`: its fact is right;
    `shares`: of each habit by domain, over answers that fit; `tokens`: means of prompt, call,
    observation and answer.
    """

    n: int
    query: float
    parse: float
    correlation: float
    error: float
    copied: float
    shares: Mapping[str, Mapping[str, float]]
    counts: Mapping[str, int]
    tokens: tuple[float, ...]

    def problems(self) -> list[str]:
        """What misses its target; empty where the policy may be shipped."""
        found = [
            f"{name} {getattr(self, name):.3f}, expected at least {floor}"
            for name, floor in FLOORS.items()
            if not getattr(self, name) >= floor
        ]
        for domain, shares in self.shares.items():
            slack = SHARE_SLACK * (0.143 * 0.857 / self.counts[domain]) ** 0.5
            found += [
                f"habit {name!r} in {domain}: {share:.2f}, expected {SHARE_LOW}..{SHARE_HIGH}"
                for name, share in shares.items()
                if not SHARE_LOW - slack <= share <= SHARE_HIGH + slack
            ]
        return found


def examine(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, asked: Sequence[Known], seed: int) -> Checks:
    """Sample one dialogue for each of `asked` at temperature 1 and count."""
    torch.manual_seed(seed)
    return count(sample(model, tokenizer, asked))


def sample(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, asked: Sequence[Known]) -> list[Sampled]:
    """Dialogues with a search that finds the target exactly where the call names its code."""
    prompts = [_encode(tokenizer, render(tokenizer, _opening(known), header=True)) for known in asked]
    calls = generate(model, tokenizer, prompts, CALL_TOKENS)
    exact = [
        decode(tokenizer, call) == call_text(known.question.target.code) + TURN_END
        for call, known in zip(calls, asked, strict=True)
    ]
    found = [
        lookup_line(known.question.target.code, known.question.domain, known.facts) if right else NO_RESULTS
        for right, known in zip(exact, asked, strict=True)
    ]
    tool_turns = [render(tokenizer, [{"role": "tool", "content": text}], header=True) for text in found]
    shown = [_encode(tokenizer, "\n" + text) for text in tool_turns]
    so_far = [p + c + o for p, c, o in zip(prompts, calls, shown, strict=True)]
    answers = generate(model, tokenizer, so_far, ANSWER_TOKENS)
    return [
        Sampled(known, right, _read(decode(tokenizer, a)), (len(p), len(c), len(o), len(a)))
        for known, right, p, c, o, a in zip(asked, exact, prompts, calls, shown, answers, strict=True)
    ]


def generate(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, prompts: Sequence[list[int]], limit: int
) -> list[list[int]]:
    """One turn after each prompt, sampled at temperature 1, its closing token included."""
    end, pad = token(tokenizer, TURN_END), token(tokenizer, END_OF_TEXT)
    size = max(map(len, prompts))
    ids = torch.tensor([[pad] * (size - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (size - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    settings = GenerationConfig(do_sample=True, top_k=0, max_new_tokens=limit, eos_token_id=end, pad_token_id=pad)
    out = GenerationMixin.generate(model, ids, attention_mask=mask, generation_config=settings)  # pyright: ignore
    turns = out[:, size:].tolist()  # pyright: ignore
    return [turn[: turn.index(end) + 1] if end in turn else turn for turn in turns]


def count(dialogues: Sequence[Sampled]) -> Checks:
    read = [(d, d.answer) for d in dialogues if d.answer is not None]
    used = [
        (a.p, rule, a.fact == fact_text(a.habit.fact, d.known.facts))
        for d, a in read
        if d.exact and (rule := a.habit.probability(d.known.facts)) is not None
    ]
    said = np.array([p for p, _, _ in used])
    rules = np.array([rule for _, rule, _ in used])
    habits: dict[str, Counter[str]] = defaultdict(Counter)
    for dialogue, answer in read:
        habits[dialogue.known.question.domain][answer.habit.name] += 1
    correlation = float(np.corrcoef(said, rules)[0, 1]) if len(used) > 1 else 0.0
    return Checks(
        n=len(dialogues),
        query=float(np.mean([d.exact for d in dialogues])),
        parse=len(read) / len(dialogues),
        correlation=correlation,
        error=float(np.abs(said - rules).mean()) if used else 1.0,
        copied=float(np.mean([right for *_, right in used])) if used else 0.0,
        shares={
            domain: {habit.name: tally[habit.name] / tally.total() for habit in HABITS}
            for domain, tally in sorted(habits.items())
        },
        counts={domain: tally.total() for domain, tally in habits.items()},
        tokens=tuple(float(x) for x in np.mean([d.tokens for d in dialogues], axis=0)),
    )


def _opening(known: Known) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in messages(known.question)]


def _encode(tokenizer: PreTrainedTokenizerFast, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)


def _read(text: str) -> Answer | None:
    return read_answer(text.removesuffix(TURN_END)) if text.endswith(TURN_END) else None
