from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import codec_for, decode, encode, moved_cells
from dpsynth_core.table.schema import Schema
from tests.tables.strategies import anything, codes_for, columns, schema_and_table


def column(kind: str, **facts: Any) -> Column:
    return Column.from_dict({"name": "x", "kind": kind, "public": True, **facts})


def encoded(col: Column, values: Any) -> list[int]:
    return encode(pd.DataFrame({"x": values}), Schema(columns=(col,)))["x"].tolist()


def uniform(size: int) -> np.ndarray[Any, Any]:
    # The whole of [0, 1), its ends included as far as they belong to it.
    return np.resize([0.0, 0.25, 0.5, 0.999999, np.nextafter(1.0, 0.0)], size)


@given(st.data(), columns())
def test_codes_survive_decoding_wherever_in_the_cell_a_value_is_placed(data: st.DataObject, col: Column) -> None:
    codes = data.draw(codes_for(col, 8))
    codec = codec_for(col)
    for placement in (None, uniform):
        values = codec.decode(codes, placement)
        assert codec.codes(codec.positions(values)).tolist() == codes.tolist()


@given(schema_and_table())
def test_a_table_comes_back_with_its_names_order_types_and_missing_values(
    drawn: tuple[Schema, pd.DataFrame],
) -> None:
    schema, table = drawn
    back = decode(encode(table, schema), schema)
    assert list(back.columns) == list(schema.names)
    pd.testing.assert_frame_equal(back, table)


@given(columns(), st.lists(anything, min_size=1, max_size=8))
def test_no_cell_whatsoever_makes_encoding_fail_or_leave_the_domain(col: Column, values: list[Any]) -> None:
    codec = codec_for(col)
    series = pd.Series(values, dtype=object)
    codes = codec.codes(codec.positions(series))
    assert codes.min() >= 0
    assert codes.max() < col.size
    assert codec.moved_cells(series).total >= 0


@given(columns(), st.lists(anything, min_size=2, max_size=6), anything)
def test_a_row_is_encoded_by_itself_alone(col: Column, values: list[Any], intruder: Any) -> None:
    """Replacing one cell must not move any other row: anything else would be an unbounded sensitivity."""
    codec = codec_for(col)
    before = codec.codes(codec.positions(pd.Series(values, dtype=object)))
    after = codec.codes(codec.positions(pd.Series([*values[:-1], intruder], dtype=object)))
    assert before[:-1].tolist() == after[:-1].tolist()


def test_numbers_are_clamped_and_what_is_no_number_is_missing() -> None:
    col = column("integer", lower=0, upper=9, nullable=True)
    assert encoded(col, [-5, 3, 42, None, np.inf, -np.inf]) == [0, 3, 9, 10, 9, 0]
    assert encoded(col, ["7", "many", " 8 ", ""]) == [7, 10, 8, 10]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float32", "Int64", "object"])
def test_integers_in_any_storage(dtype: str) -> None:
    col = column("integer", lower=-1000, upper=1000)
    assert encoded(col, pd.Series([0, 100], dtype=dtype)) == [1000, 1100]


def test_huge_unsigned_numbers_are_clamped_not_wrapped() -> None:
    assert encoded(column("integer", lower=0, upper=9), np.array([2**64 - 1], dtype=np.uint64)) == [9]


def test_missing_without_a_missing_level_goes_to_a_fixed_place() -> None:
    assert encoded(column("integer", lower=0, upper=10), [None, 3]) == [5, 3]
    assert encoded(column("continuous", lower=0, upper=1, bins=4), [np.nan]) == [2]
    assert encoded(column("categorical", categories=["a", "b"]), [None, "zzz", "b"]) == [0, 0, 1]
    assert encoded(column("categorical", categories=["a", "b"], other="rest"), [None, "zzz", "b"]) == [2, 2, 1]


def test_undeclared_labels_go_to_other_or_else_to_missing() -> None:
    assert encoded(column("categorical", categories=["a"], nullable=True), ["a", "zzz", None]) == [0, 1, 1]
    both = column("categorical", categories=["a"], other="rest", nullable=True)
    assert encoded(both, ["a", "zzz", None, " "]) == [0, 1, 2, 2]


