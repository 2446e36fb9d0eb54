"""Nothing from later was used or shown: the audit of scripts/audit.py over worlds and real runs, and planted rows."""

from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path

import audit_plant
from audit import opened, play
from audit_checks import Findings
from audit_raw import read_raw
from audit_stored import audit_run, stored

from futureworld.errors import RunError
from futureworld.worlds.open import ALMANAC, world_folder
from proof.parts import Row, Rows, Task, table
from proof.plays import Play, thirty_two_days
from proof.runs import shared

TITLE = "Nothing from later was used or shown"
START = date(2026, 5, 4)
RECORDING = Path(__file__).resolve().parents[3] / "shared" / "worlds" / "2026"
ENOUGH = 10_000
"""Observations asked for."""
PLACES = {"observations": audit_plant.in_observations, "questions": audit_plant.in_questions}


def tasks(short: bool) -> Sequence[Task]:
    days, per_day, enough = (1, 40, 0) if short else (5, 500, ENOUGH)
    planted = [
        Task(f"planted {way} in {where}", partial(plant, way=way, where=where, per_day=per_day))
        for way in audit_plant.WAYS
        for where in PLACES
    ]
    almanac = Task("almanac", lambda folder: scripted(ALMANAC, days, per_day, enough))
    if short:
        return [almanac, *planted]
    recording = Task("recording 2026", lambda folder: recorded(days, per_day, enough))
    runs = [Task(f"real run, {key}", partial(real, play, enough)) for key, play in thirty_two_days().items()]
    return [almanac, recording, *planted, *runs]


def scripted(world: str, days: int, per_day: int, enough: int) -> Row:
    """Days of a world, answered by the policy that looks for what came later."""
    with world_folder(world) as folder, opened(folder, START, days, per_day) as (run, clock):
        raw = read_raw(folder)
        play(run, clock, raw)
        return audited(audit_run(run, raw), raw.count, enough) | {"world": run.world.id, "days": days}


def recorded(days: int, per_day: int, enough: int) -> Row:
    if not RECORDING.is_dir():
        return {"skipped": "shared/worlds/2026 is not beside this checkout"}
    return scripted(str(RECORDING), days, per_day, enough)


def real(play: Play, enough: int, folder: Path) -> Row:
    """A finished run of the part `learning`: what was shown to a policy of weights, by the real engine."""
    path = shared(folder) / play.name / "run"
    if not (path / "summary.json").exists():
        raise RunError(f"{path} is no finished run; measure the part `learning` first, which makes it")
    with stored(path) as run, world_folder(run.config.world) as world:
        raw = read_raw(world)
        row = audited(audit_run(run, raw), raw.count, enough)
    return row | {"world": f"{ALMANAC}, run {play.name}", "days": run.config.days}


def audited(found: Findings, rows: int, enough: int) -> Row:
    checked, violations = found.checked, found.violations
    checks = {"nothing from after asking was used or shown": not violations}
    if enough:
        checks[f"at least {enough:,} observations"] = checked["observations"] >= enough
    return {
        "rows": rows,
        "questions": checked["questions"],
        "used": checked["values used"],
        "rollouts": checked["rollouts"],
        "observations": checked["observations"],
        "violations": len(violations),
        "first": violations[:5],
        "checked": dict(checked),
        "checks": checks,
    }


def plant(folder: Path, way: str, where: str, per_day: int) -> Row:
    """A planted copy of the almanac: the audit names what it spoiled, all of it and nothing else."""
    with world_folder(ALMANAC) as honest:
        made = PLACES[where](read_raw(honest), START, per_day, way, folder / "world")
    return {
        "spoiled": len(made.spoiled),
        "found": len(made.found & made.spoiled),
        "others": len(made.found - made.spoiled),
        "questions": made.checked["questions"],
        "observations": made.checked["observations"],
        "checks": {
            "something was spoiled, and all of it is found": bool(made.spoiled) and made.spoiled <= made.found,
            "and nothing else": made.found <= made.spoiled,
        },
    }


WORDS = """
The files of a world are parsed by a reader of its own ([audit.md](audit.md)); what could be known when a question was
asked is worked out from them and compared, character for character, with what questions were made of and with
everything a rollout was shown. In worlds a scripted policy also asks for the next document that comes out; in the
real runs the observations are those of the policy that was trained, in training and in evaluation.
"""
PLANTED = """
To see that the audit is not blind, later values of ten series were planted in a copy of the almanac: every row of
the series dated a day early (`early`), or the next value written into the last row that was known (`disguised`).
Either the rollouts searched in the copy, or the questions were made in it. Spoiled are the observations with a line
that the honest world does not give, and the questions about these series; the audit must name all of them and nothing
else.
"""


def section(rows: Rows, pictures: Path) -> str:
    worlds = {key: row for key, row in rows.items() if "violations" in row}
    planted = {key: row for key, row in rows.items() if "spoiled" in row}
    parts = [WORDS]
    if worlds:
        head = ("world", "days", "questions", "values used", "rollouts", "observations", "rows read", "from later")
        names = ("days", "questions", "used", "rollouts", "observations", "rows", "violations")
        parts.append(table(head, [(row["world"], *(f"{row[name]:,}" for name in names)) for row in worlds.values()]))
    parts += [f"{key}: not measured, {row['skipped']}." for key, row in rows.items() if "skipped" in row]
    if planted:
        head = ("a later value", "questions", "observations", "spoiled", "found", "named beside them")
        names = ("questions", "observations", "spoiled", "found", "others")
        lines = [(key, *(f"{row[name]:,}" for name in names)) for key, row in planted.items()]
        parts += [PLANTED, table(head, lines)]
    return "\n\n".join(part.strip() for part in parts)
