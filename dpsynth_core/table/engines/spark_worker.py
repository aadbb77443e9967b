"""What a Spark worker does with its share of the rows: the one codec, and whole numbers that are added up.

What travels back is a line for each partition: how many rows it had, and arrays of numbers in NumPy's own format, never
anything that could be executed.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpsynth_core.errors import EngineError
from dpsynth_core.table.engines.row_batch import RowBatch, cells_of
from dpsynth_core.table.engines.row_tasks import Accumulator, Packed, RowTask
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.schema import Schema

ABSENT, DIFFERENT = "absent", "different"
WORKER_PROBLEMS = {
    ABSENT: "A worker of the Spark cluster does not have the package dpsynth_core, or an older version of it, or not "
    "what it needs. Install the same version on every worker, for the Python that the workers run.",
    DIFFERENT: "A worker of the Spark cluster has another version of dpsynth_core, numpy, pandas or pyarrow than this "
    "machine, so a cell might mean something else there. Install the same versions on every worker.",
}


@dataclass(frozen=True, kw_only=True)
class PartitionWork:
    """A pass, as every partition of it needs it."""

    task: RowTask
    names: tuple[str, ...]
    """Of the columns, in the order in which they arrive."""
    schema: Schema
    layout: FileLayout
    offsets: Mapping[int, int] | None
    """Rows of the table before each file, by the file's hash. The last two columns of a batch then are the hash of the
    file and the row's index in it; None for a task that does not ask which rows it is given."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> tuple[int, bytes]:
        """All rows of a partition: how many they are, and what they add up to."""
        total, count = self.task.start(), 0
        for batch in batches:
            for first, part in self._consecutive(batch):
                cells = cells_of(part, self.names)
                total.add(RowBatch(cells=cells, schema=self.schema, layout=self.layout, first=first))
            count += batch.num_rows
        return count, packed_bytes(total.pack())

    def _consecutive(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Pieces of a batch whose rows follow each other in the table, with the ordinal of the first.

        Spark may put parts of several files into a partition, in any order.
        """
        if self.offsets is None:
            yield 0, batch
            return
        files, index = (column.to_numpy(zero_copy_only=False) for column in batch.columns[-2:])
        known, which = np.unique(files, return_inverse=True)
        ordinals = np.array([self.offsets[int(file)] for file in known], dtype=np.int64)[which] + index
        edges = [0, *(np.flatnonzero(np.diff(ordinals) != 1) + 1), batch.num_rows]
        rows = batch.select(list(range(batch.num_columns - 2)))
        for begin, end in pairwise(edges):
            if begin < end:
                yield int(ordinals[begin]), rows.slice(begin, end - begin)


def answer(payload: bytes, digest: str, batches: Iterator[pa.RecordBatch]) -> tuple[str, int, bytes]:
    """On a worker that has the package: the line of a partition, or why there is none."""
    if code_digest() != digest:
        return DIFFERENT, 0, b""
    if not payload:
        return "", 0, b""
    work: PartitionWork = pickle.loads(payload)  # noqa: S301  from the driver, as the function itself is
    return "", *work.run(batches)


def check_workers(answers: pa.Table) -> None:
    """Raise if a worker could not do what it was asked for."""
    problems = sorted(filter(None, answers.column("problem").to_pylist()))
    if problems:
        raise EngineError(WORKER_PROBLEMS[problems[0]])


def absorb(answers: pa.Table, total: Accumulator) -> int:
    """Add up the lines of all partitions on the driver; how many rows they had."""
    check_workers(answers)
    for packed in answers.column("packed"):
        total.absorb(unpacked(packed.as_buffer()))
    return int(sum(answers.column("count").to_pylist()))


def packed_bytes(arrays: Packed) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{str(i): array for i, array in enumerate(arrays)}, allow_pickle=False)
    return buffer.getvalue()


def unpacked(data: Any) -> Packed:
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return [stored[str(i)] for i in range(len(stored.files))]


@cache
def code_digest() -> str:
    """Of this package's source, and of the versions of what decides with it what a cell means."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for name in ("numpy", "pandas", "pyarrow"):
        digest.update(f"{name} {version(name)}\n".encode())
    for path in sorted(_sources(root), key=lambda path: path.as_posix()):
        content = (root / path).read_bytes()
        digest.update(f"{path.as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _sources(root: Path) -> Sequence[Path]:
    """The core's own modules; an installed package holds the app as well."""
    found = (path.relative_to(root) for path in root.rglob("*.py"))
    return [path for path in found if path.parts[0] != "_app"]
