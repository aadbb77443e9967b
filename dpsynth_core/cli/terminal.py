"""Reading and writing for the commands: a progress bar, the schema, the output file."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TextIO

from dpsynth_core.errors import DPSynthError
from dpsynth_core.progress import Point, RunProgress
from dpsynth_core.table.schema import Schema

WIDTH = 30
"""Characters of the bar."""


def printable(text: object) -> str:
    """Text without control characters, which a terminal would obey: names in a file may contain them.

    Example:
        >>> printable("a" + chr(27) + "[31mb")
        'a?[31mb'
    """
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in str(text))


def say(text: object) -> None:
    """Print a line of the result."""
    print(printable(text))


def hint(text: object) -> None:
    """Print a line that is no part of the result."""
    print(printable(text), file=sys.stderr)


class Bar(RunProgress):
    """A progress bar on the error stream; if that is not a terminal, one line for each new stage."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._stage = ""
        self._shown = ""
        self.on_drawn: Callable[[], None] = super().drawn

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
        """Pass it on to the charge, if there is one."""
        self.on_drawn()

    def close(self) -> None:
        """End the line, so that nothing overwrites it."""
        if self._shown:
            print(file=self._stream)


def read_schema(path: Path) -> Schema:
    """The public facts from a file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DPSynthError(
            f"The schema {str(path)!r} cannot be read: {error.strerror or 'no such file'}. Save one from the app's "
            "Data page, or write it by hand."
        ) from None
    return Schema.from_json(content)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A new file, created before the work begins and deleted if the work fails.

    It never replaces a file: an earlier release is paid for and cannot be drawn again.
    """
    try:
        handle = path.open("xb")
    except FileExistsError:
        raise DPSynthError(f"The file {str(path)!r} already exists. Choose another name with --out.") from None
    except OSError as error:
        raise DPSynthError(
            f"The file {str(path)!r} cannot be written: {error.strerror}. Choose another path with --out."
        ) from None
    try:
        with handle:
            yield handle
    except BaseException:
        path.unlink(missing_ok=True)
        raise
