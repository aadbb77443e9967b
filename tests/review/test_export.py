from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.review.export import parquet, safe_csv
from dpsynth_core.table.simulate import simulate_table
from tests.tables.schemas import mixed_schema


@pytest.mark.parametrize("text", ["=1+1", "+1", "-2", "@SUM(A1)", "\tx", "\rx"])
def test_no_text_is_taken_for_a_formula(text: str) -> None:
    table = pd.DataFrame({text: [text, "fine", None]}).astype({text: "str"})
    back = pd.read_csv(io.BytesIO(safe_csv(table)), keep_default_na=False)
    assert all(not str(cell).startswith(tuple("=+-@\t\r")) for cell in [*back.columns, *back.iloc[:, 0]])
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
