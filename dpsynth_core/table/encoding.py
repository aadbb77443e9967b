"""From the values of a column to codes over its declared cells, and back.

Every function here is total: whatever a cell holds (text among numbers, infinities, a label nobody declared)
it lands in a declared cell by a rule that looks at that cell alone (``cells.py``). No row can make encoding fail, so
whether it succeeds says nothing about a row.

A *position* is where a value lies in the declared domain before it is cut into cells: a float within the
bounds, a step on the lattice of whole numbers, days or decimals, or the index of a label. A *code* is the
index of the cell; the missing level, if there is one, comes last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.table.cells import DEFAULT_LAYOUT, MISSING_LABEL, LabelReader, column_dates, column_numbers
from dpsynth_core.table.column import Column
from dpsynth_core.table.file_layout import FileLayout, layout_of
from dpsynth_core.table.schema import Schema

Uniform: TypeAlias = Callable[[int], FloatArray]
"""Draws that many numbers from [0, 1)."""

_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, kw_only=True)
class Positions:
    """Where each row of one column lies in the declared domain."""

    values: FloatArray | IntArray
    """Float within the bounds, lattice step from zero, or label index; anything where missing."""
    missing: BoolArray | None
    """Rows without a value; None for a column that is not nullable."""


@dataclass(frozen=True, kw_only=True)
class MovedCells:
    """How many cells of one column were moved to fit. Depends on the rows: never shown in release mode."""

    clamped: int
    undeclared: int
    missing: int
    """Missing cells, counted only where the column is not nullable."""

    @property
    def total(self) -> int:
        """Cells that were moved for any reason."""
        return self.clamped + self.undeclared + self.missing


class Codec(ABC):
    """Translates one column."""

    def __init__(self, column: Column, layout: FileLayout = DEFAULT_LAYOUT) -> None:
        self.column = column
        self.layout = layout

    @abstractmethod
    def _read(self, series: pd.Series[Any]) -> tuple[Any, BoolArray]:
        """Raw values, not yet fitted into the domain, and which of them are missing."""

    @abstractmethod
    def _outside(self, raw: Any) -> BoolArray:
        """Which raw values do not lie in the declared domain; anything where missing."""

    @abstractmethod
    def _fit(self, raw: Any, missing: BoolArray) -> tuple[FloatArray | IntArray, BoolArray]:
        """Every raw value moved into the domain, and what counts as missing if missing is a level."""

    @abstractmethod
    def _levels(self, values: FloatArray | IntArray) -> IntArray:
        """The cell of each position."""

    @abstractmethod
    def _inside(self, levels: IntArray, uniform: Uniform | None) -> FloatArray | IntArray:
        """A position inside each cell: its centre, or anywhere in it."""

    @abstractmethod
    def _values(self, positions: Positions) -> pd.Series[Any]:
        """Values of the column's own type."""

    def positions(self, series: pd.Series[Any]) -> Positions:
        """Each row's position in the declared domain."""
        values, missing = self._fit(*self._read(series))
        return Positions(values=values, missing=missing if self.column.nullable else None)

    def moved_cells(self, series: pd.Series[Any]) -> MovedCells:
        """How many cells had to be moved."""
        raw, missing = self._read(series)
        outside = int(np.count_nonzero(self._outside(raw) & ~missing))
        numeric = self.column.is_numeric
        return MovedCells(
            clamped=outside if numeric else 0,
            undeclared=0 if numeric else outside,
            missing=0 if self.column.nullable else int(np.count_nonzero(missing)),
        )

    def codes(self, positions: Positions) -> IntArray:
        """Each row's cell; the missing level comes last."""
        levels = self._levels(positions.values)
        if positions.missing is not None:
            levels[positions.missing] = self.column.levels
        return levels

    def decode(self, codes: IntArray, uniform: Uniform | None = None) -> pd.Series[Any]:
        """Values from cells, at the cell's centre or (given ``uniform``) anywhere in it."""
        codes = np.asarray(codes, dtype=np.int64)
        missing = codes >= self.column.levels if self.column.nullable else None
        levels = codes if missing is None else np.where(missing, 0, codes)
        return self.restore(Positions(values=self._inside(levels, uniform), missing=missing))

    def restore(self, positions: Positions) -> pd.Series[Any]:
        """Values of the column's own type and name."""
        return self._values(positions).rename(self.column.name)


