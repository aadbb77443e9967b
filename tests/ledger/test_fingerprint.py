from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.errors import ParameterError
from dpsynth_core.ledger.fingerprint import fingerprint

KEY = bytes(range(32))


def of(values: Any, dtype: Any = None) -> str:
    return fingerprint(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}), KEY)


def arrow(kind: Any) -> pd.ArrowDtype:
    return pd.ArrowDtype(kind)


words = st.one_of(st.none(), st.text("abcdefg ÅΩ-", min_size=1).map(lambda text: f"w{text}w"))
numbers = st.one_of(st.none(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, width=64))


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    rows = draw(st.integers(1, 8))
    kinds = draw(st.lists(st.sampled_from([words, numbers]), min_size=1, max_size=4))
    columns = [draw(st.lists(kind, min_size=rows, max_size=rows)) for kind in kinds]
    return pd.DataFrame({f"c{i}": pd.Series(column, dtype=object) for i, column in enumerate(columns)})


@given(tables(), st.randoms(use_true_random=False))
def test_order_and_names_do_not_count(table: pd.DataFrame, random: Any) -> None:
    rows, columns = list(range(len(table))), list(range(table.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    other = table.iloc[rows, columns]
    other.columns = [f"renamed {i}" for i in columns]
    assert fingerprint(other, KEY) == fingerprint(table, KEY)


@given(tables(), st.data())
def test_every_changed_cell_counts(table: pd.DataFrame, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(table) - 1))
    column = data.draw(st.integers(0, table.shape[1] - 1))
    old = table.iloc[row, column]
    new = data.draw(st.one_of(words, numbers).filter(lambda value: value != old))
    other = table.copy()
    other.iloc[row, column] = new
    assert fingerprint(other, KEY) != fingerprint(table, KEY)


@given(tables(), st.data())
def test_every_row_and_column_more_or_less_counts(table: pd.DataFrame, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(table) - 1))
    column = data.draw(st.integers(0, table.shape[1] - 1))
    others = [
        pd.concat([table, table.iloc[[row]]]),
        table.drop(index=row),
        table.drop(columns=table.columns[column]),
        pd.concat([table, table.iloc[:, [column]]], axis=1),
    ]
    names = {fingerprint(other, KEY) for other in (table, *others)}
    assert len(names) == 1 + len(others)


@given(tables())
def test_the_key_decides(table: pd.DataFrame) -> None:
    assert fingerprint(table, KEY) != fingerprint(table, bytes(32))


def test_which_values_stand_together_counts() -> None:
    table = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    assert fingerprint(table, KEY) != fingerprint(table.assign(b=["y", "x", "z"]), KEY)


WHOLE = [1, 2, -3]
SAME_WHOLE = (
    *(of(WHOLE, kind) for kind in ("int64", "int8", "float64", "float32", "Int64", "Float64", "category", object)),
    *(of(WHOLE, arrow(kind)) for kind in (pa.int64(), pa.float64(), pa.float32(), pa.decimal128(10, 2))),
    *(of(["1", "2", "-3"], kind) for kind in ("str", "category", object)),
    of([1, "2", Decimal("-3.0")], object),
    of(["+1", "2.0", "-03"]),
    of([" 1", "2e0", "-3."]),
)
SAME_DECIMAL = (
    of([0.1, 1e20, np.inf, -0.0]),
    of([0.1, 1e20, np.inf, 0.0], "float32"),
    of([0.1, 1e20, np.inf, 0], object),
    of(["0.10", "1e20", "inf", "-0"]),
    of(["1E-1", "1e+20", "+inf", ".0"]),
)
SAME_TRUTH = (
    *(of([True, False, None], kind) for kind in (object, "boolean", "category", arrow(pa.bool_()))),
    of(["true", "FALSE", ""]),
    of([1, 0, None], "Int64"),
)
SAME_TEXT = (
    *(of(["yes", "no", missing], object) for missing in (None, np.nan, pd.NA, pd.NaT, "", " ")),
    *(of(["yes", "no", None], kind) for kind in ("str", "category", "string[python]", "string[pyarrow]")),
    of(["yes", "no", None], arrow(pa.string())),
    of([" yes", "no ", ""]),
    of(pd.Categorical(["yes", "no", None], categories=["unused", "no", "yes"])),
)
SAME_DAY = (
    of(["2024-01-02", "1600-05-06", None]),
    *(of(["2024-01-02", "1600-05-06", None], f"datetime64[{unit}]") for unit in ("s", "ms", "us", "us, UTC")),
    of(["2024-01-02T00:00:00", "1600-05-06 00:00:00.000Z", ""]),
    of([dt.date(2024, 1, 2), dt.datetime(1600, 5, 6), None], object),
    of([dt.date(2024, 1, 2), dt.date(1600, 5, 6), None], arrow(pa.date32())),
)
MOMENTS = ["2024-07-02 08:11:12.123456", "2024-07-02 08:11:00"]
SAME_MOMENT = (
    of(["2024-07-02 10:11:12.123456789+02:00", "2024-07-02 08:11"]),
    *(of(MOMENTS, f"datetime64[{unit}]") for unit in ("us", "ns", "us, UTC", "ns, UTC")),
    of(pd.to_datetime(pd.Series(MOMENTS), format="ISO8601", utc=True).dt.tz_convert("Europe/Oslo")),
    of(pd.to_datetime(pd.Series(MOMENTS), format="ISO8601", utc=True), arrow(pa.timestamp("us", "Asia/Tokyo"))),
)


