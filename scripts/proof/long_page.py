"""The section on thirty-two days: tables and pictures of the rows that `long` made."""

from pathlib import Path

from proof import pictures as draw
from proof.course import SEGMENTS
from proof.parts import Row, Rows, table
from proof.words import average, difference, number, paragraphs, percent, within

OPEN_WORDS = """*Left open* is the entropy of what the policy chooses there, in nats for a rollout: the mean of -log p
of what was sampled, by place in the call and in the answer's sentence (seven habits chosen evenly are ln 7 = 1.95
nats). Means over the runs, every eighth day; each day's rollouts were made by the policy of that day. *Zero
variance*: groups in which all rewards are equal, which teach nothing. *Effective sample*: share of the batch that
its importance weights leave."""
LATE_WORDS = """A world made from the almanac in which 30 % of the rows of daily series come one to three days late,
from the first asked day on. One run waits for late outcomes for three days and trains on them with their age, the other
throws their rollouts away, as the FutureWorld paper does. Same seed, same questions; both answer the same held-out
questions. A positive difference says that waiting is better."""
STEP = 8
"""The page shows every so many days; `proof.json` has all."""


def section(rows: Rows, pictures: Path) -> str:
    courses = {key: row for key, row in rows.items() if "course" in row}
    late = {key: row for key, row in rows.items() if "used" in row}
    return paragraphs(
        course_words(courses, pictures) if courses else "",
        *(("### Late outcomes used, or thrown away", LATE_WORDS, late_table(late), counts_table(late)) if late else ()),
    )


def course_words(rows: Rows, pictures: Path) -> str:
    draw.calibration(rows, pictures / "long-reliability.png")
    draw.left_open(rows, pictures / "long-entropy.png")
    draw.groups(rows, pictures / "long-groups.png")
    here = pictures.name
    return paragraphs(
        "The same runs as under *learning*, whose curves show where they end.",
        "### Calibration",
        calibration_table(rows),
        f"![Reliability over all runs]({here}/long-reliability.png)",
        "### What the policy leaves open, and how much a group differs",
        OPEN_WORDS,
        course_table(rows),
        f"![Entropy by place over days]({here}/long-entropy.png)",
        f"![Groups over days]({here}/long-groups.png)",
    )


def calibration_table(rows: Rows) -> str:
    lines = [
        (
            f"{key}: after {version} days",
            within(found["brier"]),
            f"{number(found['ece'])} ({number(found['ece_noise'])})",
            "yes" if found["ece"] is not None and found["ece"] <= found["ece_noise"] else "no",
        )
        for key, row in rows.items()
        for version, found in row["calibration"].items()
    ]
    return table(("run", "Brier, single", "ECE (noise)", "within the noise"), lines)


def course_table(rows: Rows) -> str:
    length = min(len(row["course"]) for row in rows.values())
    chosen = sorted({*range(0, length, STEP), length - 1})
    lines = [course_line(i, [row["course"][i] for row in rows.values()]) for i in chosen]
    head = (
        "day", "Brier of rollouts", *SEGMENTS, "sentence kept", "different p in a group", "std of p",
        "different habits", "zero variance", "effective sample",
    )  # fmt: skip
    return table(head, lines)


def course_line(i: int, days: list[Row]) -> tuple[str, ...]:
    def mean(name: str) -> float | None:
        return average(day.get(name) for day in days)

    idle = average(day["zero_variance"] / day["groups"] for day in days if day.get("groups"))
    return (
        f"{i + 1}",
        number(mean("brier")),
        *(number(average(day["open"].get(name) for day in days), 2) for name in SEGMENTS),
        percent(average(day["open"]["readable"] for day in days)),
        f"{number(mean('different_p'), 1)} of {number(mean('group'), 0)}",
        number(mean("std_p")),
        number(mean("different_habits"), 1),
        percent(idle),
        number(mean("ess"), 2),
    )


def late_table(rows: Rows) -> str:
    lines = [
        (
            f"{key}: {kind}",
            within(row["used"][kind]["brier"]),
            within(row["thrown"][kind]["brier"]),
            *difference(row["used_better_by"][kind]),
        )
        for key, row in rows.items()
        for kind in ("single", "mean")
    ]
    return table(("run", "Brier, used", "Brier, thrown away", "used better by", "over days", "clusters"), lines)


def counts_table(rows: Rows) -> str:
    lines = []
    for key, row in rows.items():
        for name, words in (("used", "used"), ("thrown", "thrown away")):
            found = row["counts"][name]
            numbers = (found[count] for count in ("asked", "resolved", "pending", "expired", "trained", "trained_late"))
            lines.append((f"{key}: {words}", *(f"{n:,}" for n in numbers)))
    head = ("run", "questions asked", "resolved", "still waiting", "given up", "rollouts trained on", "of these late")
    return table(head, lines)
