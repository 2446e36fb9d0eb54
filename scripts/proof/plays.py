"""Which runs the proof plays, by name; all of them with the defaults of the configuration otherwise."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from proof.runs import Settings, replayed, shared

SEEDS = (0, 1, 2)
STARTS = (date(2026, 5, 4), date(2026, 5, 20))
DAYS, EIGHT = 32, 8
ABLATIONS = ("log-score", "spherical-score", "std-division", "no-search", "kl")
RECIPES = Path(__file__).resolve().parent.parent.parent / "configs" / "ablations"


@dataclass(frozen=True, slots=True)
class Play:
    """A run by its name and by what differs from the defaults: single keys, and a YAML file."""

    name: str
    settings: Settings
    recipe: Path | None = None

    def run(self, folder: Path) -> Path:
        """The finished run, from the folder of a task; made where it is not there yet."""
        return replayed(shared(folder) / self.name, self.settings, self.recipe)


def thirty_two_days() -> dict[str, Play]:
    """Three seeds and two start dates, by the words that name them in the tables."""
    return {
        f"seed {seed}, from {start}": Play(
            f"days{DAYS}-seed{seed}-{start}", {"seed": seed, "start": start, "days": DAYS}
        )
        for start in STARTS
        for seed in SEEDS
    }


def eight_days(seed: int) -> Play:
    return Play(f"days{EIGHT}-seed{seed}", {"seed": seed, "days": EIGHT})


def permuted(seed: int) -> Play:
    return Play(f"permuted-seed{seed}", {"seed": seed, "days": EIGHT, "control": "permuted-outcomes"})


def ablation(name: str) -> Play:
    return Play(f"ablation-{name}", {"seed": 0, "days": EIGHT}, RECIPES / f"{name}.yaml")


def late_outcomes(seed: int, world: Path, used: bool) -> Play:
    """Eight days in a world whose outcomes come late. Thrown away, the held-out days begin three days
    earlier; there are three more of them, so that both runs answer the questions of the same days."""
    same = {"seed": seed, "days": EIGHT, "world": world}
    if used:
        return Play(f"late-used-seed{seed}", same | {"schedule.retry_days": 3})
    return Play(f"late-thrown-away-seed{seed}", same | {"schedule.retry_days": 0, "evaluate.days": 31})


SHORT = Play(
    "short",
    {
        "days": 2,
        "questions.per_day": 24,
        "rollout.n": 4,
        "rollout.concurrency": 32,
        "update.mini_batches": 4,
        "evaluate.days": 2,
        "evaluate.per_day": 10,
        "evaluate.end_samples": 2,
        "evaluate.bootstrap": 200,
    },
)
"""Two small days: what is measured on it shows that the proof runs, and nothing about learning."""
