"""The names of a table whose rows stay where they are: those of its file where it could be uploaded as well.

A file that is small enough to be read into memory has the names that an upload of it has, so that its account is found
whichever way it is opened. A longer one, a folder or a database has the name that one pass gives.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from dpsynth_core.ledger.file_fingerprint import file_fingerprints, file_sketch, text_lines
from dpsynth_core.ledger.fingerprint import CellHasher
from dpsynth_core.ledger.multiset_fingerprint import VERSION, FingerprintTask, MultisetSum
from dpsynth_core.ledger.row_sketch import RowSketch, RowSketcher, sketch_hasher, with_lines
from dpsynth_core.table.engines.row_batch import RowBatch
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.engines.text_table import TextTable
from dpsynth_core.table.readers.limits import DEFAULT_LIMITS, Limits
from dpsynth_core.table.readers.read import file_content

PIECE_BYTES = 8 * 2**20


def streamed_fingerprints(table: StreamedTable, key: bytes, *, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """The name for a new account, then any other that the table has or had."""
    file = table.single_file
    if _could_be_uploaded(table, limits):
        return file_fingerprints(file_content(str(file), limits), key)
    hasher = CellHasher(key, VERSION)
    if file is not None and isinstance(table, TextTable):
        lines, pace, read = MultisetSum(hasher, 1), table.pace(), 0
        table.check_snapshot()
        for piece in _whole_lines(file):
            cells = text_lines(piece).to_frame("line")
            lines.add_cells(cells)
            read += len(cells)
            pace.read(min(read, table.n))  # a header, or a cell with a line break, is no row
        table.check_snapshot()
        return (lines.digest(),)
    task = FingerprintTask(columns=table.file_columns, hasher=hasher)
    total = task.start()
    table.run(task, total)
    return (total.digest(),)


def streamed_sketch(table: StreamedTable, key: bytes, *, limits: Limits = DEFAULT_LIMITS) -> RowSketch:
    """By which a table that shares most of its rows with this one is recognised, in memory or not."""
    file = table.single_file
    if _could_be_uploaded(table, limits):
        return file_sketch(file_content(str(file), limits), key)
    task = SketchTask(columns=table.file_columns, hasher=sketch_hasher(key))
    total = task.start()
    table.run(task, total)
    if file is None or not isinstance(table, TextTable):
        return total.sketch()
    sketch = with_lines(total.sketch(), map(text_lines, _whole_lines(file)), key)
    table.check_snapshot()
    return sketch


@dataclass(frozen=True)
class SketchTask:
    """One pass over every stored column. A derived key travels with it, never the installation key."""

    by_position: ClassVar[bool] = False
    columns: tuple[str, ...]
    hasher: CellHasher

    def start(self) -> BatchSketcher:
        return BatchSketcher(self.hasher, len(self.columns))


class BatchSketcher(RowSketcher):
    """Takes batches as an engine hands them over."""

    def add(self, batch: RowBatch) -> None:
        self.add_cells(batch.cells)


def _could_be_uploaded(table: StreamedTable, limits: Limits) -> bool:
    file = table.single_file
    return file is not None and os.path.getsize(file) <= limits.bytes and table.n <= limits.rows


def _whole_lines(path: str) -> Iterator[bytes]:
    waiting = b""
    with open(path, "rb") as file:
        while data := file.read(PIECE_BYTES):
            waiting += data
            end = waiting.rfind(b"\n") + 1
            if end:
                yield waiting[:end]
                waiting = waiting[end:]
    if waiting:
        yield waiting
