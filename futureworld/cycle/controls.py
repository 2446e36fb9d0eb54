"""Controls: runs in which there is nothing to learn, or nothing to read, by one change and nothing else.

`permuted-outcomes` deals the day's outcomes anew among the questions of a domain before rewards
are joined (domains with few questions that day are dealt together: a question alone would keep
its own). `shuffled-observations` trains as always and shows every rollout of the evaluation the
facts of another question, which a policy that reads its evidence must pay for. The store keeps the
true outcomes in both.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from futureworld.records import Question

FEW = 10
"""A domain with fewer questions on a day shares its outcomes with the other small ones."""


def permuted(outcomes: Mapping[str, float], questions: Mapping[str, Question], seed: int) -> dict[str, float]:
    """The same outcomes, dealt anew within (asked day, domain). Keys are question ids."""
    asked = Counter((questions[name].day.isoformat(), questions[name].domain) for name in outcomes)
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in sorted(outcomes):
        day, domain = questions[name].day.isoformat(), questions[name].domain
        groups[day, domain if asked[day, domain] >= FEW else "small domains"].append(name)
    dealt: dict[str, float] = {}
    for (day, domain), names in sorted(groups.items()):
        values = [outcomes[name] for name in names]
        random.Random(f"permuted|{seed}|{day}|{domain}").shuffle(values)
        dealt.update(zip(names, values, strict=True))
    return dealt


def shuffled(questions: Sequence[Question], seed: int) -> dict[str, Question]:
    """Question id -> another question of the same set: a seeded cycle, so that none meets itself."""
    order = sorted(questions, key=lambda question: question.id)
    random.Random(f"shuffled|{seed}").shuffle(order)
    return {question.id: order[(i + 1) % len(order)] for i, question in enumerate(order)}
