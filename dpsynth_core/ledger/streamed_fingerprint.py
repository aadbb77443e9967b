"""The names of a table whose rows stay where they are: those of its file where it could be uploaded as well.

A file that is small enough to be read into memory has the names that an upload of it has, so that its account is found
whichever way it is opened. A longer one, a folder or a database has the name that one pass gives.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from dpsynth_core.ledger.file_fingerprint import file_fingerprints, text_lines
from dpsynth_core.ledger.fingerprint import CellHasher
from dpsynth_core.ledger.multiset_fingerprint import VERSION, FingerprintTask, MultisetSum
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.engines.text_table import TextTable
from dpsynth_core.table.readers.limits import DEFAULT_LIMITS, Limits
from dpsynth_core.table.readers.read import file_content

PIECE_BYTES = 8 * 2**20


def streamed_fingerprints(table: StreamedTable, key: bytes, *, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """The name for a new account, then any other that the table has or had."""
    file = table.single_file
    if file is not None and os.path.getsize(file) <= limits.bytes and table.n <= limits.rows:
        return file_fingerprints(file_content(file, limits), key)
    hasher = CellHasher(key, VERSION)
    if file is not None and isinstance(table, TextTable):
        lines = MultisetSum(hasher, 1)
        table.check_snapshot()
        for piece in _whole_lines(file):
            lines.add_cells(text_lines(piece).to_frame("line"))
        table.check_snapshot()
        return (lines.digest(),)
    task = FingerprintTask(columns=table.file_columns, hasher=hasher)
    total = task.start()
    table.run(task, total)
    return (total.digest(),)


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
