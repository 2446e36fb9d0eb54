"""It is fast: against plain clients of the same engine and verl's own step, by stages, and as days grow."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from futureworld.errors import RunError
from proof.parts import Row, Rows, Task, table
from proof.plays import eight_days
from proof.speed_growth import STAGES

TITLE = "It is fast"

SIZES, SHORT_SIZES = (100, 1000, 10_000), (100, 1000)
MOST_GROWTH = 12.0
"""Ten times the questions may take so many times the seconds, beyond a constant."""
CONSTANT = 0.5
"""Seconds that a stage may take at any size."""
FLAT_KB = 256.0
"""Memory is flat where another question of a day costs at most so many kB at the peak (10,000: 2.5 GB)."""
WALL_MINUTES = 10.0


def tasks(short: bool) -> Sequence[Task]:
    growing = Task("growth", partial(growth, sizes=SHORT_SIZES if short else SIZES))
    if short:
        return [growing]
    return [
        Task("predict, pocket policy", partial(predict_ratio, policy="pocket")),
        Task("predict, random policy", partial(predict_ratio, policy="random")),
        Task("update", update_ratio),
        Task("day", day_overhead),
        growing,
        Task("default replay", wall),
    ]


def predict_ratio(folder: Path, policy: str) -> Row:
    from proof import speed_engine

    return speed_engine.predict_ratio(folder, policy)


def update_ratio(folder: Path) -> Row:
    from proof import speed_update

    return speed_update.update_ratio(folder)


def day_overhead(folder: Path) -> Row:
    from proof import speed_engine

    return speed_engine.day_overhead(folder)


def growth(folder: Path, sizes: Sequence[int]) -> Row:
    """Every size in a process of its own."""
    found = [grown(folder / str(size), size) for size in sizes]
    checks = {}
    for small, large in pairwise(found):
        step = f"{small['questions']:,} to {large['questions']:,} questions"
        checks[f"{step}: every stage grows linearly"] = all(linear(small, large, stage) for stage in STAGES)
        checks[f"{step}: memory is flat"] = per_question_kb(small, large) <= FLAT_KB
    return {"kind": "growth", "sizes": found, "checks": checks}


def grown(folder: Path, questions: int) -> Row:
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "proof.speed_growth", str(folder), str(questions)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parent.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"{' '.join(command[1:])} failed: {done.stderr[-800:]}")
    row = json.loads(done.stdout.splitlines()[-1])
    if row["questions"] != questions:
        raise RunError(
            f"the made world gave {row['questions']} questions, {questions} were wanted; give it more series"
        )
    return row


def linear(small: Mapping[str, Any], large: Mapping[str, Any], stage: str) -> bool:
    times = large["questions"] / small["questions"]
    allowed = CONSTANT + small["stage_seconds"][stage] * MOST_GROWTH * times / 10
    return large["stage_seconds"][stage] <= allowed


def per_question_kb(small: Mapping[str, Any], large: Mapping[str, Any]) -> float:
    """Kilobytes that one more question of the day costs at the highest peak."""
    peaks = [max(size["peak_mb"].values()) for size in (small, large)]
    return (peaks[1] - peaks[0]) * 1024 / (large["questions"] - small["questions"])


def wall(folder: Path) -> Row:
    """Wall time of a default replay with its evaluation, and the seconds of its stages."""
    summary = json.loads((eight_days(0).run(folder) / "summary.json").read_text())
    stages: dict[str, float] = {}
    for day in summary["days"]:
        for stage, seconds in day["seconds_by_stage"].items():
            stages[stage] = round(stages.get(stage, 0.0) + seconds, 1)
    minutes = summary["wall_seconds"] / 60
    return {
        "kind": "wall",
        "days": len(summary["days"]),
        "minutes": round(minutes, 2),
        "stage_seconds": stages,
        "peak_mb": summary["peak_rss_mb"],
        "checks": {f"a default replay in {WALL_MINUTES:.0f} minutes": minutes <= WALL_MINUTES},
    }


GAINED = """Profiles of the loop named what to mend, the largest first. Predict: verl's balancer runs in this process
and no longer in an actor, which cost two Ray calls and an unpickled handle a turn; finished rollouts are committed
together, so that writing takes a twentieth of the loop; Python's collector no longer walks through the world's rows;
on the CPU vLLM's worker runs inside its core, which used to spin while the worker computed. Update: the output layer,
log-probs and entropy are taken at the policy's tokens alone, and linear layers use oneDNN. The plain client asks the
server's actor directly and does nothing else."""


def section(rows: Rows, pictures: Path) -> str:
    return "\n\n".join([GAINED, *(WORDS[row["kind"]](key, row) for key, row in rows.items())])


def ratio_words(key: str, row: Row) -> str:
    other = "plain" if row["kind"] == "predict" else "verl"
    unit = "tokens a second" if row["kind"] == "predict" else "seconds a step"
    lines = [(name, *(f"{value:,.1f}" for value in row[name])) for name in ("ours", other)]
    head = (f"{key}: {unit}", *(str(i + 1) for i in range(len(row["ours"]))))
    about = f"Ratio of the medians {row['ratio']:.3f}"
    if row["kind"] == "predict":
        about += f"; {row['rollouts']:,} rollouts, {row['turns']:,} turns, {row['tokens']:,} sampled tokens."
    else:
        about += (
            f"; {row['trajectories']:,} trajectories, {row['trained_tokens']:,} of {row['tokens']:,} tokens trained on."
        )
    return f"{table(head, lines)}\n\n{about}"


def overhead_words(key: str, row: Row) -> str:
    return (
        f"{row['days']} days after start-up: {row['wall_seconds']:.1f} s, of which the engine had a request for"
        f" {row['engine_seconds']:.1f} s and update steps took {row['update_seconds']:.1f} s; the rest is"
        f" {row['share']:.1%}."
    )


def growth_words(key: str, row: Row) -> str:
    head = ("questions a day", *(f"{stage} (s)" for stage in STAGES), "peak (MB)")
    lines = [
        (
            f"{size['questions']:,}",
            *(f"{size['stage_seconds'][stage]:.2f}" for stage in STAGES),
            f"{max(size['peak_mb'].values()):.0f}",
        )
        for size in row["sizes"]
    ]
    return (
        f"{table(head, lines)}\n\nA made world, a scripted policy with two rollouts a question, an update that trains"
        " nothing; evaluation is scoring alone. Linear: ten times the questions take at most"
        f" {MOST_GROWTH:.0f} times the seconds, beyond {CONSTANT} s. Flat: a further question of a day costs at most"
        f" {FLAT_KB:.0f} kB at the peak."
    )


def wall_words(key: str, row: Row) -> str:
    stages = ", ".join(f"{stage} {seconds:,.0f} s" for stage, seconds in row["stage_seconds"].items())
    return (
        f"{key}: {row['days']} days and the evaluation in {row['minutes']:.1f} minutes ({stages});"
        f" peak {row['peak_mb']:,} MB."
    )


WORDS = {
    "predict": ratio_words,
    "update": ratio_words,
    "overhead": overhead_words,
    "growth": growth_words,
    "wall": wall_words,
}
