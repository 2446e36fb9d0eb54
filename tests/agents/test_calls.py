"""The text protocol: JSON or a problem, never code."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from futureworld.agents.calls import MAX_CALLS, parse_calls, text_protocol


def wrapped(raw: str) -> str:
    return f"<tool_call>\n{raw}\n</tool_call>"


def test_two_calls_in_order() -> None:
    first, second = '{"name": "search", "arguments": {"query": "kamo"}}', '{"name": "visit", "arguments": {"url": "u"}}'
    calls = parse_calls(f"I look. {wrapped(first)} and {wrapped(second)}")
    assert [(call.name, call.arguments, call.raw) for call in calls] == [
        ("search", {"query": "kamo"}, first),
        ("visit", {"url": "u"}, second),
    ]


def test_no_call_in_plain_text() -> None:
    assert parse_calls("The answer is \\boxed{0.5}") == ()


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("{'name': 'search'}", "not valid JSON"),
        ('__import__("os").system("true")', "not valid JSON"),
        ('{"name": "search", "arguments": {"query": NaN}}', "not valid JSON"),
        ('{"name": "search", "arguments": {"query": "\\ud800"}}', "not valid JSON"),
        ("[" * 3000, "not valid JSON"),
        ("", "not valid JSON"),
        ("[1]", "not a JSON object"),
        ('{"arguments": {}}', 'a call needs a "name"'),
        ('{"name": 3, "arguments": {}}', 'a call needs a "name"'),
        ('{"name": "search"}', '"arguments" must be an object'),
        ('{"name": "search", "arguments": "{}"}', '"arguments" must be an object'),
        ('"' + "x" * 5000 + '"', "a call of 5002 characters, at most 4000 are read"),
    ],
)
def test_a7_h8_malformed_calls_have_a_problem(raw: str, problem: str) -> None:
    (call,) = parse_calls(wrapped(raw))
    assert (call.arguments, call.problem) == (None, problem)


def test_a7_an_unclosed_call_has_a_problem() -> None:
    (call,) = parse_calls('<tool_call>\n{"name": "search", "arguments": {"query": "x"}}')
    assert (call.arguments, call.problem) == (None, "<tool_call> without </tool_call>")


def test_too_many_calls_are_read_no_further() -> None:
    calls = parse_calls(wrapped('{"name": "search", "arguments": {"query": "x"}}') * 10_000)
    assert len(calls) == MAX_CALLS + 1
    assert calls[-1].problem == f"more than {MAX_CALLS} calls in one turn"


def test_calls_inside_thinking_are_not_made() -> None:
    call = wrapped('{"name": "search", "arguments": {"query": "x"}}')
    assert parse_calls(f"<think>{call}</think> no") == ()
    assert len(parse_calls(f"<think>maybe</think>{call}")) == 1


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<")), st.integers()))
def test_arguments_survive(arguments: dict[str, int]) -> None:
    (call,) = parse_calls(wrapped(json.dumps({"name": "search", "arguments": arguments})))
    assert call.arguments == arguments


@given(st.text())
def test_any_text_is_a_call_or_a_problem(text: str) -> None:
    for call in parse_calls(wrapped(text)):
        assert (call.arguments is None) == (call.problem is not None)


def test_text_protocol_shows_a_call_that_parses() -> None:
    schema = {"type": "function", "function": {"name": "search", "description": "Search.", "parameters": {}}}
    words = text_protocol([schema])
    assert json.dumps(schema["function"]) in words
    example = words[words.index("<tool_call>") :].replace("{...}", "{}")
    assert parse_calls(example)[0].problem is None
