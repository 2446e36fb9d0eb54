"""The section on learning: tables and pictures of the rows that `learning` made."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from proof import pictures as draw
from proof.parts import Row, Rows, table
from proof.words import (
    NONE,
    average,
    change,
    clusters_of,
    difference,
    number,
    paragraphs,
    percent,
    span,
    star_note,
    within,
)

ABOUT = """Each run replays the almanac with the default configuration; nothing but seed, start and the number of days
is set. Every checkpoint answers the same held-out questions, asked after the last training outcome. *Single*
scores each sampled answer, *mean* the mean of a question's {samples} answers as one forecast. Skill is
`(0.25 - Brier) / (0.25 - Brier of the best baseline)`, the best of five that are fitted on the run's own training
questions. Intervals are 95 %, by bootstrap over series and teams; those over the days of asking stand beside
them. A paired difference is positive where the policy is better. Where an interval rests on fewer than 20
clusters, it is too narrow, and a star says so."""


def section(rows: Rows, pictures: Path) -> str:
    here = pictures.name
    one = next(iter(rows.values()))
    draw.brier_curves(rows, pictures / "learning-curves.png")
    draw.domains(rows, pictures / "learning-domains.png")
    draw.habit_shares(rows, pictures / "learning-habits.png")
    return paragraphs(
        ABOUT.format(samples=one["samples"]),
        "### Scores by days of training",
        scores_table(rows),
        f"![Brier score and AUC of every checkpoint]({here}/learning-curves.png)",
        "### After the last day, against others on the same questions",
        rivals_table(rows),
        "### By domain",
        domain_words(rows),
        domain_table(rows),
        star_note(domain["clusters"] for row in rows.values() for domain in row["habits"]["domains"].values()),
        f"![Brier score by domain, before and after]({here}/learning-domains.png)",
        "### Habits by domain",
        agreement_table(rows),
        f"![Habits by domain, before and after]({here}/learning-habits.png)",
    )


def scores_table(rows: Rows) -> str:
    lines = []
    for key, row in rows.items():
        for version, at in row["at"].items():
            single, mean = at["single"], at["mean"]
            lines.append(
                (
                    f"{key}: after {version} days",
                    within(single["brier"]),
                    within(mean["brier"]),
                    f"{number(single['skill'], 2)} / {number(mean['skill'], 2)}",
                    within(single["auc"], 2),
                    percent(single["accuracy"][0]),
                    f"{number(single['ece'])} ({number(single['ece_noise'])})",
                    percent(single["parse_rate"]),
                )
            )
        best = row["best"].replace("_", " ")
        lines.append((f"{key}: best baseline, {best}", number(row["baselines"][row["best"]]), *[""] * 6))
    head = ("run", "Brier, single", "Brier, mean", "skill, single / mean", "AUC", "accuracy", "ECE (noise)", "answered")
    return table(head, lines)


def rivals_table(rows: Rows) -> str:
    lines = []
    for key, row in rows.items():
        below = row["at"][str(row["last"])]["below"]
        for rival in below["single"]:
            single, mean = difference(below["single"][rival]), difference(below["mean"][rival])
            lines.append((f"{key}: below {rival}", *single[:2], *mean))
    head = ("run", "single, over series", "over days", "mean, over series", "over days", "clusters")
    return table(head, lines)


def domain_words(rows: Rows) -> str:
    return (
        f"Means over all runs measured ({len(rows)}); single runs stand in `proof.json`. *Best habit* is the habit"
        " with the lowest Brier score on the run's training questions of the domain, the one that outcomes could"
        " teach; beside it what it scores on the held-out questions. *Contrast*: its share among the domain's answers"
        " minus its share in"
        " domains where another habit is best."
    )


def domain_table(rows: Rows) -> str:
    names = sorted({name for row in rows.values() for name in row["habits"]["domains"]})
    lines = []
    for name in names:
        found = [row["habits"]["domains"][name] for row in rows.values() if name in row["habits"]["domains"]]
        habits = sorted({one["best"] for one in found if one["best"]})
        worth = average(one["habits"][one["best"]] for one in found if one["best"])
        lines.append(
            (
                name,
                span((one["n"] for one in found), 0),
                " to ".join(clusters_of(n) for n in ends(one["clusters"] for one in found)),
                number(average(one["before"][0] for one in found)),
                number(average(one["after"][0] for one in found)),
                f"{' or '.join(habits) or NONE}: {number(worth)}",
                number(average(contrast(one, "before") for one in found), 2),
                number(average(contrast(one, "after") for one in found), 2),
            )
        )
    head = ("domain", "n", "series", "Brier before", "after", "best habit", "contrast before", "after")
    return table(head, lines)


def ends(numbers: Iterable[int]) -> list[int]:
    """The smallest and the largest, or the one there is."""
    found = sorted(set(numbers))
    return found if len(found) == 1 else [found[0], found[-1]]


def contrast(domain: Row, when: str) -> float | None:
    found: Any = domain["contrast"][when]
    return None if found is None else found["difference"][0]


def agreement_table(rows: Rows) -> str:
    lines = []
    for key, row in rows.items():
        before, after = row["habits"]["agreement"]["before"], row["habits"]["agreement"]["after"]
        contrasts = [one["contrast"]["after"] for one in row["habits"]["domains"].values() if one["contrast"]["after"]]
        clear = sum(one["difference"][1] is not None and one["difference"][1] > 0 for one in contrasts)
        lines.append(
            (
                key,
                change(before["difference"]),
                change(after["difference"]),
                clusters_of(after["clusters"]),
                f"{clear} of {len(contrasts)}",
            )
        )
    head = ("run", "before", "after", "clusters", "domains with a contrast above 0")
    words = (
        "How much more often an answer names the best habit of its domain than if the same habits were dealt over all"
        " domains alike (0: habits do not follow the domain)."
    )
    return paragraphs(words, table(head, lines))
