import dataclasses
import math
from datetime import date

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.image import imread
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from futureworld.evaluation.calibration import reliability as reliability_rows
from futureworld.evaluation.table import BaselineRow, CheckpointRow, DomainRow
from futureworld.pages import plots
from futureworld.pages.drawing import DPI

Floats = NDArray[np.float64]


def checkpoint(version: int, brier: float) -> CheckpointRow:
    return CheckpointRow(
        version=version, day=date(2026, 5, 4), n=560, accuracy=0.8 - brier, brier=brier, auc=0.9 - brier,
        auc_low=0.85 - brier, auc_high=0.93 - brier, ece=brier / 2, parse_rate=1.0, brier_low=brier - 0.02,
        brier_high=brier + 0.03, accuracy_low=0.75 - brier, accuracy_high=0.84 - brier, ece_noise=0.05, clusters=150,
    )  # fmt: skip


ROWS = [checkpoint(version, brier) for version, brier in enumerate([0.32, 0.27, 0.21])]
BASELINES = [
    BaselineRow("always_half", 560, 0.49, 0.25, 0.5, 0.01),
    BaselineRow("domain_side", 560, 0.7, 0.2, 0.7, 0.02),
]


def points(ax: Axes, label: str) -> tuple[Floats, Floats, Floats]:
    """x, y and the ends of the bars of the errorbar with this label."""
    bars = next(c for c in ax.containers if isinstance(c, ErrorbarContainer) and c.get_label() == label)
    line, _, (sticks,) = bars.lines
    assert line is not None
    assert isinstance(sticks, LineCollection)
    ends = np.array([segment[:, 1] for segment in sticks.get_segments()])
    return np.asarray(line.get_xdata(), float), heights(line), ends


def heights(line: Line2D) -> Floats:
    return np.asarray(line.get_ydata(), float)


def assert_png(path, width, height):
    assert path.read_bytes().startswith(b"\x89PNG")
    image = imread(path)
    assert image.shape[:2] == (round(height * DPI), round(width * DPI))
    assert image[..., :3].std() > 0.02  # something was drawn


def test_curves_show_the_rows_that_were_given(tmp_path):
    figure = plots.curves(ROWS, BASELINES, tmp_path / "new" / "curves.png", [ROWS[0], ROWS[2]])
    assert_png(tmp_path / "new" / "curves.png", 10.0, 7.4)
    brier, right, order, error = figure.axes
    for ax, field in ((brier, "brier"), (right, "accuracy"), (order, "auc")):
        x, y, ends = points(ax, "single sample")
        assert list(x) == [0, 1, 2]
        np.testing.assert_allclose(y, [getattr(row, field) for row in ROWS])
        limits = [(getattr(row, f"{field}_low"), getattr(row, f"{field}_high")) for row in ROWS]
        np.testing.assert_allclose(ends, limits)
        assert list(points(ax, "mean of samples")[1]) == [getattr(ROWS[0], field), getattr(ROWS[2], field)]
    assert list(heights(error.lines[0])) == [row.ece for row in ROWS]
    noise = next(c for c in error.containers if isinstance(c, BarContainer))
    assert [bar.get_height() for bar in noise] == [0.05] * 3


def test_l21_the_brier_plot_shows_always_half_and_the_best_baseline(tmp_path):
    figure = plots.curves(ROWS, BASELINES, tmp_path / "curves.png")
    levels = {line.get_label(): heights(line)[0] for line in figure.axes[0].lines}
    assert levels["always 0.5"] == 0.25
    assert levels["best baseline: domain side"] == 0.2
    assert figure.axes[0].get_ylabel() == "Brier score (lower is better)"
    assert "n = 560 answers" in figure.get_suptitle()
    assert "95% intervals over 150 clusters" in figure.get_suptitle()
    assert "0.320 \N{RIGHTWARDS ARROW} 0.210" in figure.axes[0].get_title(loc="left")


