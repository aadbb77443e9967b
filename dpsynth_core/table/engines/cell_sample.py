"""Cells of chosen rows as they are stored, before anything is declared: for people who may look at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import IntakeError
from dpsynth_core.table.engines.row_batch import RowBatch, cells_of
from dpsynth_core.table.engines.row_tasks import Packed

MAX_SAMPLE_BYTES = 512 * 2**20


class SampledCells:
    """Rows so far, with their ordinals: engines may hand over batches in any order."""

    def __init__(self, task: CellSampleTask) -> None:
        self._task, self._bytes = task, 0
        self._parts: list[tuple[IntArray, pd.DataFrame]] = []

    def add(self, batch: RowBatch) -> None:
        rows = self._task.rows
        begin, end = np.searchsorted(rows, [batch.first, batch.first + batch.n])
        if begin == end:
            return
        cells = batch.cells.iloc[rows[begin:end] - batch.first]
        self._bytes += int(cells.memory_usage(deep=True).sum())
        if self._bytes > MAX_SAMPLE_BYTES:
            raise IntakeError(
                f"The rows to look at take more than {MAX_SAMPLE_BYTES >> 20} MiB of memory, so some column holds long "
                "texts; offer a table without it."
            )
        self._parts.append((rows[begin:end], cells))

    def pack(self) -> Packed:
        """The cells as bytes of Arrow's own format, which holds values and nothing that could be executed."""
        if not self._parts:
            return []
        ordinals, cells = self._joined()
        table = pa.Table.from_pandas(cells, preserve_index=False).combine_chunks()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return [ordinals, np.frombuffer(sink.getvalue(), dtype=np.uint8)]

    def absorb(self, packed: Packed) -> None:
        if packed:
            ordinals, content = packed
            (batch,) = pa.ipc.open_stream(pa.py_buffer(content.tobytes())).read_all().to_batches()
            self._parts.append((ordinals, cells_of(batch, self._task.columns)))

    def cells(self) -> pd.DataFrame:
        """All of them, in the order of the table."""
        ordinals, cells = self._joined()
        return cells.iloc[np.argsort(ordinals, kind="stable")].reset_index(drop=True)

    def _joined(self) -> tuple[IntArray, pd.DataFrame]:
        ordinals, cells = zip(*self._parts, strict=True)
        return np.concatenate(ordinals), pd.concat(cells, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class CellSampleTask:
    """The cells of chosen rows, in one pass."""

    by_position: ClassVar[bool] = True
    columns: tuple[str, ...]
    rows: IntArray
    """Ordinals, in order; at least one."""

    def start(self) -> SampledCells:
        return SampledCells(self)
