"""Where a task finds the original: rows in memory, rows that stay where they are, or a table on the server by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pandas as pd

from dpsynth_core.ledger.row_sketch import RowSketch
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.sources import SourceTable
from dpsynth_core.ledger.streamed_fingerprint import streamed_fingerprints, streamed_sketch
from dpsynth_core.progress import Point, Progress, RunProgress
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.file_layout import remember_layout
from dpsynth_core.table.private_rows import RowsRead
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.row_sample import RowSample, sample_size
from dpsynth_core.table.schema import Schema
from dpsynth_core.table.suggest import Suggestion, suggest

OriginalRows: TypeAlias = pd.DataFrame | StreamedTable | SourceTable


@dataclass(frozen=True, kw_only=True)
class SampledSource:
    """A table on the server, with the rows of it that are at hand."""

    table: SourceTable
    sample: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class OpenedSource:
    """What is known of a table on the server once somebody has opened it. Private."""

    table: SourceTable
    """With its number of rows and the stamp of what was read."""
    sample: pd.DataFrame
    """Rows drawn by position, as they are stored: all of them, if they are few."""
    declared: Schema | None
    """The facts that whoever runs the server has declared."""
    suggestion: Suggestion
    """What the sample suggests; nothing in it is public."""
    names: tuple[str, ...]
    """Under which the ledger finds it; none where nothing is charged."""
    sketch: RowSketch | None
    """By which other versions of it are recognised; None where nothing is charged."""


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


def inspect_source(table: SourceTable, settings: Settings | None, *, progress: Progress) -> OpenedSource:
    """Open a table on the server: count its rows, draw those that are shown, and find the names of its account.

    Args:
        table: Which one, and who asks.
        settings: Where the installation's key is; None in teaching mode, where there is no account.
        progress: Receives the stages and how many rows are read; raises to cancel.
    """
    source = table.source()
    progress("Opening the table", 0.0)
    declared = source.declared()
    steps = 1 if settings is None else 3
    with source.place_hidden(), contextlib.closing(source.open(declared)) as rows:
        size = sample_size(rows.n, len(rows.file_columns))
        # By position alone: which rows people see has nothing to do with what they hold.
        ordinals = np.sort(np.random.default_rng().choice(rows.n, size, replace=False))
        sample = rows.watched(reading(progress, "Drawing rows to look at", 0, steps)).stored_cells(ordinals)
        if source.table is None:
            remember_layout(sample.attrs, rows.layout)
        names: tuple[str, ...] = ()
        sketch = None
        if settings is not None:
            key = settings.installation_key()
            names = streamed_fingerprints(rows.watched(reading(progress, "Finding its account", 1, steps)), key)
            sketch = streamed_sketch(rows.watched(reading(progress, "Looking for other versions of it", 2, steps)), key)
        return OpenedSource(
            table=replace(table, n=rows.n, stamp=rows.stamp),
            sample=sample,
            declared=declared,
            suggestion=suggest(sample),
            names=names,
            sketch=sketch,
        )


def reading(progress: Progress, stage: str, step: int, steps: int) -> RowsRead:
    """Reports a pass over the rows as one of several equal steps."""
    progress(stage, step / steps)

    def read(rows: int, n: int, rate: float) -> None:
        progress(rows_read(stage, rows, n, rate), (step + rows / n) / steps)

    return read


class ReadingRunProgress(RunProgress):
    """Passes progress on; while rows are read, with how many were and how fast."""

    def __init__(self, progress: RunProgress) -> None:
        self._progress = progress
        self._stage, self._done = "Reading rows", 0.0

    def __call__(self, stage: str, done: float, /, *points: Point) -> None:
        self._stage, self._done = stage, done
        self._progress(stage, done, *points)

    def read(self, rows: int, n: int, rate: float) -> None:
        """One report of a pass."""
        self._progress(rows_read(self._stage, rows, n, rate), self._done)

    def drawn(self) -> None:
        self._progress.drawn()

    def restart(self) -> None:
        self._progress.restart()

    def part(self, result: object) -> None:
        self._progress.part(result)


def rows_read(stage: str, rows: int, n: int, rate: float) -> str:
    """A stage, with how far its pass over the rows is."""
    told = f"{rows:,} of {n:,} rows read, {rate:,.0f} a second" if rows else f"{n:,} rows are being read"
    return f"{stage} ({told})"
