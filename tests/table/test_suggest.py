from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.errors import SchemaError
from dpsynth_core.table.encoding import moved_cells
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.suggest import rounded_bounds, suggest, suggest_schema
from tests.tables.strategies import anything

RNG = np.random.default_rng(7)


def messy_table() -> pd.DataFrame:
    rows = 200
    return pd.DataFrame(
        {
            "patient_id": np.arange(1000, 1000 + rows),
            "email": [f"p{i}@example.org" for i in range(rows)],
            "age": RNG.integers(18, 90, rows),
            "weight": np.round(RNG.normal(70, 10, rows), 1),
            "biomarker": RNG.lognormal(size=rows),
            "sex": RNG.choice(["f", "m"], rows),
            "smoker": RNG.choice([True, False], rows),
            "treated": RNG.choice([0, 1], rows),
            "visit": pd.Series(pd.date_range("2020-03-05", periods=rows)).dt.strftime("%Y-%m-%d"),
            "born": pd.Series(pd.date_range("1950-03-25", periods=rows, freq="30D")).dt.strftime("%d/%m/%Y"),
            "seen": pd.date_range("2021-01-05", periods=rows),
            "score": pd.array([None, *RNG.integers(0, 10, rows - 1)], dtype="Int64"),
            "note": [f"free text number {i % 100}" for i in range(rows)],
            "empty": [None] * rows,
        }
    )


def test_kinds_bounds_and_identifiers() -> None:
    found = suggest(messy_table())
    kinds = {column.name: column.kind for column in found.schema}
    assert kinds == {
        "age": "integer",
        "weight": "continuous",
        "biomarker": "continuous",
        "sex": "categorical",
        "smoker": "boolean",
        "treated": "categorical",
        "visit": "date",
        "born": "date",
        "seen": "date",
        "score": "integer",
    }
    assert set(found.dropped) == {"patient_id", "email", "note", "empty"}
    assert "all different" in found.dropped["email"]
    assert "no values" in found.dropped["empty"]
    schema = found.schema
    assert schema["weight"].decimals == 1
    assert schema["biomarker"].decimals is None
    assert schema["treated"].categories == (0, 1)
    assert schema["born"].date_format == "%d/%m/%Y"
    assert schema["score"].nullable
    assert not schema["age"].nullable
    assert schema["age"].lower % 5 == 0
    assert schema["age"].upper % 5 == 0


def test_nothing_suggested_is_public() -> None:
    schema = suggest_schema(messy_table())
    assert set(schema.not_public) == set(schema.names)


def test_a_suggestion_fits_the_table_it_was_read_from() -> None:
    table = messy_table()
    schema = suggest_schema(table)
    assert all(moved.total == 0 for moved in moved_cells(table, schema).values())


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(anything, min_size=3, max_size=3), min_size=1))
def test_any_table_gets_a_usable_suggestion_or_a_clear_refusal(cells: dict[str, list[object]]) -> None:
    table = pd.DataFrame({name: pd.Series(values, dtype=object).infer_objects() for name, values in cells.items()})
    try:
        found = suggest(table)
    except SchemaError:
        return
    assert set(found.schema.names) | set(found.dropped) == set(table.columns)
    assert PrivateTable(table, found.schema).n == 3


def test_a_table_of_identifiers_only_is_refused() -> None:
    with pytest.raises(SchemaError, match="by hand"):
        suggest(pd.DataFrame({"id": np.arange(100)}))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(31, 78, (30, 80)), (0, 1, (0, 1)), (0.02, 0.41, (0, 0.45)), (-3.2, 7.9, (-4, 8)), (5, 5, (4, 6))],
)
def test_bounds_are_round_numbers_outside_the_data(low: float, high: float, expected: tuple[float, float]) -> None:
    assert rounded_bounds(low, high) == pytest.approx(expected)


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_rounded_bounds_always_cover(low: float, width: float) -> None:
    lower, upper = rounded_bounds(low, low + width)
    assert lower <= low <= low + width <= upper
    assert lower < upper


def test_words_for_missing_are_labels_not_dates() -> None:
    found = suggest(pd.DataFrame({"a": ["nan", "NaT", "nan"]}, dtype="str")).schema["a"]
    assert found.kind == "categorical"


LAB = [*(f"{value / 10:.1f}" for value in range(20, 120)), "<5", "?", "?"]


def test_numbers_with_a_few_words_are_suggested_as_numbers_with_the_rest_missing() -> None:
    table = pd.DataFrame({"creatinine": LAB, "nuclei": [*(str(i % 10 + 1) for i in range(100)), "?", "?", "?"]})
    found = suggest(table)
    assert found.words == ("creatinine", "nuclei")
    assert [column.kind for column in found.schema] == ["continuous", "integer"]
    assert all(column.nullable for column in found.schema)
    encoded = PrivateTable(table, found.schema).positions("creatinine")
    assert encoded.missing is not None
    assert np.flatnonzero(encoded.missing).tolist() == [100, 101, 102]


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "2", "3", "4", "5+"] * 20,  # sizes of a household: five labels
        ["0", "1", "unknown"] * 20,
        [*(f"{i:03d}" for i in range(30)), "?"] * 2,  # codes
        [*map(str, range(40)), *(f"word {i}" for i in range(11))],  # too many words
        [*map(str, range(10)), *["?"] * 20],  # mostly words
    ],
)
def test_labels_among_which_some_are_numbers_stay_labels(cells: list[str]) -> None:
    found = suggest(pd.DataFrame({"x": cells}))
    assert found.words == ()
    assert found.schema["x"].kind == "categorical"


def test_three_and_three_point_nought_are_one_label() -> None:
    table = pd.DataFrame({"grade": ["3", "3.0", "4", "none"] * 10})
    column = suggest_schema(table)["grade"]
    assert column.categories == ("3", "4", "none")
    assert PrivateTable(table, suggest_schema(table)).positions("grade").values[:4].tolist() == [0, 0, 1, 2]
