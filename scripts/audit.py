"""Audit real days against the raw files of a world: nothing knowable only later was used or shown.

    python scripts/audit.py WORLD [--start 2026-05-04] [--days 5] [--per-day 500] [--json]
    python scripts/audit.py RUN [--json]

WORLD is `almanac` or a folder. The days are asked and resolved in a temporary run; a scripted policy
searches, visits, and also tries the address of a later document. RUN is the folder of a run that nobody
is writing. What questions were made of and what the policy was shown is then compared with the files of
the world, which are parsed here and not by futureworld.worlds.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from audit_checks import Findings
from audit_raw import DAY, Raw, read_raw
from audit_stored import asked, audit_run, stored

from futureworld.agents.calls import CLOSE, OPEN
from futureworld.agents.scripted import Script, ScriptedEngine, search_call
from futureworld.agents.tools import MAX_ARGUMENT_CHARS, card_url
from futureworld.clock import FakeClock
from futureworld.config import load
from futureworld.cycle.ask import ask
from futureworld.cycle.day import moments
from futureworld.cycle.predict import predict
from futureworld.cycle.resolve import resolve
from futureworld.cycle.run import CONFIG_FILE, Run, open_run
from futureworld.errors import FutureWorldError
from futureworld.questions.prompts import messages
from futureworld.records import Message, Question, QuestionState, as_json
from futureworld.resolution.resolve import Resolved
from futureworld.resolution.resolve import resolve as read_outcome
from futureworld.worlds.open import world_folder

SHOWN_VIOLATIONS = 20
NAME_ONE = "name `almanac`, the folder of a world, or that of a run"


@contextmanager
def opened(folder: Path, start: date, days: int, per_day: int) -> Iterator[tuple[Run, FakeClock]]:
    """A run in a temporary folder; its policy's folder is empty but for the files a policy needs."""
    with tempfile.TemporaryDirectory(prefix="futureworld-audit-") as place:
        policy = Path(place, "scripted")
        policy.mkdir()
        for name in ("config.json", "tokenizer_config.json", "model.safetensors"):
            (policy / name).write_text("{}")
        wanted = [f"world={folder.resolve()}", f"policy={policy}", f"start={start}", f"days={days}", "tracking=none"]
        wanted += [f"questions.per_day={per_day}", "rollout.n=2", "rollout.search_results=3"]
        wanted += ["rollout.max_tokens=32768", "rollout.max_turn_tokens=1024"]
        config = load(None, wanted)
        clock = FakeClock(config.schedule.schedule().asked_at(start))
        with open_run(Path(place, "run"), config, clock=clock) as run:
            yield run, clock


def play(run: Run, clock: FakeClock, raw: Raw) -> None:
    """Ask, predict and resolve every day, then retry until the last question has been given up."""
    for moment in moments(run):
        clock.move_to(moment.at)
        if moment.asks:
            ask(run, moment.day)
            predict(run, moment.day, ScriptedEngine(nosy(raw, asked(run, moment.day))))
        else:
            resolve(run, moment.day)
    last = run.days[-1] + DAY
    for day in (last + i * DAY for i in range(1, run.config.schedule.retry_days + 1)):
        clock.move_to(run.schedule.resolves_at(day - DAY))
        resolve(run, day)


def nosy(raw: Raw, questions: Sequence[Question]) -> Script:
    """Searches for code and words, visits the card, then tries what is published next after asking."""
    by_opening = {messages(question)[-1].text: question for question in questions}
    later = raw.first_after(questions[0].asked_at) if questions else None

    def script(opening: Sequence[Message]) -> Sequence[str]:
        question = by_opening[opening[-1].text]
        first = [search_call(question.target.code), search_call(question.text[:MAX_ARGUMENT_CHARS])]
        visits = [card_url(question.target)]
        if later is not None:
            url, page = later
            first.append(search_call(page.title[:MAX_ARGUMENT_CHARS]))
            visits.append(url)
        return ("\n".join(first), "\n".join(visit_call(url) for url in visits), "\\boxed{0.5}")

    return script


def visit_call(url: str) -> str:
    return f"{OPEN}\n{json.dumps({'name': 'visit', 'arguments': {'url': url}})}\n{CLOSE}"


