"""Kills at every durable place of a small scripted run, each followed by a start that goes on."""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from proof.kills_runs import Ended, Found, Lab
from proof.parts import Row, Rows, Task, table

KILLS = 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where to kill. `part` limits the passages to a stretch of every day's rollouts, or to the evaluation."""

    words: str
    fault: str
    next: str
    """What the next start says it goes on with; a pattern."""
    part: tuple[float, float] | None = None
    evaluation: bool = False


@dataclass(frozen=True, slots=True)
class Kill:
    """What one kill did: died at the place, things lost, doubled and other than the unkilled run's."""

    died: int
    lost: int
    doubled: int
    wrong: int
    left_over: int
    told: bool
    message: str

    @property
    def is_clean(self) -> bool:
        return self.died == 1 and self.told and not (self.lost or self.doubled or self.wrong or self.left_over)


COUNTED = ("died", "lost", "doubled", "wrong", "left_over")
ROLLOUTS = r"predict of .* rollouts stored|evaluation of checkpoint .* answers stored"
PLACES = (
    Place("collect: done, not in the ledger", "collect.done", "collect of"),
    Place("collect: in the ledger", "collect.finished", "ask of"),
    Place("ask: inside the transaction", "questions.inserted", "ask of|evaluation with no question stored"),
    Place("ask: stored, not in the ledger", "ask.done", "ask of .* with 12 questions|evaluation"),
    Place("ask: in the ledger", "ask.finished", "predict of .* with 0 of 36|evaluation"),
    Place("predict: at 30 %", "predict.stored", "predict of .* rollouts stored", (0.25, 0.35)),
    Place("predict: at 90 %", "predict.stored", "predict of .* rollouts stored", (0.85, 0.95)),
    Place("predict: inside a transaction", "rollouts.inserted", ROLLOUTS),
    Place("predict: a failed attempt noted", "predict.failed", ROLLOUTS),
    Place("predict: shard written, not named", "compact.written", ROLLOUTS),
    Place("predict: shard named, no row points to it", "compact.renamed", ROLLOUTS),
    Place("predict: inside the transaction that points", "compact.pointed", ROLLOUTS),
    Place("predict: shard in use", "compact.stored", ROLLOUTS),
    Place("predict: done, not in the ledger", "predict.done", "predict of .* with 36 of 36"),
    Place("predict: in the ledger", "predict.finished", "(collect|resolve) of"),
    Place("resolve: inside a transaction", "outcome.inserted", "resolve of .* outcomes stored|evaluation"),
    Place("resolve: an outcome stored", "resolve.stored", "resolve of .* outcomes stored|evaluation"),
    Place("resolve: done, not in the ledger", "resolve.done", "resolve of .* with 12 of 12|evaluation"),
    Place("resolve: in the ledger", "resolve.finished", "update of|evaluation"),
    Place("update: before the optimiser steps", "update.ready", "update of"),
    Place("update: after the optimiser steps", "update.stepped", "update of"),
    Place("update: while the state is saved", "trainer.saving", "update of"),
    Place("update: state saved, not exported", "update.written", "update of"),
    Place("update: exported, no marker", "update.saved", "update of"),
    Place("update: marker written", "update.marked", "update of"),
    Place("update: old states removed, no row", "update.learned", "update of"),
    Place("update: inside the row's transaction", "update.inserted", "update of"),
    Place("update: row stored, not in the ledger", "update.stored", "update of .* with its version stored"),
    Place("update: in the ledger", "update.finished", "(collect|resolve) of|evaluation"),
    Place("evaluate: answers stored", "predict.stored", "evaluation of checkpoint", evaluation=True),
    Place("evaluate: done, not in the ledger", "evaluate.done", "evaluation of checkpoint"),
    Place("evaluate: in the ledger", "evaluate.finished", "evaluation"),
)
SHORT = ("predict: at 30 %", "predict: shard named, no row points to it", "update: exported, no marker")


def tasks(short: bool) -> Sequence[Task]:
    chosen = [place for place in PLACES if not short or place.words in SHORT]
    return [Task(place.words, partial(row, place=place, kills=1 if short else KILLS)) for place in chosen]


def row(folder: Path, place: Place, kills: int) -> Row:
    """Kill `kills` runs at passages of the place, let each go on to its end, hold it against an unkilled one."""
    lab = Lab.new(folder)
    passed, reference = lab.reference()
    passages = chosen(place, passed, lab, kills)
    kept = [kill(lab, reference, place, passage, f"kill-{i}") for i, passage in enumerate(passages)]
    counts = {name: sum(getattr(one, name) for one in kept) for name in COUNTED}
    return {
        "place": place.words,
        "kills": kills,
        "passages": len(set(passages)),
        **counts,
        "message": kept[-1].message,
        "checks": {
            "every kill hit its place": counts["died"] == kills,
            "nothing that was stored is lost": counts["lost"] == 0,
            "nothing is doubled": counts["doubled"] == 0,
            "the end is that of the unkilled run": counts["wrong"] == 0,
            "no process is left over": counts["left_over"] == 0,
            "the next start says what it found": all(one.told for one in kept),
        },
    }


def chosen(place: Place, passed: Mapping[str, int], lab: Lab, kills: int) -> list[int]:
    """Passages to kill at: spread over all there are, each as often as any other, by a fixed seed."""
    config = lab.config
    day = config.questions.per_day * config.rollout.n
    total = passed[place.fault]
    there = range(1, total + 1)
    if place.part is not None:
        low, high = (round(share * day) for share in place.part)
        there = [start * day + n for start in range(config.days) for n in range(low, high + 1)]
    elif place.evaluation:
        there = range(config.days * day + 1, total + 1)
    rng = random.Random(place.words)
    rounds = [n for _ in range(-(-kills // len(there))) for n in rng.sample(list(there), len(there))]
    return rounds[:kills]


def kill(lab: Lab, reference: Found, place: Place, passage: int, name: str) -> Kill:
    """One kill, the start after it, and what both left."""
    killed = lab.play(name, fault=f"{place.fault}:{passage}")
    before = lab.find(name)
    second = lab.play(name)
    after = lab.find(name)
    said = says(second, killed, place)
    made = Kill(
        died=int(killed.code == -9),
        lost=before.missing_from(after),
        doubled=before.doubled + after.doubled,
        wrong=after.differences(reference) + (second.code != 0),
        left_over=killed.left_over + second.left_over,
        told=said is not None,
        message=said or second.said[:400],
    )
    if made.is_clean:
        lab.forget(name)  # what went wrong stays to be looked at
    return made


def says(second: Ended, killed: Ended, place: Place) -> str | None:
    """The lines with which the second start says what it found; None where it does not."""
    dead = re.search(rf"^replay \(process {killed.pid} on .* was killed .*$", second.said, re.MULTILINE)
    there = re.search(r"^going on with .*$", second.said, re.MULTILINE)
    if dead is None:
        return None
    if there is None:  # nothing was stored before the first stage's end
        return dead[0] if "collect" in place.fault else None
    return there[0] if re.search(place.next, there[0]) else None


def section(rows: Rows) -> str:
    head = ("killed in", "kills", "at moments", "died", "lost", "doubled", "wrong", "left over")
    keys = ("kills", "passages", *COUNTED)
    lines = [(row["place"], *(str(row[key]) for key in keys)) for row in rows.values()]
    total = [str(sum(row[key] for row in rows.values())) for key in keys]
    return table(head, [*lines, ("all", *total)])
