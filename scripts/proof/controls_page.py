"""The section on controls: tables and a picture of the rows that `controls` made."""

from pathlib import Path

from proof import pictures as draw
from proof.parts import Row, Rows, table
from proof.permuted import section as runs_section
from proof.words import change, difference, number, paragraphs, percent, within

PERMUTED_WORDS = """The outcomes of a day are dealt anew among its questions of the same domain before rewards are
joined, and nothing else is changed. Such a run may still move towards 0.25 by hedging, and must not tell Yes from No.
*Base rate* is the share of Yes among the run's training questions, said of every question; a positive difference
would mean that the policy is better than that."""
SHUFFLED_WORDS = """The checkpoints of the true run answer again, and each question's search finds what belongs to
another question. A policy that reads its evidence must lose by it; an untrained one has nothing to lose."""
ABLATION_WORDS = """One thing is changed and nothing else (`configs/ablations/`). All are scored by the Brier score on
the questions of the run with the defaults; a positive difference says that the defaults are better."""


def section(rows: Rows, pictures: Path) -> str:
    permuted = {key: row for key, row in rows.items() if "true_better_by" in row and "below_constant" in row}
    many = {key: row for key, row in rows.items() if "runs" in row}
    shuffled = {key: row for key, row in rows.items() if "loss" in row}
    others = {key: row for key, row in rows.items() if key not in permuted | many | shuffled}
    draw.controls(permuted, shuffled, pictures / "controls.png")
    return paragraphs(
        f"![Brier score of the controls]({pictures.name}/controls.png)",
        *(("### Outcomes permuted", PERMUTED_WORDS, permuted_table(permuted)) if permuted else ()),
        *((runs_section(many),) if many else ()),
        *(("### Observations shuffled", SHUFFLED_WORDS, shuffled_table(shuffled)) if shuffled else ()),
        *(("### Another reward, another recipe", ABLATION_WORDS, ablation_table(others)) if others else ()),
    )


def permuted_table(rows: Rows) -> str:
    lines = [
        (
            key,
            number(row["first"]["single"]["brier"][0]),
            f"{number(row['control']['single']['brier'][0])} / {number(row['control']['mean']['brier'][0])}",
            f"{number(row['true']['single']['brier'][0])} / {number(row['true']['mean']['brier'][0])}",
            within(row["control"]["single"]["auc"]),
            within(row["true"]["single"]["auc"]),
            change(row["below_constant"]["difference"]),
            *difference(row["true_better_by"]["single"]),
        )
        for key, row in rows.items()
    ]
    head = (
        "run", "Brier before", "permuted, single / mean", "true, single / mean", "AUC, permuted", "AUC, true",
        "mean below base rate", "true better by, single", "over days", "clusters",
    )  # fmt: skip
    return table(head, lines)


def shuffled_table(rows: Rows) -> str:
    lines = [
        (
            key,
            *losses(row, "first", "first", "control_first"),
            *losses(row, "last", "true", "control"),
            " / ".join(str(n) for n in row["loss"]["last"]["single"]["clusters"]),
        )
        for key, row in rows.items()
    ]
    head = (
        "run", "day 0: Brier, own → shuffled", "loss", "over days",
        "trained: Brier, own → shuffled", "loss", "over days", "clusters",
    )  # fmt: skip
    return table(head, lines)


def losses(row: Row, when: str, own: str, shuffled: str) -> tuple[str, str, str]:
    before, after = row[own]["single"]["brier"][0], row[shuffled]["single"]["brier"][0]
    loss, days, _ = difference(row["loss"][when]["single"])
    return f"{number(before)} → {number(after)}", loss, days


def ablation_table(rows: Rows) -> str:
    lines = [line("the defaults", next(iter(rows.values()))["true"], None)]
    lines += [line(key, row["control"], row) for key, row in rows.items()]
    head = (
        "run",
        "Brier, single",
        "Brier, mean",
        "AUC",
        "ECE (noise)",
        "answered",
        "defaults better by, single",
        "mean",
    )
    return table(head, lines)


def line(key: str, found: Row, row: Row | None) -> tuple[str, ...]:
    single, mean = found["single"], found["mean"]
    better = (
        ("", "")
        if row is None
        else tuple(change(row["true_better_by"][kind]["difference"]) for kind in ("single", "mean"))
    )
    return (
        key,
        within(single["brier"]),
        within(mean["brier"]),
        within(single["auc"], 2),
        f"{number(single['ece'])} ({number(single['ece_noise'])})",
        percent(single["parse_rate"]),
        *better,
    )
