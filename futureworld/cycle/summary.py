"""`summary.json`: the whole run as numbers, made from the store and the evaluation."""

import math
from collections import Counter
from datetime import date, timedelta
from typing import Any

from futureworld.cycle.ask import train_set
from futureworld.cycle.evaluate import Evaluation
from futureworld.cycle.heldout import with_outcomes
from futureworld.cycle.run import Run
from futureworld.cycle.strategies import Shares, shares
from futureworld.evaluation.scores import reward, skill
from futureworld.evaluation.table import best_baseline
from futureworld.records import Forecast, Purpose, QuestionState, as_json


def summarize(run: Run, evaluation: Evaluation, wall_seconds: float, peak_mb: int) -> dict[str, Any]:
    """Plain JSON values; NaN becomes None so that any reader can load it."""
    summary: dict[str, Any] = {
        "config_hash": run.config.hash(),
        "world": run.world.id,
        "policy": run.agent,
        "seed": run.config.seed,
        "start": run.config.start.isoformat(),
        "wall_seconds": round(wall_seconds, 1),
        "peak_rss_mb": peak_mb,
        "days": [day_row(run, day) for day in run.days],
        "strategies": strategies(run),
    }
    return finite(as_json(summary | scored(evaluation) | {"controls": controls(run, evaluation)}))


def scored(evaluation: Evaluation) -> dict[str, Any]:
    k = len(evaluation.last[0])  # samples a question at the ends; names say the number that was taken
    best = best_baseline(evaluation.baselines)
    single, mean = evaluation.checkpoints[-1].brier, evaluation.last_mean.brier
    checkpoints = [as_json(row) for row in evaluation.checkpoints]
    checkpoints[0][f"brier_mean{k}"] = evaluation.first_mean.brier
    checkpoints[-1][f"brier_mean{k}"] = mean
    return {
        "held_out": {"questions": len(evaluation.questions), "best_baseline": best.name},
        "checkpoints": checkpoints,
        "baselines": {row.name: row for row in evaluation.baselines},
        "paired": {
            "metric": "brier",
            "mean_difference": evaluation.paired.estimate,
            "low": evaluation.paired.low,
            "high": evaluation.paired.high,
            "clusters": evaluation.paired.clusters,
        },
        f"paired_always_half_mean{k}": {
            "metric": "brier",
            "mean_difference": evaluation.paired_mean.estimate,
            "low": evaluation.paired_mean.low,
            "high": evaluation.paired_mean.high,
        },
        "skill": skill(single, best.brier).value,
        f"skill_mean{k}": skill(mean, best.brier).value,
        "domains": {
            "first": list(evaluation.domains_first),
            "last": list(evaluation.domains_last),
        },
    }


def controls(run: Run, evaluation: Evaluation) -> dict[str, Any]:
    """Of a control run, what must have stayed at chance: the last checkpoint's AUC, Brier and accuracy."""
    if run.config.control == "none":
        return {}
    last = evaluation.checkpoints[-1]
    found = {name: getattr(last, name) for name in ("auc", "auc_low", "auc_high", "brier", "accuracy")}
    return {run.config.control.replace("-", "_"): found}


def day_row(run: Run, day: date) -> dict[str, Any]:
    """What became of the questions asked on `day`, until now."""
    store = run.store
    questions = store.question_set(train_set(day)) or ()
    states = Counter(store.states([question.id for question in questions]).values())
    forecasts = store.forecasts(purpose=Purpose.TRAIN, agent=run.agent, question_ids=[q.id for q in questions])
    trained = store.trained_ids()
    known, outcomes = with_outcomes(run, questions)
    truth = {question.id: value for question, value in zip(known, outcomes, strict=True)}
    paid = run.config.reward
    rewards = [
        reward(forecast.probability, truth[forecast.question_id], paid.missing, paid.score)
        for forecast in forecasts
        if forecast.question_id in truth and not forecast.status.is_failure
    ]
    return {
        "day": day.isoformat(),
        "candidates": (store.finished("ask", day.isoformat()) or {}).get("candidates"),
        "asked": len(questions),
        "rollouts": len(forecasts),
        "resolved": states[QuestionState.RESOLVED],
        "pending": states[QuestionState.PENDING],
        "void": states[QuestionState.VOID],
        "expired": states[QuestionState.EXPIRED],
        "trained": sum(forecast.id in trained for forecast in forecasts),
        "reward_mean": mean(rewards),
        "brier": mean(
            [
                (f.probability - truth[f.question_id]) ** 2
                for f in forecasts
                if f.probability is not None and f.question_id in truth
            ]
        ),
        "answered_rate": mean([float(f.probability is not None) for f in forecasts]),
        "seconds_by_stage": seconds_by_stage(run, day),
    }


def seconds_by_stage(run: Run, day: date) -> dict[str, float]:
    """Seconds of the stages that served the questions of `day`: the last two ran a day later."""
    next_day = (day + timedelta(days=1)).isoformat()
    keys = {name: day.isoformat() for name in ("collect", "ask", "predict")} | {"resolve": next_day, "update": next_day}
    done = {name: run.store.finished(name, key) for name, key in keys.items()}
    return {name: summary["seconds"] for name, summary in done.items() if summary is not None}


def strategies(run: Run) -> dict[str, Shares]:
    """Habit shares by domain on the first and the last asked day."""
    found: dict[str, Shares] = {}
    for label, day in (("first", run.days[0]), ("last", run.days[-1])):
        questions = {question.id: question for question in run.store.question_set(train_set(day)) or ()}
        forecasts: list[Forecast] = run.store.forecasts(
            purpose=Purpose.TRAIN, agent=run.agent, question_ids=list(questions)
        )
        found[label] = shares(run, forecasts, questions)
    return found


def mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def finite(value: Any) -> Any:
    """NaN and infinities as None: JSON has no word for them."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
