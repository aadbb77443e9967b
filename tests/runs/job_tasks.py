"""Tasks for tests/runs/test_jobs.py: in a module of their own, because workers import them by name."""

from __future__ import annotations

import itertools
import os
import signal
import time

from dpsynth_core.errors import DPSynthError
from dpsynth_core.progress import Point, RunProgress
from dpsynth_core.table.private_table import PrivateTable


def add(a: int, b: int, *, progress: RunProgress) -> int:
    progress("Adding", 0.5)
    return a + b


def add_in_parts(a: int, b: int, *, progress: RunProgress) -> int:
    progress.part(a)
    progress.part(b)
    return a + b


def sleep(seconds: float, drawing: bool, *, progress: RunProgress) -> None:
    if drawing:
        progress.drawn()
    progress(f"Sleeping in process {os.getpid()}", 0.1)
    time.sleep(seconds)


def spin(*, progress: RunProgress) -> None:
    progress(f"Spinning in process {os.getpid()}", 0.1)
    while True:
        pass


def stay_in_c(*, progress: RunProgress) -> None:
    progress(f"Adding up in process {os.getpid()}", 0.1)
    sum(itertools.repeat(0))  # never comes back to Python, where signals are handled


def fail(*, progress: RunProgress) -> None:
    raise DPSynthError("This cannot be done; do that.")


def leak(*, progress: RunProgress) -> None:
    raise RuntimeError("secret cell value 4711")


def die(drawing: bool, *, progress: RunProgress) -> None:
    if drawing:
        progress.drawn()
    os.kill(os.getpid(), signal.SIGKILL)


def size(content: bytes, *, progress: RunProgress) -> int:
    return len(content)


def rows(private: PrivateTable, factor: int, *, progress: RunProgress) -> int:
    return private.n * factor


def walk(seconds: float, *, progress: RunProgress) -> None:
    for i in range(1_000):
        progress(f"Step {i}", i / 1_000, Point(series="height", x=i, y=i * i, releasable=True))
        time.sleep(seconds / 1_000 if i > 5 else 0)


def restart(*, progress: RunProgress) -> None:
    progress("First", 0.1, Point(series="height", x=1, y=1))
    progress.restart()
    progress("Second", 0.2, Point(series="depth", x=2, y=2))
