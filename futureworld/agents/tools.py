"""The archive's two tools: `search` and `visit`, on what the world knew at the context's `as_of`.

For a target with numbers the first hit of a search is a lookup line: facts computed from rows known
at `as_of` and the question's structured target, in place of the target's card.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from futureworld.agents.base import Tool, ToolContext, ToolResult, ToolStatus
from futureworld.clock import iso
from futureworld.config import RolloutConfig
from futureworld.questions.facts import facts, history, lookup_line, typical_step
from futureworld.records import Document, Question, Target
from futureworld.worlds.archive import event_url, series_url
from futureworld.worlds.base import Hit

SEARCH, VISIT = "search", "visit"
MAX_ARGUMENT_CHARS = 200
EXCERPT_CHARS = 400
"""Characters of a document that a search shows; `visit` shows more."""
CARD_POOL = 8
"""Hits among which the question's own card is looked for: two targets may share a code."""
MIN_STEP = 1e-9
"""Stands for the step of a history that never moved: any distance from it is a large one."""
CACHE_SIZE = 4096

T = TypeVar("T")


class SearchTool:
    """`search(query)`: the best `limit` hits, the question's own card first, as a lookup line.

    `lookup_question` maps a question to the one whose facts are shown under its own code and
    domain: the control in which observations tell nothing.
    """

    name = SEARCH

    def __init__(self, limit: int, lookup_question: Callable[[Question], Question] | None = None) -> None:
        self._limit = limit
        self._lookup_question = lookup_question
        # the rollouts of a group ask the same
        self._results: _Cache[tuple[Hit, ...]] = _Cache()
        self._lookups: _Cache[str | None] = _Cache()

    @property
    def schema(self) -> Mapping[str, Any]:
        return _schema(SEARCH, "Search the archive.", "query", "words to look for")

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        problem = _problem(arguments, "query")
        if problem:
            return ToolResult(ToolStatus.FAILED, problem)
        hits = self._search(arguments["query"].strip(), context)
        if not hits:
            return ToolResult(ToolStatus.NONE, "No results.")
        return ToolResult(ToolStatus.OK, self._text(hits, context))

    def _search(self, query: str, context: ToolContext) -> tuple[Hit, ...]:
        world, pool = context.world, max(self._limit, CARD_POOL)
        key = (world.id, query, context.as_of)
        return self._results.get(key, lambda: tuple(world.search(query, context.as_of, pool)))

    def _text(self, hits: Sequence[Hit], context: ToolContext) -> str:
        own = [hit for hit in hits if hit.document.url == card_url(context.question.target)]
        lookup = self._lookup(context) if own else None
        if lookup is None:
            return "\n".join(_entry(i, hit.document) for i, hit in enumerate(hits[: self._limit], 1))
        others = [hit for hit in hits if hit not in own][: self._limit - 1]
        return "\n".join([lookup, *(_entry(i, hit.document) for i, hit in enumerate(others, 2))])

    def _lookup(self, context: ToolContext) -> str | None:
        key = (context.world.id, context.question.id, context.as_of)
        return self._lookups.get(key, lambda: self._compute(context))

    def _compute(self, context: ToolContext) -> str | None:
        """The lookup line, or None where nothing is known of the target."""
        asked = context.question
        shown = self._lookup_question(asked) if self._lookup_question else asked
        values = [point.value for point in history(context.world, shown.target, shown.domain, context.as_of)]
        if not values:
            return None
        known = facts(values, shown.threshold, shown.operator, typical_step(values) or MIN_STEP)
        return lookup_line(asked.target.code, asked.domain, known)


class VisitTool:
    """`visit(url)`: the document at an address that a search named."""

    name = VISIT

    @property
    def schema(self) -> Mapping[str, Any]:
        return _schema(VISIT, "Read a document of the archive.", "url", "address from a search result")

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        problem = _problem(arguments, "url")
        if problem:
            return ToolResult(ToolStatus.FAILED, problem)
        document = context.world.visit(arguments["url"].strip(), context.as_of)
        if document is None:
            return ToolResult(ToolStatus.NONE, "No such document.")
        return ToolResult(ToolStatus.OK, f"{document.title} ({_date(document)})\n{document.text}")


def archive_tools(config: RolloutConfig) -> list[Tool]:
    """The tools that a rollout is offered: search and visit, none where `rollout.search` is false."""
    return [SearchTool(config.search_results), VisitTool()] if config.search else []


def card_url(target: Target) -> str:
    """The address of the archive's card of `target`."""
    return series_url(target.id) if target.option is None else event_url(target.id, target.option)


def _schema(name: str, description: str, argument: str, meaning: str) -> Mapping[str, Any]:
    parameters = {
        "type": "object",
        "properties": {argument: {"type": "string", "description": meaning, "maxLength": MAX_ARGUMENT_CHARS}},
        "required": [argument],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _problem(arguments: Mapping[str, Any], name: str) -> str | None:
    """Why `arguments` do not fit the schema of one required text, or None where they do."""
    value = arguments.get(name)
    if set(arguments) != {name} or not isinstance(value, str) or not value.strip():
        return f'Give exactly one argument, "{name}", a text that is not empty.'
    if len(value) > MAX_ARGUMENT_CHARS:
        return f'"{name}" has {len(value)} characters, at most {MAX_ARGUMENT_CHARS} are allowed.'
    return None


def _entry(number: int, document: Document) -> str:
    text = document.text
    if len(text) > EXCERPT_CHARS:
        text = text[:EXCERPT_CHARS].rstrip() + " ..."
    return f"[{number}] {document.title} ({_date(document)}, {document.url}): {text}"


def _date(document: Document) -> str:
    return iso(document.published_at)[:10]


class _Cache(Generic[T]):
    """The last CACHE_SIZE values by key."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        if key not in self._values:
            self._values[key] = compute()
        self._values.move_to_end(key)
        if len(self._values) > CACHE_SIZE:
            self._values.popitem(last=False)
        return self._values[key]
