"""Other harm than a kill: a full disk, two jobs at once, a clock set back, a database that goes away."""

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from sqlalchemy import create_engine, make_url, text

from futureworld.clock import iso
from proof.kills_runs import Ended, Found, Lab, server
from proof.parts import Row, Rows, Task, table

POSTGRES = "FUTUREWORLD_POSTGRES"
SHARES = (0.25, 0.5, 0.75, 0.9)
"""Of the room that the whole run takes: where the disk is full."""
MIDDLE = 50
"""The rollout at which a run is held: in predict of the second day."""


def tasks(short: bool) -> Sequence[Task]:
    return [
        Task("harm: disk full", full_disk),
        Task("harm: a file may not grow", full_file),
        Task("harm: two jobs at once", two_jobs),
        Task("harm: clock set back", clock_back),
        Task("harm: database connections cut", database_cut),
    ]


def full_disk(folder: Path) -> Row:
    """Runs on a file system of their own that is too small; it is made larger, and they go on."""
    lab, reference = begin(folder)
    needed = sum(path.stat().st_size for path in lab.run_folder("reference").rglob("*") if path.is_file())
    said, checks = [], []
    for share in SHARES:
        name = f"share-{share}"
        size = int(needed * share) // 1024
        with small_disk(lab.run_folder(name), size) as problem:
            if problem:
                return skipped(f"no file system can be mounted here: {problem}")
            first = lab.play(name)
            subprocess.run(["mount", "-o", "remount,size=64m", str(lab.run_folder(name))], check=True)
            said.append(f"{size} kB of {needed // 1024}: {first.last_line}")
            checks.append(went_on(lab, name, first, reference) | names_path(lab, name, first))
    return {
        "what": f"a file system of {len(SHARES)} sizes below the run's own",
        "said": said,
        "checks": together(checks),
    }


@contextmanager
def small_disk(folder: Path, size_kb: int) -> Iterator[str]:
    """A file system in memory at `folder`; yields what the system says where there cannot be one."""
    folder.mkdir(parents=True)
    options = ["-t", "tmpfs", "-o", f"size={size_kb}k", "futureworld-proof"]
    mounted = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True, check=False)
    try:
        yield mounted.stderr.strip()
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", str(folder)], check=True)


def full_file(folder: Path) -> Row:
    """Runs in which no file may grow beyond a limit; without it they go on."""
    lab, reference = begin(folder)
    store = (lab.run_folder("reference") / "store.db").stat().st_size
    said, checks = [], []
    for share in SHARES:
        name = f"share-{share}"
        first = lab.play(name, file_limit=int(store * share))
        said.append(f"{int(store * share) // 1024} kB: {first.last_line}")
        checks.append(went_on(lab, name, first, reference) | names_path(lab, name, first))
    return {"what": f"a limit of {len(SHARES)} sizes on every file", "said": said, "checks": together(checks)}


def two_jobs(folder: Path) -> Row:
    """A run is held in the middle of predict; a second start on its folder; the first goes on."""
    lab, reference = begin(folder)
    job = lab.job("shared", stop_at=MIDDLE)
    pid = server().start(job)
    held = server().stopped(pid)
    second = server().run(lab.job("shared", log_name="second"))
    os.kill(pid, signal.SIGCONT)
    first = server().end(pid, job)
    checks = {
        "the second is refused": held and second.code == 1 and second.last_line.startswith("LockedError"),
        "it is told who holds the run": f"process {pid} " in second.last_line,
        "the first ends as an undisturbed run": first.code == 0 and not lab.find("shared").differences(reference),
        "no process is left over": first.left_over + second.left_over == 0,
    }
    return {"what": "a second start while the first is in predict", "said": [second.last_line], "checks": checks}


