"""From columns as they were parsed to a table in pandas' own types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa


def frame(names: Sequence[str], columns: Iterator[pd.Series]) -> pd.DataFrame:
    """A table from its columns, without copying them."""
    return pd.DataFrame(dict(zip(names, columns, strict=True)), copy=False)


def series_of(column: pa.ChunkedArray, *, for_reading: bool = False) -> pd.Series:
    """A column in pandas' own types: whole numbers and truth values with gaps stay what they are.

    Args:
        column: Of one of the types that a table may have.
        for_reading: Nobody will write into it, so it may be a window on memory that pyarrow owns.
    """
    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    series: pd.Series = column.to_pandas(types_mapper=nullable.get if column.null_count else None)
    values = series.array.to_numpy() if isinstance(series.dtype, np.dtype) and not for_reading else None
    if values is not None and not values.flags.writeable:
        return pd.Series(values.copy())
    return series
