"""Named places at which a test can make a stage die. Does nothing unless armed.

`FUTUREWORLD_FAULT="update.saved"` kills the process with SIGKILL when it reaches that place;
`"predict.stored:57"` at the 57th passage. Tests in the same process use `arm` with an exception.
"""

import os
import signal
from collections import Counter
from collections.abc import Mapping

ENVIRONMENT_VARIABLE = "FUTUREWORLD_FAULT"

_passages: Counter[str] = Counter()
_armed: dict[str, tuple[int, BaseException]] = {}


def at(place: str) -> None:
    """Mark `place` as passed; dies or raises here if a test armed it."""
    spec = os.environ.get(ENVIRONMENT_VARIABLE)
    if spec is None and not _armed:
        return
    _passages[place] += 1
    if spec is not None:
        name, _, count = spec.partition(":")
        if name == place and _passages[place] == int(count or 1):
            os.kill(os.getpid(), signal.SIGKILL)
    if place in _armed and _passages[place] == _armed[place][0]:
        raise _armed.pop(place)[1]


def arm(place: str, error: BaseException, *, passage: int = 1) -> None:
    """Raise `error` at the next `passage`-th passage of `place` in this process."""
    _passages[place] = 0
    _armed[place] = (passage, error)


def passed() -> Mapping[str, int]:
    """How often each place was passed while something was armed."""
    return dict(_passages)


def disarm() -> None:
    """Forget everything armed in this process."""
    _armed.clear()
    _passages.clear()