class RealCodec(Codec):
    """A continuum between two bounds, cut into equal bins."""

    @cached_property
    def _bounds(self) -> tuple[float, float]:
        return float(self.column.lower), float(self.column.upper)  # type: ignore[arg-type]

    def _read(self, series: pd.Series[Any]) -> tuple[FloatArray, BoolArray]:
        values = column_numbers(series, self.layout)
        return values, np.isnan(values)

    def _outside(self, raw: FloatArray) -> BoolArray:
        low, high = self._bounds
        return (raw < low) | (raw > high)

    def _fit(self, raw: FloatArray, missing: BoolArray) -> tuple[FloatArray, BoolArray]:
        low, high = self._bounds
        inside = np.clip(raw, low, high, out=raw)  # in place: `_read` has made it for this
        inside[missing] = low + (high - low) / 2
        return inside, missing

    def _levels(self, values: FloatArray | IntArray) -> IntArray:
        low, high = self._bounds
        levels = ((values - low) / (high - low) * self.column.levels).astype(np.int64)
        return np.minimum(levels, self.column.levels - 1)

    def _inside(self, levels: IntArray, uniform: Uniform | None) -> FloatArray:
        centre = self._at(levels, 0.5)
        if uniform is None:
            return centre
        values = self._at(levels, uniform(len(levels)))
        # A draw just below one can round onto the next cell's edge.
        return np.where(self._levels(values) == levels, values, centre)

    def _at(self, levels: IntArray, fraction: float | FloatArray) -> FloatArray:
        low, high = self._bounds
        return low + (levels + fraction) / self.column.levels * (high - low)

    def _values(self, positions: Positions) -> pd.Series[Any]:
        values = positions.values
        return pd.Series(values if positions.missing is None else np.where(positions.missing, np.nan, values))


