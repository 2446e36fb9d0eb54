"""Memory of the whole process tree, watched while a run goes on."""

import os
import threading

import psutil


class MemoryWatch:
    """Samples proportional memory (PSS) of this process and all below it; `peak_mb` is the highest sum.

    PSS counts a shared page once, so the sum over processes is what the machine really gave.
    0 where the system does not tell.
    """

    def __init__(self, every_s: float = 5.0) -> None:
        self.peak_mb = 0
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory-watch", daemon=True)

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.peak_mb = max(self.peak_mb, tree_pss_mb(os.getpid()))
            if self._stop.wait(self._every_s):
                return


def tree_pss_mb(root: int) -> int:
    try:
        process = psutil.Process(root)
        tree = [process, *process.children(recursive=True)]
    except psutil.Error:
        return 0
    return round(sum(map(_pss, tree)) / 2**20)


def _pss(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except (psutil.Error, AttributeError):  # it ended while we looked; no PSS outside Linux
        return 0
