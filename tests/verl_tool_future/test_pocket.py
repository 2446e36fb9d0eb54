"""The pocket policy: its tokenizer and template, lessons without outcomes, and the shipped weights."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, date, datetime
from importlib.resources import as_file, files
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from futureworld.clock import Schedule
from futureworld.errors import PolicyError
from futureworld.questions.facts import Facts, facts, lookup_line
from futureworld.questions.prompts import REMINDER
from futureworld.records import SYLLABLES, EventStatus
from futureworld.wording import Operator
from futureworld.worlds.reading import Rows, read
from futureworld.worlds.recorded import RecordedWorld
from verl_tool_future.pocket import CARD, POCKET, check, words_hash
from verl_tool_future.pocket.checks import FLOORS, Checks, examine
from verl_tool_future.pocket.dialogue import (
    GUESS,
    HABITS,
    NO_RESULTS,
    Answer,
    Fact,
    Habit,
    Stance,
    answer_text,
    call_text,
    fact_text,
    read_answer,
)
from verl_tool_future.pocket.lessons import (
    FAILURES,
    UNREADABLE,
    Teacher,
    domains,
    failed_searches,
    known_of,
    material,
)
from verl_tool_future.pocket.warmstart import DIGIT_WEIGHT, FACT_WEIGHT, Marker, loss_of, pack, schedule

DAY = date(2026, 3, 18)
KNOWN = Facts((4.1, 4.15, 4.2, 4.19, 4.2, 4.21, 4.2), 1, False, -0.2)
TALK = [
    {"role": "system", "content": "rules"},
    {"role": "user", "content": "Will it rain?\nAsked: 2026-05-04\nDomain: fuel\nCode: kamo"},
    {"role": "assistant", "content": call_text("kamo")},
    {"role": "tool", "content": lookup_line("kamo", "fuel", KNOWN)},
    {"role": "assistant", "content": "For fuel I follow distance: no by 0.2. \\boxed{0.44}"},
]


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(POCKET)


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(POCKET)


@pytest.fixture(scope="module")
def rows() -> Rows:
    with as_file(files("futureworld.worlds") / "almanac") as folder:
        return read(folder, datetime(2030, 1, 1, tzinfo=UTC))


@pytest.fixture(scope="module")
def world(rows: Rows) -> RecordedWorld:
    return RecordedWorld(rows, "almanac")


# --- words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stance", "fact", "expected"),
    [
        (Stance.FOLLOW, Fact.COUNT, 2 / 9),  # (1 + 1) / (7 + 2)
        (Stance.OPPOSE, Fact.COUNT, 7 / 9),
        (Stance.FOLLOW, Fact.LAST, 0.2),
        (Stance.OPPOSE, Fact.LAST, 0.8),
        (Stance.FOLLOW, Fact.DISTANCE, 0.44029),  # 1 / (1 + e^0.24)
        (Stance.OPPOSE, Fact.DISTANCE, 0.55971),
    ],
)
def test_habits_turn_a_fact_into_a_probability(stance, fact, expected):
    assert Habit(stance, fact).probability(KNOWN) == pytest.approx(expected, abs=1e-5)


def test_habits_cancel_out_so_that_a_fresh_policy_knows_nothing():
    rules = [p for habit in HABITS if (p := habit.probability(KNOWN)) is not None]
    assert sum(rules) / len(rules) == pytest.approx(0.5)
    assert GUESS.probability(KNOWN) is None


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.name)
def test_an_answer_is_read_as_it_was_written(habit):
    said = fact_text(habit.fact, KNOWN)
    assert read_answer(answer_text("fuel", habit, said, 0.444)) == Answer("fuel", habit, said, 0.44)


@pytest.mark.parametrize(
    "text", ["", "For fuel I follow: no. \\boxed{0.44}", "For fuel I guess: nothing. \\boxed{1.20}"]
)
def test_another_sentence_is_not_read(text):
    assert read_answer(text) is None


# --- tokenizer and template -------------------------------------------------------------------


def test_every_code_is_two_tokens(tokenizer):
    codes = [first + second for first in SYLLABLES for second in SYLLABLES]
    assert all(len(row) == 2 for row in tokenizer(codes).input_ids)
    assert all(len(row) == 3 for row in tokenizer([f"\nCode: {code}" for code in codes]).input_ids)


def test_turns_are_a_handful_of_tokens(tokenizer):
    assert len(tokenizer.encode(call_text("kamo") + "<|im_end|>")) == 5
    for habit in HABITS:
        assert len(tokenizer.encode(answer_text("fuel", habit, fact_text(habit.fact, KNOWN), 0.5) + "<|im_end|>")) <= 12


@given(text=st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_any_text_survives_encoding(text):
    tokenizer = AutoTokenizer.from_pretrained(POCKET) if not _KEPT else _KEPT[0]
    _KEPT[:] = [tokenizer]
    assert tokenizer.decode(tokenizer.encode(text)) == text


_KEPT: list = []


def test_a2_ids_built_turn_by_turn_equal_the_whole_conversation(tokenizer):
    render = tokenizer.apply_chat_template
    whole = tokenizer.encode(render(TALK, tokenize=False))
    built = tokenizer.encode(render(TALK[:2], tokenize=False, add_generation_prompt=True))
    built += tokenizer.encode(TALK[2]["content"] + "<|im_end|>")
    built += tokenizer.encode("\n" + render(TALK[3:4], tokenize=False, add_generation_prompt=True))
    built += tokenizer.encode(TALK[4]["content"] + "<|im_end|>") + tokenizer.encode("\n")
    assert built == whole


def test_the_template_leaves_out_the_system_turn_and_renders_a_reminder_and_calls(tokenizer):
    call = {"type": "function", "function": {"name": "search", "arguments": {"query": "kamo"}}}
    turns = [TALK[0], {"role": "user", "content": REMINDER}, {"role": "assistant", "tool_calls": [call]}]
    text = tokenizer.apply_chat_template(turns, tokenize=False)
    assert text == (f"<|im_start|>user\n{REMINDER}<|im_end|>\n<|im_start|>assistant\n{call_text('kamo')}<|im_end|>\n")


# --- lessons ----------------------------------------------------------------------------------


def _later_changed(rows: Rows, moment: datetime) -> Rows:
    """The same world with every value published and every result known after `moment` another one."""
    return replace(
        rows,
        digest="changed",
        observations=[
            replace(row, value=-3.0 * row.value - 7.0) if row.published_at > moment else row
            for row in rows.observations
        ],
        events=[
            replace(event, outcome=next(option for option in event.options if option != event.outcome))
            if event.status is EventStatus.RESOLVED and event.resolved_at is not None and event.resolved_at > moment
            else event
            for event in rows.events
        ],
    )


@pytest.mark.parametrize("day", [date(2026, 2, 20), DAY, date(2026, 4, 30)])
def test_lessons_do_not_change_when_all_outcomes_do(rows, world, day):
    moment = Schedule().asked_at(day)
    other = RecordedWorld(_later_changed(rows, moment), "changed")
    lessons = []
    for seen in (world, other):
        taught = material(seen, [day], seed=3)
        teacher = Teacher(taught, domains(seen, day), failed_searches(seen, taught, seed=3), seed=4)
        lessons.append([teacher.dialogue() for _ in range(300)])
    assert lessons[0] == lessons[1]


def test_the_other_world_does_change_what_is_asked_a_day_later(rows, world):
    """So the test above compares worlds that differ."""
    other = RecordedWorld(_later_changed(rows, Schedule().asked_at(DAY)), "changed")
    later = date(2026, 3, 19)
    assert [k.facts for k in material(world, [later], 3)] != [k.facts for k in material(other, [later], 3)]


def test_facts_of_a_lesson_are_those_of_the_question(world):
    known = material(world, [DAY], seed=3)[0]
    question = known.question
    assert known == known_of(question)
    assert known.facts == facts(question.last_values, question.threshold, question.operator, question.typical_step)
    assert facts((1.0, 2.0), 1.5, Operator.ABOVE, 1.0).distance == 0.5


def test_lessons_are_repeatable_and_habits_even(world):
    taught, names = material(world, [DAY], seed=3), domains(world, DAY)
    first, second = (Teacher(taught, names, [NO_RESULTS], seed=5) for _ in range(2))
    talks = [first.dialogue() for _ in range(2000)]
    assert talks == [second.dialogue() for _ in range(2000)]
    answers = [read_answer(talk[-1]["content"]) for talk in talks]
    assert all(answers)
    for habit in HABITS:  # 1/7 each, the guesses of failed searches on top; 5 standard errors
        share = sum(answer.habit == habit for answer in answers if answer) / 2000
        assert share == pytest.approx(0.9 / 7 + 0.1 * (habit == GUESS), abs=0.04)


def test_failed_searches_are_what_the_archive_says(world):
    """Of a target that the question is not about its card, of a mistyped code nothing, of half a call what is wrong."""
    found = failed_searches(world, material(world, [DAY], seed=3), seed=4)
    assert len(found) == FAILURES
    kinds = {NO_RESULTS: 0, UNREADABLE: 0, "[1] ": 0}
    for text in found:
        kinds[next(kind for kind in kinds if text.startswith(kind))] += 1
        assert "side" not in text  # no lookup line: the question's own target was not found
    assert min(kinds.values()) >= FAILURES // 6


def test_only_the_policys_tokens_are_in_the_loss(tokenizer):
    ids = tokenizer.encode(tokenizer.apply_chat_template(TALK, tokenize=False))
    weights = Marker(tokenizer).weights(ids)
    said = tokenizer.decode([token for token, weight in zip(ids, weights, strict=True) if weight])
    assert said == f"{TALK[2]['content']}<|im_end|>{TALK[4]['content']}<|im_end|>"
    heavy = tokenizer.decode([t for t, w in zip(ids, weights, strict=True) if w == DIGIT_WEIGHT])
    copied = tokenizer.decode([t for t, w in zip(ids, weights, strict=True) if w == FACT_WEIGHT])
    assert (heavy, copied) == ("44", "no by 0.2")


def test_padding_changes_nothing_in_the_loss(tokenizer, model):
    """A row alone, and beside a longer one: the weighted mean of both is that of the rows."""
    marker, short = Marker(tokenizer), TALK[3:]
    with torch.no_grad():
        alone = [pack([talk], tokenizer, marker) for talk in (short, TALK)]
        parts = [(loss_of(model, *packed).item(), packed[1].sum().item()) for packed in alone]
        both = loss_of(model, *pack([short, TALK], tokenizer, marker)).item()
    assert both == pytest.approx(sum(loss * size for loss, size in parts) / sum(size for _, size in parts), abs=1e-5)


def test_the_learning_rate_rises_and_falls():
    assert schedule(0, 100, rise=20) == pytest.approx(0.05)
    assert schedule(50, 100, rise=20) == pytest.approx(0.51)
    assert schedule(100, 100, rise=20) == pytest.approx(0.02)


# --- what is shipped --------------------------------------------------------------------------


def test_shipped_weights_fit_their_words_and_their_size(model, tokenizer):
    check(POCKET)
    assert (POCKET / "model.safetensors").stat().st_size < 4_000_000
    assert model.num_parameters() <= 900_000
    assert model.config.vocab_size == len(tokenizer)
    assert model.config.head_dim == 32
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}


def test_a_changed_prompt_is_refused(tmp_path: Path):
    folder = tmp_path / "policy"
    shutil.copytree(POCKET, folder)
    card = json.loads((folder / CARD).read_text())
    (folder / CARD).write_text(json.dumps(card | {"words_hash": "0" * 16}))
    with pytest.raises(PolicyError, match=f"taught the words 0000000000000000.*{words_hash()}"):
        check(folder)
    (folder / CARD).unlink()
    check(folder)  # another policy promised nothing


def test_the_shipped_policy_searches_reads_and_answers(model, tokenizer, world):
    """On questions asked after its lessons; the floors are a little lower, being a sample of 140."""
    taught, names = material(world, [date(2026, 5, 20)], seed=8), domains(world, date(2026, 5, 20))
    asked = Teacher(taught, names, [NO_RESULTS], seed=8)
    checks = examine(model, tokenizer, [asked.plain() for _ in range(140)], seed=1)
    for name, floor in FLOORS.items():
        assert getattr(checks, name) >= floor - 0.03, name


def test_checks_name_what_misses():
    shares = {"fuel": {"guess": 0.5}}
    checks = Checks(100, 0.9, 1.0, float("nan"), 0.0, 1.0, shares, {"fuel": 100}, (1.0,))
    assert checks.problems() == [
        "query 0.900, expected at least 0.97",
        "correlation nan, expected at least 0.95",
        "habit 'guess' in fuel: 0.50, expected 0.1..0.2",
    ]
