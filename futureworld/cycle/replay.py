"""Replay: the whole loop over a recorded world, as fast as the machine allows.

A fake clock is moved from moment to moment over the same `day.do` that a live run uses. Engine
and learner start when first needed and stay up over the days.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from futureworld.clock import FakeClock
from futureworld.cycle.day import Moment, Workers, do, moments
from futureworld.cycle.evaluate import Evaluation, evaluate
from futureworld.cycle.memory import MemoryWatch
from futureworld.cycle.resume import standing
from futureworld.cycle.run import Run, Summary, replace_text
from futureworld.cycle.summary import summarize
from futureworld.cycle.tracking import Tracker, numbers, tracker
from futureworld.policies import plugin


@dataclass(frozen=True, slots=True)
class Replayed:
    summary: dict[str, Any]
    evaluation: Evaluation


@contextmanager
def workers(run: Run, find: Callable[[str], Any] = plugin) -> Iterator[Workers]:
    """Engine and learner of the run, each started once at first use and stopped at the end.

    `find` gives what makes them, for "engines" and for "learners".
    """
    started: dict[str, Any] = {}
    with ExitStack() as stack:  # stops every worker, also where stopping another one failed

        def worker(kind: str, title: str) -> Any:
            if kind not in started:
                with run.reporter.bar(f"starting the {title}", 0):
                    started[kind] = find(kind)(run.config, run.folder, run.policy)
                    stack.callback(started[kind].stop)
                    started[kind].start()
            return started[kind]

        yield Workers(lambda: worker("engines", "engine"), lambda: worker("learners", "learner"))


def replay(run: Run, clock: FakeClock, find: Callable[[str], Any] = plugin) -> Replayed:
    """Every moment of the run, then the evaluation; writes `summary.json`, returns both."""
    began = time.monotonic()
    if (there := standing(run)) is not None:
        run.reporter.line(f"going on with {run.folder} in {there}")
    tracking = tracker(run.config, run.folder)
    with MemoryWatch() as memory, workers(run, find) as crew:
        if not all(run.store.finished("update", moment.day.isoformat()) for moment in moments(run) if not moment.asks):
            crew.learner()  # comes up in the background while the engine starts
        for moment in moments(run):
            clock.move_to(moment.at)
            done = do(run, moment, crew)
            run.reporter.line(day_line(moment, done))
            track(tracking, run, moment, done)
        evaluation = evaluate(run, crew.engine)
    for row in evaluation.checkpoints:
        tracking.log(
            {"update": row.version} | numbers("evaluate", {"brier": row.brier, "auc": row.auc, "ece": row.ece})
        )
    tracking.finish()
    return finish(run, evaluation, time.monotonic() - began, memory.peak_mb)


def evaluate_run(run: Run) -> Replayed:
    """The evaluation alone, of whatever checkpoints the run has."""
    began = time.monotonic()
    with MemoryWatch() as memory, workers(run) as crew:
        evaluation = evaluate(run, crew.engine)
    return finish(run, evaluation, time.monotonic() - began, memory.peak_mb)


def finish(run: Run, evaluation: Evaluation, seconds: float, peak_mb: int) -> Replayed:
    spent = float(run.store.meta("wall_seconds") or 0.0) + seconds  # a resumed run took its earlier time too
    run.store.set_meta("wall_seconds", str(spent))
    summary = summarize(run, evaluation, spent, peak_mb)
    replace_text(run.folder / "summary.json", json.dumps(summary, indent=1))
    return Replayed(summary, evaluation)


def track(tracking: Tracker, run: Run, moment: Moment, done: dict[str, Summary]) -> None:
    day = (moment.day - run.days[0]).days
    for stage, summary in done.items():
        if stage == "update" and "version" in summary:
            tracking.log({"update": summary["version"]} | numbers("update", summary))
        elif stage != "update":
            tracking.log({"day": day} | numbers(stage, summary))


def day_line(moment: Moment, done: dict[str, Summary]) -> str:
    """One line for a person about what a moment did."""
    if moment.asks:
        asked, predicted = done["ask"], done["predict"]
        answered = predicted["status"].get("ok", 0)
        return (
            f"{moment.day}  asked {asked['asked']} of {asked['candidates']}, "
            f"{predicted['rollouts']} rollouts by v{predicted['policy_version']}, "
            f"answered {answered / max(1, predicted['rollouts']):.1%}  ({predicted['seconds']:.0f} s)"
        )
    resolved, updated = done["resolve"], done["update"]
    line = f"{moment.day}  resolved {resolved['resolved']} of {resolved['due']}"
    if resolved["pending"]:
        line += f", waiting for {resolved['pending']}"
    if "version" not in updated:
        return f"{line}; no update: {updated['skipped']}"
    reward = updated["metrics"].get("reward_mean")
    said = f", reward {reward:.3f}" if reward is not None else ""
    return f"{line}; trained {updated['trained']} -> v{updated['version']}{said}  ({updated['seconds']:.0f} s)"
