"""Search over what was knowable: BM25 with one index for each moment, so that word weights do not see the future.

Beside the documents it holds cards: one for each series, one for each option of each event ahead. A
card holds the code of its target, so that a query that is only a code finds it.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np

from futureworld.clock import iso
from futureworld.records import Document, Event, EventStatus, Series, Target, TargetKind
from futureworld.worlds.base import Hit, World

if TYPE_CHECKING:
    from bm25s import BM25

CARDS = "world cards"
CODE_WEIGHT = 5
"""How often the index counts the code of a card besides its text: no text with that word once is nearer."""
INDEXES = 32
"""How many moments' indexes are kept."""
SHOWN_VALUES = 7

_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """The words of `text`: lower case, letters and digits, cut at dots and underscores.

    >>> words("fuel.us.regular.new_york at 4.81")
    ['fuel', 'us', 'regular', 'new', 'york', 'at', '4', '81']
    """
    return _WORD.findall(text.lower())


def series_url(series_id: str) -> str:
    return f"world://series/{quote(series_id, safe='')}"


def event_url(event_id: str, option: str) -> str:
    return f"world://event/{quote(event_id, safe='')}/{quote(option, safe='')}"


def event_target(event: Event, option: str) -> Target:
    return Target(TargetKind.EVENT, event.id, event.title, event.date, "UTC", option)


@dataclass(frozen=True, slots=True)
class _Entry:
    """Something to be found from `document.published_at` on, and until `gone_at` where it has an end."""

    document: Document
    gone_at: datetime | None
    tokens: list[int]


@dataclass(frozen=True, slots=True)
class _Index:
    """BM25 over `documents`; `vocabulary` are their words and no others."""

    bm25: "BM25"
    documents: list[Document]
    vocabulary: dict[str, int]


class Archive:
    """Documents and cards of one world. `documents` and `events` are all there are, of any time."""

    def __init__(
        self, world: World, documents: Sequence[Document], events: Sequence[Event], beginning: datetime
    ) -> None:
        self._world = world
        self._documents = documents
        self._events = events
        self._beginning = beginning
        self._index = lru_cache(maxsize=INDEXES)(self._build)

    def search(self, query: str, as_of: datetime, limit: int) -> list[Hit]:
        """The best `limit` entries readable at `as_of`; equal scores by document id."""
        index = self._index(as_of)
        tokens = [word for word in words(query) if word in index.vocabulary]
        if not tokens or limit < 1:
            return []
        scores = index.bm25.get_scores(tokens)
        found = np.flatnonzero(scores > 0)
        if len(found) > limit:
            # Everything from the last place's score on, so that ties are cut by id and not by chance.
            found = found[scores[found] >= np.partition(scores[found], -limit)[-limit]]
        best = sorted((-float(scores[place]), index.documents[place].id, int(place)) for place in found)
        return [Hit(index.documents[place], -score) for score, _, place in best[:limit]]

    def visit(self, url: str, as_of: datetime) -> Document | None:
        """The newest document at `url`, or a card with what was known of its thing at `as_of`."""
        for document in reversed(self._by_url.get(url, [])):
            if document.published_at <= as_of:
                return document
        thing = self._things.get(url)
        if isinstance(thing, Series):
            return self._series_page(thing, url, as_of)
        return _event_page(*thing, url, as_of) if thing is not None else None

    @cached_property
    def _by_url(self) -> dict[str, list[Document]]:
        found: dict[str, list[Document]] = defaultdict(list)
        for document in self._documents:
            found[document.url].append(document)
        return dict(found)

    @cached_property
    def _things(self) -> dict[str, Series | tuple[Event, str]]:
        """What the cards are about, by url."""
        found: dict[str, Series | tuple[Event, str]] = {series_url(key): s for key, s in self._world.series().items()}
        for event in self._events:
            for option in event.options:
                found[event_url(event.id, option)] = (event, option)
        return found

    @cached_property
    def _entries(self) -> tuple[list[_Entry], list[str]]:
        """Everything that can ever be found, as token ids, and the words they stand for."""
        ids: dict[str, int] = {}

        def tokens(text: str) -> list[int]:
            return [ids.setdefault(word, len(ids)) for word in words(text)]

        entries: list[_Entry] = []
        for url, thing in self._things.items():
            if isinstance(thing, Series):
                card, gone_at, code = self._series_card(thing, url), None, self._code(thing)
            else:
                card, gone_at, code = _event_card(*thing, url), thing[0].resolved_at, event_target(*thing).code
            text = f"{f'{code} ' * CODE_WEIGHT} {card.title} {card.text}"
            entries.append(_Entry(card, gone_at, tokens(text)))
        entries += [_Entry(row, None, tokens(f"{row.title} {row.text}")) for row in self._documents]
        return entries, list(ids)

    def _build(self, as_of: datetime) -> _Index:
        from bm25s import BM25

        entries, spelled = self._entries
        known = [
            entry
            for entry in entries
            if entry.document.published_at <= as_of and (entry.gone_at is None or entry.gone_at > as_of)
        ]
        # Renumbered, so that the index has the words of this moment only.
        renumbered: dict[int, int] = {}
        corpus = [[renumbered.setdefault(token, len(renumbered)) for token in entry.tokens] for entry in known]
        vocabulary = {spelled[token]: place for token, place in renumbered.items()}
        bm25 = BM25(method="lucene")
        if vocabulary:
            bm25.index((corpus, vocabulary), create_empty_token=False, show_progress=False)
        return _Index(bm25, [entry.document for entry in known], vocabulary)

    def _code(self, series: Series) -> str:
        # A series' code does not depend on the date of its target.
        return Target(TargetKind.SERIES, series.id, series.title, self._beginning.date(), series.zone).code

    def _series_card(self, series: Series, url: str) -> Document:
        text = f"{series.id}. Code: {self._code(series)}. Domain: {series.domain}. Unit: {series.unit}."
        return Document(url, series.title, url, text, self._beginning, CARDS, series.source)

    def _series_page(self, series: Series, url: str, as_of: datetime) -> Document | None:
        if self._beginning > as_of:
            return None
        card = self._series_card(series, url)
        rows = self._world.observations(series.id, as_of)[-SHOWN_VALUES:]
        known = "; ".join(f"{row.date}: {row.value:.12g}" for row in rows) or "none yet"
        return replace(card, text=f"{card.text} Last values known: {known}.")


def _event_card(event: Event, option: str, url: str) -> Document:
    code = event_target(event, option).code
    # The day and no hour: a recording may know no hour of the very games that were later put off.
    text = f"{option}. Code: {code}. Domain: {event.domain}. {event.competition}, on {event.date}."
    return Document(url, event.title, url, text, event.known_from, CARDS, event.source)


def _event_page(event: Event, option: str, url: str, as_of: datetime) -> Document | None:
    if event.known_from > as_of:
        return None
    card = _event_card(event, option, url)
    if event.resolved_at is None or event.resolved_at > as_of:
        return card
    said = "postponed" if event.status is EventStatus.POSTPONED else f"outcome {event.outcome}"
    return replace(card, text=f"{card.text} Known since {iso(event.resolved_at)}: {said}.")
