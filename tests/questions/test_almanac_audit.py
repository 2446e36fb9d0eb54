"""Questions of real days, held against the almanac's raw files and not against our own reading of them."""

import csv
import gzip
import json
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from futureworld.clock import Schedule
from futureworld.config import QuestionsConfig
from futureworld.questions.ask import ask
from futureworld.records import EventStatus, Question, TargetKind
from futureworld.resolution.resolve import Pending, Resolved, Void, resolve
from futureworld.worlds.open import open_world
from futureworld.worlds.reading import Rows, read
from futureworld.worlds.recorded import RecordedWorld

SCHEDULE = Schedule()
EVERYTHING = QuestionsConfig(per_day=20000, thresholds=1)
FIRST, LAST = date(2026, 5, 1), date(2026, 8, 6)
DAYS = [FIRST + timedelta(days=i) for i in range((LAST - FIRST).days + 1)]
SAMPLE = [date(2026, 5, 2), *DAYS[4::11]]
"""Ten days of all weekdays; on the first a large source had failed."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with as_file(files("futureworld.worlds") / "almanac") as found:
        yield found


@pytest.fixture(scope="module")
def almanac() -> RecordedWorld:
    return open_world("almanac")


@pytest.fixture(scope="module")
def published(folder: Path) -> dict[tuple[str, str], str]:
    """(series, date) -> when its row was published, as written."""
    with gzip.open(folder / "observations.csv.gz", "rt", newline="") as file:
        return {(row["series_id"], row["date"]): row["published_at"] for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def events(folder: Path) -> dict[str, dict]:
    with gzip.open(folder / "events.jsonl.gz", "rt") as file:
        return {event["id"]: event for event in map(json.loads, file)}


def decided_at(question: Question, published: dict[tuple[str, str], str], events: dict[str, dict]) -> datetime | None:
    """When the raw files say that the answer could first be known."""
    if question.target.kind is TargetKind.SERIES:
        text = published.get((question.target.id, question.target.date.isoformat()))
    else:
        text = events[question.target.id].get("resolved_at")
    return datetime.fromisoformat(text) if text else None


def audit(almanac, published, events, days) -> set[str]:
    """Checks every question of `days` and the figures over them; returns the domains met."""
    targets: list[int] = []
    domains: set[str] = set()
    first_try = total = 0
    for day in days:
        questions = ask(almanac, day, SCHEDULE, EVERYTHING, 0).questions
        targets.append(len({question.target.id for question in questions}))
        assert targets[-1] >= 145, day
        assert len({question.domain for question in questions}) >= 5, day
        domains.update(question.domain for question in questions)
        for question in questions:
            moment = decided_at(question, published, events)
            assert moment is None or moment > question.asked_at, question
            assert moment is None or moment >= question.closes_at, question
            if question.target.kind is TargetKind.EVENT:
                event = events[question.target.id]
                assert datetime.fromisoformat(event["known_from"]) <= question.asked_at, question
                assert datetime.fromisoformat(event["scheduled_at"]) > question.asked_at, question
            resolved = isinstance(resolve(question, almanac, question.resolves_at), Resolved)
            assert resolved <= (moment is not None and moment <= question.resolves_at), question
            first_try += resolved
        total += len(questions)
    assert first_try / total > 0.95
    assert statistics.median(targets) >= 200
    return set(domains)


def test_k8_no_answer_was_knowable_when_asked(almanac, published, events):
    assert len(audit(almanac, published, events, SAMPLE)) >= 9


@pytest.mark.slow
def test_k8_no_answer_was_knowable_when_asked_on_any_day(almanac, published, events):
    assert len(audit(almanac, published, events, DAYS)) >= 10


def test_sides_and_outcomes_are_balanced(almanac):
    last, outcomes = Counter(), Counter()
    for day in SAMPLE:
        for question in ask(almanac, day, SCHEDULE, QuestionsConfig(), 0).questions:
            last[question.operator.holds(question.last_values[-1], question.threshold)] += 1
            answer = resolve(question, almanac, question.resolves_at + timedelta(days=3))
            if isinstance(answer, Resolved):
                outcomes[answer.value] += 1
    assert 0.47 < last[True] / last.total() < 0.53
    assert 0.42 < outcomes[1.0] / outcomes.total() < 0.58


def test_what_does_not_resolve_has_a_reason(almanac):
    # GitHub stars have no row of 2026-05-02: asked the day before, for nobody knew that it would fail.
    day = date(2026, 5, 1)
    questions = [q for q in ask(almanac, day, SCHEDULE, EVERYTHING, 0).questions if q.domain == "software"]
    answers = {resolve(question, almanac, question.resolves_at + timedelta(days=2)) for question in questions}
    assert {question.target.date for question in questions} == {date(2026, 5, 2)}
    assert answers == {Pending("date skipped by its source")}
    following = ask(almanac, date(2026, 5, 2), SCHEDULE, EVERYTHING, 0).questions
    assert "software" not in {question.domain for question in following}
    assert not [q for q in following if isinstance(resolve(q, almanac, q.resolves_at), Void)]


@pytest.mark.parametrize("changed", [False, True], ids=["removed", "changed"])
def test_whether_a_row_comes_is_never_looked_at(almanac, folder, changed):
    day = date(2026, 6, 12)
    asked_at = SCHEDULE.asked_at(day)
    blind = RecordedWorld(without_future(read(folder, None), asked_at, changed), "almanac")
    assert blind.id == almanac.id
    for config in (QuestionsConfig(), EVERYTHING):
        assert ask(blind, day, SCHEDULE, config, 3) == ask(almanac, day, SCHEDULE, config, 3)


def without_future(rows: Rows, asked_at: datetime, changed: bool) -> Rows:
    """The rows with everything first knowable after `asked_at` gone, or with other values at other times."""
    known = [row for row in rows.observations if row.published_at <= asked_at]
    later = [row for row in rows.observations if row.published_at > asked_at]
    fixtures = [event for event in rows.events if event.known_from <= asked_at]
    if changed:
        known += [replace(row, value=-row.value, published_at=row.published_at + timedelta(hours=9)) for row in later]
    events = [
        event
        if event.resolved_at is not None and event.resolved_at <= asked_at
        else replace(
            event,
            status=EventStatus.POSTPONED if changed else EventStatus.SCHEDULED,
            outcome=None,
            resolved_at=asked_at + timedelta(minutes=1) if changed else None,
        )
        for event in fixtures
    ]
    about = {key: value for key, value in rows.about.items() if key != "bulletins"}
    return Rows(about=about, series=rows.series, observations=known, events=events, digest=rows.digest)
