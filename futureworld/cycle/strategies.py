"""What a policy says it does: the habit that an answer names, counted by domain.

The built-in policy writes `For fuel I follow distance: yes by 0.2. \\boxed{0.58}`. Any answer that
names no habit in this form counts as `other`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from futureworld.cycle.run import Run
from futureworld.records import Forecast, Question

HABIT = re.compile(r"For \w+ I ((?:follow|oppose) (?:count|last|distance)|guess)\b")
OTHER = "other"

Shares = dict[str, dict[str, float]]


def habit(text: str) -> str:
    """The habit a turn names.

    >>> habit("For fuel I follow distance: yes by 0.2. \\\\boxed{0.58}"), habit("0.3")
    ('follow distance', 'other')
    """
    found = HABIT.search(text)
    return OTHER if found is None else found[1]


def shares(run: Run, forecasts: Iterable[Forecast], questions: dict[str, Question]) -> Shares:
    """Share of answers by habit, by domain; each domain's shares sum to 1."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for trajectory in run.store.trajectories([forecast.id for forecast in forecasts]):
        said = [message.text for message in trajectory.messages if message.role == "assistant"]
        counts[questions[trajectory.question_id].domain][habit(said[-1] if said else "")] += 1
    return {
        domain: {name: n / sum(found.values()) for name, n in sorted(found.items())}
        for domain, found in sorted(counts.items())
    }
