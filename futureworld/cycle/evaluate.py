"""Evaluate: every checkpoint of the run answers one fixed set; the table says what was learned.

The first and the last checkpoint give `end_samples` answers a question, the others `samples`.
Forecasts are kept by (checkpoint, question, sample): a repeat makes only the missing ones.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from futureworld.agents.base import Engine
from futureworld.cycle.ask import train_set
from futureworld.cycle.heldout import (
    HELD_OUT,
    ask_held_out,
    baseline_row,
    resolve_held_out,
    resolved_held_out,
    with_outcomes,
)
from futureworld.cycle.predict import answer
from futureworld.cycle.run import Run, Summary
from futureworld.errors import RunError
from futureworld.evaluation.baselines import predict_baselines
from futureworld.evaluation.scores import Array
from futureworld.evaluation.statistics import Interval
from futureworld.evaluation.table import (
    BaselineRow,
    CheckpointRow,
    DomainRow,
    baseline_rows,
    checkpoint_row,
    domain_rows,
    flatten,
    mean_of_samples,
    paired_brier,
    question_briers,
)
from futureworld.records import Checkpoint, Purpose, Question

Samples = list[list[float | None]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything the closing table, the plots and `summary.json` are made from.

    `first` and `last` hold the answers of the ends, (questions x samples); `paired_mean` compares
    always-0.5 with the last checkpoint's mean of samples, `paired` day 0 with it, singly.
    """

    questions: tuple[Question, ...]
    outcomes: tuple[float, ...]
    first: Samples
    last: Samples
    checkpoints: tuple[CheckpointRow, ...]
    first_mean: CheckpointRow
    last_mean: CheckpointRow
    baselines: tuple[BaselineRow, ...]
    paired: Interval
    paired_mean: Interval
    domains_first: tuple[DomainRow, ...]
    domains_last: tuple[DomainRow, ...]


def samples_of(run: Run, checkpoint: Checkpoint, checkpoints: Sequence[Checkpoint]) -> int:
    ends = (checkpoints[0].version, checkpoints[-1].version)
    return run.config.evaluate.end_samples if checkpoint.version in ends else run.config.evaluate.samples


def evaluation_key(checkpoint: Checkpoint, samples: int) -> str:
    """The ledger's key of one checkpoint's answers."""
    return f"{HELD_OUT}/v{checkpoint.version}x{samples}"


def answer_held_out(run: Run, engine: Callable[[], Engine]) -> list[Summary]:
    """Let every checkpoint answer the held-out set; the engine starts only for missing answers."""
    ask_held_out(run)
    resolve_held_out(run)
    questions = run.store.question_set(HELD_OUT) or ()
    checkpoints = run.store.checkpoints()
    return [_answer_one(run, engine, questions, one, samples_of(run, one, checkpoints)) for one in checkpoints]


def answer_more(run: Run, engine: Callable[[], Engine], version: int, samples: int) -> Summary:
    """Let checkpoint `version` answer the held-out set until every question has `samples` answers."""
    ask_held_out(run)
    resolve_held_out(run)
    chosen = next((one for one in run.store.checkpoints() if one.version == version), None)
    if chosen is None:
        raise RunError(f"{run.folder} has no checkpoint {version}; choose one that an update made")
    return _answer_one(run, engine, run.store.question_set(HELD_OUT) or (), chosen, samples)


def _answer_one(
    run: Run, engine: Callable[[], Engine], questions: Sequence[Question], checkpoint: Checkpoint, samples: int
) -> Summary:
    def work() -> Summary:
        title = f"evaluate checkpoint {checkpoint.version}"
        counts = answer(run, questions, engine(), checkpoint, Purpose.EVALUATE, samples, title)
        return {"version": checkpoint.version, "samples": samples, "status": dict(counts)}

    return run.stage("evaluate", evaluation_key(checkpoint, samples), work)


def evaluate(run: Run, engine: Callable[[], Engine]) -> Evaluation:
    """Answer what is missing, then score. Raises RunError when nothing of the set was resolved."""
    answer_held_out(run, engine)
    return score(run)


