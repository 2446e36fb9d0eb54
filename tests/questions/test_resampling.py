import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hand_world import DAY, rows, series, world
from hypothesis import given
from hypothesis import strategies as st

from futureworld.clock import Schedule
from futureworld.config import QuestionsConfig
from futureworld.questions.ask import ask
from futureworld.questions.resample import fill, resample, spread
from futureworld.records import Target, TargetKind
from futureworld.wording import Operator


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_water_filling_by_hand():
    # 96 over five: 5 and 10 give all, (96 - 15) / 3 = 27 each.
    shares = fill({"a": 5, "b": 10, "c": 90, "d": 61, "e": 40}, 96, seeded())
    assert shares == {"a": 5, "b": 10, "c": 27, "d": 27, "e": 27}


def test_what_an_even_split_leaves_goes_to_different_domains():
    shares = fill({"a": 9, "b": 9, "c": 9}, 11, seeded())
    assert sorted(shares.values()) == [3, 4, 4]
    assert {tuple(fill({"a": 9, "b": 9, "c": 9}, 11, seeded(s)).values()) for s in range(20)} == {
        (3, 4, 4),
        (4, 3, 4),
        (4, 4, 3),
    }


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 50), max_size=12), st.integers(0, 400), st.integers(0, 9))
def test_water_filling_sums_exactly_and_is_level(available, total, seed):
    shares = fill(available, total, seeded(seed))
    assert sum(shares.values()) == min(total, sum(available.values()))
    assert all(shares[name] <= available[name] for name in available)
    short = [shares[name] for name in available if shares[name] < available[name]]
    if short:
        assert max(shares.values()) <= min(short) + 1


def about(make_question, name: str, text: str, **changes):
    target = Target(TargetKind.SERIES, changes.pop("of", name), name, DAY, "UTC")
    return replace(make_question(name), text=text, target=target, last_values=(1.0,), threshold=0.5, **changes)


def test_the_farthest_text_comes_next(make_question):
    pool = [
        about(make_question, "a", "price of gasoline in Texas"),
        about(make_question, "b", "price of gasoline in Texas today"),
        about(make_question, "c", "earthquakes near Alaska"),
    ]
    for seed in range(5):
        chosen = {question.id for question in spread(pool, 2, seeded(seed))}
        assert "c" in chosen


def test_first_thresholds_come_before_second_ones(make_question):
    pool = [about(make_question, f"{name}{i}", f"index {name}{i}", of=name) for i in range(2) for name in "abcd"]
    assert {question.id for question in spread(pool, 4, seeded())} == {"a0", "b0", "c0", "d0"}


def test_sides_stay_even_in_a_sample(make_question):
    pool = [
        about(make_question, f"q{i}", f"text {i}", operator=Operator.ABOVE if i % 5 else Operator.BELOW)
        for i in range(40)
    ]
    assert Counter(q.operator for q in spread(pool, 10, seeded())) == {Operator.ABOVE: 5, Operator.BELOW: 5}


def test_resampling_is_exact_seeded_and_by_id(make_question):
    pool = [about(make_question, f"q{i:02}", f"text {i}", domain="xyz"[i % 3]) for i in range(30)]
    chosen = resample(pool, 10, seeded(1))
    assert chosen == resample(pool, 10, seeded(1))
    assert [q.id for q in chosen] == sorted({q.id for q in chosen})
    assert len(chosen) == 10
    assert len(resample(pool, 99, seeded())) == 30


@pytest.mark.parametrize("per_day", [96, 1500])
def test_two_thousand_candidates_pass_all_stages_in_five_seconds(per_day):
    random = seeded()
    names = [f"s{i:04}" for i in range(1000)]
    found = world(
        [series(name, domain=f"d{i % 3}") for i, name in enumerate(names)],
        [row for name in names for row in rows(name, random.normal(100, 10, 40).round(2).tolist())],
    )
    started = time.process_time()
    result = ask(found, DAY, Schedule(), QuestionsConfig(per_day=per_day), 0)
    assert time.process_time() - started < 5
    assert result.candidates == 2000
    assert len(result.questions) == per_day
