"""What questions were made of and what rollouts were shown, against the raw files as of `asked_at`. Pure."""

import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from audit_raw import Raw, known

from futureworld.agents.sanitize import sanitize
from futureworld.agents.tools import EXCERPT_CHARS
from futureworld.questions.prompts import messages
from futureworld.records import Question, ToolCall, Trajectory

NOTHING = {"search": "No results.", "visit": "No such document."}
NEXT_HIT = re.compile(r"\n(?=\[\d+\] )")
HIT = re.compile(r"\[\d+\] (?P<title>.*?) \((?P<day>\d{4}-\d\d-\d\d), (?P<url>\S+)\): (?P<text>.*)", re.DOTALL)
SHOWN = 7
"""Values a question keeps and a search shows."""
STEPS = 30
"""Steps between values that its typical step is made of."""
FAILED = re.compile(
    r"Not run: more than \d+ calls in one turn\."
    r"|The call could not be read: (< ?tool_call> without < ?/tool_call>|more than \d+ calls in one turn"
    r'|a call needs a "name"|"arguments" must be an object|a call of \d+ characters, at most \d+ are read'
    r"|not valid JSON|not a JSON object)\."
    r"|No such tool\. Tools: [a-z, ]+\."
    r'|Give exactly one argument, "(query|url)", a text that is not empty\.'
    r'|"(query|url)" has \d+ characters, at most \d+ are allowed\.'
)
"""What a call that did not work is answered: nothing of the world."""


@dataclass(slots=True)
class Findings:
    """`checked` counts what was held against the files, `violations` names what they do not bear out.

    A violation begins with what it is of and a colon: a question, a rollout, or one call of a rollout.
    """

    checked: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, other: "Findings") -> None:
        self.checked += other.checked
        self.violations += other.violations

    def named(self) -> set[str]:
        """What the violations are of."""
        return {violation.partition(":")[0] for violation in self.violations}

    def expect(self, holds: bool, violation: str) -> None:
        if not holds:
            self.violations.append(violation)


def audit_question(raw: Raw, question: Question) -> Findings:
    """Values a question is made of were published, and its answer was not, at `asked_at`."""
    found, asked_at, target = Findings(), question.asked_at, question.target
    name = f"question {question.id}: {target.id}, asked {asked_at:%Y-%m-%d %H:%M},"
    values = raw.values(target, question.domain, asked_at)
    used, last = list(question.last_values), values[-SHOWN:]
    found.checked.update({"questions": 1, "values used": min(len(values), STEPS + 1)})
    found.expect(used == last, f"{name} used {used}, known were {last}")
    found.expect(math.isclose(question.typical_step, step(values)), f"{name} used another typical step")
    if target.option is None:
        rows = [row for row in raw.rows[target.id] if row.date == target.date]
        found.expect(all(row.published_at > asked_at for row in rows), f"{name} its row was already published")
    else:
        event = raw.events[target.id]
        found.expect(event["known_from"] <= asked_at, f"{name} the fixture was not known yet")
        found.expect(event["scheduled_at"] > asked_at, f"{name} the event had started")
        found.expect(not known(event, asked_at), f"{name} the event was decided")
    return found


def audit_trajectory(raw: Raw, question: Question, trajectory: Trajectory) -> Findings:
    """Everything a rollout was shown is in the raw files, dated at or before `asked_at`."""
    found = Findings(Counter(rollouts=1))
    name = f"rollout {trajectory.id}"
    found.expect(trajectory.as_of == question.asked_at, f"{name}: looked at the world as of {trajectory.as_of}")
    found.expect(trajectory.messages[:2] == messages(question), f"{name}: was opened with other words")
    shown = [message.text for message in trajectory.messages if message.role == "tool"]
    found.expect(shown == [call.text for call in trajectory.calls], f"{name}: saw results that its calls do not name")
    for number, call in enumerate(trajectory.calls, 1):
        part = audit_call(raw, question, call)
        part.violations = [f"{call_name(trajectory, number)}: {violation}" for violation in part.violations]
        found.add(part)
    return found


def call_name(trajectory: Trajectory, number: int) -> str:
    return f"rollout {trajectory.id} call {number}"


def audit_call(raw: Raw, question: Question, call: ToolCall) -> Findings:
    """One observation, piece by piece: lookup line, hits, or the page visited."""
    found = Findings(Counter(observations=1))
    if call.text == NOTHING.get(call.tool):
        found.checked[f"{call.tool} without a result"] += 1
    elif FAILED.fullmatch(call.text):
        found.checked["calls that did not work"] += 1
    elif call.tool == "visit":
        found.add(audit_visit(raw, question, call))
    else:
        hits = NEXT_HIT.split(call.text)
        if not hits[0].startswith("[1] "):
            values = raw.values(question.target, question.domain, question.asked_at)
            line = lookup(question, values) if values else None
            found.checked.update({"lookup lines": 1, "raw rows behind what was shown": len(values[-SHOWN:])})
            found.expect(hits.pop(0) == line, f"shows {call.text[:200]!r}, known was {line!r}")
        for hit in hits:
            found.add(audit_hit(raw, hit, question.asked_at))
    return found


def audit_visit(raw: Raw, question: Question, call: ToolCall) -> Findings:
    url = json.loads(call.arguments)["arguments"]["url"].strip()
    page = raw.page(url, question.asked_at)
    if page is None:
        return Findings(violations=[f"{url} shows {call.text[:200]!r}, which nobody could read yet"])
    found = Findings(Counter({f"visits of {kind(url)}": 1, "raw rows behind what was shown": page.rows}))
    text = sanitize(f"{page.title} ({page.published_at:%Y-%m-%d})\n{page.text}{page.more}")
    found.expect(call.text == text, f"{url} shows {call.text[-300:]!r}, known was {text[-300:]!r}")
    return found


def kind(url: str) -> str:
    """What an address is of: series, event, bulletin or document."""
    return url.removeprefix("world://").split("/")[0] if url.startswith("world://") else "document"


def audit_hit(raw: Raw, hit: str, as_of: datetime) -> Findings:
    found, parts = Findings(), HIT.fullmatch(hit)
    page = raw.page(parts["url"], as_of) if parts else None
    if parts is None or page is None:
        found.violations.append(f"shows {hit[:200]!r}, which is in no raw file at {as_of:%Y-%m-%d %H:%M}")
        return found
    text = page.text if len(page.text) <= EXCERPT_CHARS else page.text[:EXCERPT_CHARS].rstrip() + " ..."
    line = (sanitize(page.title), f"{page.published_at:%Y-%m-%d}", sanitize(text))
    found.checked.update({f"hits of {kind(parts['url'])}": 1, "raw rows behind what was shown": page.rows})
    found.expect((parts["title"], parts["day"], parts["text"]) == line, f"shows {hit[:500]!r}, known was {line!r}")
    return found


def step(values: Sequence[float]) -> float:
    steps = [b - a for a, b in pairwise(values)][-STEPS:]
    return statistics.pstdev(steps) if steps else 0.0


def lookup(question: Question, values: Sequence[float]) -> str:
    """The lookup line as documented, from `values` alone."""
    shown = values[-SHOWN:]
    sides = [question.operator.holds(value, question.threshold) for value in shown]
    distance = min(3.0, abs(shown[-1] - question.threshold) / (step(values) or 1e-9))
    return (
        f"{question.target.code}: {' '.join(f'{value:g}' for value in shown)}\n{question.domain}: yes side {sum(sides)}"
        f" of {len(sides)}, last {'yes' if sides[-1] else 'no'} by {distance:.1f}"
    )
