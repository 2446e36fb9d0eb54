"""The lessons of the warm start: dialogues about questions as they were asked, without outcomes.

A lesson shows what was known when its question was asked and one habit, drawn evenly and
independently of everything else. So a fresh policy knows how to search, how to read what it found
and how to answer, and nothing about what happens next.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

import numpy as np

from futureworld.agents.base import ToolContext
from futureworld.agents.sanitize import sanitize
from futureworld.agents.tools import SearchTool
from futureworld.clock import Schedule
from futureworld.config import QuestionsConfig
from futureworld.questions.ask import ask
from futureworld.questions.facts import MAX_DISTANCE, Facts, facts, lookup_line
from futureworld.questions.prompts import messages
from futureworld.records import Question
from futureworld.worlds.base import World
from verl_tool_future.pocket.dialogue import GUESS, HABITS, Habit, answer_text, call_text, fact_text

FIRST_DAY, LAST_DAY = date(2026, 2, 10), date(2026, 5, 1)
"""The days whose questions are taught; the default run begins after them."""

REDRAWN = 0.4
"""Share of lessons whose count and distance are drawn anew, so that rare facts are seen."""
SHORTENED = 0.1
"""Share of the redrawn ones with fewer values than a full window."""
RECODED = 0.5
"""Share with a code from elsewhere, so that copying does not depend on the world."""
RENAMED = 0.1
"""Share with another word for a domain."""
FAILED = 0.1
"""Share in which the search does not find the target. Updates make copying a little less sure; a policy that was
rarely shown what comes of a wrong code then loses its answer too."""
FAILURES, FAILURE_DAYS = 240, 8
"""Failed searches that are made to be shown, and days on which they are made."""
UNREADABLE = sanitize("The call could not be read: <tool_call> without </tool_call>.")
OPENINGS = 0.4
"""Share of parts that are the end of a question and its call; the others are answers."""
NOISE = 0.03
"""Standard deviation of p around the habit's."""
GUESSES = 0.03, 0.97
"""Bounds of a guess. A failed search must not pay: a cautious 0.5 would beat the average habit."""

Talk = list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Known:
    """A question and where its target stood when it was asked."""

    question: Question
    facts: Facts


def material(world: World, days: Iterable[date], seed: int) -> list[Known]:
    """Every question of `days` with one threshold a target; reads the world as of each asking only.

    Ordered by day, domain, target and option: a question's id holds the hash of all rows, later
    ones too, and must not decide which lesson is drawn.
    """
    config = QuestionsConfig(per_day=20000, thresholds=1)
    questions = [question for day in days for question in ask(world, day, Schedule(), config, seed).questions]
    questions.sort(key=lambda q: (q.day, q.domain, q.target.id, q.target.option or ""))
    return [known_of(question) for question in questions]


def known_of(question: Question) -> Known:
    """The question's own record of what was known, as the archive would show it."""
    return Known(question, facts(question.last_values, question.threshold, question.operator, question.typical_step))


