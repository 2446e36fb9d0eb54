"""The World protocol: facts only, and only those that could be known at `as_of`.

No method returns a row from after `as_of`. An event is two rows: the fixture from `known_from`,
the result from `resolved_at`; before that it comes back SCHEDULED, without outcome.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from futureworld.records import Document, Event, Observation, Ranking, Series


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result: the document and its relevance (higher is better, comparable in one query)."""

    document: Document
    score: float


class World(Protocol):
    """`id` names the world and the hash of its rows; `first_day` and `last_day` bound them."""

    @property
    def id(self) -> str: ...

    @property
    def first_day(self) -> date: ...

    @property
    def last_day(self) -> date: ...

    def series(self) -> Mapping[str, Series]:
        """Every series by id, in id order."""
        ...

    def observations(self, series_id: str, as_of: datetime) -> Sequence[Observation]:
        """Rows with `published_at <= as_of`, by date."""
        ...

    def events(self, as_of: datetime) -> Sequence[Event]:
        """Fixtures with `known_from <= as_of`, by (scheduled_at, id)."""
        ...

    def rankings(self, as_of: datetime) -> Sequence[Ranking]:
        """Lists with `published_at <= as_of`, by (published_at, id)."""
        ...

    def documents(self, as_of: datetime) -> Sequence[Document]:
        """Texts with `published_at <= as_of`, by (published_at, id)."""
        ...

    def search(self, query: str, as_of: datetime, limit: int) -> Sequence[Hit]:
        """The best `limit` documents of `documents(as_of)` for `query`, best first; none that do not match."""
        ...

    def visit(self, url: str, as_of: datetime) -> Document | None:
        """The document at `url` if it could be read at `as_of`."""
        ...
