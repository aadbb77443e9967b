"""What the commands read and show."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TextIO

from dpsynth_core.errors import DPSynthError
from dpsynth_core.progress import Point, RunProgress
from dpsynth_core.table.schema import Schema

WIDTH = 30
"""Characters of the bar."""


def printable(text: object) -> str:
    """Text without anything that a terminal would obey: names in a file may hold control characters.

    Example:
        >>> printable("a" + chr(27) + "[31mb")
        'a?[31mb'
    """
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in str(text))


def say(text: object) -> None:
    """A line of the result."""
    print(printable(text))


class Bar(RunProgress):
    """A progress bar on the error stream; where that is no terminal, a line for each new stage."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._stage = ""
        self._shown = ""
        self.has_drawn = False

    def __call__(self, stage: str, done: float, /, *points: Point) -> None:  # noqa: ARG002  the interface's
        """How far it is."""
        filled = round(WIDTH * min(max(done, 0.0), 1.0))
        line = printable(f"[{'#' * filled}{'-' * (WIDTH - filled)}] {done:4.0%} {stage}")
        if self._stream.isatty():
            self._draw(line)
        elif stage != self._stage:
            print(line, file=self._stream, flush=True)
        self._stage = stage

    def _draw(self, line: str) -> None:
        if line != self._shown:
            print("\r" + line.ljust(len(self._shown)), end="", file=self._stream, flush=True)
            self._shown = line

    def drawn(self) -> None:
        """Remember that noise was drawn."""
        self.has_drawn = True

    def close(self) -> None:
        """Leave the line, so that what follows does not overwrite it."""
        if self._shown:
            print(file=self._stream)


def read_schema(path: Path) -> Schema:
    """The public facts from a file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DPSynthError(
            f"The schema {str(path)!r} cannot be read: {error.strerror or 'no such file'}. Save one on the Data page, "
            "or write it by hand."
        ) from None
    return Schema.from_json(content)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that was not there before, opened before the work begins; gone again if the work fails.

    It never replaces a file: what was released is paid for and cannot be drawn again.
    """
    try:
        handle = path.open("xb")
    except FileExistsError:
        raise DPSynthError(f"There is a file {str(path)!r} already. Choose another name after --out.") from None
    except OSError as error:
        raise DPSynthError(
            f"Nothing can be written to {str(path)!r}: {error.strerror}. Choose another place after --out."
        ) from None
    try:
        with handle:
            yield handle
    except BaseException:
        path.unlink(missing_ok=True)
        raise
