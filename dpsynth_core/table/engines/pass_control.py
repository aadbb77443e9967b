"""Stopping a pass over the rows from another thread, and telling how far it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from dpsynth_core.errors import EngineError
from dpsynth_core.table.private_rows import RowsRead

REPORT_SECONDS = 0.5
CANCELLED = "The pass over the rows was cancelled. Open the table again to use it."


class PassControl:
    """Shared by a table and everything that was selected from it; once it is cancelled, it stays so."""

    def __init__(self) -> None:
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._stops: dict[object, Callable[[], object]] = {}

    def cancel(self) -> None:
        """Stop the queries that are running; those that are about to begin are refused."""
        self._cancelled.set()
        with self._lock:
            stops = list(self._stops.values())
        for stop in stops:
            stop()

    def check(self) -> None:
        """Raise if somebody has cancelled."""
        if self._cancelled.is_set():
            raise EngineError(CANCELLED)

    @contextmanager
    def stopped_by(self, stop: Callable[[], object]) -> Iterator[None]:
        """A query that ``stop`` ends, for as long as it runs."""
        token = object()
        with self._lock:
            self._stops[token] = stop
        try:
            self.check()
            yield
        finally:
            with self._lock:
                del self._stops[token]


class ReadingPace:
    """Tells a watcher how far a pass is, a few times a second, and ends it if it was cancelled."""

    def __init__(self, watch: RowsRead, rows: int, control: PassControl) -> None:
        self._watch, self._rows, self._control = watch, rows, control
        self._begin = self._told = perf_counter()

    def read(self, rows: int) -> None:
        self._control.check()
        now = perf_counter()
        if now - self._told >= REPORT_SECONDS:
            self._told = now
            self._watch(rows, self._rows, rows / (now - self._begin))
