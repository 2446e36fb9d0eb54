"""The probability in a policy's answer: one parser for training, evaluation and benchmark.

docs/answers.md has the table of what counts; the tests read it row by row.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

MAX_LENGTH = 200
"""Characters inside the box beyond which it holds no number; bounds the work on hostile text."""

_OPEN = re.compile(r"\\boxed\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_WRAPPED = re.compile(r"(?:\\(?:text|textbf|mathrm|mathbf))?\s*\{(?P<braces>.*)\}|\$(?P<dollars>.*)\$", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Answer:
    """What stands in the last box (`text`, None without a box) and its probability in 0..1.

    Exactly one of `probability` and `problem` is None; `problem` says why there is no probability.
    """

    text: str | None
    probability: float | None
    problem: str | None


def parse_probability(text: str) -> Answer:
    r"""The probability in the last `\boxed{...}` after any thinking. Linear in the text's length.

    An invalid last box is no answer: an earlier one is not asked.

    >>> parse_probability(r"Not \boxed{0.2} but \boxed{\text{70\%}}").probability
    0.7
    """
    opened = None
    speech = spoken(text)
    for opened in _OPEN.finditer(speech):  # noqa: B007 - only the last one counts
        pass
    if opened is None:
        return Answer(None, None, "no box")
    content = _balanced(speech, opened.end())
    if content is None:
        return Answer(None, None, "the box is not closed")
    content = content.strip()
    if len(content) > MAX_LENGTH:
        return Answer(content[:MAX_LENGTH], None, f"the box holds {len(content)} characters")
    return _read(content)


def spoken(text: str) -> str:
    """`text` without thinking: what follows the last `</think>`, up to a `<think>` left open."""
    _, _, rest = text.rpartition("</think>")
    return rest.partition("<think>")[0]


def _balanced(text: str, start: int) -> str | None:
    """The text from `start` to the brace that closes the one before it; escaped braces do not count."""
    depth = 1
    for match in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if depth == 0:
            return text[start : match.start()]
    return None


def _read(content: str) -> Answer:
    number, percent = _unwrap(content)
    if not number:
        return Answer(content, None, "the box is empty")
    if _NUMBER.fullmatch(number) is None:
        return Answer(content, None, "the box does not hold a plain number")
    value = Decimal(number) / (100 if percent else 1)
    if not 0 <= value <= 1:
        return Answer(content, None, "the number is outside 0 to 1")
    return Answer(content, abs(float(value)), None)  # abs: -0 is 0


def _unwrap(content: str) -> tuple[str, bool]:
    """`content` without braces, `\\text{}`, dollar signs and one percent sign; and whether it had one."""
    percent = False
    while True:
        content = content.strip()
        if not percent and content.endswith("%"):
            content, percent = content[:-1].removesuffix("\\"), True
        elif match := _WRAPPED.fullmatch(content):
            content = match["dollars"] if match["braces"] is None else match["braces"]
        else:
            return content, percent
