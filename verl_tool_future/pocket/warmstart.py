"""The warm start's training: plain supervised steps on the policy's own tokens.

Parts come first, where copying and p are learned cheaply; then whole dialogues, with some parts
in between so that both stay. The last lessons are whole dialogues.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from verl_tool_future.pocket.dialogue import Fact
from verl_tool_future.pocket.lessons import Talk, Teacher
from verl_tool_future.pocket.tokenizer import ASSISTANT, BOX, END_OF_TEXT, TURN_END, TURN_START, render, token

DIGIT_WEIGHT, FACT_WEIGHT = 5.0, 3.0
"""Weights in the loss of the two digits of p and of the copied fact; everything else counts 1."""
PARTS_PER_DIALOGUE = 3
"""A batch of parts holds this many times more lessons, and about as many tokens."""


@dataclass(frozen=True, slots=True)
class Stage:
    """`steps` batches of `size` dialogues; every `parts_every`-th is one of parts (1: all are)."""

    name: str
    steps: int
    size: int
    learning_rate: float
    parts_every: int | None


class Marker:
    """Tells the policy's tokens in a row of ids, and how much each counts in the loss."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._start, self._assistant = token(tokenizer, TURN_START), token(tokenizer, ASSISTANT)
        self._end, self._box = token(tokenizer, TURN_END), token(tokenizer, BOX)
        self._facts = {token(tokenizer, f"{fact}: ") for fact in Fact}

    def weights(self, ids: Sequence[int]) -> list[float]:
        """(T) zero outside assistant turns; a turn's closing token belongs to it."""
        weights = [0.0] * len(ids)
        inside, fact, digits = False, False, 0
        for i, current in enumerate(ids):
            if not inside:
                inside = current == self._assistant and i > 0 and ids[i - 1] == self._start
                continue
            fact = fact and current != self._box
            weights[i] = DIGIT_WEIGHT if digits > 0 else FACT_WEIGHT if fact else 1.0
            digits = 2 if current == self._box else digits - 1
            fact = fact or current in self._facts
            inside = current != self._end
        return weights


def pack(
    talks: Sequence[Talk], tokenizer: PreTrainedTokenizerFast, marker: Marker
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids (B, T), padded on the right, and weights (B, T), zero on padding.

    Padding needs no mask: attention is causal and what follows a row's end is in no loss.
    """
    rows = tokenizer([render(tokenizer, talk) for talk in talks], add_special_tokens=False).input_ids
    size, pad = max(map(len, rows)), token(tokenizer, END_OF_TEXT)
    ids = torch.tensor([row + [pad] * (size - len(row)) for row in rows])
    weights = torch.tensor([marker.weights(row) + [0.0] * (size - len(row)) for row in rows])
    return ids, weights


def loss_of(model: LlamaForCausalLM, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Weighted mean of the cross-entropy (nats) over the tokens with a weight."""
    hidden = model.model(input_ids=ids[:, :-1], use_cache=False).last_hidden_state
    weights, targets = weights[:, 1:], ids[:, 1:]
    chosen = weights > 0
    losses = cross_entropy(model.lm_head(hidden[chosen]), targets[chosen], reduction="none")
    return (losses * weights[chosen]).sum() / weights[chosen].sum()


def train(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    teacher: Teacher,
    stages: Sequence[Stage],
    report: Callable[[str], None],
) -> None:
    """Run the stages; a line to `report` every 50 steps."""
    marker = Marker(tokenizer)
    model.train()
    for stage in stages:
        optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0.05)
        for step in range(stage.steps):
            short = stage.parts_every is not None and step % stage.parts_every == 0
            count = stage.size * PARTS_PER_DIALOGUE if short else stage.size
            talks = [teacher.part() if short else teacher.dialogue() for _ in range(count)]
            loss = loss_of(model, *pack(talks, tokenizer, marker))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            for group in optimizer.param_groups:
                group["lr"] = stage.learning_rate * schedule(step, stage.steps)
            optimizer.step()
            if step % 50 == 49:
                report(f"{stage.name} {step + 1}/{stage.steps}: loss {loss.item():.3f}")
    model.eval()


def schedule(step: int, steps: int, rise: int = 20) -> float:
    """Linear rise, then a half cosine down to 2%."""
    return min(1.0, (step + 1) / rise) * (0.02 + 0.98 * 0.5 * (1.0 + math.cos(math.pi * step / steps)))
