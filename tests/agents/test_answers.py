"""parse_probability against its documented table, hostile text and random numbers."""

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from futureworld.agents.answers import parse_probability

TABLE = (Path(__file__).parents[2] / "docs" / "answers.md").read_text()
ANSWERS, NONE = (
    re.findall(r"^\| `(.+)` \| (.+) \|$", part, re.MULTILINE)
    for part in TABLE.split("## Answers")[1].split("## No answer")
)


def test_the_table_was_read() -> None:
    assert len(ANSWERS) == 30
    assert len(NONE) == 33


@pytest.mark.parametrize(("turn", "expected"), ANSWERS)
def test_l12_l20_answers_of_the_table(turn: str, expected: str) -> None:
    answer = parse_probability(turn)
    assert (answer.probability, answer.problem) == (float(expected), None)


@pytest.mark.parametrize(("turn", "why"), NONE)
def test_l1_l13_no_answers_of_the_table(turn: str, why: str) -> None:
    answer = parse_probability(turn)
    assert (answer.probability, answer.problem) == (None, why)


def test_empty_text_has_no_box() -> None:
    assert parse_probability("").problem == "no box"


def test_l11_last_box_counts_and_its_text_is_kept() -> None:
    answer = parse_probability(r"It is \boxed{0.5}. No: \boxed{ \text{0.7} }")
    assert (answer.text, answer.probability) == (r"\text{0.7}", 0.7)


@given(st.floats(0, 1))
def test_any_probability_survives_formatting(value: float) -> None:
    assert parse_probability(f"\\boxed{{{value!r}}}").probability == value


@given(st.integers(0, 1000))
def test_percent_is_the_nearest_double(tenths: int) -> None:
    assert parse_probability(f"\\boxed{{{tenths / 10}\\%}}").probability == float(f"{tenths}e-3")


@given(st.floats().filter(lambda value: not 0 <= value <= 1))
def test_l1_nothing_outside_is_an_answer(value: float) -> None:
    assert parse_probability(f"\\boxed{{{value!r}}}").probability is None


@given(st.text(alphabet="\\boxed{}$%.0123456789eE- \ntext<think>/"))
def test_any_text_gives_a_probability_or_a_problem(text: str) -> None:
    answer = parse_probability("\\boxed{" + text)
    assert (answer.probability is None) != (answer.problem is None)
    assert answer.probability is None or 0 <= answer.probability <= 1


@pytest.mark.parametrize(
    "piece",
    ["\\boxed{", "{", "\\boxed{{}", "\\boxed ", "\\boxed" + " " * 500, "\\text{", "9", "$", "<think>", "%", "\\"],
)
def test_f7_a_megabyte_of_hostile_text_takes_under_a_second(piece: str) -> None:
    text = "\\boxed{" + piece * (1_000_000 // len(piece)) + "}"
    start = time.perf_counter()
    parse_probability(text)
    assert time.perf_counter() - start < 1.0
