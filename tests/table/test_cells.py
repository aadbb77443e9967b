"""What one cell means, and that no other cell has a say in it."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.table.cells import (
    MISSING_LABEL,
    UNDECLARED_LABEL,
    LabelReader,
    cell_text,
    column_dates,
    column_numbers,
    date_cell,
    is_missing,
    number_cell,
)
from dpsynth_core.table.column import Column
from dpsynth_core.table.file_layout import FileLayout

POINT = FileLayout()
COMMA = FileLayout(decimal=",", thousands=".")
GROUPED = FileLayout(thousands=",", missing=("", "-99", "NA"))
LAYOUTS = (POINT, COMMA, GROUPED)
SIZES = Column(name="size", kind="categorical", categories=("small", "large", "7", "2.5"))
GRADES = Column(name="grade", kind="ordinal", categories=(1, 2, 3))
FLAG = Column(name="flag", kind="boolean")
COLUMNS = (SIZES, GRADES, FLAG)

number_texts = st.one_of(
    st.from_regex(r"[ ]{0,2}[+-]?[0-9]{0,20}[.,]?[0-9]{0,20}([eE][+-]?[0-9]{1,3})?[ ]{0,2}", fullmatch=True),
    st.floats().map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.integers(0, 10**12).map(lambda value: f"{value:,}"),
)
texts = st.one_of(
    number_texts,
    st.text(max_size=12),
    st.sampled_from(
        [
            "NA",
            "nan",
            "NaN",
            "inf",
            "-Infinity",
            "small",
            "LARGE",
            "7",
            "7.0",
            "07",
            "2,5",
            "2.50",
            "1e0",
            "0x1F",
            "1_000",
            "١٢",
            "true",
            "TRUE",
            "yes",
            "n",
            "t",
            "2024-02-29",
            "2024-02-30",
            "20240101",
            "2024",
            "2024-05",
            "9999-12-31",
            "0001-01-01T00:00:00+14:00",
            "2024-01-02T03:04:05.123456789Z",
        ]
    ),
)
cells = st.one_of(
    texts,
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    st.binary(max_size=4),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))])),
    st.timedeltas(),
    st.times(),
    st.sampled_from(
        [pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64(1, "D"), Decimal("sNaN"), Decimal("1e999999")]
    ),
    st.sampled_from([[1], {"a": 1}, {1}, object(), float, pd.Timestamp("2024-01-02"), pd.Interval(0, 1), np.int8(3)]),
)


def same(first: list[Any], second: list[Any]) -> bool:
    return pd.Series(first, dtype=object).equals(pd.Series(second, dtype=object))


@given(st.lists(cells, max_size=30), st.sampled_from(LAYOUTS))
def test_a_column_of_anything_means_what_its_cells_mean(column: list[object], layout: FileLayout) -> None:
    series = pd.Series(column, dtype=object)
    assert same(column_numbers(series, layout).tolist(), [number_cell(cell, layout) for cell in column])
    for date_format in (None, "%d/%m/%Y", "%Y-%m-%dT%H:%M:%S%z"):
        days, missing = column_dates(series, date_format, layout)
        alone = [date_cell(cell, date_format, layout) for cell in column]
        assert [None if gone else day for day, gone in zip(days.tolist(), missing.tolist(), strict=True)] == alone
    for declared in COLUMNS:
        reader = LabelReader(declared, layout)
        assert reader.column(series).tolist() == [reader.cell(cell) for cell in column]


@given(st.lists(st.one_of(texts, st.none()), max_size=30), st.sampled_from(LAYOUTS))
def test_a_column_of_text_means_what_its_cells_mean(column: list[str | None], layout: FileLayout) -> None:
    encodable = [None if text is None else text.encode("utf-8", "replace").decode() for text in column]
    series = pd.Series(encodable, dtype="str")
    assert same(column_numbers(series, layout).tolist(), [number_cell(cell, layout) for cell in encodable])
    for declared in COLUMNS:
        reader = LabelReader(declared, layout)
        assert reader.column(series).tolist() == [reader.cell(cell) for cell in encodable]


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.none())), st.sampled_from(["Int64", "Float64"]))
def test_nullable_numbers_mean_what_their_cells_mean(column: list[int | None], dtype: str) -> None:
    series = pd.Series(column, dtype=dtype)
    expected = [math.nan if cell is None else float(cell) for cell in column]
    assert same(column_numbers(series).tolist(), expected)


@given(number_texts)
def test_plain_decimals_are_correctly_rounded(text: str) -> None:
    """The compiled loop and Python's own reading agree to the last bit."""
    (quick,) = column_numbers(pd.Series([text], dtype="str"))
    assert same([float(quick)], [number_cell(text)])


