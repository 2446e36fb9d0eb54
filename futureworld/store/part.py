"""What the parts of the store share."""

from dataclasses import dataclass
from pathlib import Path

from futureworld.clock import Clock
from futureworld.store.database import Database


@dataclass(frozen=True)
class Part:
    folder: Path
    database: Database
    clock: Clock
