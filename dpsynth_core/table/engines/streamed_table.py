"""A private table whose rows stay where they are: every question is a pass over batches of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np
import pandas as pd

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import EngineError, SchemaError
from dpsynth_core.privacy.budget import Guarantee
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.counts import SparseCounts
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.engines.cell_sample import CellSampleTask
from dpsynth_core.table.engines.pass_control import PassControl, ReadingPace
from dpsynth_core.table.engines.row_tasks import Accumulator, HistogramTask, RangeTask, RowTask, SumTask, TakeTask
from dpsynth_core.table.estimate import ColumnCounts, count_labels, label_rows
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.private_rows import CellCounts, CellMap, RowsRead, Summand, cell_counts, sampled_rows
from dpsynth_core.table.private_table import LAYOUT_NOT_DECLARED, PrivateTable
from dpsynth_core.table.schema import Schema

CHANGED = "The table was changed while it was read. Several passes must see the same rows, so nothing is released."


def nobody_watches(read: int, rows: int, rate: float) -> None:
    """Nobody is told."""


class StreamedTable(ABC):
    """What every engine shares; one that keeps its rows in some place says how a pass is made there."""

    def __init__(self, schema: Schema, layout: FileLayout, *, names: Sequence[str], read_as_declared: bool) -> None:
        missing = [name for name in schema.names if name not in names]
        if missing:
            remedy = "Remove it from the schema or correct the name."
            raise SchemaError(missing[0], "name", missing[0], allowed="a column of the table", remedy=remedy)
        self._schema = schema
        self._layout = layout
        self._names = tuple(names)
        self._read_as_declared = read_as_declared
        self._n = 0
        self._watch: RowsRead = nobody_watches
        self._control = PassControl()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n} rows, columns {', '.join(map(repr, self.schema.names))})"

    @property
    def schema(self) -> Schema:
        return self._schema

    @property
    def n(self) -> int:
        """Number of rows: public, because neighbours replace a row and never add one."""
        return self._n

    @property
    def rows_in_all(self) -> int:
        """The same: none of them is left out."""
        return self._n

    @property
    def file_columns(self) -> tuple[str, ...]:
        """Every column that is stored, declared or not."""
        return self._names

    @property
    def single_file(self) -> str | None:
        """The one file of this machine that holds the rows and nothing else; None where there is no such file."""
        return None

    @property
    def layout(self) -> FileLayout:
        """How numbers and missing values are written in its cells."""
        return self._layout

    @property
    def stamp(self) -> str:
        """Names the stored rows as they were when the table was opened; empty where an engine cannot tell."""
        return ""

    def run(self, task: RowTask, total: Accumulator) -> None:
        """One pass over all rows, of a table that is the same before and after it, into an accumulator of the task."""
        self._control.check()
        self.check_snapshot()
        rows = self._run(task, total)
        self.check_snapshot()
        if rows != self._n:
            raise EngineError(CHANGED)

    @abstractmethod
    def check_snapshot(self) -> None:
        """Raise if the stored rows are not those that the table was opened with."""

    @abstractmethod
    def _run(self, task: RowTask, total: Accumulator) -> int:
        """A pass; how many rows it saw."""

    def histograms(self, sets: Sequence[Sequence[CellMap]]) -> list[CellCounts]:
        """Rows by cell for each set of directions, all in one pass."""
        task = HistogramTask(sets=tuple(tuple(maps) for maps in sets))
        total = task.start()
        self.run(task, total)
        return total.counts()

    def sums(self, summand: Summand) -> IntArray:
        """The sum over all rows."""
        task = SumTask(summand=summand)
        total = task.start()
        self.run(task, total)
        (vector,) = total.pack()
        return vector

    def counts(self, names: Iterable[str] | None = None, *, bins: Mapping[str, int] | None = None) -> SparseCounts:
        """Rows by cell over any subset of columns, as declared or with another number of ``bins``."""
        return cell_counts(self, names, bins=bins)

    def sample(self, size: int, noise: Noise) -> PrivateTable:
        """All rows, or ``size`` of them drawn by position, in memory."""
        return self.take(sampled_rows(self.n, size, noise))

    def take(self, rows: IntArray | None) -> PrivateTable:
        """Rows by position, in memory; None for all."""
        task = TakeTask(columns=self.schema.names, rows=rows)
        total = task.start()
        self.run(task, total)
        taken = total.pack()
        # Accumulators may be merged in any order; the rows are in that of the files.
        order = np.argsort(taken[0], kind="stable")
        positions = {}
        for i, column in enumerate(self.schema):
            values, missing = taken[1 + 2 * i][order], taken[2 + 2 * i]
            positions[column.name] = Positions(values=values, missing=missing[order] if column.nullable else None)
        return PrivateTable.of_positions(self.schema, positions, read_as_declared=self._read_as_declared)

    def range_counts(self, name: str) -> ColumnCounts:
        """Rows of a column by bin, for ``estimate_bounds``, in one pass."""
        task = RangeTask(column=name)
        total = task.start()
        self.run(task, total)
        (counts,) = total.pack()
        return ColumnCounts(column=name, counts=counts, layout=self.schema.file)

    def label_counts(self, name: str, noise: Noise) -> ColumnCounts:
        """Rows of a column by label, for ``discover_categories``: of all rows, or of ``MAX_LABEL_ROWS`` by position.

        There may be as many labels as rows, so those of a longer table need not fit into memory. A sample that is drawn
        whatever the rows hold keeps what is stated (docs/proofs.md, section 29).
        """
        rows = sampled_rows(self.n, label_rows(self.n), noise)
        cells = self.stored_cells(np.arange(self.n) if rows is None else rows, [name])
        return replace(count_labels(cells[name], self.layout), layout=self.schema.file)

    def stored_cells(self, rows: IntArray, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Stored cells of these rows, by ordinals in order, in memory: for people who may look at them."""
        task = CellSampleTask(columns=self.file_columns if names is None else tuple(names), rows=rows)
        total = task.start()
        self.run(task, total)
        return total.cells()

    def select(self, names: Iterable[str]) -> Self:
        """The same rows with these columns only, in the given order."""
        chosen = copy(self)
        chosen._schema = self.schema.select(names)
        return chosen

    def watched(self, watch: RowsRead) -> Self:
        """The same rows, with somebody told how far each pass is."""
        chosen = copy(self)
        chosen._watch = watch
        return chosen

    def pace(self) -> ReadingPace:
        """For a pass that is not a task: tells whoever watches how far it is."""
        return ReadingPace(self._watch, self.n, self._control)

    def judge(self, guarantee: Guarantee, estimates: Iterable[PaidEstimate] = ()) -> Guarantee:
        """The guarantee that remains, given where every fact comes from, the layout of the file included."""
        guarantee = self.schema.judge(guarantee, estimates)
        return guarantee if self._read_as_declared else guarantee.weakened("void", LAYOUT_NOT_DECLARED)

    def cancel(self) -> None:
        """From another thread: end the query that is running. This table, and what was selected from it, is done."""
        self._control.cancel()

    def close(self) -> None:  # noqa: B027  not every engine holds something
        """Let go of files and connections."""