@pytest.mark.parametrize(
    ("text", "layout", "number"),
    [
        ("27.5", POINT, 27.5),
        ("27,5", POINT, math.nan),
        ("27,5", COMMA, 27.5),
        ("27.5", COMMA, math.nan),
        ("1.234.567,5", COMMA, 1234567.5),
        ("12.34", COMMA, math.nan),
        ("1,234", GROUPED, 1234.0),
        ("1,23", GROUPED, math.nan),
        ("-99", GROUPED, math.nan),
        (" 1e3 ", POINT, 1000.0),
        ("00123", POINT, 123.0),
        (".5", POINT, 0.5),
        ("5.", POINT, 5.0),
        ("1_000", POINT, math.nan),
        ("١٢", POINT, math.nan),
        ("0x1F", POINT, math.nan),
        ("-Infinity", POINT, -math.inf),
        ("nan", POINT, math.nan),
        ("", POINT, math.nan),
        ("5 %", POINT, math.nan),
    ],
)
def test_numbers_in_text(text: str, layout: FileLayout, number: float) -> None:
    assert same([number_cell(text, layout)], [number])


@pytest.mark.parametrize("cell", [27, 27.0, "27", " 27.0 ", Decimal("27.00"), Fraction(27), np.int16(27), "2.7e1"])
def test_a_number_is_the_same_whichever_type_carries_it(cell: object) -> None:
    assert number_cell(cell) == 27


@pytest.mark.parametrize(
    "cell",
    [
        "2024-01-02",
        "2024-01-02T23:59:59.999999999",
        "20240102",
        20240102,
        20240102.0,
        date(2024, 1, 2),
        datetime(2024, 1, 2, 23, 59),
        pd.Timestamp("2024-01-02T12:00", tz="UTC"),
        np.datetime64("2024-01-02T03:04:05.678", "ns"),
        "2024-01-03T01:00:00+05:00",
    ],
)
def test_a_day_is_the_same_whichever_type_carries_it(cell: object) -> None:
    assert date_cell(cell, None) == date(2024, 1, 2).toordinal()


def test_a_cell_with_nanoseconds_moves_no_other_date() -> None:
    column = pd.Series(["9999-12-31"] * 3 + ["2024-01-02T03:04:05.123456789"], dtype="str")
    days, missing = column_dates(column, None)
    assert not missing.any()
    assert days[:3].tolist() == [date(9999, 12, 31).toordinal()] * 3


def test_differing_offsets_are_no_error() -> None:
    column = pd.Series(["2024-01-02 10:00 +0000", "2024-01-02 10:00 +0100", "?"], dtype="str")
    days, missing = column_dates(column, "%Y-%m-%d %H:%M %z")
    assert missing.tolist() == [False, False, True]
    assert days[0] == days[1] == date(2024, 1, 2).toordinal()


@pytest.mark.parametrize(
    ("cell", "index"),
    [
        ("small", 0),
        (" large ", 1),
        ("LARGE", UNDECLARED_LABEL),
        (7, 2),
        (7.0, 2),
        ("7.0", 2),
        ("07", UNDECLARED_LABEL),
        (2.5, 3),
        ("2.50", 3),
        (Decimal("2.5"), 3),
        (True, UNDECLARED_LABEL),
        ("NA", MISSING_LABEL),
        (None, MISSING_LABEL),
        (b"small", MISSING_LABEL),
    ],
)
def test_labels(cell: object, index: int) -> None:
    assert LabelReader(SIZES).cell(cell) == index


def test_equal_cells_of_different_types_do_not_share_a_meaning() -> None:
    column = pd.Series([True, 1, Decimal(1), 1.0, "True"], dtype=object)
    ones = Column(name="x", kind="categorical", categories=(1, 2))
    words = Column(name="x", kind="categorical", categories=("True", "False"))
    assert LabelReader(ones).column(column).tolist() == [UNDECLARED_LABEL, 0, 0, 0, UNDECLARED_LABEL]
    assert LabelReader(words).column(column).tolist() == [0, -1, -1, -1, 0]


def test_one_complex_cell_empties_no_column() -> None:
    assert column_numbers(pd.Series([1.0, 2.0, 1j], dtype=object)).tolist()[:2] == [1.0, 2.0]


@given(cells)
def test_every_cell_has_a_text_and_may_be_missing(cell: object) -> None:
    assert isinstance(cell_text(cell), str)
    assert is_missing(cell, POINT) in (True, False)


def test_texts_of_arrow_slices_are_read_from_where_they_begin() -> None:
    texts = pa.array(["1", "2", None, "4"], type=pa.large_string()).slice(1)
    assert same(column_numbers(pd.Series(texts, dtype="str")).tolist(), [2.0, math.nan, 4.0])