def test_curves_draw_checkpoints_without_intervals_or_calibration(tmp_path):
    nan = math.nan
    bare = dataclasses.replace(
        ROWS[0], auc=nan, auc_low=nan, auc_high=nan, ece=nan, ece_noise=nan, brier_low=nan, brier_high=nan
    )
    plots.curves([bare], BASELINES, tmp_path / "bare.png")
    assert (tmp_path / "bare.png").stat().st_size > 10_000


def test_curves_name_both_sizes_where_checkpoints_differ(tmp_path):
    rows = [dataclasses.replace(ROWS[0], n=2240), *ROWS[1:]]
    assert "n = 560 to 2,240 answers" in plots.curves(rows, BASELINES, tmp_path / "x.png").get_suptitle()


def test_reliability_shows_shares_and_counts(tmp_path):
    before = reliability_rows([0.2, 0.2, 0.2, 0.8, 0.8], [0, 0, 1, 1, 1])
    after = reliability_rows([0.05, 1.0], [0, 1])
    figure = plots.reliability(before, after, tmp_path / "reliability.png", ("day 0", "day 8"))
    assert_png(tmp_path / "reliability.png", 6.4, 6.8)
    top, bottom = figure.axes
    x, y, ends = points(top, "day 0 (n = 5)")
    np.testing.assert_allclose(x, [0.2, 0.8])
    np.testing.assert_allclose(y, [1 / 3, 1.0])
    np.testing.assert_allclose(ends, [[0.0615, 0.7923], [0.3424, 1.0]], atol=1e-4)  # Wilson, 1 of 3 and 2 of 2
    np.testing.assert_allclose(points(top, "day 8 (n = 2)")[1], [0.0, 1.0])
    counts = [[bar.get_height() for bar in bars] for bars in bottom.containers]
    assert counts == [[row.n for row in before], [row.n for row in after]]
    assert bottom.get_xlabel() == "Stated probability of Yes"


def test_by_domain_pairs_domains_and_puts_the_best_on_top(tmp_path):
    before = [
        DomainRow("fuel", 40, 0.3, 0.2, 0.4),
        DomainRow("chess", 60, 0.31, 0.25, 0.36),
        DomainRow("gone", 1, 0.1, 0, 1),
    ]
    after = [DomainRow("chess", 60, 0.2, 0.15, 0.26), DomainRow("fuel", 44, 0.15, 0.1, 0.2)]
    figure = plots.by_domain(before, after, tmp_path / "domains.png", ("day 0", "day 8"))
    (ax,) = figure.axes
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["chess  (n = 60)", "fuel  (n = 40 to 44)"]
    assert list(points(ax, "day 0")[0]) == [0.31, 0.3]
    assert list(points(ax, "day 8")[0]) == [0.2, 0.15]
    assert "n = 104" in ax.get_title(loc="left")
    assert (tmp_path / "domains.png").stat().st_size > 10_000


def test_strategies_stack_shares_by_domain(tmp_path):
    first = {"fuel": {"follow": 0.4, "oppose": 0.6}, "chess": {"flat": 1.0}}
    last = {"fuel": {"follow": 1.0}, "chess": {"follow": 0.5, "flat": 0.5}}
    figure = plots.strategies(first, last, tmp_path / "strategies.png", ("day 0", "day 8"))
    for ax, shares in zip(figure.axes, (first, last), strict=True):
        domains = [tick.get_text() for tick in ax.get_yticklabels()] or ["fuel", "chess"]
        for bars in ax.containers:
            assert isinstance(bars, BarContainer)
            widths = dict(zip(["fuel", "chess"], [bar.get_width() for bar in bars], strict=True))
            name = str(bars.get_label())
            assert widths == {domain: shares[domain].get(name, 0.0) for domain in ("fuel", "chess")}
        ends = [bar.get_x() + bar.get_width() for bar in ax.containers[-1]]
        assert ends == pytest.approx([1.0] * len(domains))
    assert (tmp_path / "strategies.png").stat().st_size > 10_000
