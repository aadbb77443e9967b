"""Where a task finds the original: rows in memory, rows that stay where they are, or a table on the server by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pandas as pd

from dpsynth_core.ledger.sources import SourceTable
from dpsynth_core.progress import Point, Progress, RunProgress
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.private_rows import RowsRead
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.row_sample import RowSample
from dpsynth_core.table.schema import Schema

OriginalRows: TypeAlias = pd.DataFrame | StreamedTable | SourceTable


@dataclass(frozen=True, kw_only=True)
class SampledSource:
    """A table on the server, with the rows of it that are at hand."""

    table: SourceTable
    sample: pd.DataFrame


@contextlib.contextmanager
def opened(original: OriginalRows, schema: Schema) -> Iterator[PrivateTable | StreamedTable]:
    """The private rows, in memory or where they are, until the task is done with them."""
    if isinstance(original, SourceTable):
        with original.opened(schema) as table:
            yield table
    else:
        yield PrivateTable(original, schema) if isinstance(original, pd.DataFrame) else original


@contextlib.contextmanager
def sampled(original: pd.DataFrame | SampledSource, schema: Schema, watch: RowsRead) -> Iterator[PrivateTable]:
    """Rows at hand; of a table on the server a sample, with a way to count all of them."""
    if isinstance(original, pd.DataFrame):
        yield PrivateTable(original, schema)
        return
    with original.table.opened(schema) as table:
        yield RowSample(original.sample, schema, of=table.n, every_row=table.watched(watch))


class ReadingProgress:
    """Passes progress on; while rows are read, with how many were and how fast."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._stage, self._done = "Reading rows", 0.0

    def __call__(self, stage: str, done: float, /, *points: Point) -> None:
        self._stage, self._done = stage, done
        self._progress(stage, done, *points)

    def read(self, rows: int, n: int, rate: float) -> None:
        """One report of a pass."""
        self._progress(rows_read(self._stage, rows, n, rate), self._done)


class ReadingRunProgress(ReadingProgress, RunProgress):
    """The same for a run, which reports more than that."""

    def __init__(self, progress: RunProgress) -> None:
        super().__init__(progress)
        self._run = progress

    def drawn(self) -> None:
        self._run.drawn()

    def restart(self) -> None:
        self._run.restart()

    def part(self, result: object) -> None:
        self._run.part(result)


def rows_read(stage: str, rows: int, n: int, rate: float) -> str:
    """A stage, with how far its pass over the rows is."""
    told = f"{rows:,} of {n:,} rows read, {rate:,.0f} a second" if rows else f"{n:,} rows are being read"
    return f"{stage} ({told})"
