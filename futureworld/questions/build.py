"""Candidates: every question a day allows, from what was knowable when it is asked.

A series is asked about its next due row (`due`), cut by the threshold rule (`thresholds`).
An event is asked about one of its options. Sides are dealt per domain and day.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import TypeVar

import numpy as np

from futureworld.clock import Schedule
from futureworld.config import QuestionsConfig
from futureworld.questions.due import Due, next_due, quantile
from futureworld.questions.facts import event_points, series_points, typical_step
from futureworld.questions.templates import DRAW, Known, Times, event_question, series_question
from futureworld.questions.thresholds import deal, draw, generator
from futureworld.records import Event, EventStatus, Question, Series
from futureworld.worlds.base import World

DURATIONS = 20
MIN_DURATIONS = 5
DURATION_QUANTILE = 0.9
RECENT_WINNERS = 10
"""Events whose winners an event of more than three options asks about."""

MARKET_OPTIONS = {"Yes", "No"}


@dataclass(frozen=True, slots=True)
class Draw:
    """What random numbers depend on besides the target: the run's seed and a set's namespace."""

    seed: int
    namespace: str = ""

    def generator(self, name: str, day: date, index: int = 0) -> np.random.Generator:
        return generator(self.seed, name, day, index, self.namespace)


@dataclass(frozen=True, slots=True)
class SeriesTarget:
    series: Series
    due: Due
    known: Known

    @property
    def domain(self) -> str:
        return self.series.domain


@dataclass(frozen=True, slots=True)
class EventTarget:
    """`choices` are the options that may be asked about, with their results (1.0 or 0.0).

    `twice`: another event of the day has the same title.
    """

    event: Event
    choices: tuple[tuple[str, Known], ...]
    twice: bool

    @property
    def domain(self) -> str:
        return self.event.domain


T = TypeVar("T", SeriesTarget, EventTarget)


def candidates(world: World, day: date, schedule: Schedule, config: QuestionsConfig, drawn: Draw) -> list[Question]:
    """Every question of `day`, by domain; a target's first threshold stands before its second one."""
    times = Times(world.id, day, schedule.asked_at(day), schedule.closes_at(day), schedule.resolves_at(day))
    questions: list[Question] = []
    for of_series in _by_domain(series_targets(world, times, config)):
        questions += _series_questions(of_series, times, config.thresholds, drawn)
    for of_events in _by_domain(event_targets(world, times, config)):
        questions += _event_questions(of_events, times, drawn)
    return questions


def series_targets(world: World, times: Times, config: QuestionsConfig) -> list[SeriesTarget]:
    """Series whose next row is expected by `resolves_at` and which have history enough."""
    targets: list[SeriesTarget] = []
    for series in world.series().values():
        rows = world.observations(series.id, times.asked_at)
        due = next_due(series, rows, times.asked_at)
        if due is None or due.expected > times.resolves_at or due.date in series.breaks:
            continue
        # An increase over a missing row cannot be told.
        if series.kind == "cumulative" and rows[-1].date != due.date - timedelta(days=1):
            continue
        values = tuple(point.value for point in series_points(world, series, times.asked_at))
        step = typical_step(values)
        if len(values) >= config.min_history and step > 0:
            targets.append(SeriesTarget(series, due, Known(values, step)))
    return targets


def _series_questions(targets: Sequence[SeriesTarget], times: Times, thresholds: int, drawn: Draw) -> list[Question]:
    taken: dict[str, set[Decimal]] = defaultdict(set)
    questions: list[Question] = []
    for index in range(thresholds):
        random = drawn.generator(targets[0].domain, times.day, index)
        sides = deal(len(targets), random)
        for place, side in zip(random.permutation(len(targets)), sides, strict=True):
            series, due, known = targets[place].series, targets[place].due, targets[place].known
            own = drawn.generator(series.id, times.day, index)
            found = draw(known.values, known.step, side, own, taken[series.id])
            if found is None:
                continue
            side_found, threshold = found
            taken[series.id].add(threshold)
            # Answers close before the row can appear.
            when = replace(times, closes_at=min(times.closes_at, due.earliest))
            questions.append(series_question(series, due.date, side_found.operator, threshold, known=known, times=when))
    return questions


