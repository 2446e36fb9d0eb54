"""The replay's pictures as PNG: each function saves its picture at `path` and returns the figure."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from futureworld.evaluation.calibration import ReliabilityRow
from futureworld.evaluation.scores import HALF
from futureworld.evaluation.table import BaselineRow, CheckpointRow, DomainRow, best_baseline
from futureworld.pages.drawing import FAINT, FIRST, HATCHES, LAST, QUIET, SHADES, saved, sheet, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def curves(
    rows: Sequence[CheckpointRow],
    baselines: Sequence[BaselineRow],
    path: Path,
    means: Sequence[CheckpointRow] = (),
) -> "Figure":
    """Brier, accuracy, AUC and ECE by checkpoint, with 95% intervals and the noise band of ECE (95th percentile).

    `means` are checkpoints scored by the mean of several samples; they stand beside as diamonds.
    """
    best = best_baseline(baselines)
    with styled():
        figure = sheet(10.0, 7.4)
        brier, right, order, error = figure.subplots(2, 2).flat
        for ax, field, title, label in (
            (brier, "brier", "Brier score", "Brier score (lower is better)"),
            (right, "accuracy", "Accuracy", "Share on the right side"),
            (order, "auc", "AUC", "Area under the ROC curve"),
        ):
            _curve(ax, rows, field, colour=LAST, marker="o", line="-", label="single sample")
            if means:
                _curve(ax, means, field, colour=FIRST, marker="D", line="", label="mean of samples", shift=0.22)
            ax.set(title=_movement(title, rows, field), ylabel=label)
            _level(ax, getattr(best, field), f"best baseline: {_words(best.name)}", ":")
        _level(brier, HALF, "always 0.5", "--")
        _level(order, 0.5, "no skill", "--")
        _calibration_curve(error, rows)
        for ax in (brier, right, order, error):
            ax.set_xlabel("Checkpoint (policy updates made)")
            ax.set_xticks([row.version for row in rows])
        handles, labels = brier.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9.5)
        sizes = [row.n for row in rows]
        figure.suptitle(
            f"Every checkpoint on the same questions: n = {_span(min(sizes), max(sizes))} answers,"
            f" bars are 95% intervals over {rows[0].clusters} clusters",
            fontsize=11,
        )
        return saved(figure, path)


def reliability(
    before: Sequence[ReliabilityRow],
    after: Sequence[ReliabilityRow],
    path: Path,
    labels: tuple[str, str] = ("before", "after"),
) -> "Figure":
    """Share of Yes against the stated probability, and how many answers each bin holds.

    Error bars are Wilson's 95% intervals of the share of Yes, answers taken as independent.
    """
    with styled():
        figure = sheet(6.4, 6.8)
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        top.plot([0, 1], [0, 1], color=QUIET, linestyle="--", linewidth=1, label="perfectly calibrated")
        width = (before[0].hi - before[0].lo) * 0.4
        looks = ((before, FIRST, "o", "//", -width / 2), (after, LAST, "s", "", width / 2))
        for label, (rows, colour, marker, hatch, shift) in zip(labels, looks, strict=True):
            filled = [row for row in rows if row.n]
            top.errorbar(
                [row.mean_p for row in filled], [row.mean_y for row in filled], _binomial(filled), color=colour,
                marker=marker, linewidth=1.6, markersize=6, markeredgecolor="white", elinewidth=1,
                label=f"{label} (n = {sum(row.n for row in rows):,})",
            )  # fmt: skip
            centres = [(row.lo + row.hi) / 2 + shift for row in rows]
            bottom.bar(centres, [row.n for row in rows], width, color=colour, hatch=hatch, edgecolor="white")
        top.set(title="Reliability, 95% intervals", ylabel="Share of Yes", xlim=(0, 1), ylim=(-0.01, 1.01))
        top.legend(loc="upper left")
        bottom.set(xlabel="Stated probability of Yes", ylabel="Answers in bin")
        return saved(figure, path)


def by_domain(
    before: Sequence[DomainRow],
    after: Sequence[DomainRow],
    path: Path,
    labels: tuple[str, str] = ("before", "after"),
) -> "Figure":
    """Brier score by domain with n and 95% intervals, best domain after training on top.

    Domains that only one side has are left out: there is nothing to compare.
    """
    earlier = {row.domain: row for row in before}
    order = sorted((row for row in after if row.domain in earlier), key=lambda row: -row.brier)
    first = [earlier[row.domain] for row in order]
    with styled():
        figure = sheet(7.6, 1.6 + 0.42 * len(order))
        ax = figure.subplots()
        for place, (start, end) in enumerate(zip(first, order, strict=True)):
            ax.plot([start.brier, end.brier], [place + 0.14, place - 0.14], color=QUIET, linewidth=0.8, zorder=1)
        for label, rows, colour, marker, shift in zip(
            labels, (first, order), (FIRST, LAST), "os", (0.14, -0.14), strict=True
        ):
            ax.errorbar(
                [row.brier for row in rows], [place + shift for place in range(len(rows))], xerr=_lengths(rows),
                color=colour, marker=marker, linestyle="", markersize=6.5, markeredgecolor="white", elinewidth=1.4,
                label=label,
            )  # fmt: skip
        ax.axvline(HALF, color=QUIET, linestyle="--", linewidth=1.2, label="always 0.5")
        names = [f"{row.domain}  (n = {_span(start.n, row.n)})" for start, row in zip(first, order, strict=True)]
        ax.set_yticks(range(len(order)), names)
        ax.set(title=f"Brier score by domain, 95% intervals, n = {sum(row.n for row in order):,}")
        ax.set(xlabel="Brier score (lower is better)", ylim=(-0.6, len(order) - 0.4))
        ax.set_xlim(left=0)
        ax.grid(axis="x")
        ax.grid(False, axis="y")
        figure.legend(loc="outside lower center", ncols=3)
        return saved(figure, path)


def strategies(
    first: Mapping[str, Mapping[str, float]],
    last: Mapping[str, Mapping[str, float]],
    path: Path,
    labels: tuple[str, str] = ("before", "after"),
) -> "Figure":
    """Share (0..1) of each strategy by domain as stacked bars: domain -> strategy -> share.

    A strategy that a domain does not name was not used there.
    """
    domains = sorted(set(first) | set(last), reverse=True)
    names = sorted({name for side in (first, last) for shares in side.values() for name in shares})
    with styled():
        figure = sheet(9.6, 1.8 + 0.36 * len(domains))
        for ax, side, label in zip(figure.subplots(1, 2, sharey=True), (first, last), labels, strict=True):
            left = [0.0] * len(domains)
            for i, name in enumerate(names):
                shares = [side.get(domain, {}).get(name, 0.0) for domain in domains]
                look = {"color": SHADES[i % len(SHADES)], "hatch": HATCHES[i % len(HATCHES)]}
                ax.barh(domains, shares, 0.74, left=left, edgecolor="white", label=name, **look)
                left = [a + b for a, b in zip(left, shares, strict=True)]
            ax.set(
                title=f"Strategies, {label}", xlabel="Share of answers", xlim=(0, 1), ylim=(-0.6, len(domains) - 0.4)
            )
            ax.grid(False)
        handles, texts = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=min(4, len(texts)))
        return saved(figure, path)


def _curve(
    ax: "Axes",
    rows: Sequence[CheckpointRow],
    field: str,
    *,
    colour: str,
    marker: str,
    line: str,
    label: str,
    shift: float = 0.0,
) -> None:
    values = [getattr(row, field) for row in rows]
    low = [value - getattr(row, f"{field}_low") for value, row in zip(values, rows, strict=True)]
    high = [getattr(row, f"{field}_high") - value for value, row in zip(values, rows, strict=True)]
    ax.errorbar(
        [row.version + shift for row in rows], values, [low, high], color=colour, marker=marker, linestyle=line,
        linewidth=2, markersize=6.5, markeredgecolor="white", elinewidth=1.3, label=label,
    )  # fmt: skip


def _calibration_curve(ax: "Axes", rows: Sequence[CheckpointRow]) -> None:
    """ECE, and at each point the range in which a calibrated forecaster stays 95 times of 100."""
    versions, errors, noise = zip(*((row.version, row.ece, row.ece_noise) for row in rows), strict=True)
    ax.bar(versions, noise, 1.0, color=FAINT, label="noise: 95% of calibrated forecasters stay inside")
    ax.plot(versions, errors, color=LAST, marker="o", linewidth=2, markersize=6.5, markeredgecolor="white")
    ax.set(title=_movement("Calibration error", rows, "ece"), ylabel="ECE of P(Yes), 10 bins")
    known = [value for value in (*errors, *noise) if math.isfinite(value)]
    ax.set_ylim(0, 1.25 * max(known, default=0.2))  # headroom for the legend
    ax.legend(loc="upper right")


def _movement(title: str, rows: Sequence[CheckpointRow], field: str) -> str:
    return f"{title}: {getattr(rows[0], field):.3f} \N{RIGHTWARDS ARROW} {getattr(rows[-1], field):.3f}"


def _level(ax: "Axes", value: float, label: str, line: str) -> None:
    ax.axhline(value, color=QUIET, linestyle=line, linewidth=1.2, label=label)


def _lengths(rows: Sequence[DomainRow]) -> list[list[float]]:
    return [[row.brier - row.low for row in rows], [row.high - row.brier for row in rows]]


def _binomial(rows: Sequence[ReliabilityRow]) -> list[list[float]]:
    """Wilson's 95% interval of each share of Yes, as lengths below and above it (Wilson 1927)."""
    z2 = 1.96**2
    lower, upper = [], []
    for row in rows:
        middle = (row.mean_y + z2 / (2 * row.n)) / (1 + z2 / row.n)
        half = math.sqrt(z2 * (row.mean_y * (1 - row.mean_y) + z2 / (4 * row.n)) / row.n) / (1 + z2 / row.n)
        lower.append(max(0.0, row.mean_y - middle + half))
        upper.append(max(0.0, middle + half - row.mean_y))
    return [lower, upper]


def _span(a: int, b: int) -> str:
    return f"{a:,}" if a == b else f"{min(a, b):,} to {max(a, b):,}"


def _words(name: str) -> str:
    return name.replace("_", " ")
