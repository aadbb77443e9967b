"""Hypothesis strategies: schemas, and columns of values that fit or do not fit them."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from dpsynth_core.table.column import ORIGINS, Column
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.schema import Schema

names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(lambda s: s.strip())
text_labels = (
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).map(str.strip).filter(bool)
)
origins = st.sampled_from(ORIGINS)


@st.composite
def columns(draw: st.DrawFn, name: str | None = None) -> Column:
    """Any valid column."""
    kind = draw(st.sampled_from(["continuous", "integer", "categorical", "ordinal", "boolean", "date"]))
    common: dict[str, Any] = {
        "name": draw(names) if name is None else name,
        "kind": kind,
        "nullable": draw(st.booleans()),
        "origin": draw(origins),
    }
    bins = draw(st.none() | st.integers(1, 40))
    if kind == "continuous":
        lower = draw(st.floats(-1e6, 1e6))
        width = draw(st.floats(1e-2, 1e6))
        decimals = draw(st.none() | st.integers(2, 4))
        return Column(lower=lower, upper=lower + width, bins=bins, decimals=decimals, **common)
    if kind == "integer":
        lower_int = draw(st.integers(-(10**9), 10**9))
        return Column(lower=lower_int, upper=lower_int + draw(st.integers(0, 10**6)), bins=bins, **common)
    if kind == "date":
        first = draw(st.dates(date(1700, 1, 1), date(2200, 1, 1)))
        return Column(lower=first, upper=first + timedelta(days=draw(st.integers(0, 40_000))), bins=bins, **common)
    if kind == "boolean":
        return Column(categories=draw(st.none() | st.just(("no", "yes")) | st.just((0, 1))), **common)
    labels: Any = draw(
        st.lists(text_labels, min_size=1, max_size=6, unique=True)
        | st.lists(st.integers(-1000, 1000), min_size=1, max_size=6, unique=True)
    )
    other = draw(st.none() | st.just("other" if isinstance(labels[0], str) else 9999))
    return Column(categories=tuple(labels), other=other, **common)


@st.composite
def schemas(draw: st.DrawFn, max_columns: int = 4) -> Schema:
    """Any valid schema."""
    chosen = draw(st.lists(names, min_size=1, max_size=max_columns, unique=True))
    return Schema(columns=tuple(draw(columns(name=name)) for name in chosen), rows_per_person=draw(st.integers(1, 5)))


def codes_for(column: Column, rows: int) -> st.SearchStrategy[np.ndarray[Any, Any]]:
    """Valid codes of a column."""
    return st.lists(st.integers(0, column.size - 1), min_size=rows, max_size=rows).map(
        lambda codes: np.array(codes, dtype=np.int64)
    )


@st.composite
def schema_and_table(draw: st.DrawFn, max_rows: int = 12) -> tuple[Schema, pd.DataFrame]:
    """A schema and a table whose every value lies in it, at cell centres."""
    schema, rows = draw(schemas()), draw(st.integers(1, max_rows))
    return schema, pd.DataFrame({c.name: codec_for(c).decode(draw(codes_for(c, rows))) for c in schema})


anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=10),
    st.dates().map(lambda d: d.isoformat()),
    st.sampled_from([math.nan, math.inf, -math.inf, pd.NaT, pd.NA, "", "  ", "nan", "1e9999", "٣"]),
    st.datetimes().map(pd.Timestamp),
)
