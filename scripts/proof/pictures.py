"""Pictures of the proof's rows, in the style of the replay's; each is saved as PNG at `path`."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from futureworld.evaluation.calibration import BINS, ReliabilityRow
from futureworld.evaluation.scores import HALF
from futureworld.pages import plots
from futureworld.pages.drawing import FIRST, LAST, MARKERS, QUIET, SHADES, saved, sheet, styled
from proof.parts import Row, Rows
from proof.words import average

SEGMENT_WORDS = {"call": "call", "domain": "domain named", "habit": "habit", "fact": "fact copied", "p": "digits of p"}
RUNS = (LAST, FIRST, SHADES[4])
GROUP_WORDS = {
    "std_p": "standard deviation of p in a group",
    "different_habits": "different habits in a group",
    "brier": "Brier score of the rollouts",
}


def brier_curves(rows: Rows, path: Path) -> None:
    """Brier score and AUC of single answers at every checkpoint, one line a run, with the runs' best baseline."""
    with styled():
        figure = sheet(9.6, 4.4)
        brier, order = figure.subplots(1, 2)
        for i, (key, row) in enumerate(rows.items()):
            look: dict[str, Any] = {"color": RUNS[i % len(RUNS)], "linestyle": ("-", "--")[i // len(RUNS) % 2]}
            versions = [point["version"] for point in row["curve"]]
            for ax, name in ((brier, "brier"), (order, "auc")):
                values = [or_nan(point[name][0]) for point in row["curve"]]
                ax.plot(versions, values, linewidth=1.6, label=key, **look)
            means = {int(version): at["mean"]["brier"][0] for version, at in row["at"].items()}
            brier.plot(list(means), list(means.values()), "D", color=look["color"], markersize=5)
            brier.axhline(row["baselines"][row["best"]], color=look["color"], linestyle=":", linewidth=1)
        brier.axhline(HALF, color=QUIET, linewidth=1)
        order.axhline(0.5, color=QUIET, linewidth=1)
        brier.set(title="Brier score (lower is better)", xlabel="Days of training")
        order.set(title="AUC", xlabel="Days of training")
        figure.legend(*brier.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        figure.suptitle(
            "Single answers; diamonds: mean of a question's answers; dotted: best baseline; grey: always 0.5",
            fontsize=9.5,
        )
        saved(figure, path)


def domains(rows: Rows, path: Path) -> None:
    """Brier score by domain of every run before and after, and what the domain's best habit scores."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows.values():
        for name, domain in row["habits"]["domains"].items():
            found[name].append(domain)
    names = sorted(found, key=lambda name: -(average(one["after"][0] for one in found[name]) or 0.0))
    with styled():
        figure = sheet(7.6, 1.7 + 0.42 * len(names))
        ax = figure.subplots()
        for place, name in enumerate(names):
            here = found[name]
            for when, colour, marker, shift in (("before", FIRST, "o", 0.14), ("after", LAST, "s", -0.14)):
                values = [one[when][0] for one in here]
                label = f"{when} training, one mark a run" if place == 0 else None
                ax.plot(
                    values, [place + shift] * len(values), marker, color=colour, markersize=5,
                    markeredgecolor="white", label=label,
                )  # fmt: skip
            worth = average(one["habits"][one["best"]] for one in here if one["best"])
            if worth is not None:
                label = "the habit that is best on the training questions" if place == 0 else None
                ax.plot([worth], [place - 0.14], "|", color="black", markersize=13, markeredgewidth=1.8, label=label)
        ax.axvline(HALF, color=QUIET, linestyle="--", linewidth=1.2, label="always 0.5")
        ax.set_yticks(range(len(names)), [f"{name}  (n = {spread(found[name])})" for name in names])
        ax.set(title="Brier score by domain, single answers", xlabel="Brier score (lower is better)")
        ax.set_xlim(left=0)
        figure.legend(loc="outside lower center", ncols=2)
        saved(figure, path)


def spread(found: Sequence[Row]) -> str:
    sizes = sorted({one["n"] for one in found})
    return f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"


def habit_shares(rows: Rows, path: Path) -> None:
    """Share of each habit by domain, mean over the runs, before and after."""
    before, after = (
        mean_shares([row["habits"]["shares"][when] for row in rows.values()]) for when in ("before", "after")
    )
    plots.strategies(before, after, path, ("before training", "after"))


def mean_shares(runs: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Mean over the runs that have the domain; a habit that a run does not name has a share of 0 there."""
    found: dict[str, dict[str, float]] = {}
    for domain in sorted({domain for run in runs for domain in run}):
        here = [run[domain] for run in runs if domain in run]
        names = sorted({name for shares in here for name in shares})
        found[domain] = {name: math.fsum(shares.get(name, 0.0) for shares in here) / len(here) for name in names}
    return found


def calibration(rows: Rows, path: Path) -> None:
    """Reliability of single answers before and after, over all runs together."""
    first = [row["calibration"]["0"]["bins"] for row in rows.values()]
    last = [row["calibration"][str(row["last"])]["bins"] for row in rows.values()]
    plots.reliability(pooled(first), pooled(last), path, ("before training", "after"))


def pooled(runs: Sequence[Sequence[Sequence[float]]]) -> tuple[ReliabilityRow, ...]:
    """The bins [n, sum of p, sum of y] of several runs as one."""
    found = []
    for i in range(BINS):
        n, p, y = (math.fsum(bins[i][field] for bins in runs if bins) for field in range(3))
        found.append(
            ReliabilityRow(i / BINS, (i + 1) / BINS, int(n), p / n if n else math.nan, y / n if n else math.nan)
        )
    return tuple(found)


def left_open(rows: Rows, path: Path) -> None:
    """Entropy by place over days: the mean of the runs as a line, each run as a faint one."""
    with styled():
        figure = sheet(9.6, 3.6)
        axes = figure.subplots(1, 2)
        for ax, names in zip(axes, (("habit", "p"), ("call", "domain", "fact")), strict=True):
            for i, name in enumerate(names):
                lines = [[or_nan(day["open"].get(name)) for day in row["course"]] for row in rows.values()]
                over_days(ax, lines, i, SEGMENT_WORDS[name])
            ax.set(xlabel="Day", ylabel="Nats in a rollout")
            ax.set_ylim(bottom=0)
            ax.legend()
        axes[0].axhline(math.log(7), color=QUIET, linestyle="--", linewidth=1)
        axes[0].set_title("What is to be decided (dashed: ln 7)")
        axes[1].set_title("What is to be copied")
        saved(figure, path)


def groups(rows: Rows, path: Path) -> None:
    """How much a group of rollouts differs, and what the rollouts are worth, over days."""
    with styled():
        figure = sheet(9.6, 3.2)
        for i, (ax, (name, words)) in enumerate(zip(figure.subplots(1, 3), GROUP_WORDS.items(), strict=True)):
            over_days(ax, [[or_nan(day[name]) for day in row["course"]] for row in rows.values()], i, words)
            ax.set_xlabel("Day")
            ax.set_title(words, fontsize=9.5)
            ax.set_ylim(bottom=0)
        saved(figure, path)


def over_days(ax: Any, lines: Sequence[Sequence[float]], i: int, label: str) -> None:
    colour = RUNS[i]
    for line in lines:
        ax.plot(range(1, len(line) + 1), line, color=colour, linewidth=0.7, alpha=0.35)
    known = [[value for value in day if math.isfinite(value)] for day in zip(*lines, strict=False)]
    middle = [math.fsum(day) / len(day) if day else math.nan for day in known]
    ax.plot(range(1, len(middle) + 1), middle, color=colour, linewidth=2, marker=MARKERS[i], markersize=3, label=label)


def controls(permuted: Rows, shuffled: Rows, path: Path) -> None:
    """Brier scores with intervals: before training, after it, and under each control."""
    bars: list[tuple[str, Sequence[float], str, str]] = []
    for key, row in permuted.items():
        bars.append((f"{key}: before training", row["first"]["single"]["brier"], QUIET, "o"))
        bars.append((f"{key}: trained on them", row["control"]["single"]["brier"], FIRST, "D"))
        bars.append((f"{key}: the true run", row["true"]["single"]["brier"], LAST, "s"))
    for key, row in shuffled.items():
        bars.append((f"{key}: trained", row["control"]["single"]["brier"], FIRST, "D"))
        bars.append((f"{key}: trained, its own", row["true"]["single"]["brier"], LAST, "s"))
    with styled():
        figure = sheet(7.6, 1.2 + 0.28 * len(bars))
        ax = figure.subplots()
        for place, (_, found, colour, marker) in enumerate(reversed(bars)):
            ends = [[or_nan(found[0]) - or_nan(found[1])], [or_nan(found[2]) - or_nan(found[0])]]
            ax.errorbar([found[0]], [place], xerr=ends, color=colour, marker=marker, markersize=6, elinewidth=1.4)
        ax.axvline(HALF, color=QUIET, linestyle="--", linewidth=1.2)
        ax.set_yticks(range(len(bars)), [words for words, *_ in reversed(bars)])
        ax.set(title="Single answers, 95% intervals", xlabel="Brier score (lower is better; dashed: always 0.5)")
        ax.grid(axis="x")
        ax.grid(False, axis="y")
        saved(figure, path)


def or_nan(value: float | None) -> float:
    return math.nan if value is None else value
