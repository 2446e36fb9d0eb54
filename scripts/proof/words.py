"""Figures as the page writes them."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from proof.results import NARROW, Figures

NONE = "-"


def number(value: float | None, digits: int = 3) -> str:
    return NONE if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 3) -> str:
    return NONE if value is None else f"{value:+.{digits}f}"


def percent(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.0f}%"


def within(found: Sequence[float | None], digits: int = 3) -> str:
    """`[estimate, low, high]` as estimate [low, high]."""
    return f"{number(found[0], digits)} [{number(found[1], digits)}, {number(found[2], digits)}]"


def change(found: Sequence[float | None], digits: int = 3) -> str:
    return f"{signed(found[0], digits)} [{signed(found[1], digits)}, {signed(found[2], digits)}]"


def difference(found: Figures) -> tuple[str, str, str]:
    """A paired difference: with its interval over series, the interval over days, the numbers of both."""
    low, high = found["days"]
    clusters = " / ".join(clusters_of(n) for n in found["clusters"])
    return change(found["difference"]), f"[{signed(low)}, {signed(high)}]", clusters


def clusters_of(n: int) -> str:
    """The number of clusters; a star where it is too small for an interval to be trusted."""
    return f"{n}*" if n < NARROW else f"{n}"


def star_note(numbers: Iterable[int]) -> str:
    """What the star means, where there is one."""
    if all(n >= NARROW for n in numbers):
        return ""
    return f"\\* fewer than {NARROW} clusters: the interval is too narrow."


def average(values: Iterable[float | None]) -> float | None:
    """The mean of those that are there; None of none."""
    found = [value for value in values if value is not None]
    return fmean(found) if found else None


def span(values: Iterable[float | None], digits: int = 3) -> str:
    """The smallest and the largest value."""
    found = sorted({number(value, digits) for value in values if value is not None})
    return NONE if not found else found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
