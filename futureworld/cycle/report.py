"""How a stage tells a person what it does. The command line brings a rich one; tests a silent one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Bar(Protocol):
    def advance(self, steps: int = 1) -> None: ...


class Reporter(Protocol):
    def line(self, text: str) -> None:
        """One finished thing, for good."""
        ...

    @contextmanager
    def bar(self, title: str, total: int) -> Iterator[Bar]:
        """Progress of something that takes longer than two seconds; `total` 0 is unknown."""
        ...


class Silent:
    """Says nothing."""

    def line(self, text: str) -> None:
        pass

    @contextmanager
    def bar(self, title: str, total: int) -> Iterator[Bar]:
        yield self

    def advance(self, steps: int = 1) -> None:
        pass