@dataclass(slots=True)
class Tally:
    """Questions by domain: asked, answered at the first try, answered in the end; reasons of the others."""

    asked: Counter[str] = field(default_factory=Counter)
    first: Counter[str] = field(default_factory=Counter)
    resolved: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    never: Counter[str] = field(default_factory=Counter)


def tally(run: Run) -> Tally:
    found = Tally()
    for day in run.days:
        questions = asked(run, day)
        ids = [question.id for question in questions]
        outcomes, states = run.store.outcomes(ids), run.store.states(ids)
        for question in questions:
            found.asked[question.domain] += 1
            outcome, state = outcomes.get(question.id), states[question.id]
            if state is QuestionState.RESOLVED:
                found.resolved[question.domain] += 1
            else:
                found.never[f"{state.value}: {reason(run, question, run.clock.now())}"] += 1
            if state is QuestionState.RESOLVED and outcome and outcome.observed_at <= question.resolves_at:
                found.first[question.domain] += 1
            else:
                found.late[reason(run, question, question.resolves_at)] += 1
    return found


def reason(run: Run, question: Question, now: datetime) -> str:
    answer = read_outcome(question, run.world, now)
    return "resolved" if isinstance(answer, Resolved) else answer.reason


def report(world: str, counts: Tally, found: Findings) -> str:
    rows = [f"{world}", "", f"{'domain':<24}{'asked':>8}{'first try':>16}{'after retries':>16}"]
    for name in [*sorted(counts.asked), None]:
        asked_of, first, resolved = (
            sum(part.values()) if name is None else part[name] for part in (counts.asked, counts.first, counts.resolved)
        )
        rows.append(f"{name or 'all':<24}{asked_of:>8}{share(first, asked_of):>16}{share(resolved, asked_of):>16}")
    for title, reasons in (("not at the first try", counts.late), ("not in the end", counts.never)):
        rows += ["", f"{title}: {reasons.total()}", *(f"  {count:>6}  {why}" for why, count in reasons.most_common())]
    rows += ["", "held against the raw files", *(f"  {count:>8}  {what}" for what, count in found.checked.items())]
    rows += [f"  {len(found.violations):>8}  violations", *found.violations[:SHOWN_VIOLATIONS]]
    return "\n".join(rows)


def share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.1%})" if whole else "0"


def audit_world(folder: Path, start: date, days: int, per_day: int) -> tuple[str, Tally, Findings]:
    """Days of the world in `folder`, played by the scripted policy."""
    with opened(folder, start, days, per_day) as (run, clock):
        raw = read_raw(folder)
        play(run, clock, raw)
        return f"{run.world.id}, {days} days from {start}", tally(run), audit_run(run, raw)


def audit_folder(folder: Path) -> tuple[str, Tally, Findings]:
    """What the run in `folder` has stored."""
    with stored(folder) as run, world_folder(run.config.world) as world:
        return f"{run.world.id}, the run {folder.name}", tally(run), audit_run(run, read_raw(world))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("world", help="`almanac`, the folder of a recorded world, or that of a run")
    parser.add_argument("--start", type=date.fromisoformat, default=date(2026, 5, 4), help="of a world")
    parser.add_argument("--days", type=int, default=5, help="of a world")
    parser.add_argument("--per-day", type=int, default=500, help="questions of a world's day")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        with world_folder(chosen.world) as folder:
            if not folder.is_dir():
                print(f"world {chosen.world!r} does not exist; {NAME_ONE}", file=sys.stderr)
                return 1
            if (folder / CONFIG_FILE).exists():
                title, counts, found = audit_folder(folder)
            else:
                title, counts, found = audit_world(folder, chosen.start, chosen.days, chosen.per_day)
    except (FutureWorldError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if not counts.asked:
        print(f"{title}: nothing was asked, so nothing was audited; choose days inside the world", file=sys.stderr)
        return 1
    if chosen.json:
        print(json.dumps({"world": title, **as_json(counts), **as_json(found)}, indent=1))
    else:
        print(report(title, counts, found))
    return 1 if found.violations else 0


if __name__ == "__main__":
    sys.exit(main())