class LatticeCodec(Codec):
    """Whole numbers, days, or decimals with a fixed number of digits: evenly spaced points in cells."""

    @cached_property
    def _points(self) -> tuple[int, int]:
        points = self.column.lattice
        assert points is not None  # noqa: S101  codec_for chooses this class only for lattices
        return points

    @cached_property
    def _edges(self) -> IntArray | None:
        """First step of each cell and one past the last; None where every cell is one step."""
        span, levels = self._points[1] - self._points[0] + 1, self.column.levels
        if span == levels:
            return None
        return np.array(self.column.lattice_edges(), dtype=np.int64) - self._points[0]

    def _read(self, series: pd.Series[Any]) -> tuple[NDArray[Any], BoolArray]:
        if self.column.kind == "date":
            return column_dates(series, self.column.date_format, self.layout)
        values = column_numbers(series, self.layout)
        if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biu" and not self.column.decimals:
            return values, np.zeros(len(values), dtype=np.bool_)  # whole already, and none is missing
        with np.errstate(over="ignore"):  # infinity is clamped like any number; a warning would tell of it
            return np.rint(values * 10.0 ** (self.column.decimals or 0)), np.isnan(values)

    def _outside(self, raw: NDArray[Any]) -> BoolArray:
        first, last = self._points
        return (raw < first) | (raw > last)

    def _fit(self, raw: NDArray[Any], missing: BoolArray) -> tuple[IntArray, BoolArray]:
        first, last = self._points
        if missing.any():
            raw = np.where(missing, first + (last - first) // 2, raw)
        steps = np.clip(raw, first, last).astype(np.int64)
        steps -= first
        return steps, missing

    def _levels(self, values: FloatArray | IntArray) -> IntArray:
        if self._edges is None:
            return values.astype(np.int64)
        return np.searchsorted(self._edges, values, side="right").astype(np.int64) - 1

    def _inside(self, levels: IntArray, uniform: Uniform | None) -> IntArray:
        if self._edges is None:
            return levels
        start, width = self._edges[levels], np.diff(self._edges)[levels]
        within = (width - 1) // 2 if uniform is None else (uniform(len(levels)) * width).astype(np.int64)
        steps: IntArray = start + np.minimum(within, width - 1)
        return steps

    def _values(self, positions: Positions) -> pd.Series[Any]:
        steps = positions.values.astype(np.int64) + self._points[0]
        if self.column.kind == "integer":
            return _int_series(steps, positions.missing)
        if self.column.kind == "date":
            days = (steps - _EPOCH).astype("datetime64[D]").astype("datetime64[us]")
            values = pd.Series(days)
        else:
            values = pd.Series(steps / 10.0 ** (self.column.decimals or 0))
        return values if positions.missing is None else values.mask(pd.Series(positions.missing))


def _int_series(values: IntArray, missing: BoolArray | None) -> pd.Series[Any]:
    if missing is None:
        return pd.Series(values)
    return pd.Series(pd.arrays.IntegerArray(values, missing.copy()))


class LabelCodec(Codec):
    """Declared labels, recognised by their text."""

    def _read(self, series: pd.Series[Any]) -> tuple[IntArray, BoolArray]:
        """Label index, or a negative number for a label that was not declared."""
        found = LabelReader(self.column, self.layout).column(series)
        return found, found == MISSING_LABEL

    def _outside(self, raw: IntArray) -> BoolArray:
        return raw < 0

    def _fit(self, raw: IntArray, missing: BoolArray) -> tuple[IntArray, BoolArray]:
        other = self.column.other
        if other is None:
            return np.where(raw < 0, 0, raw), raw < 0
        return np.where(raw < 0, self.column.labels.index(other), raw), missing

    def _levels(self, values: FloatArray | IntArray) -> IntArray:
        return values.astype(np.int64)

    def _inside(self, levels: IntArray, uniform: Uniform | None) -> IntArray:  # noqa: ARG002
        return levels

    def _values(self, positions: Positions) -> pd.Series[Any]:
        labels, missing = self.column.labels, positions.missing
        codes = positions.values.astype(np.int64)
        if isinstance(labels[0], bool):
            truth = codes.astype(np.bool_)
            return pd.Series(truth if missing is None else pd.arrays.BooleanArray(truth, missing.copy()))
        if all(isinstance(label, int) for label in labels):
            return _int_series(np.array(labels, dtype=np.int64)[codes], missing)
        dictionary = pd.Series(labels, dtype="str" if isinstance(labels[0], str) else "float64")
        values = dictionary.take(codes).reset_index(drop=True)
        return values if missing is None else values.mask(pd.Series(missing))


def codec_for(column: Column, layout: FileLayout = DEFAULT_LAYOUT) -> Codec:
    """The translator for a column's kind; the layout says how numbers are written where cells are text."""
    if not column.is_numeric:
        return LabelCodec(column, layout)
    return RealCodec(column, layout) if column.lattice is None else LatticeCodec(column, layout)


def reading_layout(table: pd.DataFrame, declared: FileLayout | None = None) -> FileLayout:
    """How numbers and missing values are written in a table's cells: as it was read, else as declared."""
    return layout_of(table.attrs) or declared or DEFAULT_LAYOUT


def encode(table: pd.DataFrame, schema: Schema) -> dict[str, IntArray]:
    """Codes of every declared column."""
    layout = reading_layout(table, schema.file)
    codecs = {column.name: codec_for(column, layout) for column in schema}
    return {name: codec.codes(codec.positions(table[name])) for name, codec in codecs.items()}


def decode(codes: Mapping[str, IntArray], schema: Schema, uniform: Uniform | None = None) -> pd.DataFrame:
    """A table with the schema's columns, order and types from codes."""
    return pd.DataFrame({c.name: codec_for(c).decode(codes[c.name], uniform) for c in schema})


def moved_cells(table: pd.DataFrame, schema: Schema) -> dict[str, MovedCells]:
    """How many cells of each column had to be moved to fit. Depends on the rows: for teaching data only."""
    layout = reading_layout(table, schema.file)
    return {column.name: codec_for(column, layout).moved_cells(table[column.name]) for column in schema}
