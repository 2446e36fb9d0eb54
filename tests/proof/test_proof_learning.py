"""The parts on learning, controls and 32 days: rows and pages from runs that a scripted policy played."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cycle_parts import opened, play, small_config
from matplotlib.image import imread
from proof import controls, course, learning, long, permuted
from proof.parts import Row
from proof.results import HeldOut, above, better_by, holds, lower_by, on_common, read, restricted

from futureworld.agents.scripted import BYTES, ScriptedEngine, search_then
from futureworld.config import Config
from futureworld.cycle.evaluate import answer_more, evaluate
from futureworld.errors import RunError
from verl_tool_future.pocket.dialogue import HABITS, answer_text

SMALL = ("evaluate.days=2", "evaluate.per_day=8", "evaluate.end_samples=2", "evaluate.bootstrap=100")
HABIT_SHOWN = HABITS[2]  # follow distance


def pieces(ids: Sequence[int]) -> list[str]:
    """The texts of the scripted policy's tokens: `BYTES` bytes each."""
    return [
        one.to_bytes(BYTES + 1, "big").lstrip(b"\0").decode(errors="ignore") if one < 256**BYTES else "" for one in ids
    ]


def says(p: float) -> Callable[[str], float]:
    return lambda _: p


def played(tmp_path: Path, config: Config, p: float = 0.7) -> tuple[HeldOut, Row, Row, Row]:
    """A finished run of a policy that always says `p`: its answers and its rows."""
    with opened(tmp_path, config) as (run, clock, learner):
        play(run, clock, learner, says(p))
        evaluate(run, lambda: ScriptedEngine(search_then(says(p))))
        return read(run), learning.row(run), long.row(run, pieces), long.counts(run)


@pytest.fixture(scope="module")
def run_of_seven(tmp_path_factory: pytest.TempPathFactory) -> tuple[HeldOut, Row, Row, Row]:
    folder = tmp_path_factory.mktemp("seven")
    return played(folder, small_config(folder, *SMALL))


def test_rows_say_what_a_constant_is_worth(run_of_seven: tuple[HeldOut, Row, Row, Row]):
    held, row, _, _ = run_of_seven
    last = row["at"][str(row["last"])]
    expected = float(np.mean((0.7 - held.y) ** 2))
    assert (row["questions"], row["samples"], row["days"]) == (16, 2, 2)
    assert last["single"]["brier"][0] == pytest.approx(expected, abs=1e-5)
    assert last["single"]["auc"][0] == 0.5
    assert last["single"]["parse_rate"] == 1.0
    assert (
        last["single"]["skill"] == pytest.approx((0.25 - expected) / (0.25 - row["baselines"][row["best"]]), abs=1e-3)
        or row["baselines"][row["best"]] >= 0.25
    )
    assert last["below"]["mean"]["day 0"]["difference"] == [0.0, 0.0, 0.0]
    assert last["below"]["single"]["always 0.5"]["difference"][0] == pytest.approx(0.25 - expected, abs=1e-5)
    assert [point["version"] for point in row["curve"]] == sorted(held.answers)
    assert row["checks"] == {}  # nothing is asked for after two days


def test_a_scripted_answer_names_no_habit(run_of_seven: tuple[HeldOut, Row, Row, Row]):
    _, row, _, _ = run_of_seven
    assert all(shares == {"other": 1.0} for shares in row["habits"]["shares"]["after"].values())
    assert row["habits"]["agreement"]["after"]["difference"] == [0.0, 0.0, 0.0]
    assert {"before", "after", "n", "clusters", "habits"} <= set(next(iter(row["habits"]["domains"].values())))


def test_course_of_a_policy_that_never_differs(run_of_seven: tuple[HeldOut, Row, Row, Row]):
    _, _, row, counted = run_of_seven
    first = row["course"][0]
    assert [day["version"] for day in row["course"]] == [0, 0]
    assert (first["rollouts"], first["group"]) == (36, 3.0)
    assert (first["different_p"], first["std_p"], first["different_habits"]) == (1.0, 0.0, 1.0)
    assert first["open"]["readable"] == 0.0  # "My answer is ..." is not the sentence
    assert first["open"]["call"] > 0
    assert counted["trained_late"] == 0
    assert counted["asked"] == 24


def test_pages_are_drawn_from_rows_alone(run_of_seven: tuple[HeldOut, Row, Row, Row], tmp_path: Path):
    held, row, days, counted = run_of_seven
    late = long.late_row(held, held) | {"counts": {"used": counted, "thrown": counted}}
    pages = [
        learning.section({"seed 0": row}, tmp_path),
        long.section({"seed 0": days, "late outcomes, seed 0": late}, tmp_path),
        controls.section(
            {
                "outcomes permuted, seed 0": controls.permuted_row(held, held),
                "observations shuffled, seed 0": controls.shuffled_row(held, held),
                "outcomes permuted, over 3 runs": permuted.runs_row(
                    [permuted.run_figures(0, held, x) for x in (0.0, 0.1, 0.2)], [0.7]
                ),
                "kl": controls.compared(held, held),
            },
            tmp_path,
        ),
    ]
    assert all(f"{tmp_path.name}/{picture.name}" in "".join(pages) for picture in tmp_path.glob("*.png"))
    assert len(list(tmp_path.glob("*.png"))) == 7
    for picture in tmp_path.glob("*.png"):
        assert picture.stat().st_size < 100_000
        assert imread(picture).ndim == 3
    assert "nan" not in "".join(pages)


