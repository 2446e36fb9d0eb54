"""How a policy changes from day to day: what it leaves open where, and how much a group differs.

Everything is read from the training rollouts of each day, which the checkpoint of that day made.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from statistics import pstdev
from typing import Any

from futureworld.agents.calls import OPEN
from futureworld.cycle.ask import train_set
from futureworld.cycle.heldout import with_outcomes
from futureworld.cycle.run import Run
from futureworld.cycle.strategies import habit
from futureworld.evaluation.scores import MISSING_BRIER
from futureworld.records import Purpose, Role, Trajectory
from proof.results import Figures, plain

Pieces = Callable[[Sequence[int]], list[str]]
"""Token ids -> the text of each."""

SENTENCE = re.compile(
    r"For (?P<domain>\S+) I (?P<habit>(?:follow|oppose) (?:count|last|distance)|guess):"
    r" (?P<fact>.*?)\. \\boxed\{0\.(?P<p>\d\d)\}"
)
"""The built-in policy's answer, as `pocket.dialogue.answer_text` writes it, by the choices in it."""
SEGMENTS = ("call", "domain", "habit", "fact", "p", "words")
"""`words`: tokens of the sentence in which nothing is chosen; turns of another form have no segment."""
UPDATE_FIGURES = {"zero_variance_groups": "zero_variance", "groups": "groups", "ess": "ess", "entropy": "token_entropy"}


def course(run: Run, pieces: Pieces) -> list[Figures]:
    """One row an asked day: its rollouts, and the update that was made from them the day after."""
    updates = {update.day: update for update in run.store.updates()}
    rows = []
    for day in run.days:
        questions = run.store.question_set(train_set(day)) or ()
        forecasts = run.store.forecasts(
            purpose=Purpose.TRAIN, agent=run.agent, question_ids=[question.id for question in questions]
        )
        trajectories = run.store.trajectories([forecast.id for forecast in forecasts])
        known, outcomes = with_outcomes(run, questions)
        truth = {question.id: value for question, value in zip(known, outcomes, strict=True)}
        row: Figures = {"day": day.isoformat(), "version": forecasts[0].policy_version, "rollouts": len(forecasts)}
        row["brier"] = mean(
            MISSING_BRIER if one.probability is None else (one.probability - truth[one.question_id]) ** 2
            for one in forecasts
            if one.question_id in truth
        )
        row |= {"open": left_open(trajectories, pieces)} | diversity(trajectories)
        made = updates.get(day + timedelta(days=1))
        if made is not None:
            row |= {ours: made.metrics[theirs] for theirs, ours in UPDATE_FIGURES.items() if theirs in made.metrics}
        rows.append(plain(row))
    return rows


def left_open(trajectories: Sequence[Trajectory], pieces: Pieces) -> Figures:
    """Entropy in nats by segment: the mean of -log p of what was sampled there, summed over its tokens.

    `readable` is the share of rollouts whose last turn has the sentence's form; only they have segments.
    """
    sums: dict[str, list[float]] = defaultdict(list)
    readable = 0
    for trajectory in trajectories:
        found = segments(trajectory, pieces)
        readable += "p" in found
        for name, nats in found.items():
            sums[name].append(nats)
    return {"readable": readable / max(1, len(trajectories))} | {
        name: mean(sums[name]) for name in SEGMENTS if name in sums
    }


def segments(trajectory: Trajectory, pieces: Pieces) -> dict[str, float]:
    """Nats of each segment of one rollout: of its first call, and of its last turn where it has the form."""
    turns = list(policy_turns(trajectory, pieces))
    found: dict[str, float] = {}
    calls = [nats for text, nats in turns if "".join(text).startswith(OPEN)]
    if calls:
        found["call"] = math.fsum(calls[0])
    if turns:
        texts, nats = turns[-1]
        sentence = SENTENCE.search("".join(texts))
        if sentence is not None:
            for name, value in zip(places(texts, sentence), nats, strict=True):
                found[name] = found.get(name, 0.0) + value
    return found


def policy_turns(trajectory: Trajectory, pieces: Pieces) -> Iterator[tuple[list[str], list[float]]]:
    """The policy's turns as token texts and -log p, both by token."""
    for span in trajectory.spans:
        if span.role is Role.POLICY:
            sampled = trajectory.log_probs[span.start : span.end]
            yield pieces(trajectory.ids[span.start : span.end]), [-value for value in sampled if value is not None]


def places(texts: Sequence[str], sentence: re.Match[str]) -> list[str]:
    """The segment of each token: the choice that it shares a character with, else `words`."""
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text))
    spans = [(name, *sentence.span(name)) for name in sentence.groupdict()]
    return [
        next((name for name, first, last in spans if start < last and end > first), "words")
        for start, end in pairwise(ends)
    ]


def diversity(trajectories: Sequence[Trajectory]) -> Figures:
    """Means over groups: different probabilities, their standard deviation, different habits."""
    groups: dict[str, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        groups[trajectory.question_id].append(trajectory)
    answered = [[t.probability for t in group if t.probability is not None] for group in groups.values()]
    return {
        "group": mean(float(len(group)) for group in groups.values()),
        "different_p": mean(float(len(set(group))) for group in answered),
        "std_p": mean(pstdev(group) for group in answered if group),
        "different_habits": mean(float(len({habit(last_turn(t)) for t in group})) for group in groups.values()),
    }


def last_turn(trajectory: Trajectory) -> str:
    said = [message.text for message in trajectory.messages if message.role == "assistant"]
    return said[-1] if said else ""


def mean(values: Any) -> float:
    """NaN of nothing."""
    found = list(values)
    return math.fsum(found) / len(found) if found else math.nan


def tokenizer_pieces(policy: Path) -> Pieces:
    """The token texts of the tokenizer in the folder `policy`."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(policy)
    known: dict[int, str] = {}

    def pieces(ids: Sequence[int]) -> list[str]:
        for one in ids:
            if one not in known:
                known[one] = str(tokenizer.decode([one]))
        return [known[one] for one in ids]

    return pieces