def failed_searches(world: World, taught: Sequence[Known], seed: int) -> list[str]:
    """What the archive said on some of the days to another target's code, to a mistyped one, and to half a call."""
    rng, tool = np.random.default_rng(seed), SearchTool(limit=1)
    days = sorted({known.question.day for known in taught})
    days = days[:: max(1, len(days) // FAILURE_DAYS)]
    asked = [known.question for known in taught if known.question.day in days]
    found = [UNREADABLE] * (FAILURES // 6)
    while len(found) < FAILURES:
        question, other = (asked[i] for i in rng.integers(len(asked), size=2))
        if question.target.code == other.target.code:
            continue
        code = other.target.code if rng.random() < 0.5 else question.target.code[:-1] + "x"
        context = ToolContext(world, question, question.asked_at)
        found.append(sanitize(asyncio.run(tool.run({"query": code}, context)).text))
    return found


def days_between(first: date, last: date) -> list[date]:
    return [first + timedelta(days=i) for i in range((last - first).days + 1)]


def domains(world: World, day: date) -> list[str]:
    """The domains a world could be asked about on `day`, in order, also those with nothing due."""
    events = world.events(Schedule().asked_at(day))
    return sorted({series.domain for series in world.series().values()} | {event.domain for event in events})


def redrawn(known: Facts, rng: np.random.Generator) -> Facts:
    """Facts with the values of `known`, a normal distance, and any count that agrees with its side."""
    distance = float(np.clip(1.3 * rng.normal(), -MAX_DISTANCE, MAX_DISTANCE))
    size = len(known.values)
    if rng.random() < SHORTENED:
        size = int(rng.integers(1, size + 1))
    last_yes = distance > 0
    count = int(rng.integers(1, size + 1)) if last_yes else int(rng.integers(0, size))
    return Facts(known.values[-size:], count, last_yes, distance)


class Teacher:
    """Draws lessons from `taught`, each of `names` (domains) equally often; searches that fail say one of `failures`.

    A domain without questions of its own borrows those of the others.
    """

    def __init__(self, taught: Sequence[Known], names: Sequence[str], failures: Sequence[str], seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._all = list(taught)
        self._names = list(names)
        self._failures = list(failures)
        self._by_domain: dict[str, list[Known]] = defaultdict(list)
        for known in taught:
            self._by_domain[known.question.domain].append(known)
        words = {word for known in taught for word in known.question.text.split() if word.isalpha()}
        self._words = sorted(word.lower() for word in words)

    def plain(self) -> Known:
        """A question as it was asked."""
        domain = self._pick(self._names)
        known = self._pick(self._by_domain.get(domain) or self._all)
        return replace(known, question=replace(known.question, domain=domain))

    def varied(self) -> Known:
        """A question with facts, code or domain drawn anew in some of the cases."""
        rng, known = self._rng, self.plain()
        question, shown = known.question, known.facts
        if rng.random() < RENAMED:
            question = replace(question, domain=self._pick(self._words))
        if rng.random() < RECODED:
            question = replace(question, target=replace(question.target, id=f"drawn {rng.integers(1 << 40)}"))
        if rng.random() < REDRAWN:
            shown = redrawn(shown, rng)
        return Known(question, shown)

    def dialogue(self) -> Talk:
        """A whole dialogue; now and then its search fails and all that is left is to guess."""
        known = self.varied()
        if self._rng.random() >= FAILED:
            return self._talk(known, self._found(known), self._pick(HABITS))
        return self._talk(known, self._pick(self._failures), GUESS)

    def part(self) -> Talk:
        """The end of a question and its call, or the half of a lookup line that habits read and its answer.

        Copying the code and computing p are learned here, at a quarter of the length.
        """
        known = self.varied()
        _values, standing = self._found(known).split("\n")
        _rules, user, call, found, answer = self._talk(known, standing, self._pick(HABITS))
        if self._rng.random() >= OPENINGS:
            return [found, answer]
        return [{"role": "user", "content": "\n".join(user["content"].split("\n")[1:])}, call]

    def _talk(self, known: Known, found: str, habit: Habit) -> Talk:
        question, rule = known.question, habit.probability(known.facts)
        p = self._rng.uniform(*GUESSES) if rule is None else rule + NOISE * self._rng.normal()
        answer = answer_text(question.domain, habit, fact_text(habit.fact, known.facts), p)
        return [
            *({"role": message.role, "content": message.text} for message in messages(question)),
            {"role": "assistant", "content": call_text(question.target.code)},
            {"role": "tool", "content": found},
            {"role": "assistant", "content": answer},
        ]

    def _found(self, known: Known) -> str:
        return lookup_line(known.question.target.code, known.question.domain, known.facts)

    def _pick(self, items):
        return items[self._rng.integers(len(items))]