@pytest.mark.parametrize("names", [SAME_WHOLE, SAME_DECIMAL, SAME_TRUTH, SAME_TEXT, SAME_DAY, SAME_MOMENT])
def test_types_and_spellings_do_not_count(names: tuple[str, ...]) -> None:
    assert len(set(names)) == 1


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([-1, 2**63, 2**63 + 1, 2**64 - 1], "uint64"),
        ([2**62, 2**62 + 1, -(2**63)], "int64"),
        (["12345678901234567890", "12345678901234567891"], "str"),
        (["2024-02-30", "2023-02-30", "2024-13-01", "0000-00-00"], "str"),
        (["a", "A", "a b", "a\x00b", "nan", "1_000", "0x10", "1,5", "٣"], "str"),
        ([1.0, np.nextafter(1.0, 2), 1e300, np.inf, -np.inf], "float64"),
        ([b"x", "x", 1j, (1, 2), "\ud800", "\ud801"], object),
    ],
)
def test_different_values_stay_different(values: list[Any], dtype: Any) -> None:
    names = [of([value], "int64" if value == -1 else dtype) for value in values]
    assert len(set(names)) == len(values)


def test_the_same_table_from_csv_and_parquet_is_the_same() -> None:
    random = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "age": pd.array([31, None, 45, 45], dtype="Int64"),
            "income": random.normal(size=4) * 1e4,
            "short": random.normal(size=4).astype("float32"),
            "city": pd.Categorical(["Oslo", "Kyiv", None, "Oslo"]),
            "born": pd.to_datetime(["1990-01-02", None, "1950-03-04", "2001-12-31"]),
            "smokes": pd.array([True, None, False, True], dtype="boolean"),
            "zip": ["01234", "99999", "00001", "20000"],
        }
    )
    csv, parquet = table.to_csv(index=False), io.BytesIO()
    table.to_parquet(parquet)
    readings = [
        table,
        pd.read_csv(io.StringIO(csv)),
        pd.read_csv(io.StringIO(csv), dtype=str),
        pd.read_csv(io.StringIO(csv), dtype_backend="pyarrow"),
        pd.read_csv(io.StringIO(csv), parse_dates=["born"], keep_default_na=False),
        pd.read_parquet(parquet),
        pd.read_parquet(parquet, dtype_backend="pyarrow"),
    ]
    assert len({fingerprint(reading, KEY) for reading in readings}) == 1


def test_odd_tables_have_fingerprints() -> None:
    tables = [
        pd.DataFrame(),
        pd.DataFrame(index=[0, 1]),
        pd.DataFrame({"a": []}),
        pd.DataFrame({"a": [None]}),
        pd.DataFrame([[1, 1]], columns=["a", "a"]),
    ]
    assert len({fingerprint(table, KEY) for table in tables}) == len(tables)


def test_the_table_is_left_as_it_is() -> None:
    table = pd.DataFrame({"a": [1.5, np.nan], "b": ["x", None], "c": [2, 3]})
    before = table.copy(deep=True)
    fingerprint(table, KEY)
    pd.testing.assert_frame_equal(table, before)


def test_accounts_are_found_after_an_upgrade() -> None:
    table = pd.DataFrame({"n": [1, -2, None], "x": [0.5, 1e9, 3], "t": ["a", "é", ""], "d": ["2024-01-02"] * 3})
    assert fingerprint(table, KEY) == "f4875314b49292bcca32d1a6f5608d7094d0d29d4bc68b526eb069839f75069f"


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ParameterError, match="key is '5 bytes'; allowed: at least 32 bytes"):
        fingerprint(pd.DataFrame(), b"short")


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_moment_millions_of_years_away_has_a_name_too(unit: str) -> None:
    far = {"s": 2**60, "ms": 2**61}[unit]
    table = pd.DataFrame({"day": np.array([0, far, -far, np.iinfo(np.int64).min], dtype=f"datetime64[{unit}]")})
    other = pd.DataFrame({"day": np.array([0, far + 1, -far, np.iinfo(np.int64).min], dtype=f"datetime64[{unit}]")})
    assert fingerprint(table, KEY) == fingerprint(table.iloc[::-1], KEY)
    assert fingerprint(table, KEY) != fingerprint(other, KEY)
