"""A run whose synthetic table is too long to be held: its rows are drawn as they are written."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pandas as pd

from dpsynth_core.errors import ParameterError
from dpsynth_core.progress import RunProgress
from dpsynth_core.runs.configuration import NO_PROGRESS, RunConfig, RunResult, released, result_of
from dpsynth_core.runs.originals import OriginalRows, opened
from dpsynth_core.runs.synthesize import BATCH_ROWS
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class LongRun:
    """A synthetic table that is too long to be held. Nothing in it is private."""

    result: RunResult
    """With the first rows as its table."""
    rows: int
    """Of the whole table."""
    rest: Iterator[pd.DataFrame]
    """The other rows, drawn as they are asked for."""


def execute_long(
    table: OriginalRows,
    schema: Schema,
    config: RunConfig,
    estimates: Iterable[PaidEstimate] = (),
    *,
    progress: RunProgress = NO_PROGRESS,
    size: int = BATCH_ROWS,
) -> LongRun:
    """As ``execute``, for one table of any length: it is drawn ``size`` rows at a time."""
    if config.copies != 1 or config.selection is not None:
        raise ParameterError("copies", config.copies, allowed="1 for a table that is too long to be held")
    began = time.monotonic()
    progress("Reading the table", 0.0)
    with opened(table, schema) as private:
        release = released(private, config, 0, progress, lambda _: progress.drawn())
    progress("Drawing rows", 0.95)
    batches = release.sample_batches(size=size)
    result = result_of(
        private,
        config,
        first=release,
        tables=[next(batches)],
        guarantee=release.guarantee,
        estimates=estimates,
        progress=progress,
    )
    return LongRun(
        result=replace(result, seconds=time.monotonic() - began), rows=config.mechanism.rows or private.n, rest=batches
    )
