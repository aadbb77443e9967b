from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.errors import DPSynthError, ParameterError, SchemaError
from dpsynth_core.table.counts import count_cells
from dpsynth_core.table.encoding import decode
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from tests.tables.strategies import codes_for, schema_and_table, schemas


def plain_counts(codes: list[np.ndarray[Any, Any]]) -> dict[tuple[int, ...], int]:
    """The slow reference: one dictionary, one row at a time."""
    return dict(sorted(Counter(zip(*(column.tolist() for column in codes), strict=True)).items()))


@given(st.data(), schemas(), st.integers(1, 30))
def test_counts_agree_with_counting_one_row_at_a_time(data: st.DataObject, schema: Schema, rows: int) -> None:
    codes = {column.name: data.draw(codes_for(column, rows)) for column in schema}
    table = PrivateTable(decode(codes, schema), schema)
    names = data.draw(st.permutations(schema.names)).copy()[: data.draw(st.integers(1, len(schema.names)))]
    counts = table.counts(names)
    expected = plain_counts([codes[name] for name in names])
    assert [tuple(cell) for cell in counts.cells.tolist()] == list(expected)
    assert counts.counts.tolist() == list(expected.values())
    assert counts.n == table.n == rows
    assert counts.domain_size == schema.domain_size(names)


@given(st.integers(1, 60), st.integers(2, 12), st.integers(0, 2**32))
def test_domains_far_beyond_any_integer_are_counted_exactly(rows: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [10**12] * width
    distinct = rng.integers(0, 10**12, (5, width))
    codes = list(distinct[rng.integers(0, 5, rows)].T)
    cells, counts = count_cells(codes, sizes)
    expected = plain_counts(codes)
    assert [tuple(cell) for cell in cells.tolist()] == list(expected)
    assert counts.tolist() == list(expected.values())
    assert math.prod(sizes) > 2**63 or width == 1


def simple_schema(bins: int = 10) -> Schema:
    return Schema.from_dict(
        {
            "columns": [
                {"name": "a", "kind": "continuous", "lower": 0, "upper": 1, "bins": bins, "public": True},
                {"name": "b", "kind": "categorical", "categories": ["x", "y"], "public": True},
            ]
        }
    )


def test_another_number_of_bins_for_the_same_rows() -> None:
    table = PrivateTable(pd.DataFrame({"a": [0.1, 0.6, 0.9], "b": ["x", "x", "y"]}), simple_schema())
    assert table.counts(["a"], bins={"a": 2}).dense().tolist() == [1, 2]
    assert table.counts(["a"]).shape == (10,)


def test_a_full_grid_is_refused_before_it_is_allocated() -> None:
    table = PrivateTable(pd.DataFrame({"a": [0.1], "b": ["x"]}), simple_schema(bins=60_000))
    assert table.counts().dense().sum() == 1
    with pytest.raises(ParameterError, match="120000"):
        table.counts().dense(limit=100_000)


def test_the_row_door_gives_the_fitted_rows() -> None:
    rows = PrivateTable(pd.DataFrame({"b": ["x", "q"], "a": [0.25, 7.0], "id": [1, 2]}), simple_schema()).rows()
    assert rows.to_dict("list") == {"a": [0.25, 1.0], "b": ["x", "x"]}


@given(schema_and_table())
def test_fitting_rows_that_already_fit_changes_nothing(drawn: tuple[Schema, pd.DataFrame]) -> None:
    schema, table = drawn
    pd.testing.assert_frame_equal(PrivateTable(table, schema).rows(), table)


def test_the_table_does_not_show_its_cells() -> None:
    table = PrivateTable(pd.DataFrame({"a": [0.123456], "b": ["x"]}), simple_schema())
    assert "0.123456" not in repr(table)
    assert repr(table) == "PrivateTable(1 rows, columns 'a', 'b')"


def test_changing_the_frame_afterwards_changes_nothing() -> None:
    frame = pd.DataFrame({"a": [0.1, 0.2], "b": ["x", "y"]})
    table = PrivateTable(frame, simple_schema())
    before = table.counts().dense().tolist()
    frame.loc[:, "a"] = 0.9
    assert table.counts().dense().tolist() == before


def test_read_only_arrays_are_fine() -> None:
    values = np.array([0.1, np.nan])
    values.flags.writeable = False
    assert PrivateTable(pd.DataFrame({"a": values, "b": ["x", "y"]}, copy=False), simple_schema()).counts().n == 2


def test_a_table_that_lacks_a_column_or_rows_is_refused() -> None:
    with pytest.raises(SchemaError, match="'b'"):
        PrivateTable(pd.DataFrame({"a": [0.1]}), simple_schema())
    with pytest.raises(SchemaError, match="row"):
        PrivateTable(pd.DataFrame({"a": [], "b": []}), simple_schema())
    with pytest.raises(SchemaError, match="once"):
        PrivateTable(pd.DataFrame([[0.1, "x", "y"]], columns=["a", "b", "b"]), simple_schema())
    with pytest.raises(DPSynthError):
        PrivateTable(pd.DataFrame({"a": [0.1], "b": ["x"]}), simple_schema()).counts([])
