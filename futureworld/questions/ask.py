"""The ask stage: candidates, then filters, then resampling to the day's questions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from futureworld.clock import Schedule
from futureworld.config import QuestionsConfig
from futureworld.questions.build import Draw, candidates
from futureworld.questions.filters import apply, rules
from futureworld.questions.resample import resample
from futureworld.records import Question
from futureworld.worlds.base import World

RESAMPLED = "not drawn"
"""The reason of a good question that the day had no room for."""


@dataclass(frozen=True, slots=True)
class AskResult:
    """The day's questions by id; `candidates` = questions + everything in `dropped`, by reason."""

    questions: tuple[Question, ...]
    candidates: int
    dropped: Mapping[str, int]


def ask(
    world: World, day: date, schedule: Schedule, config: QuestionsConfig, seed: int, *, namespace: str = ""
) -> AskResult:
    """The questions of `day`, the same for the same world, day, seed and `namespace`.

    Reads the world only as of the moment of asking. A `namespace` draws other thresholds and
    another sample (an evaluation set); ids do not depend on it nor on the seed.
    """
    drawn = Draw(seed, namespace)
    found = candidates(world, day, schedule, config, drawn)
    kept, dropped = apply(rules(world, schedule.asked_at(day)), found)
    chosen = resample(kept, config.per_day, drawn.generator("resample", day))
    if len(chosen) < len(kept):
        dropped[RESAMPLED] = len(kept) - len(chosen)
    return AskResult(tuple(chosen), len(found), dict(dropped))
