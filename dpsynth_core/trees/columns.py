"""The columns of two tables, matched by name: what every tree begins with."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError

TableLike: TypeAlias = pd.DataFrame | ArrayLike
ColumnValues: TypeAlias = "pd.Series[Any] | FloatArray"


def matched_columns(**tables: TableLike) -> dict[str, tuple[ColumnValues, ColumnValues]]:
    """Both tables' values of each column, in the order of the first; an array's columns are taken in turn.

    Example:
        >>> list(matched_columns(original=[[1, 2]], synthetic=[[3, 4], [5, 6]]))
        ['x1', 'x2']
    """
    (first, leading), (second, other) = tables.items()
    columns, others = _columns(first, leading), _columns(second, other)
    if isinstance(leading, pd.DataFrame) != isinstance(other, pd.DataFrame) and len(columns) == len(others):
        others = dict(zip(columns, others.values(), strict=True))
    if set(columns) != set(others):
        allowed = f"the columns of the {first} table: {', '.join(map(str, columns))}"
        raise ParameterError(
            second, f"{len(others)} column(s)", allowed=allowed, remedy="Give both tables the same columns."
        )
    return {str(name): (values, others[name]) for name, values in columns.items()}


def _columns(parameter: str, table: TableLike) -> dict[Any, ColumnValues]:
    columns: dict[Any, ColumnValues]
    if isinstance(table, pd.DataFrame):
        rows, width = table.shape
        columns = {name: table.iloc[:, j] for j, name in enumerate(table.columns)}
    else:
        array = np.asarray(table)
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2:
            raise ParameterError(parameter, f"{array.ndim} dimensions", allowed="a table: rows and columns")
        rows, width = array.shape
        if array.dtype.kind in "iuf":
            lines = np.ascontiguousarray(array.T, dtype=np.float64)
            columns = {f"x{j + 1}": line for j, line in enumerate(lines)}
        else:
            columns = {f"x{j + 1}": pd.Series(array[:, j]).infer_objects() for j in range(width)}
    if len(columns) < width:
        raise ParameterError(parameter, "columns with the same name", allowed="a name of its own for each column")
    if not rows or not width:
        raise ParameterError(parameter, f"{rows} row(s), {width} column(s)", allowed="at least one of each")
    return columns


def microseconds(values: pd.Series[Any]) -> FloatArray:
    """Moments since 1970, or durations, in microseconds; missing ones are not a number."""
    if getattr(values.dtype, "tz", None) is not None:
        values = values.dt.tz_convert(None)
    moments = values.to_numpy().astype(f"{values.dtype.kind}8[us]")
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64))
