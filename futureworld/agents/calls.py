"""Tool calls written as text: `<tool_call>` around a JSON object, for policies without native calls.

Text is read as JSON and never evaluated. What cannot be read is a `Call` with its problem, which
goes back to the policy as an observation.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from futureworld.agents.answers import spoken
from futureworld.agents.base import Call

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MAX_CALLS = 4
"""Calls that are run in one turn."""
MAX_CALL_CHARS = 4000
"""Characters of one call."""


def parse_calls(text: str) -> tuple[Call, ...]:
    """The calls in a turn's text after any thinking, in order; at most MAX_CALLS and one that says there were more."""
    calls: list[Call] = []
    pieces = spoken(text).split(OPEN)[1:]
    for piece in pieces[:MAX_CALLS]:
        raw, closed, _ = piece.partition(CLOSE)
        calls.append(parse_call(raw.strip()) if closed else _broken(raw, f"{OPEN} without {CLOSE}"))
    if len(pieces) > MAX_CALLS:
        calls.append(_broken(pieces[MAX_CALLS], f"more than {MAX_CALLS} calls in one turn"))
    return tuple(calls)


def parse_call(raw: str) -> Call:
    """One call from `{"name": ..., "arguments": {...}}`."""
    value, problem = read_object(raw)
    if value is None:
        return _broken(raw, problem)
    name = value.get("name")
    if not isinstance(name, str) or not name:
        return _broken(raw, 'a call needs a "name"')
    arguments = value.get("arguments")
    if not isinstance(arguments, dict):
        return _broken(raw, '"arguments" must be an object', name)
    return Call(name, arguments, raw)


def read_object(raw: str) -> tuple[dict[str, Any] | None, str]:
    """A JSON object that can be stored as UTF-8, or None and the problem."""
    if len(raw) > MAX_CALL_CHARS:
        return None, f"a call of {len(raw)} characters, at most {MAX_CALL_CHARS} are read"
    try:
        value = json.loads(raw, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate cannot be stored
    except (ValueError, RecursionError):
        return None, "not valid JSON"
    if not isinstance(value, dict):
        return None, "not a JSON object"
    return value, ""


def text_protocol(tools: Sequence[Mapping[str, Any]]) -> str:
    """Instructions for a policy whose chat template knows no tools; `tools` are OpenAI function objects."""
    listed = "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)
    return (
        f"You can call these tools:\n{listed}\n\n"
        "To call one, write its name and arguments as JSON and end your turn:\n"
        f'{OPEN}\n{{"name": "...", "arguments": {{...}}}}\n{CLOSE}\n'
        "The result comes in the next message."
    )


def _broken(raw: str, problem: str, name: str = "") -> Call:
    return Call(name, None, raw.strip()[:MAX_CALL_CHARS], problem)


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")
