"""What the checkpoints of a run are worth on its held-out questions, as plain figures.

An interval is [estimate, low, high], 95 %, by bootstrap over series and teams; `days` beside it holds
[low, high] of the bootstrap over the days on which the questions were asked.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from futureworld.cycle.evaluate import Samples, baseline_forecasts, cluster, training_outcomes
from futureworld.cycle.heldout import resolved_held_out
from futureworld.cycle.run import Run
from futureworld.cycle.summary import finite
from futureworld.errors import RunError
from futureworld.evaluation.scores import Array, brier, skill
from futureworld.evaluation.statistics import Statistic, cluster_bootstrap, paired_difference
from futureworld.evaluation.table import CheckpointRow, checkpoint_row, flatten, mean_of_samples, question_briers
from futureworld.records import Purpose, Question
from proof.runs import opened

Figures = dict[str, Any]
RIVALS = {"always 0.5": "always_half", "persistence": "persistence", "domain x side": "domain_side"}
NARROW = 20
"""With fewer clusters an interval by bootstrap is too narrow."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """A run's resolved held-out questions (n), their outcomes, and the answers by checkpoint.

    `baselines` are forecasts (n) fitted on the run's training questions, `base_rate` their share of Yes.
    """

    questions: tuple[Question, ...]
    y: Array
    answers: Mapping[int, Samples]
    baselines: Mapping[str, Array]
    base_rate: float
    replicates: int
    seed: int

    @property
    def series(self) -> list[str]:
        return [cluster(question) for question in self.questions]

    @property
    def days(self) -> list[str]:
        return [question.day.isoformat() for question in self.questions]

    @property
    def last(self) -> int:
        return max(self.answers)

    @property
    def best(self) -> str:
        """The baseline with the lowest Brier score."""
        briers = self.baseline_briers()
        return min(briers, key=lambda name: briers[name])

    def baseline_briers(self) -> dict[str, float]:
        return {name: float(brier(p, self.y).mean()) for name, p in self.baselines.items()}

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


def held_out(run: Path) -> HeldOut:
    """What the finished run in the folder `run` says about its held-out set."""
    with opened(run) as found:
        return read(found)


def read(run: Run) -> HeldOut:
    """Everything a finished run says about its held-out set."""
    questions, outcomes = resolved_held_out(run)
    if not questions:
        raise RunError(f"{run.folder}: no held-out question has an outcome; finish the run with `replay --resume`")
    _, known = training_outcomes(run, min(question.asked_at for question in questions))
    return HeldOut(
        questions=tuple(questions),
        y=np.asarray(outcomes),
        answers=answers(run, questions),
        baselines=baseline_forecasts(run, questions),
        base_rate=(sum(known) + 1.0) / (len(known) + 2.0),
        replicates=run.config.evaluate.bootstrap,
        seed=run.config.seed,
    )


def answers(run: Run, questions: list[Question]) -> dict[int, Samples]:
    """By checkpoint, as many samples as every question has: (questions x samples), None without an answer."""
    found: dict[int, dict[str, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for forecast in run.store.forecasts(purpose=Purpose.EVALUATE, agent=run.agent):  # by question, then sample
        found[forecast.policy_version][forecast.question_id].append(forecast.probability)
    whole: dict[int, Samples] = {}
    for version, by_question in sorted(found.items()):
        k = min(len(by_question[question.id]) for question in questions)
        if k:
            whole[version] = [by_question[question.id][:k] for question in questions]
    return whole


def means(samples: Samples) -> Samples:
    """The mean of each question's answers as its only answer."""
    return [[p] for p in mean_of_samples(samples)]


def figures(held: HeldOut, samples: Samples) -> Figures:
    """Single answers and the mean of a question's answers."""
    return {"single": scores(held, samples), "mean": scores(held, means(samples))}


def scores(held: HeldOut, samples: Samples) -> Figures:
    """Brier, AUC, accuracy, ECE with its noise band, parse rate and skill against the best baseline."""
    row, days = row_by(held, samples, held.series), row_by(held, samples, held.days)
    found = {
        name: [getattr(row, name), getattr(row, f"{name}_low"), getattr(row, f"{name}_high")]
        for name in ("brier", "auc", "accuracy")
    }
    found |= {f"{name}_days": [getattr(days, f"{name}_low"), getattr(days, f"{name}_high")] for name in found}
    reference = held.baseline_briers()[held.best]
    return plain(
        found
        | {"n": row.n, "ece": row.ece, "ece_noise": row.ece_noise, "parse_rate": row.parse_rate}
        | {"skill": skill(row.brier, reference).value}
    )


def row_by(held: HeldOut, samples: Samples, labels: list[str]) -> CheckpointRow:
    p, y, groups = flatten(samples, held.y, labels)
    names = flatten(samples, held.y, [question.id for question in held.questions])[2]
    return checkpoint_row(0, None, p, y, groups, rng=held.rng(), replicates=held.replicates, questions=names)


