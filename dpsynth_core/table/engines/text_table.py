"""A text file of any length, read a piece at a time by the same grammar as one that is read whole.

No engine's own reader of CSV is used: each guesses, and none has the declared grammar (docs/proofs.md, section 6).
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa

from dpsynth_core.errors import EngineError, IntakeError
from dpsynth_core.table.cell_loops import whole_records
from dpsynth_core.table.engines.pass_control import ReadingPace
from dpsynth_core.table.engines.row_batch import RowBatch
from dpsynth_core.table.engines.row_tasks import Accumulator, RowTask
from dpsynth_core.table.engines.snapshot import Snapshot
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.readers.delimited import Grammar, line_breaks, read_text_fields, without_lines
from dpsynth_core.table.readers.frames import series_of
from dpsynth_core.table.readers.sniff import clean_names
from dpsynth_core.table.schema import Schema

PIECE_BYTES = 8 * 2**20
MAX_RECORD_BYTES = 64 * 2**20
"""Of one record: a longer one is a quotation mark that was never closed."""

NO_LAYOUT = (
    "A text file that stays where it is can only be read by a declared layout; add it to the schema as "
    '"file", for instance as the command "suggest" prints it for a small extract.'
)


class TextReader:
    """The records of one file, in order."""

    def __init__(self, path: str, layout: FileLayout, *, piece_bytes: int = PIECE_BYTES) -> None:
        name = codecs.lookup(layout.encoding).name
        if name.startswith(("utf-16", "utf-32")) and os.path.getsize(path) % (int(name[4:6]) // 8):
            raise IntakeError(
                f"This file is not {layout.encoding} text, or it was cut short; declare another encoding."
            )
        self._path, self._layout, self._piece_bytes = path, layout, piece_bytes
        header = self._header()
        self.names = clean_names(header)
        self._grammar = Grammar(layout=layout, width=len(header))

    def frames(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """The cells of these columns, some records at a time."""
        lines, header = 1 + self._layout.skip_rows, self._layout.header
        for piece in self._pieces():
            _, arrays = read_text_fields(piece, replace(self._grammar, header=header, first_line=lines))
            header = False
            lines += line_breaks(piece)
            chosen = {name: series_of(pa.chunked_array([arrays[self.names.index(name)]])) for name in columns}
            cells = pd.DataFrame(chosen, copy=False)
            if len(cells):
                yield cells

    def _header(self) -> list[str]:
        """What the fields are called; nothing where there is no header."""
        layout, pieces = self._layout, self._pieces()
        if not layout.header:
            return [""] * (layout.fields or 0)
        piece = next(pieces, b"")
        pieces.close()
        end = whole_records(np.frombuffer(piece, dtype=np.uint8), *Grammar(layout=layout).signs, 1)
        return read_text_fields(piece[:end] if end else piece, Grammar(layout=layout))[0]

    def _pieces(self) -> Generator[bytes]:
        """Whole records as UTF-8, the lines to skip left out, so many bytes at a time."""
        layout = self._layout
        decoder = codecs.getincrementaldecoder(layout.encoding)("replace")
        signs = Grammar(layout=layout).signs
        marks = 2 if codecs.lookup(layout.encoding).name == "utf-8" else 1
        begun, waiting, start = False, b"", ""
        with open(self._path, "rb") as file:
            while True:
                data = file.read(self._piece_bytes)
                text = decoder.decode(data, final=not data)
                if not begun:
                    start += text
                    marked = len(start[:marks]) - len(start[:marks].lstrip("\ufeff"))
                    skipped = without_lines(start[marked:].encode("utf-8", "replace"), layout.skip_rows)
                    if data and not skipped:
                        continue  # a mark or a line that is skipped may go on
                    begun, fresh = True, skipped
                else:
                    fresh = text.encode("utf-8", "replace")
                waiting += fresh
                if not data:
                    break
                end = whole_records(np.frombuffer(waiting, dtype=np.uint8), *signs, 0)
                if end:
                    yield waiting[:end]
                    waiting = waiting[end:]
                elif len(waiting) > MAX_RECORD_BYTES:
                    raise IntakeError(
                        "A record is longer than 64 MiB, so a quotation mark is probably never closed; close it, or "
                        "declare that this file puts no cells in quotation marks."
                    )
        if waiting:
            yield waiting


class TextTable(StreamedTable):
    """Records of a text file."""

    def __init__(self, snapshot: Snapshot, schema: Schema) -> None:
        layout = schema.file
        if layout is None or layout.format != "text":
            raise EngineError(NO_LAYOUT)
        self._snapshot = snapshot
        self._reader = TextReader(snapshot.paths[0], layout)
        super().__init__(schema, layout, names=self._reader.names, read_as_declared=True)
        # Whether the file keeps to its grammar is found out now, before anything is charged.
        self._n = sum(len(cells) for cells in self._reader.frames(self._names[:1]))
        if not self._n:
            raise EngineError("This table has no rows.")
        self.check_snapshot()

    @property
    def single_file(self) -> str | None:
        return self._snapshot.paths[0]

    @property
    def stamp(self) -> str:
        return self._snapshot.stamp

    def check_snapshot(self) -> None:
        self._snapshot.check()

    def _run(self, task: RowTask, total: Accumulator) -> int:
        pace, rows = ReadingPace(self._watch, self._n, self._control), 0
        for cells in self._reader.frames(task.columns or self._names[:1]):
            total.add(RowBatch(cells=cells, schema=self.schema, layout=self._layout, first=rows))
            rows += len(cells)
            pace.read(rows)
        return rows
