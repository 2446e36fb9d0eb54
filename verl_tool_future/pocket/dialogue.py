"""What the pocket policy says: its turns as text, and the habits that its warm start teaches.

A habit turns one fact of the lookup line into a probability, by following it or by opposing it.
Every habit is taught equally often and nothing here knows an outcome, so that a fresh policy is
no better than chance and all that it learns later it learns from the world.
"""

import math
import re
from dataclasses import dataclass
from enum import StrEnum

from futureworld.questions.facts import Facts

NO_RESULTS = "No results."
CALL_OPEN = '<tool_call>\n{"name": "search", "arguments": {"query": "'
CALL_CLOSE = '"}}\n</tool_call>'
SLOPE = 1.2
"""Of the logistic curve that turns a distance, in typical steps, into a probability."""
LAST = 0.8
LOWEST, HIGHEST = 0.02, 0.98


class Stance(StrEnum):
    FOLLOW = "follow"
    OPPOSE = "oppose"


class Fact(StrEnum):
    COUNT = "count"
    LAST = "last"
    DISTANCE = "distance"


@dataclass(frozen=True, slots=True)
class Habit:
    """`stance` towards `fact`; a guess has neither."""

    stance: Stance | None = None
    fact: Fact | None = None

    @property
    def name(self) -> str:
        return "guess" if self.stance is None else f"{self.stance} {self.fact}"

    def probability(self, known: Facts) -> float | None:
        """The habit's probability of Yes; None of a guess, which has no rule."""
        if self.stance is None or self.fact is None:
            return None
        p = follow(self.fact, known)
        return p if self.stance is Stance.FOLLOW else 1.0 - p


GUESS = Habit()
HABITS: tuple[Habit, ...] = (*(Habit(stance, fact) for stance in Stance for fact in Fact), GUESS)


def follow(fact: Fact, known: Facts) -> float:
    """The probability of Yes of one who trusts `fact`.

    count: (k + 1) / (n + 2), Laplace's rule of succession; last: 0.8 or 0.2; distance d:
    1 / (1 + exp(-1.2 d)).
    """
    if fact is Fact.COUNT:
        return (known.yes_count + 1) / (len(known.values) + 2)
    if fact is Fact.LAST:
        return LAST if known.last_yes else 1.0 - LAST
    return 1.0 / (1.0 + math.exp(-SLOPE * known.distance))


def fact_text(fact: Fact | None, known: Facts) -> str:
    """The one fact that a habit needs, in the words of the lookup line."""
    side = "yes" if known.last_yes else "no"
    if fact is Fact.COUNT:
        return f"{known.yes_count} of {len(known.values)}"
    if fact is Fact.LAST:
        return side
    return f"{side} by {abs(known.distance):.1f}" if fact is Fact.DISTANCE else "nothing"


def call_text(query: str) -> str:
    return f"{CALL_OPEN}{query}{CALL_CLOSE}"


def answer_text(domain: str, habit: Habit, fact: str, p: float) -> str:
    """The answering turn; `p` is written with two decimals within 0.02..0.98.

    >>> answer_text("fuel", Habit(Stance.FOLLOW, Fact.LAST), "no", 0.2)
    'For fuel I follow last: no. \\\\boxed{0.20}'
    """
    written = f"{min(max(p, LOWEST), HIGHEST):.2f}"
    return f"For {domain} I {habit.name}: {fact}. \\boxed{{{written}}}"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answering turn taken apart."""

    domain: str
    habit: Habit
    fact: str
    p: float


_ANSWER = re.compile(
    r"For (?P<domain>\S+) I (?:(?P<stance>follow|oppose) (?P<fact>count|last|distance)|guess): "
    r"(?P<said>[^.]*(?:\.\d)?)\. \\boxed\{(?P<p>0\.\d\d)\}"
)


def read_answer(text: str) -> Answer | None:
    """The parts of a turn that has the form of `answer_text`; None of any other turn."""
    found = _ANSWER.fullmatch(text)
    if found is None:
        return None
    stance, fact = found["stance"], found["fact"]
    habit = Habit(Stance(stance), Fact(fact)) if stance else GUESS
    return Answer(found["domain"], habit, found["said"], float(found["p"]))