def curve(held: HeldOut) -> list[Figures]:
    """Brier score and AUC of single answers at every checkpoint."""
    rows = ((version, row_by(held, samples, held.series)) for version, samples in held.answers.items())
    return [
        plain(
            {
                "version": version,
                "n": row.n,
                "brier": [row.brier, row.brier_low, row.brier_high],
                "auc": [row.auc, row.auc_low, row.auc_high],
            }
        )
        for version, row in rows
    ]


def against_rivals(held: HeldOut, version: int) -> Figures:
    """How much lower the Brier score of checkpoint `version` is than that of day 0 and of the baselines."""
    kinds = {"single": held.answers[version], "mean": means(held.answers[version])}
    first = {"single": held.answers[0], "mean": means(held.answers[0])}
    found: Figures = {}
    for kind, samples in kinds.items():
        own = question_briers(samples, held.y)
        rivals = {"day 0": question_briers(first[kind], held.y)}
        rivals |= {name: brier(held.baselines[key], held.y) for name, key in RIVALS.items()}
        found[kind] = {name: lower_by(held, theirs, own) for name, theirs in rivals.items()}
    return found


def below_constant(held: HeldOut) -> Figures:
    """How much lower the last checkpoint's mean is than the constant that the training questions suggest."""
    constant = brier(np.full(held.y.size, held.base_rate), held.y)
    return lower_by(held, constant, question_briers(means(held.answers[held.last]), held.y))


def lower_by(held: HeldOut, theirs: Array, own: Array) -> Figures:
    """Mean of `theirs` - `own` (n, Brier scores): positive where `own` is better; over series, and over days."""

    def over(labels: list[str]) -> Any:
        return paired_difference(theirs, own, labels, rng=held.rng(), replicates=held.replicates)

    series, days = over(held.series), over(held.days)
    return plain(
        {
            "difference": [series.estimate, series.low, series.high],
            "days": [days.low, days.high],
            "clusters": [series.clusters, days.clusters],
        }
    )


def interval_of(held: HeldOut, statistic: Statistic, labels: list[str]) -> Figures:
    found = cluster_bootstrap(statistic, labels, rng=held.rng(), replicates=held.replicates)
    return plain({"difference": [found.estimate, found.low, found.high], "clusters": found.clusters})


def known(found: Sequence[float | None]) -> bool:
    """Whether [estimate, low, high] could be measured."""
    return None not in found


def above(found: Sequence[float | None], least: float = 0.0) -> bool:
    """Whether the whole interval [estimate, low, high] lies above `least`."""
    return found[1] is not None and found[1] > least


def holds(found: Sequence[float | None], value: float) -> bool:
    """Whether the interval [estimate, low, high] contains `value`."""
    _, low, high = found
    return low is not None and high is not None and low <= value <= high


def plain(value: Any) -> Any:
    """JSON values: floats with five decimals, NaN as None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return finite(round(float(value), 5))
    return value


def on_common(first: HeldOut, second: HeldOut) -> tuple[HeldOut, HeldOut]:
    """Both on the questions that they share, in the same order.

    Raises RunError where there are none, and where they do not agree on an outcome.
    """
    places = {question.id: i for i, question in enumerate(second.questions)}
    pairs = [(i, places[question.id]) for i, question in enumerate(first.questions) if question.id in places]
    if not pairs:
        raise RunError("the two runs share no held-out question; compare runs of one seed, world and start")
    ours, theirs = (list(side) for side in zip(*pairs, strict=True))
    if (first.y[ours] != second.y[theirs]).any():
        raise RunError("the two runs disagree on an outcome; compare runs of one world")
    return restricted(first, ours), restricted(second, theirs)


def restricted(held: HeldOut, rows: list[int]) -> HeldOut:
    return replace(
        held,
        questions=tuple(held.questions[i] for i in rows),
        y=held.y[rows],
        answers={version: [samples[i] for i in rows] for version, samples in held.answers.items()},
        baselines={name: p[rows] for name, p in held.baselines.items()},
    )


def better_by(first: HeldOut, second: HeldOut, version: int | None = None) -> Figures:
    """How much lower the Brier score of `first` is than that of `second`, on the questions that both have.

    At checkpoint `version` of both; None: at the last of each.
    """
    one, other = on_common(first, second)
    own = one.answers[one.last if version is None else version]
    theirs = other.answers[other.last if version is None else version]
    found: Figures = {"questions": len(one.questions)}
    for kind, mine, yours in (("single", own, theirs), ("mean", means(own), means(theirs))):
        found[kind] = lower_by(one, question_briers(yours, one.y), question_briers(mine, one.y))
    return found