def clock_back(folder: Path) -> Row:
    """Killed on the third day; a day's job by clocks that show earlier moments; then the run goes on."""
    lab, reference = begin(folder)
    killed = lab.play("run", fault="predict.finished:3")
    before = lab.find("run")
    days, schedule = lab.config.asked_days(), lab.config.schedule.schedule()
    clocks = [schedule.asked_at(day) - timedelta(minutes=1) for day in days]
    jobs = [lab.play("run", clock=iso(clock), day=day.isoformat()) for clock in clocks for day in days]
    unchanged = before.differences(lab.find("run")) == 0
    second = lab.play("run")
    checks = {
        "the run was killed on its third day": killed.code == -signal.SIGKILL,
        "no job fails": all(job.code == 0 for job in jobs),
        "nothing is asked, answered or resolved by an earlier clock": unchanged,
        "a rerun completes": second.code == 0,
        "the end is that of the undisturbed run": lab.find("run").differences(reference) == 0,
    }
    what = f"{len(jobs)} day jobs by clocks 1 minute before a day's asking, after the third day's predict"
    return {"what": what, "said": [], "checks": checks}


def database_cut(folder: Path) -> Row:
    """PostgreSQL ends every connection of a run in the middle of predict; a second start goes on."""
    url = os.environ.get(POSTGRES)
    if url is None:
        return skipped(f"{POSTGRES} is not set; `scripts/postgres.sh` starts a server and prints its URL")
    lab, reference = begin(folder)
    name = f"proof_{uuid.uuid4().hex}"
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    own = make_url(url).update_query_dict({"options": f"-csearch_path={name}", "application_name": name})
    lab = replace(lab, settings=(*lab.settings, f"store={own.render_as_string(hide_password=False)}"))
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
        try:
            job = lab.job("cut", stop_at=MIDDLE)
            pid = server().start(job)
            held = server().stopped(pid)
            cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = :name"
            ended = connection.execute(text(cut), {"name": name}).scalar() or 0
            os.kill(pid, signal.SIGCONT)
            first = server().end(pid, job)
            checks = {"connections were cut": held and ended > 0} | went_on(lab, "cut", first, reference)
        finally:
            connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
    engine.dispose()
    return {"what": f"{ended} connections ended in predict", "said": [first.last_line], "checks": checks}


def begin(folder: Path) -> tuple[Lab, Found]:
    lab = Lab.new(folder)
    return lab, lab.reference()[1]


def went_on(lab: Lab, name: str, first: Ended, reference: Found) -> dict[str, bool]:
    """Start the harmed run again and hold both against what was asked for."""
    before = lab.find(name) if first.code == 1 else None
    second = lab.play(name)
    after = lab.find(name)
    return {
        "it ends with an error in words": first.code == 1 and "Error: " in first.last_line,
        "a rerun completes": second.code == 0,
        "nothing that was stored is lost, nothing is doubled": before is not None
        and before.missing_from(after) == before.doubled == after.doubled == 0,
        "the end is that of the undisturbed run": after.differences(reference) == 0,
        "no process is left over": first.left_over + second.left_over == 0,
    }


def names_path(lab: Lab, name: str, first: Ended) -> dict[str, bool]:
    return {"the message names the path": str(lab.run_folder(name)) in first.last_line}


def together(checks: Sequence[dict[str, bool]]) -> dict[str, bool]:
    """True where it holds every time."""
    return {wanted: all(one[wanted] for one in checks) for wanted in checks[0]}


def skipped(reason: str) -> Row:
    return {"what": f"skipped: {reason}", "said": [], "checks": {}}


def section(rows: Rows) -> str:
    found = [
        (key.removeprefix("harm: "), row["what"], "yes" if all(row["checks"].values()) else "**no**")
        if row["checks"]
        else (key.removeprefix("harm: "), row["what"], "not run")
        for key, row in rows.items()
    ]
    said = [f"- {key.removeprefix('harm: ')}: `{row['said'][0]}`" for key, row in rows.items() if row["said"]]
    return "\n\n".join([table(("harm", "how", "all as asked for"), found), "What a person sees:", "\n".join(said)])
