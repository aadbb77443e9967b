"""Opening a table on the server: counting its rows, drawing those that people look at, and finding its account."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpsynth_core.ledger.row_sketch import RowSketch
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.sources import SourceTable
from dpsynth_core.ledger.streamed_fingerprint import streamed_fingerprints, streamed_sketch
from dpsynth_core.progress import Progress
from dpsynth_core.runs.originals import rows_read
from dpsynth_core.table.file_layout import remember_layout
from dpsynth_core.table.private_rows import RowsRead
from dpsynth_core.table.row_sample import sample_size
from dpsynth_core.table.schema import Schema
from dpsynth_core.table.suggest import Suggestion, suggest


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
