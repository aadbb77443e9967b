"""Work that goes wrong, for the process that reads files; it imports them by name."""

from __future__ import annotations

import os
import signal
import time

import numpy as np

CELL = "a cell of somebody's table"


def crash() -> None:
    """End as native code does that reads where it must not."""
    os.kill(os.getpid(), signal.SIGSEGV)


def hang() -> None:
    time.sleep(3_600)


def compute() -> None:
    while True:
        pass


def fill(count: int) -> int:
    """Take memory and use it."""
    return int(np.ones(count, dtype=np.uint8).sum())


def answer(count: int) -> bytes:
    return bytes(count)


def fail() -> None:
    raise KeyError(CELL)


def process_id() -> int:
    return os.getpid()
