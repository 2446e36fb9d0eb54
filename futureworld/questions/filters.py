"""The filter stage: rules that drop a question, each with a reason that is counted.

A filter is anything with a `name` and a `reason`; one that asks a model fits the same seam.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from futureworld.clock import end_of_day
from futureworld.records import EventStatus, Question, TargetKind
from futureworld.worlds.base import World

MAX_CHARACTERS = 400
"""Longer texts do not fit beside a search in a small policy's context."""


class Filter(Protocol):
    @property
    def name(self) -> str: ...

    def reason(self, question: Question) -> str | None:
        """Why the question must not be asked; None where it may be."""
        ...


def apply(filters: Sequence[Filter], questions: Iterable[Question]) -> tuple[list[Question], Counter[str]]:
    """Questions that every filter lets through, in order, and how many fell to each reason.

    A question meets the filters in order and is counted once, as `<filter>: <reason>`.
    """
    kept: list[Question] = []
    dropped: Counter[str] = Counter()
    for question in questions:
        verdicts = ((rule.name, rule.reason(question)) for rule in filters)
        found = next((f"{name}: {reason}" for name, reason in verdicts if reason), None)
        if found is None:
            kept.append(question)
        else:
            dropped[found] += 1
    return kept, dropped


def rules(world: World, asked_at: datetime) -> list[Filter]:
    """The rule-based filters of one day, cheapest first; `Duplicate` last, so that it sees only what stays."""
    return [WellFormed(), Length(), Undecided(world, asked_at), Duplicate()]


class WellFormed:
    name = "well_formed"

    def reason(self, question: Question) -> str | None:
        if not math.isfinite(question.threshold) or not question.typical_step > 0:
            return "threshold or step is not a positive finite number"
        if not question.last_values:
            return "no known value"
        if question.target.kind is TargetKind.SERIES:
            # A day that is over is a fact of the world, wherever it may be published.
            if end_of_day(question.target.date, question.target.zone) <= question.asked_at:
                return "its day has ended"
        elif question.target.option == "":
            return "no option"
        if question.description and question.description in question.text:
            return "the text holds the description"
        return None


class Length:
    name = "length"

    def reason(self, question: Question) -> str | None:
        return "too long" if len(question.text) > MAX_CHARACTERS else None


class Undecided:
    """Drops what could be looked up at `asked_at`: a published row, a result, a start that passed."""

    name = "undecided"

    def __init__(self, world: World, asked_at: datetime) -> None:
        self._world = world
        self._asked_at = asked_at
        self._events = {event.id: event for event in world.events(asked_at)}

    def reason(self, question: Question) -> str | None:
        if question.target.kind is TargetKind.EVENT:
            return self._event(question)
        rows = self._world.observations(question.target.id, self._asked_at)
        if rows and rows[-1].date >= question.target.date:
            return "already published"
        return None

    def _event(self, question: Question) -> str | None:
        event = self._events.get(question.target.id)
        if event is None:
            return "no such event"
        if event.status is not EventStatus.SCHEDULED:
            return "already decided"
        if event.scheduled_at < question.closes_at:
            return "starts before answers close"
        return None if question.target.option in event.options else "no such option"


class Duplicate:
    """Drops a text that was seen before."""

    name = "duplicate"

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def reason(self, question: Question) -> str | None:
        if question.text in self._seen:
            return "same text"
        self._seen.add(question.text)
        return None
