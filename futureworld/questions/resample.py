"""From candidates to the day's questions: even over domains, varied within each.

Domains are levelled by water-filling; within a domain texts are taken farthest first by the
cosine of their TF-IDF vectors, every target's first threshold before any second one.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from futureworld.records import Question


def fill(available: Mapping[str, int], total: int, random: np.random.Generator) -> dict[str, int]:
    """Shares of `total`: a domain with few gives all, the others are levelled; sums exactly.

    The sum is `total`, or all there is where that is less. What an even split leaves over goes to
    randomly chosen domains, one each.

    >>> fill({"a": 2, "b": 9, "c": 9}, 10, np.random.default_rng(0))
    {'a': 2, 'b': 4, 'c': 4}
    """
    shares = dict.fromkeys(sorted(available), 0)
    left = min(total, sum(available.values()))
    while left:
        open_domains = [name for name in shares if shares[name] < available[name]]
        each = left // len(open_domains)
        if each == 0:
            for place in random.permutation(len(open_domains))[:left]:
                shares[open_domains[place]] += 1
            break
        for name in open_domains:
            added = min(each, available[name] - shares[name])
            shares[name] += added
            left -= added
    return shares


def resample(questions: Sequence[Question], total: int, random: np.random.Generator) -> list[Question]:
    """`total` of `questions` (all where there are fewer), by id. Ids must be unique."""
    pools: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        pools[question.domain].append(question)
    shares = fill({name: len(pool) for name, pool in pools.items()}, total, random)
    chosen = [question for name, share in shares.items() for question in spread(pools[name], share, random)]
    return sorted(chosen, key=lambda question: question.id)


def spread(pool: Sequence[Question], count: int, random: np.random.Generator) -> list[Question]:
    """`count` of `pool`, farthest first; ties go to the earlier in a random order.

    Each pick comes from the group (direction, side of the last value) with the fewest picks so
    far, so that the sides stay as even as they were dealt.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # takes a second to import

    if count >= len(pool):
        return list(pool)
    tiers = _tiers(pool)
    order = random.permutation(len(pool))
    pool, tiers = [pool[place] for place in order], tiers[order]
    vectors = TfidfVectorizer().fit_transform([question.text for question in pool])
    groups, group_of = np.unique([_group(question) for question in pool], return_inverse=True)
    nearest = np.zeros(len(pool))
    free = np.ones(len(pool), dtype=bool)
    picks = np.zeros(len(groups), dtype=int)
    chosen: list[int] = []
    for _ in range(count):
        allowed = free & (tiers == tiers[free].min())
        allowed &= picks[group_of] == picks[group_of[allowed]].min()
        place = int(np.where(allowed, nearest, np.inf).argmin())
        chosen.append(place)
        free[place] = False
        picks[group_of[place]] += 1
        nearest = np.maximum(nearest, vectors @ vectors[place].toarray().ravel())
    return [pool[place] for place in chosen]


def _tiers(pool: Sequence[Question]) -> np.ndarray:
    """(N) How many questions of the same target stand before each: 0 for first thresholds."""
    seen: Counter[tuple[str, str | None]] = Counter()
    tiers: list[int] = []
    for question in pool:
        key = (question.target.id, question.target.option)
        tiers.append(seen[key])
        seen[key] += 1
    return np.array(tiers)


def _group(question: Question) -> str:
    last_yes = question.operator.holds(question.last_values[-1], question.threshold)
    return f"{question.operator} {last_yes}"
