"""Two tables as one table of codes, which is all that a tree looks at.

Numbers, dates, truth values and ordered categories become their rank among all values of both tables; unordered
categories become the index of their name. **Missing values are a value of their own**: below every number, and a
category more. A tree can therefore see that one table lacks values where the other has them. rpart would leave them out
of the search and send them after a similar column ("surrogates"); that difference is the only one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, Int32Array
from dpsynth_core.table.cells import column_numbers
from dpsynth_core.table.column import label_text
from dpsynth_core.trees.columns import ColumnValues, TableLike, matched_columns, microseconds

CodedKind: TypeAlias = Literal["number", "boolean", "date", "ordinal", "categorical"]

_INFERRED: dict[str, CodedKind] = {
    **dict.fromkeys(("integer", "floating", "mixed-integer-float", "decimal"), "number"),
    **dict.fromkeys(("date", "datetime", "datetime64"), "date"),
    "boolean": "boolean",
}
"""What pandas finds in a column of Python objects."""


@dataclass(frozen=True, kw_only=True)
class CodedColumn:
    """One column of both tables."""

    name: str
    kind: CodedKind
    codes: Int32Array
    """Code of each row, original rows first."""
    order: Int32Array
    """Rows by rising code."""
    values: FloatArray
    """The value behind each code: a number, microseconds since 1970, or the index of a category counted from one; NaN
    for missing."""
    labels: tuple[str, ...] = ()
    """Texts of the categories, missing ones not included."""

    @property
    def missing(self) -> int | None:
        """The code of missing values, if there are any."""
        gaps = np.flatnonzero(np.isnan(self.values))
        return int(gaps[0]) if len(gaps) else None


@dataclass(frozen=True, kw_only=True)
class CodedTable:
    """Both tables, original rows first; how many rows are original and how many synthetic."""

    columns: tuple[CodedColumn, ...]
    original: int
    synthetic: int

    @classmethod
    def of(cls, original: TableLike, synthetic: TableLike) -> CodedTable:
        """Code two tables with the same columns."""
        columns = matched_columns(original=original, synthetic=synthetic)
        first, second = next(iter(columns.values()))
        return cls(
            columns=tuple(_code(name, *pair) for name, pair in columns.items()),
            original=len(first),
            synthetic=len(second),
        )

    @property
    def packed(self) -> Int32Array:
        """Twice each row's code, and one more where the row is synthetic; one line for each column."""
        packed = np.empty((len(self.columns), self.original + self.synthetic), dtype=np.int32)
        for line, column in zip(packed, self.columns, strict=True):
            np.multiply(column.codes, 2, out=line)
        packed[:, self.original :] += 1
        return packed


def _code(name: str, original: ColumnValues, synthetic: ColumnValues) -> CodedColumn:
    if isinstance(original, np.ndarray) and isinstance(synthetic, np.ndarray):
        return _ranked(name, "number", np.concatenate([original, synthetic]))
    series = [pd.Series(values) for values in (original, synthetic)]
    kind = _common_kind([_kind(values) for values in series])
    if kind in ("ordinal", "categorical"):
        return _labelled(name, kind, series)
    return _ranked(name, kind, np.concatenate([_numbers(values, kind) for values in series]))


def _kind(values: pd.Series[Any]) -> CodedKind | None:
    """What a column holds; None where it holds nothing but missing values and could be anything."""
    dtype = values.dtype
    if not values.notna().any():
        return None
    if isinstance(dtype, pd.CategoricalDtype):
        return "ordinal" if dtype.ordered else "categorical"
    if isinstance(dtype, pd.PeriodDtype):
        return "date"
    if dtype.kind != "O":
        # Durations count as numbers.
        found: dict[str, CodedKind] = {"b": "boolean", "M": "date", **dict.fromkeys("iufm", "number")}
        return found.get(dtype.kind, "categorical")
    return _INFERRED.get(pd.api.types.infer_dtype(values, skipna=True), "categorical")


def _common_kind(kinds: Sequence[CodedKind | None]) -> CodedKind:
    found = {kind for kind in kinds if kind is not None}
    if len(found) == 1:
        return found.pop()
    if found <= {"number", "boolean"}:
        return "number"
    return "ordinal" if found == {"ordinal", "categorical"} else "categorical"


def _numbers(values: pd.Series[Any], kind: CodedKind) -> FloatArray:
    dtype = values.dtype
    if not values.notna().any():
        return np.full(len(values), np.nan)
    if kind == "date" or dtype.kind == "m":
        if isinstance(dtype, pd.PeriodDtype):
            values = pd.Series(values.dt.to_timestamp())
        elif dtype.kind == "O":
            values = pd.Series(pd.to_datetime(values, errors="coerce", utc=True))
        return microseconds(values)
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return values.to_numpy().astype(np.float64)
    return column_numbers(values)


def _ranked(name: str, kind: CodedKind, values: FloatArray) -> CodedColumn:
    """Codes are ranks; missing values come first."""
    order = np.argsort(values)
    ordered = values[order]
    gaps = len(values) - int(np.searchsorted(ordered, np.nan))  # NumPy sorts them to the end
    if gaps:
        order, ordered = np.roll(order, gaps), np.roll(ordered, gaps)
    new = np.append(True, ordered[1:] != ordered[:-1])
    new[1:gaps] = False
    codes = np.empty(len(values), dtype=np.int32)
    codes[order] = np.cumsum(new, dtype=np.int32) - 1
    return CodedColumn(name=name, kind=kind, codes=codes, order=order.astype(np.int32), values=ordered[new])


def _groups(values: pd.Series[Any]) -> tuple[NDArray[np.intp], Any]:
    """Which rows hold the same label, -1 for none, and the labels."""
    if values.dtype == np.dtype(object):  # a cell may hold what cannot be told apart otherwise than by its text
        values = values.map(label_text, na_action="ignore")
    return pd.factorize(values)


def _labelled(name: str, kind: CodedKind, pair: Sequence[pd.Series[Any]]) -> CodedColumn:
    """Codes are the places of labels: as declared, where the column declares its categories, else in order of text.

    Where categories are ordered, the order is that of the first table that has one, and missing comes first; where
    they are not, it comes last.
    """
    places: dict[str, int] = {}
    ordered_first = sorted(pair, key=lambda values: not getattr(values.dtype, "ordered", False))
    for values in ordered_first:
        if isinstance(values.dtype, pd.CategoricalDtype):
            for label in values.dtype.categories:
                places.setdefault(label_text(label), len(places))
    groups = [_groups(values) for values in pair]
    texts = [[label_text(label) for label in distinct] for _, distinct in groups]
    for text in sorted({text for found in texts for text in found} - set(places)):
        places[text] = len(places)
    gap = -1 if kind == "ordinal" else len(places)
    found = [np.array([*(places[t] for t in own), gap])[group] for own, (group, _) in zip(texts, groups, strict=True)]
    present, codes = np.unique(np.concatenate(found), return_inverse=True)
    names = tuple(places)
    return CodedColumn(
        name=name,
        kind=kind,
        codes=codes.astype(np.int32),
        order=np.argsort(codes, kind="stable").astype(np.int32),
        values=np.where(present == gap, np.nan, present + 1.0),
        labels=tuple(names[int(place)] for place in present if place != gap),
    )