def event_targets(world: World, times: Times, config: QuestionsConfig) -> list[EventTarget]:
    """Events that start after `asked_at` for sure and are expected to be decided by `resolves_at`."""
    events = world.events(times.asked_at)
    same = Counter((event.title, event.competition, event.date) for event in events)
    targets: list[EventTarget] = []
    for event in events:
        if event.status is not EventStatus.SCHEDULED or not times.asked_at < event.scheduled_at < times.resolves_at:
            continue
        # A market may settle before its close, so its schedule does not say that it is still open.
        if set(event.options) == MARKET_OPTIONS:
            continue
        duration = expected_duration(events, event)
        if duration is None or event.scheduled_at + duration > times.resolves_at:
            continue
        choices = _choices(events, event, config.min_results)
        if choices:
            targets.append(EventTarget(event, choices, same[event.title, event.competition, event.date] > 1))
    return targets


def expected_duration(events: Iterable[Event], event: Event) -> timedelta | None:
    """From scheduled start to known result: the 0.9 quantile of the last 20 of its competition.

    Of its domain where the competition has fewer than five results; None where that has too.
    A date-only start is compared with date-only starts, since it is a lower bound.
    """
    alike = [
        (other.competition.split(",")[0], other.resolved_at - other.scheduled_at)
        for other in events
        if other.domain == event.domain
        and other.minute_known == event.minute_known
        and other.status is EventStatus.RESOLVED
        and other.resolved_at is not None
    ]
    own = [duration for competition, duration in alike if competition == event.competition.split(",")[0]]
    durations = own if len(own) >= MIN_DURATIONS else [duration for _, duration in alike]
    if len(durations) < MIN_DURATIONS:
        return None
    return quantile(sorted(durations[-DURATIONS:]), DURATION_QUANTILE)


def _choices(events: Sequence[Event], event: Event, min_results: int) -> tuple[tuple[str, Known], ...]:
    options = [option for option in event.options if option != DRAW]
    if len(options) > 2:
        # Of a large field most never win; recent winners keep the base rate off the floor.
        decided = [other for other in events if other.domain == event.domain and other.outcome is not None]
        winners = {other.outcome for other in decided[-RECENT_WINNERS:]}
        options = [option for option in options if option in winners]
    choices: list[tuple[str, Known]] = []
    for option in options:
        values = tuple(point.value for point in event_points(events, event.domain, option))
        step = typical_step(values)
        if len(values) >= min_results and step > 0:
            choices.append((option, Known(values, step)))
    return tuple(choices)


def _event_questions(targets: Sequence[EventTarget], times: Times, drawn: Draw) -> list[Question]:
    """One question an event; the option is a coin among those that even out the last results."""
    surplus = 0  # options asked about that won last, minus those that did not
    questions: list[Question] = []
    for place in drawn.generator(targets[0].domain, times.day).permutation(len(targets)):
        target, event = targets[place], targets[place].event
        own = drawn.generator(event.id, times.day)
        wanted = 1.0 if surplus < 0 or (surplus == 0 and own.random() < 0.5) else 0.0
        wished = [choice for choice in target.choices if choice[1].values[-1] == wanted]
        choices = wished or target.choices
        option, known = choices[own.integers(len(choices))]
        surplus += 1 if known.values[-1] == 1.0 else -1
        when = replace(times, closes_at=min(times.closes_at, event.scheduled_at))
        questions.append(event_question(event, option, known=known, times=when, twice=target.twice))
    return questions


def _by_domain(targets: Iterable[T]) -> list[list[T]]:
    """Targets in their domains, domains by name, order within kept."""
    groups: dict[str, list[T]] = defaultdict(list)
    for target in targets:
        groups[target.domain].append(target)
    return [groups[name] for name in sorted(groups)]
