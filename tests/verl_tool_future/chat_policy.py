"""A random Llama small enough for tests, and batches whose log-probs are its own."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from futureworld.cycle.batch import Batch, Member
from futureworld.records import (
    AnswerStatus,
    Checkpoint,
    Purpose,
    Role,
    Span,
    StopReason,
    Trajectory,
    content_id,
)

VOCABULARY = 48
DAY = date(2026, 5, 4)


def make_policy(folder: Path, seed: int = 0) -> LlamaForCausalLM:
    """Save a 2-layer fp32 Llama and a tokenizer of the same 48 words into `folder`."""
    words = {"<pad>": 0, "<eos>": 1} | {f"w{i}": i for i in range(2, VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=256,
            initializer_range=0.2,
            tie_word_embeddings=True,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=None,
        )
    )
    model.save_pretrained(folder)
    return model.eval()


def log_probs(model: LlamaForCausalLM, prompt: Sequence[int], ids: Sequence[int], temperature: float) -> torch.Tensor:
    """(R) log-probs of `ids` after `prompt`, differentiable."""
    logits = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
    chosen = torch.tensor(ids)[:, None]
    return torch.log_softmax(logits / temperature, dim=-1).gather(-1, chosen)[:, 0]


def make_batch(
    model: LlamaForCausalLM,
    rewards: Sequence[Sequence[float]],
    *,
    base_hash: str,
    step: int = 1,
    temperature: float = 1.0,
    seed: int = 0,
    shift: Callable[[int], float] = lambda _: 0.0,
) -> Batch:
    """One question per list of rewards: prompts and responses of uneven length with an observation inside.

    `shift(i)` is added to the i-th stored log-prob of each trajectory (never above 0).
    """
    random = np.random.default_rng([seed, step])
    members: list[Member] = []
    for group, group_rewards in enumerate(rewards):
        prompt = random.integers(0, VOCABULARY, size=random.integers(3, 9)).tolist()
        for sample, reward in enumerate(group_rewards):
            trajectory = _trajectory(model, prompt, f"{step}-{group}", sample, temperature, random, shift)
            members.append(Member(trajectory, reward, age=1))
    base = Checkpoint(step - 1, "", base_hash, None, None)
    return Batch(date(2026, 5, 5), step, base, tuple(members), {"no outcome yet": 1})


def _trajectory(model, prompt, question, sample, temperature, random, shift) -> Trajectory:
    lengths = random.integers(2, 7, size=3)
    first, second, end = np.cumsum(lengths).tolist()
    ids = random.integers(0, VOCABULARY, size=end).tolist()  # pad and eos ids occur among them
    with torch.no_grad():
        exact = log_probs(model, prompt, ids, temperature).tolist()
    stored = [None if first <= i < second else min(0.0, exact[i] + shift(i)) for i in range(end)]
    return Trajectory(
        id=content_id("trajectory", question, sample),
        question_id=content_id("question", question),
        day=DAY,
        purpose=Purpose.TRAIN,
        agent="policy",
        policy_version=0,
        sample=sample,
        attempt=0,
        as_of=datetime(2026, 5, 4, 12, tzinfo=UTC),
        prompt_ids=tuple(prompt),
        ids=tuple(ids),
        spans=(
            Span(0, first, Role.POLICY),
            Span(first, second, Role.ENVIRONMENT, tool="search", status="ok"),
            Span(second, end, Role.POLICY),
        ),
        log_probs=tuple(stored),
        logprobs_mode="processed",
        temperature=temperature,
        top_p=1.0,
        seed=None,
        stop_reason=StopReason.ANSWERED,
        answer="0.5",
        probability=0.5,
        answer_status=AnswerStatus.OK,
        messages=(),
        calls=(),
        template_hash="",
        trainable=True,
    )
