"""The closing table of a replay, as text."""

from typing import Any

from futureworld.cycle.replay import Replayed
from futureworld.evaluation.table import CheckpointRow


def closing_table(replayed: Replayed) -> str:
    """Checkpoints, the mean of several samples, baselines, and what changed."""
    e, s = replayed.evaluation, replayed.summary
    samples = len(e.last[0])
    head = "                     n   accuracy   Brier   AUC  [95%]              ECE (noise)     parsed"
    lines = [f"{len(e.questions)} held-out questions, {e.paired.clusters} series and teams", "", head]
    lines += [_row(f"checkpoint {row.version}", row) for row in e.checkpoints]
    lines += [_row(f"mean of {samples}, v{row.version}", row) for row in (e.first_mean, e.last_mean)]
    lines += [
        f"{row.name.replace('_', ' '):18}{row.n:5}   {row.accuracy:8.3f}   {row.brier:.3f}   {row.auc:.3f}"
        f"{row.ece:26.3f}"
        for row in e.baselines
    ]
    lines += [
        "",
        _interval(f"Brier, checkpoint 0 minus {e.checkpoints[-1].version}, single", s["paired"]),
        _interval(f"Brier, always 0.5 minus mean of {samples}", s[f"paired_always_half_mean{samples}"]),
        f"share of the way from always 0.5 to {s['held_out']['best_baseline'].replace('_', ' ')}: "
        f"single {_number(s['skill'])}, mean of {samples} {_number(s[f'skill_mean{samples}'])}",
        "",
        *_strategies(s["strategies"]),
        "",
        f"{s['wall_seconds']:.0f} s, peak memory {s['peak_rss_mb'] / 1024:.1f} GB (all processes)",
    ]
    return "\n".join(lines)


def _row(name: str, row: CheckpointRow) -> str:
    auc = f"{row.auc:.3f} [{row.auc_low:.3f}, {row.auc_high:.3f}]"
    return (
        f"{name:18}{row.n:5}   {row.accuracy:8.3f}   {row.brier:.3f}   {auc}"
        f"   {row.ece:.3f} ({row.ece_noise:.3f})   {row.parse_rate:.3f}"
    )


def _interval(name: str, row: dict[str, Any]) -> str:
    return f"{name}: {row['mean_difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


def _strategies(strategies: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """Shares of the habits that answers name, over all domains equally."""
    names = sorted({name for side in strategies.values() for shares in side.values() for name in shares})
    lines = ["what answers say they do    first day   last day"]
    for name in names:
        ends = [[shares.get(name, 0.0) for shares in strategies[side].values()] for side in ("first", "last")]
        means = [sum(values) / max(1, len(values)) for values in ends]
        lines.append(f"  {name:24}  {means[0]:9.0%}  {means[1]:9.0%}")
    return lines
