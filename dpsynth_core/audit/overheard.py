"""Everything that a run says while it runs: reports of its progress, warnings, log lines, prints."""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from dpsynth_core.progress import Point

COMPILERS = ("jax", "numba")
"""Whose log is about code that was not compiled before, and not about rows."""


class Overheard(logging.Handler):
    """Listens. What is reported a few times a second may be reported more or less often, so each line counts once."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._lines: dict[str, None] = {}

    @property
    def lines(self) -> tuple[str, ...]:
        """What was said, in order."""
        return tuple(self._lines)

    def say(self, kind: str, text: str) -> None:
        self._lines.setdefault(f"{kind}: {text}")

    def progress(self, stage: str, done: float, /, *points: Point) -> None:
        """Stages as they are named, and points that may be published; how far it is follows the clock."""
        del done
        self.say("progress", stage)
        for point in points:
            if point.releasable:
                self.say("point", f"{point.series} at {point.along} {point.x!r}: {point.y!r}")

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.split(".")[0] not in COMPILERS:
            self.say("log", record.getMessage())


@contextmanager
def overheard() -> Iterator[Overheard]:
    """Listen to all that is said inside."""
    said, printed = Overheard(), io.StringIO()
    root = logging.getLogger()
    level = root.level
    root.addHandler(said)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as caught, redirect_stdout(printed), redirect_stderr(printed):
            warnings.simplefilter("always")
            yield said
    finally:
        root.removeHandler(said)
        root.setLevel(level)
    for warning in caught:
        said.say("warning", str(warning.message))
    if printed.getvalue():
        said.say("printed", printed.getvalue())
