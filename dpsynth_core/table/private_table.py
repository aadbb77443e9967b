"""The private table, which gives out exact counts over declared cells, and rows to mechanisms that need them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy

import pandas as pd

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import SchemaError
from dpsynth_core.privacy.budget import Guarantee
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.column import Column
from dpsynth_core.table.counts import SparseCounts, count_cells
from dpsynth_core.table.encoding import Positions, codec_for, reading_layout
from dpsynth_core.table.file_layout import layout_of
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.private_rows import (
    CellCounts,
    CellMap,
    PrivateRows,
    RowsRead,
    Summand,
    cell_counts,
    sampled_rows,
)
from dpsynth_core.table.schema import Schema

LONG_TABLE = 100_000
"""Rows from which on columns are encoded on several cores."""
LAYOUT_NOT_DECLARED = (
    "The file was not read by a layout that the schema declares, so what a row means may depend on the others. "
    'Declare the layout under "file" and read the file by it.'
)


def read_as_declared(table: pd.DataFrame, schema: Schema) -> bool:
    """Whether a table that comes from a file was read by the layout that the schema declares."""
    read_by = layout_of(table.attrs)
    # As plain values: what a format does not have makes no difference.
    return read_by is None or (schema.file is not None and read_by.to_dict() == schema.file.to_dict())


class PrivateTable:
    """A sensitive table together with the public facts declared about it.

    What it returns is exact and private; only a mechanism may turn it into something to show. Its representation
    shows no cell.

    Example:
        >>> schema = Schema.from_dict({"columns": [
        ...     {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True}]})
        >>> table = PrivateTable(pd.DataFrame({"sex": ["m", "f", "m"]}), schema)
        >>> table.counts().counts.tolist()
        [1, 2]
    """

    def __init__(self, table: pd.DataFrame, schema: Schema) -> None:
        missing = [name for name in schema.names if name not in table.columns]
        if missing:
            remedy = "Remove it from the schema or correct the name."
            raise SchemaError(missing[0], "name", missing[0], allowed="a column of the table", remedy=remedy)
        repeated = [name for name in schema.names if isinstance(table[name], pd.DataFrame)]
        if repeated:
            raise SchemaError(repeated[0], "name", repeated[0], allowed="a name that occurs once in the table")
        if not len(table):
            raise SchemaError(None, "rows", 0, allowed="at least one row", remedy="Choose a table with rows.")
        self.schema = schema
        self._n = len(table)
        self._read_as_declared = read_as_declared(table, schema)
        layout = reading_layout(table, schema.file)

        def positions(column: Column) -> Positions:
            return codec_for(column, layout).positions(table[column.name])

        if len(table) < LONG_TABLE:
            self._positions = {column.name: positions(column) for column in schema}
        else:  # columns do not depend on each other, and long arrays are worked on outside the interpreter's lock
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                self._positions = dict(zip(schema.names, pool.map(positions, schema), strict=True))

    def __repr__(self) -> str:
        return f"PrivateTable({self.n} rows, columns {', '.join(map(repr, self.schema.names))})"

    @property
    def n(self) -> int:
        """Number of rows: public, because neighbours replace a row and never add one."""
        return self._n

    @property
    def every_row(self) -> PrivateRows:
        """What counts all rows: this table, unless it is a sample of a longer one."""
        return self

    @property
    def rows_in_all(self) -> int:
        """Rows of the table that these are, or that they were drawn from."""
        return self.n

    @property
    def basis(self) -> str:
        """On how many of how many rows whatever is computed from it is computed; empty where that is all of them."""
        return ""

    def judge(self, guarantee: Guarantee, estimates: Iterable[PaidEstimate] = ()) -> Guarantee:
        """The guarantee that remains, given where every fact comes from, the layout of the file included."""
        guarantee = self.schema.judge(guarantee, estimates)
        return guarantee if self._read_as_declared else guarantee.weakened("void", LAYOUT_NOT_DECLARED)

    def counts(self, names: Iterable[str] | None = None, *, bins: Mapping[str, int] | None = None) -> SparseCounts:
        """Rows by cell over any subset of columns, as declared or with another number of ``bins``."""
        return cell_counts(self, names, bins=bins)

    def histograms(self, sets: Sequence[Sequence[CellMap]]) -> list[CellCounts]:
        """Rows by cell for each set of directions."""
        uses = Counter(id(each) for maps in sets for each in maps)
        located: dict[int, IntArray] = {}

        def codes(each: CellMap) -> IntArray:
            """Located once, and let go after the last set that needs it."""
            key = id(each)
            uses[key] -= 1
            if key not in located:
                located[key] = each.locate(self)
            return located[key] if uses[key] else located.pop(key)

        return [count_cells([codes(each) for each in maps], [each.size for each in maps]) for maps in sets]

    def sums(self, summand: Summand) -> IntArray:
        """The sum over all rows."""
        return summand.total(self)

    def sample(self, size: int, noise: Noise) -> PrivateTable:
        """All rows, or ``size`` of them drawn by position, whatever they hold."""
        rows = sampled_rows(self.n, size, noise)
        return self if rows is None else self.resampled(rows, {})

    def positions(self, name: str) -> Positions:
        """Each row's position in a column's declared domain, at full resolution."""
        self.schema[name]
        return self._positions[name]

    @classmethod
    def of_positions(
        cls, schema: Schema, positions: Mapping[str, Positions], *, read_as_declared: bool
    ) -> PrivateTable:
        """Rows that were encoded elsewhere."""
        table = cls.__new__(cls)
        table.schema, table._positions = schema, dict(positions)
        table._n, table._read_as_declared = len(next(iter(positions.values())).values), read_as_declared
        return table

    def watched(self, watch: RowsRead) -> PrivateTable:  # noqa: ARG002  nothing is read any more
        """The same table: there is nothing to wait for."""
        return self

    def select(self, names: Iterable[str]) -> PrivateTable:
        """The same rows with these columns only, in the given order; nothing is read again."""
        chosen = copy(self)
        chosen.schema = self.schema.select(names)
        chosen._positions = {name: self._positions[name] for name in chosen.schema.names}
        return chosen

    def resampled(self, rows: IntArray, given: Mapping[str, Positions]) -> PrivateTable:
        """A simulated table: these rows, a row as often as it is named, with some columns' positions given instead."""
        drawn = copy(self)
        drawn._n = len(rows)
        drawn._positions = {name: given.get(name) or _taken(self._positions[name], rows) for name in self.schema.names}
        return drawn

    def rows(self) -> pd.DataFrame:
        """The rows, fitted into the declared domain, with the schema's columns, order and types."""
        return pd.DataFrame({c.name: codec_for(c).restore(self._positions[c.name]) for c in self.schema})


def _taken(positions: Positions, rows: IntArray) -> Positions:
    missing = None if positions.missing is None else positions.missing[rows]
    return Positions(values=positions.values[rows], missing=missing)