def test_labels_are_recognised_by_their_text_in_any_storage() -> None:
    numbers = column("categorical", categories=[1, 2], nullable=True)
    for values in ([1, 2], [1.0, 2.0], ["1", "2"], pd.Series([1, 2], dtype="Int64"), pd.Categorical([1, 2])):
        assert encoded(numbers, values) == [0, 1]
    assert encoded(column("categorical", categories=["1", "2"]), [1.0, 2.0]) == [0, 1]


def test_truth_in_many_spellings() -> None:
    col = column("boolean", nullable=True)
    assert encoded(col, [True, False, None, "yes", "NO", 1, 0.0, "T", "maybe"]) == [1, 0, 2, 1, 0, 1, 0, 1, 2]
    own = column("boolean", categories=["healthy", "ill"])
    assert encoded(own, ["ill", "Healthy", True]) == [1, 0, 1]


def test_dates_in_many_forms() -> None:
    col = column("date", lower="2020-01-01", upper="2020-12-31", nullable=True)
    stamps = pd.Series(["2020-01-01", "2020-01-03T12:00:00", "1999-01-01", "soon", None, 20200105])
    assert encoded(col, stamps) == [0, 2, 0, 366, 366, 4]
    assert encoded(col, pd.to_datetime(pd.Series(["2020-01-02 23:59:59"]))) == [1]
    assert encoded(col, pd.to_datetime(pd.Series(["2020-01-02"])).dt.tz_localize("UTC")) == [1]
    assert encoded(col, pd.Series([20200105, 5])) == [4, 366]
    german = column("date", lower="2020-01-01", upper="2020-12-31", date_format="%d.%m.%Y", nullable=True)
    assert encoded(german, ["03.01.2020", "2020-01-03"]) == [2, 366]


def test_types_of_the_restored_columns() -> None:
    def restored(col: Column, codes: list[int]) -> pd.Series[Any]:
        return codec_for(col).decode(np.array(codes))

    assert restored(column("integer", lower=0, upper=3), [1]).dtype == "int64"
    assert restored(column("integer", lower=0, upper=3, nullable=True), [1, 4]).dtype == "Int64"
    assert restored(column("categorical", categories=["a", "b"], nullable=True), [0, 2]).dtype == "str"
    assert restored(column("categorical", categories=[3, 7]), [1]).tolist() == [7]
    assert restored(column("boolean"), [0, 1]).dtype == "bool"
    assert restored(column("boolean", nullable=True), [0, 1, 2]).dtype == "boolean"
    assert restored(column("date", lower="2020-01-01", upper="2020-01-09"), [1]).dtype == "datetime64[us]"
    assert restored(column("continuous", lower=0, upper=1, bins=2), [0]).tolist() == [0.25]


def test_decimals_are_exact() -> None:
    col = column("continuous", lower=0, upper=1, bins=3, decimals=1)
    values = codec_for(col).decode(np.array([0, 1, 2]), uniform)
    assert all(round(v, 1) == v for v in values)
    assert values.between(0, 1).all()
    fine = column("continuous", lower=0, upper=1, bins=1000, decimals=1)
    assert fine.size == 11  # eleven different values fill at most eleven cells


def test_cells_of_a_lattice_differ_in_width_by_at_most_one_step() -> None:
    col = column("integer", lower=0, upper=99, bins=7)
    widths = np.bincount(encoded(col, range(100)))
    assert len(widths) == 7
    assert widths.max() - widths.min() <= 1


def test_a_wide_unbinned_integer_costs_no_memory() -> None:
    col = column("integer", lower=0, upper=10**12)
    assert encoded(col, [10**11]) == [10**11]


def test_what_was_moved_is_counted_for_teaching() -> None:
    table = pd.DataFrame({"x": [-1.0, 5.0, 11.0, np.nan]})
    moved = moved_cells(table, Schema(columns=(column("continuous", lower=0, upper=10),)))["x"]
    assert (moved.clamped, moved.missing, moved.undeclared, moved.total) == (2, 1, 0, 3)
    table = pd.DataFrame({"x": ["a", "b", None]})
    moved = moved_cells(table, Schema(columns=(column("categorical", categories=["a"], nullable=True),)))["x"]
    assert (moved.clamped, moved.missing, moved.undeclared) == (0, 0, 1)
