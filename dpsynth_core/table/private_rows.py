"""What a mechanism may ask of private rows, wherever they are.

A mechanism needs counts over cells that it names itself, or sums of whole numbers over all rows, and a few need some
rows at hand. It asks for no more, so it cannot tell a table in memory from files of any size.

Every question is answered row by row: a ``CellMap`` gives each row its cell and a ``Summand`` gives some rows what they
add up to, from these rows and public facts alone. Whole numbers are added up, so the answer is the same however the
rows are cut into batches, and in whichever order these come (docs/proofs.md, section 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import SchemaError
from dpsynth_core.privacy.budget import Guarantee
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.column import Column
from dpsynth_core.table.counts import SparseCounts
from dpsynth_core.table.encoding import Positions, codec_for
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.schema import Schema

if TYPE_CHECKING:
    from dpsynth_core.table.private_table import PrivateTable

CellCounts: TypeAlias = tuple[IntArray, IntArray]
"""Occupied cells, one line each in lexicographic order, and the number of rows in each. Private."""


RowsRead: TypeAlias = Callable[[int, int, float], None]
"""Told how many rows a pass has read, how many there are, and how many it reads in a second; raises to cancel."""


class RowsAtHand(Protocol):
    """Some rows in memory, fitted into the declared domain: all of a table, or one batch of it."""

    @property
    def n(self) -> int:
        """How many."""

    def positions(self, name: str) -> Positions:
        """Each row's position in a column's declared domain, at full resolution."""


class CellMap(Protocol):
    """One direction of a group-by: which of ``size`` cells each row lies in."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What it looks at."""

    @property
    def size(self) -> int:
        """Number of cells."""

    def locate(self, rows: RowsAtHand) -> IntArray:
        """Each row's cell, from 0 to ``size - 1``, by that row alone."""


class Summand(Protocol):
    """What each row adds to a vector of whole numbers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What it looks at."""

    def total(self, rows: RowsAtHand) -> IntArray:
        """The sum over these rows; its length is the same for any of them."""


class PrivateRows(Protocol):
    """A private table, wherever its rows are. What it returns is exact and private."""

    @property
    def schema(self) -> Schema:
        """Public facts."""

    @property
    def n(self) -> int:
        """Number of rows: public, because neighbours replace a row and never add one."""

    @property
    def rows_in_all(self) -> int:
        """Rows of the table that these are, or that they were drawn from."""

    def counts(self, names: Iterable[str] | None = None, *, bins: Mapping[str, int] | None = None) -> SparseCounts:
        """Rows by cell over any subset of columns, as declared or with another number of ``bins``."""

    def histograms(self, sets: Sequence[Sequence[CellMap]]) -> list[CellCounts]:
        """Rows by cell for each set of directions, all in one pass over the rows."""

    def sums(self, summand: Summand) -> IntArray:
        """The sum over all rows."""

    def sample(self, size: int, noise: Noise) -> PrivateTable:
        """Rows at hand: all of them, or ``size`` drawn by position, whatever they hold (docs/proofs.md, section 29)."""

    def select(self, names: Iterable[str]) -> Self:
        """The same rows with these columns only, in the given order."""

    def watched(self, watch: RowsRead) -> Self:
        """The same rows, with somebody told how far each pass over them is."""

    def judge(self, guarantee: Guarantee, estimates: Iterable[PaidEstimate] = ()) -> Guarantee:
        """The guarantee that remains, given where every fact comes from, the layout of the file included."""


@dataclass(frozen=True, kw_only=True)
class DeclaredCells:
    """A column's declared cells, the missing level last."""

    column: Column

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    @property
    def size(self) -> int:
        return self.column.size

    def locate(self, rows: RowsAtHand) -> IntArray:
        return codec_for(self.column).codes(rows.positions(self.column.name))


def cell_counts(
    table: PrivateRows, names: Iterable[str] | None = None, *, bins: Mapping[str, int] | None = None
) -> SparseCounts:
    """Rows by declared cell over any subset of columns, or with another number of ``bins``."""
    chosen = table.schema.names if names is None else tuple(names)
    if not chosen:
        raise SchemaError(None, "columns", [], allowed="one or more columns")
    columns = [
        replace(table.schema[name], bins=bins[name]) if bins and name in bins else table.schema[name] for name in chosen
    ]
    ((cells, counts),) = table.histograms([[DeclaredCells(column=column) for column in columns]])
    return SparseCounts(columns=chosen, shape=tuple(c.size for c in columns), cells=cells, counts=counts)


def full_counts(counted: CellCounts, shape: Sequence[int]) -> IntArray:
    """Every cell's count as an array, empty ones included."""
    cells, counts = counted
    full = np.zeros(tuple(shape), dtype=np.int64)
    full[tuple(cells.T)] = counts
    return full


def sampled_rows(n: int, size: int, noise: Noise) -> IntArray | None:
    """Positions of ``size`` rows, uniform and in order; None for all. Only the number of rows is looked at."""
    return None if size >= n else np.sort(noise.distinct(n, size).astype(np.int64))
