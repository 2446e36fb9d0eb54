"""Copies of a world in which a later value can be read too early, and whether the audit names what it spoils.

Two ways: `early` dates every row of a series a day before it was published, `disguised` writes the value of the next
row into the last one that was known. The audit reads the honest files.
"""

import csv
import gzip
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path

from audit import nosy, opened
from audit_checks import HIT, NEXT_HIT, Findings, call_name
from audit_raw import DAY, Raw, Row, table
from audit_stored import asked, audit_kept, rollouts

from futureworld.agents.sanitize import sanitize
from futureworld.agents.scripted import ScriptedEngine
from futureworld.clock import iso
from futureworld.cycle.ask import ask
from futureworld.cycle.predict import predict
from futureworld.cycle.run import Run
from futureworld.records import Question
from futureworld.worlds.base import World
from futureworld.worlds.open import open_world

WAYS = ("early", "disguised")
SERIES = 10
"""Series with planted rows."""


@dataclass(frozen=True, slots=True)
class Planted:
    """What the planted rows spoiled, and what the audit of the run found, by name."""

    spoiled: frozenset[str]
    found: frozenset[str]
    checked: Mapping[str, int]


def in_observations(raw: Raw, day: date, per_day: int, way: str, place: Path) -> Planted:
    """The policy searches in the copy: spoiled is every observation that the honest world does not give.

    The same honest hits in another order spoil nothing: with other rows the archive weighs words otherwise.
    """
    with opened(raw.folder, day, 1, per_day) as (run, _):
        ask(run, day)
        world = planted_world(raw, asked(run, day), way, place)
        honest = shown(run, run.world, raw, day)
    with opened(raw.folder, day, 1, per_day) as (run, _):
        ask(run, day)
        as_of = run.schedule.asked_at(day)
        there = shown(run, world, raw, day)
        spoiled = {name for name, text in there.items() if spoils(honest[name], text, run.world, as_of)}
        return named(spoiled, audit_kept(run, raw, asked(run, day)))


def spoils(honest: str, text: str, world: World, as_of: datetime) -> bool:
    """Whether a piece of `text` is neither one of `honest` nor what the honest `world` has at its address."""
    for piece in set(NEXT_HIT.split(text)) - set(NEXT_HIT.split(honest)):
        hit = HIT.fullmatch(piece)
        document = world.visit(hit["url"], as_of) if hit else None
        if hit is None or document is None or not sanitize(document.text).startswith(hit["text"].removesuffix(" ...")):
            return True
    return False


def in_questions(raw: Raw, day: date, per_day: int, way: str, place: Path) -> Planted:
    """Questions are made in the copy, the policy searches in the honest world: spoiled is each of a planted series."""
    with opened(raw.folder, day, 1, per_day) as (run, _):
        ask(run, day)
        honest, wanted = run.world, asked(run, day)
    planted_world(raw, wanted, way, place)
    with opened(place, day, 1, per_day) as (run, _):
        ask(run, day)
        shown(run, honest, raw, day)
        questions, names = asked(run, day), {choice.series for choice in choose(raw, wanted)}
        spoiled = {f"question {question.id}" for question in questions if question.target.id in names}
        return named(spoiled, audit_kept(run, raw, questions))


def named(spoiled: set[str], found: Findings) -> Planted:
    return Planted(frozenset(spoiled), frozenset(found.named()), found.checked)


def shown(run: Run, world: World, raw: Raw, day: date) -> dict[str, str]:
    """Every observation of the day's rollouts in `world`, by the name that the audit gives it."""
    predict(replace(run, world=world), day, ScriptedEngine(nosy(raw, asked(run, day))))
    return {
        call_name(trajectory, number): call.text
        for trajectory in rollouts(run, asked(run, day))
        for number, call in enumerate(trajectory.calls, 1)
    }


@dataclass(frozen=True, slots=True)
class Choice:
    """A series asked about at `asked_at`: its last row that was known then, and the next."""

    series: str
    asked_at: datetime
    last: Row
    later: Row


def choose(raw: Raw, questions: Sequence[Question]) -> list[Choice]:
    """The first SERIES series whose next value is another one and comes out within a day."""
    chosen: dict[str, Choice] = {}
    for question in questions:
        name, at = question.target.id, question.asked_at
        rows = raw.rows.get(name, [])
        last = [row for row in rows if row.published_at <= at]
        later = [row for row in rows if at < row.published_at <= at + DAY]
        if last and later and last[-1].value != later[0].value:
            chosen.setdefault(name, Choice(name, at, last[-1], later[0]))
    return list(chosen.values())[:SERIES]


def planted_world(raw: Raw, questions: Sequence[Question], way: str, place: Path) -> World:
    """A copy of the world's folder at `place`, opened, with a planted row for each of the chosen series."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(raw.folder, place)
    changes: dict[tuple[str, str], dict[str, str]] = {}
    for choice in choose(raw, questions):
        if way == "early":
            for row in raw.rows[choice.series]:
                changes[choice.series, str(row.date)] = {"published_at": iso(row.published_at - DAY)}
        else:
            changes[choice.series, str(choice.last.date)] = {"value": repr(choice.later.value)}
    rows = csv.DictReader(table(raw.folder))
    with gzip.open(place / "observations.csv.gz", "wt", newline="") as file:
        writer = csv.DictWriter(file, rows.fieldnames or ())
        writer.writeheader()
        writer.writerows(row | changes.get((row["series_id"], row["date"]), {}) for row in rows)
    return open_world(place)
