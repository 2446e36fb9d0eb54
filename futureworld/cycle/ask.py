"""Ask: the day's questions, built from what was known at that moment."""

from collections import Counter
from datetime import date

from futureworld.cycle.run import Run, Summary
from futureworld.questions.ask import ask as ask_questions


def collect(run: Run, day: date) -> Summary:
    """Count what could be known when `day` is asked; a recorded world has nothing to fetch."""

    def work() -> Summary:
        as_of = run.schedule.asked_at(day)
        newest = [rows[-1] for s in run.world.series() if (rows := run.world.observations(s, as_of))]
        fresh = sum((as_of - row.published_at).total_seconds() <= 86_400 for row in newest)
        return {"series": len(newest), "fresh": fresh, "events": len(run.world.events(as_of))}

    return run.stage("collect", day.isoformat(), work)


def ask(run: Run, day: date) -> Summary:
    """Store the questions of `day` under the set `train/<day>`; a repeat changes nothing."""

    def work() -> Summary:
        result = ask_questions(run.world, day, run.schedule, run.config.questions, run.config.seed)
        stored = run.store.save_questions(train_set(day), result.questions)
        return {
            "candidates": result.candidates,
            "asked": len(stored),
            "dropped": dict(result.dropped),
            "domains": dict(sorted(Counter(question.domain for question in stored).items())),
        }

    return run.stage("ask", day.isoformat(), work)


def train_set(day: date) -> str:
    return f"train/{day.isoformat()}"
