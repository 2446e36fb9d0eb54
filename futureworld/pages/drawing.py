"""How every picture looks: two colours that differ in grey too, markers and hatches that differ in shape.

Matplotlib is imported inside: the rest of the package works without it. No global state is touched
(no pyplot).
"""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours; one is darker in grey; markers and hatches differ too.
LAST, FIRST = "#0072B2", "#D98200"
INK, QUIET, FAINT = "#222222", "#6B6B6B", "#E4E4E4"
MARKERS = "osD^v"
HATCHES = ("", "//", "..", "xx", "--", "\\\\", "oo", "++")
SHADES = ("#0072B2", "#E69F00", "#56B4E9", "#CC79A7", "#009E73", "#F0E442", "#D55E00", "#BBBBBB")
DPI = 160
COLOURS = 128

STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "hatch.linewidth": 0.6,
}


def styled() -> Any:
    """The style as a context: it holds for what is drawn inside."""
    import matplotlib as mpl

    return mpl.rc_context(STYLE)


def sheet(width: float, height: float) -> "Figure":
    """A figure of `width` x `height` inches that draws with Agg, whatever the machine's display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.14, h_pad=0.1))
    FigureCanvasAgg(figure)
    return figure


def saved(figure: "Figure", path: Path) -> "Figure":
    """Write the picture at `path`, its folder too where it is not there; returns the figure.

    A palette of 128 colours is more than a picture of few needs, and makes files a third as large.
    """
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = BytesIO()
    figure.savefig(drawn, dpi=DPI, facecolor="white", format="png")
    with Image.open(drawn) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, format="PNG", optimize=True)
    return figure