def score(run: Run) -> Evaluation:
    """The tables, from the store alone."""
    questions, outcomes = resolved_held_out(run)
    if not questions:
        raise RunError("no question of the held-out set has an outcome; nothing can be scored")
    y, clusters = np.asarray(outcomes), [cluster(question) for question in questions]
    checkpoints = run.store.checkpoints()
    answers = {one.version: answers_of(run, one, questions, samples_of(run, one, checkpoints)) for one in checkpoints}
    first, last = answers[checkpoints[0].version], answers[checkpoints[-1].version]
    replicates = run.config.evaluate.bootstrap

    def rng() -> np.random.Generator:
        return np.random.default_rng(run.config.seed)

    def row(checkpoint: Checkpoint, samples: Samples) -> CheckpointRow:
        p, labels, groups = flatten(samples, y, clusters)
        names = flatten(samples, y, [question.id for question in questions])[2]
        return checkpoint_row(
            checkpoint.version, checkpoint.day, p, labels, groups, rng=rng(), replicates=replicates, questions=names
        )

    def mean_row(checkpoint: Checkpoint, samples: Samples) -> CheckpointRow:
        return row(checkpoint, [[p] for p in mean_of_samples(samples)])

    domains = [question.domain for question in questions]
    half: Samples = [[0.5] for _ in questions]
    return Evaluation(
        questions=tuple(questions),
        outcomes=tuple(outcomes),
        first=first,
        last=last,
        checkpoints=tuple(row(one, answers[one.version]) for one in checkpoints),
        first_mean=mean_row(checkpoints[0], first),
        last_mean=mean_row(checkpoints[-1], last),
        baselines=fitted_baselines(run, questions, y),
        paired=paired_brier(first, last, y, clusters, rng=rng(), replicates=replicates),
        paired_mean=paired_brier(
            half, [[p] for p in mean_of_samples(last)], y, clusters, rng=rng(), replicates=replicates
        ),
        domains_first=domain_rows(question_briers(first, y), domains, clusters, rng=rng(), replicates=replicates),
        domains_last=domain_rows(question_briers(last, y), domains, clusters, rng=rng(), replicates=replicates),
    )


def cluster(question: Question) -> str:
    """Answers about one series, or one team, hang together; so are they resampled."""
    return f"{question.domain}|{question.target.option or question.target.id}"


def answers_of(run: Run, checkpoint: Checkpoint, questions: Sequence[Question], samples: int) -> Samples:
    """(questions x samples) probabilities, None where a rollout gave no answer.

    Raises RunError when a forecast is missing altogether: a table over fewer would mislead.
    """
    forecasts = run.store.forecasts(purpose=Purpose.EVALUATE, policy_version=checkpoint.version, agent=run.agent)
    found: dict[str, list[float | None]] = defaultdict(list)
    for forecast in forecasts:  # ordered by question, then sample
        if forecast.sample < samples:
            found[forecast.question_id].append(forecast.probability)
    short = sum(len(found[question.id]) != samples for question in questions)
    if short:
        raise RunError(
            f"checkpoint {checkpoint.version} has not answered {short} held-out questions; run `evaluate` again"
        )
    return [found[question.id] for question in questions]


def fitted_baselines(run: Run, questions: Sequence[Question], y: np.ndarray) -> tuple[BaselineRow, ...]:
    """The rows of `baseline_forecasts`."""
    return baseline_rows(baseline_forecasts(run, questions), y)


def baseline_forecasts(run: Run, questions: Sequence[Question]) -> dict[str, Array]:
    """P(Yes) of `questions` (n) by every baseline, fitted on `training_outcomes` known before them."""
    known, outcomes = training_outcomes(run, min(question.asked_at for question in questions))
    training = [baseline_row(question, outcome) for question, outcome in zip(known, outcomes, strict=True)]
    return predict_baselines(training, [baseline_row(question, None) for question in questions])


def training_outcomes(run: Run, before: datetime) -> tuple[list[Question], list[float]]:
    """The run's own training questions that were due before `before` and have an outcome, and the outcomes."""
    asked = [question for day in run.days for question in run.store.question_set(train_set(day)) or ()]
    return with_outcomes(run, [question for question in asked if question.resolves_at < before])