def test_a_checkpoint_answers_more_often_and_keeps_what_it_said(tmp_path: Path):
    with opened(tmp_path, small_config(tmp_path, *SMALL, "evaluate.end_samples=1")) as (run, clock, learner):
        play(run, clock, learner)
        evaluate(run, lambda: ScriptedEngine(search_then(says(0.7))))
        summary = answer_more(run, lambda: ScriptedEngine(search_then(says(0.2))), 1, 3)
        assert summary["status"] == {"ok": 48}
        assert read(run).answers[1] == [[0.7, 0.2, 0.2]] * 16
        assert len(read(run).answers[2][0]) == 1
        with pytest.raises(RunError, match="no checkpoint 9"):
            answer_more(run, lambda: ScriptedEngine(search_then(says(0.2))), 9, 3)


def test_permuted_runs_are_judged_over_runs():
    """Mean 0.5 and standard deviation 0.08165 of four runs: 3.1824 x 0.08165 / 2 = 0.12992 to each side."""

    def made(auc: float, below: float, chance: float = 0.0) -> dict[str, Any]:
        return {"seed": 0, "chance": chance, "auc": [0.5, auc], "brier": [0.33, 0.3], "below_constant": below}

    drawn = zip((0.5, 0.6, 0.4, 0.5), (0.0, 0.02, -0.03, -0.01), (0.0, 0.1, -0.1, 0.0), strict=True)
    runs = [made(auc, below, chance) for auc, below, chance in drawn]
    row = permuted.runs_row(runs, [0.7, 0.65])
    assert row["auc"] == [0.5, 0.37008, 0.62992]
    assert row["auc_without_chance"] == [0.5, 0.5, 0.5]  # 0.5 + chance, exactly
    assert all(row["checks"].values())
    drifted = [made(auc, 0.02 + auc / 1000, x) for auc, x in ((0.56, 0.0), (0.57, 0.1), (0.58, 0.2), (0.66, 0.25))]
    assert list(permuted.runs_row(drifted, [0.7, 0.65])["checks"].values()) == [False, True, False, False]


def test_a_line_through_runs_has_its_interval_where_nothing_agrees():
    """y = 1 + 2x misses (0, 1, 2) -> (1, 4, 5) by -1/3, 2/3, -1/3: 4/3 at 0, s^2 = 2/3, error sqrt(2/3 x 5/6)."""
    value, low, high = permuted.at_zero([0.0, 1.0, 2.0], [1.0, 4.0, 5.0])
    assert value == pytest.approx(4 / 3, abs=1e-5)
    assert high - value == pytest.approx(12.7062 * math.sqrt(2 / 3 * 5 / 6), abs=1e-3)
    assert value - low == pytest.approx(high - value, abs=2e-5)


def test_two_runs_are_compared_on_the_questions_they_share(run_of_seven: tuple[HeldOut, Row, Row, Row]):
    held = run_of_seven[0]
    fewer = restricted(held, [3, 1, 8])
    one, other = on_common(held, fewer)
    assert [q.id for q in one.questions] == [q.id for q in other.questions] == [held.questions[i].id for i in (1, 3, 8)]
    assert better_by(held, fewer)["questions"] == 3
    assert better_by(held, fewer)["single"]["difference"] == [0.0, 0.0, 0.0]
    other.y[0] = 1.0 - other.y[0]
    with pytest.raises(RunError, match="disagree on an outcome"):
        on_common(held, other)
    with pytest.raises(RunError, match="share no held-out question"):
        on_common(restricted(held, [0]), restricted(held, [1]))


def test_a_difference_by_hand(run_of_seven: tuple[HeldOut, Row, Row, Row]):
    two = restricted(run_of_seven[0], [0, 1])
    found = lower_by(two, np.array([0.5, 0.25]), np.array([0.25, 0.25]))
    assert found["difference"][0] == 0.125
    assert above([0.1, 0.01, 0.2])
    assert not above([0.1, None, None])
    assert holds([0.5, 0.4, 0.6], 0.5)
    assert not holds([0.5, 0.51, 0.6], 0.5)


def test_segments_of_the_sentence_by_hand():
    text = answer_text("fuel", HABIT_SHOWN, "yes by 0.2", 0.58)
    tokens = ["For ", "fuel", " I follow ", "distance: ", "yes", " by 0.2", ". \\boxed{0.", "5", "8", "}", "<end>"]
    assert "".join(tokens[:-1]) == text
    sentence = course.SENTENCE.search("".join(tokens))
    assert sentence is not None
    assert course.places(tokens, sentence) == [
        "words", "domain", "habit", "habit", "fact", "fact", "words", "p", "p", "words", "words",
    ]  # fmt: skip


def test_skill_is_asked_for_after_eight_and_after_thirty_two_days():
    def at(single: float, mean: float, low: float) -> Row:
        return {
            "single": {"skill": single},
            "mean": {"skill": mean},
            "below": {"mean": {"persistence": {"difference": [0.02, low, 0.03]}}},
        }

    found = learning.checks({"8": at(0.3, 0.49, 0.1), "32": at(0.61, 0.8, -0.001)}, 32)
    assert list(found.values()) == [False, True, True, True, False]
    assert next(iter(found)) == "skill of the mean of four at least 0.5 after 8 days"


def test_the_long_form_names_every_measurement_once():
    keys = [task.key for part in (learning, long, controls) for task in part.tasks(short=False)]
    assert len([task.key for task in learning.tasks(short=False)]) == 6
    assert len(keys) == 6 + 9 + 12
    assert all(len({t.key for t in part.tasks(short)}) == len(part.tasks(short))
               for part in (learning, long, controls) for short in (True, False))  # fmt: skip


def test_entropy_of_nothing_is_not_zero():
    assert math.isnan(course.mean([]))
    assert course.left_open([], pieces) == {"readable": 0.0}
