"""Domain by domain: what each habit is worth there, and which habits the policy's answers name.

The habit that outcomes could teach is the one with the lowest Brier score on the run's training
questions of the domain; what it is worth is told by the held-out ones.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from futureworld.cycle.evaluate import cluster, training_outcomes
from futureworld.cycle.run import Run
from futureworld.cycle.strategies import habit, shares
from futureworld.evaluation.scores import Array, brier
from futureworld.evaluation.statistics import agreement_of, contrast_of
from futureworld.evaluation.table import domain_rows, question_briers
from futureworld.questions.facts import facts
from futureworld.records import Forecast, Purpose, Question
from proof.results import Figures, HeldOut, interval_of, plain
from verl_tool_future.pocket.dialogue import HABITS

Worth = dict[str, dict[str, float]]
"""Domain -> habit -> Brier score."""


@dataclass(frozen=True, slots=True)
class Said:
    """The habits that a checkpoint's held-out answers name, one row an answer."""

    domains: tuple[str, ...]
    clusters: tuple[str, ...]
    habits: tuple[str, ...]


def worth(questions: Sequence[Question], y: Sequence[float] | Array) -> Worth:
    """The Brier score of each habit (but a guess, which has no rule) in each domain."""
    scored: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for question, outcome in zip(questions, y, strict=True):
        known = facts(question.last_values, question.threshold, question.operator, question.typical_step)
        for one in HABITS:
            p = one.probability(known)
            if p is not None:
                scored[question.domain][one.name].append(float(brier([p], [outcome])[0]))
    return {domain: {name: float(np.mean(found)) for name, found in by.items()} for domain, by in scored.items()}


def best(worths: Worth) -> dict[str, str]:
    """The habit with the lowest Brier score, by domain."""
    return {domain: min(by, key=lambda name: by[name]) for domain, by in sorted(worths.items())}


def taught(run: Run, before: date) -> dict[str, str]:
    """The best habit of each domain on the run's training questions."""
    questions, outcomes = training_outcomes(run, run.schedule.asked_at(before))
    return best(worth(questions, outcomes))


def forecasts_of(run: Run, version: int, questions: Sequence[Question]) -> list[Forecast]:
    return run.store.forecasts(
        purpose=Purpose.EVALUATE, agent=run.agent, policy_version=version, question_ids=[q.id for q in questions]
    )


def said(run: Run, version: int, questions: Sequence[Question]) -> Said:
    """What checkpoint `version` answered to `questions`, habit by habit."""
    by_id = {question.id: question for question in questions}
    ids = [forecast.id for forecast in forecasts_of(run, version, questions)]
    rows = []
    for trajectory in run.store.trajectories(ids):
        turns = [message.text for message in trajectory.messages if message.role == "assistant"]
        question = by_id[trajectory.question_id]
        rows.append((question.domain, cluster(question), habit(turns[-1] if turns else "")))
    domains, clusters, named = zip(*rows, strict=True)
    return Said(domains, clusters, named)


def by_domain(run: Run, held: HeldOut, last: int) -> Figures:
    """Each domain before training and after checkpoint `last`, and whether habits follow the domains."""
    questions = held.questions
    taught_here = taught(run, questions[0].day)
    hindsight = worth(questions, held.y)
    before, after = said(run, 0, questions), said(run, last, questions)
    # A domain without a training question had nothing to teach; it stays in the table of scores only.
    known = {domain: name for domain, name in taught_here.items() if domain in hindsight}
    by_id = {question.id: question for question in questions}
    return {
        "domains": {
            domain: row
            | {"best": known.get(domain), "habits": plain(hindsight[domain])}
            | {
                "contrast": {
                    "before": contrast(held, before, domain, known),
                    "after": contrast(held, after, domain, known),
                }
            }
            for domain, row in score_rows(held, last).items()
        },
        "shares": {
            "before": plain(shares(run, forecasts_of(run, 0, questions), by_id)),
            "after": plain(shares(run, forecasts_of(run, last, questions), by_id)),
        },
        "agreement": {"before": agreement(held, before, known), "after": agreement(held, after, known)},
    }


def score_rows(held: HeldOut, last: int) -> dict[str, Figures]:
    """Questions, clusters and single Brier scores of each domain at checkpoint 0 and at `last`."""
    domains, clusters = [question.domain for question in held.questions], held.series
    found: dict[str, Figures] = {}
    for when, version in (("before", 0), ("after", last)):
        briers = question_briers(held.answers[version], held.y)
        for row in domain_rows(briers, domains, clusters, rng=held.rng(), replicates=held.replicates):
            inside = {group for group, domain in zip(clusters, domains, strict=True) if domain == row.domain}
            entry = found.setdefault(row.domain, {"n": row.n, "clusters": len(inside)})
            entry[when] = plain([row.brier, row.low, row.high])
    return found


def contrast(held: HeldOut, answers: Said, domain: str, taught_here: dict[str, str]) -> Figures | None:
    """Share of the domain's best habit among its answers minus its share where another habit is best.

    None where no other habit is best anywhere: there is nothing to tell apart.
    """
    wanted = taught_here.get(domain)
    rows = [
        (float(name == wanted), where == domain, group)
        for where, group, name in zip(answers.domains, answers.clusters, answers.habits, strict=True)
        if where == domain or taught_here.get(where, wanted) != wanted
    ]
    if wanted is None or len({inside for _, inside, _ in rows}) < 2:
        return None
    values, inside, clusters = zip(*rows, strict=True)
    return interval_of(held, contrast_of(values, inside), list(clusters))


def agreement(held: HeldOut, answers: Said, taught_here: dict[str, str]) -> Figures:
    """How much more often answers name their domain's best habit than if habits were dealt over all domains."""
    rows: list[Any] = [
        (taught_here[domain], name, group)
        for domain, group, name in zip(answers.domains, answers.clusters, answers.habits, strict=True)
        if domain in taught_here
    ]
    if not rows:
        return {"difference": [None, None, None], "clusters": 0}
    wanted, named, clusters = (list(column) for column in zip(*rows, strict=True))
    return interval_of(held, agreement_of(wanted, named), clusters)
