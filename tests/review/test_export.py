from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsynth_core as dp
from dpsynth_core.review.export import parquet, safe_csv
from dpsynth_core.table.simulate import simulate_table
from tests.tables.schemas import mixed_schema

UNSEEN = "\ufeff\u200b\u2060\x00 "
"""What a spreadsheet may drop at the beginning of a text, or of a file."""


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-2", "@SUM(A1)", "\tx", "\rx", "\ufeff=1+1", "\u200b@x", " =1", "\uff1d1+1"]
)
@pytest.mark.parametrize("dtype", ["str", "object", "category", "string", pd.ArrowDtype(pa.string())], ids=str)
def test_no_text_is_taken_for_a_formula(text: str, dtype: Any) -> None:
    table = pd.DataFrame({text: [text, "fine", None]}).astype({text: dtype})
    back = pd.read_csv(io.BytesIO(safe_csv(table)), keep_default_na=False)
    begun = [str(cell).lstrip(UNSEEN)[:1] for cell in [*back.columns, *back.iloc[:, 0]]]
    assert not set(begun) & set("=+-@\t\r\uff1d")
    assert back.iloc[1, 0] == "fine"


def test_numbers_stay_numbers() -> None:
    table = pd.DataFrame({"a": [-1.5, 2.0], "b": np.array([-3, 4])})
    pd.testing.assert_frame_equal(pd.read_csv(io.BytesIO(safe_csv(table))), table)


def test_both_files_hold_the_table() -> None:
    schema = mixed_schema()
    table = simulate_table(schema, 50, seed=1)
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(parquet(table))), table)
    private = dp.PrivateTable(dp.read_table(safe_csv(table)), schema)
    pd.testing.assert_frame_equal(private.rows(), table)


def test_a_simulated_table_fits_its_schema() -> None:
    schema = mixed_schema()
    table = simulate_table(schema, 500, seed=1)
    pd.testing.assert_frame_equal(dp.PrivateTable(table, schema).rows(), table)
    assert table["height"].isna().any()
    assert table.equals(simulate_table(schema, 500, seed=1))
