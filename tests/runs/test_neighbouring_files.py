"""Files that differ in one record, from their bytes to a release: what one person's record holds moves nobody else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.audit.reading import COLUMNS, write_workbook
from dpsynth_core.inference.dp_mann_whitney import dp_mann_whitney
from dpsynth_core.table.file_layout import FileLayout

ROWS, ROW = 2_000, 700
SLOW = {"pmse"}
NOT_FOLLOWED = {
    "bayes": "promises no privacy",
    "dp_gan": "too noisy at this epsilon to show what it was given",
    "balog_points": "released weights of points do not show single values",
    "balog_features": "released weights of points do not show single values",
    "dp_merf": "too noisy at this epsilon to show what it was given",
}
PROVEN = [
    pytest.param(key, marks=pytest.mark.slow) if key in SLOW else key
    for key in dp.MECHANISMS
    if key not in NOT_FOLLOWED
]


def schema_of(layout: FileLayout, *columns: dict[str, Any]) -> dp.Schema:
    return dp.Schema.from_dict(
        {"columns": [{"public": True, **column} for column in columns], "file": layout.to_dict()}
    )


def text_of(header: str, cells: Sequence[str], odd: bytes | None = None) -> bytes:
    """A file of one record per cell; the record in the middle is replaced by an odd one if there is one."""
    lines = [cell.encode() for cell in cells]
    if odd is not None:
        lines[ROW] = odd
    return b"\n".join([header.encode(), *lines]) + b"\n"


def assert_nobody_else_moves(schema: dp.Schema, before: bytes, after: bytes) -> None:
    """Every other row keeps its position in every column, and the number of rows stays."""
    tables = [dp.PrivateTable(dp.read_table(data, schema=schema), schema) for data in (before, after)]
    assert tables[0].n == tables[1].n
    others = np.delete(np.arange(tables[0].n), ROW % tables[0].n)
    for name in schema.names:
        first, second = (table.positions(name) for table in tables)
        assert np.array_equal(first.values[others], second.values[others])
        if first.missing is not None and second.missing is not None:
            assert np.array_equal(first.missing[others], second.missing[others])


def released(schema: dp.Schema, data: bytes, mechanism: str = "kd_grid", epsilon: str = "0.1") -> pd.DataFrame:
    private = dp.PrivateTable(dp.read_table(data, schema=schema), schema)
    release = dp.synthesize(private, dp.MECHANISMS[mechanism].suggest(schema, private.n, epsilon), epsilon=epsilon)
    assert release.guarantee.status == "proven"
    return release.sample()


def share(table: pd.DataFrame, condition: Callable[[pd.DataFrame], Any]) -> float:
    return float(np.mean(condition(table)))


DATES = schema_of(
    FileLayout(),
    {"name": "day", "kind": "date", "lower": "2000-01-01", "upper": "9999-12-31", "bins": 8, "nullable": True},
)


@pytest.mark.parametrize("mechanism", PROVEN)
def test_one_cell_with_nanoseconds_makes_no_other_date_missing(mechanism: str) -> None:
    days = ["9999-12-31"] * ROWS
    before, after = text_of("day", days), text_of("day", days, b"2024-01-02T03:04:05.123456789")
    assert_nobody_else_moves(DATES, before, after)
    assert share(released(DATES, after, mechanism), lambda table: table["day"].isna()) < 0.3


@pytest.mark.parametrize("odd", [b"2024-01-02 +1400", b"2024-01-02", b"2024-01-02 Europe/Berlin"])
def test_a_differing_offset_is_no_error_and_moves_nobody(odd: bytes) -> None:
    column = {"name": "day", "kind": "date", "lower": "2024-01-01", "upper": "2024-12-31", "date_format": "%Y-%m-%d %z"}
    schema = schema_of(FileLayout(), column)
    moments = [f"2024-03-{1 + i % 28:02} +0100" for i in range(ROWS)]
    assert_nobody_else_moves(schema, text_of("day", moments), text_of("day", moments, odd))


DOSES = schema_of(
    FileLayout(delimiter=";", decimal=","), {"name": "dose", "kind": "continuous", "lower": 0, "upper": 100, "bins": 16}
)


@pytest.mark.parametrize("odd", [b"27.5", b"none taken", b"\xe9", b'"1""2"', b""])
def test_decimal_commas_stay_numbers_beside_an_odd_cell(odd: bytes) -> None:
    doses = [f"{i % 50},5" for i in range(ROWS)]
    before, after = text_of("dose", doses), text_of("dose", doses, odd)
    assert_nobody_else_moves(DOSES, before, after)


def test_the_share_in_a_range_does_not_tell_whose_cell_was_odd() -> None:
    doses = [f"{i % 50},5" for i in range(ROWS)]
    low, high = (
        share(released(DOSES, text_of("dose", doses, odd)), lambda table: table["dose"] < 50) for odd in (None, b"27.5")
    )
    assert min(low, high) > 0.8


def test_one_word_among_truth_values_moves_nobody() -> None:
    schema = schema_of(FileLayout(), {"name": "smokes", "kind": "boolean", "nullable": True})
    truths = ["TRUE", "FALSE"] * (ROWS // 2)
    before, after = text_of("smokes", truths), text_of("smokes", truths, b"unknown")
    assert_nobody_else_moves(schema, before, after)
    assert 0.3 < share(released(schema, after, "perturbed_histogram"), lambda table: table["smokes"].eq(True)) < 0.7


@pytest.mark.parametrize("categories", [[1, 2], ["1", "2"], ["1.0", "2.0"]])
@pytest.mark.parametrize("odd", [b"?", b"1", b"1e0", b"one"])
def test_one_question_mark_among_labels_moves_nobody(categories: list[Any], odd: bytes) -> None:
    schema = schema_of(FileLayout(), {"name": "arm", "kind": "categorical", "categories": categories, "nullable": True})
    arms = ["1.0", "2.0"] * (ROWS // 2)
    assert_nobody_else_moves(schema, text_of("arm", arms), text_of("arm", arms, odd))


@pytest.mark.parametrize("odd", [b"\xe9", b"caf\xe9", b"\xff\xfe", b"\xc3"])
def test_one_byte_of_another_encoding_re_decodes_nobody(odd: bytes) -> None:
    schema = schema_of(FileLayout(), {"name": "town", "kind": "categorical", "categories": ["Zürich", "Genève"]})
    towns = ["Zürich", "Genève"] * (ROWS // 2)
    assert_nobody_else_moves(schema, text_of("town", towns), text_of("town", towns, odd))


def test_a_blank_line_of_a_file_with_one_column_is_a_row() -> None:
    schema = schema_of(FileLayout(), {"name": "n", "kind": "integer", "lower": 0, "upper": 9, "nullable": True})
    cells = [str(i % 10) for i in range(ROWS)]
    assert_nobody_else_moves(schema, text_of("n", cells), text_of("n", cells, b""))
    table = dp.PrivateTable(dp.read_table(text_of("n", cells, b""), schema=schema), schema)
    assert table.n == ROWS


RECORD = [12.5, 0.1, 3, "red", 1, "007", "low", True, "yes", datetime(2024, 1, 2), datetime(2024, 1, 2, 23, 59)]


@pytest.mark.parametrize(
    "odd", [None, "27,5", "word", 1.5, True, datetime(9999, 12, 31), "2024-01-02T03:04:05.123456789"], ids=str
)
@pytest.mark.parametrize("row", [0, 3, 6])
def test_one_odd_or_empty_row_of_a_workbook_moves_nobody(odd: Any, row: int) -> None:
    layout = FileLayout(format="excel", sheet="Data", fields=len(COLUMNS), rows=7)
    schema = schema_of(layout, *COLUMNS)
    records = [RECORD] * 7
    strange = [*records[:row], [odd] * len(COLUMNS), *records[row + 1 :]]
    tables = [
        dp.PrivateTable(dp.read_table(write_workbook(rows), schema=schema), schema) for rows in (records, strange)
    ]
    assert [table.n for table in tables] == [7, 7]
    for name in schema.names:
        first, second = (np.delete(table.positions(name).values, row) for table in tables)
        assert np.array_equal(first, second)


# In Python, where a table need not come from a file


def test_true_one_and_decimal_one_are_three_cells() -> None:
    schema = dp.Schema.from_dict(
        {"columns": [{"name": "x", "kind": "categorical", "categories": ["True", "1", "2"], "public": True}]}
    )
    for cells in ([True, 1, Decimal(1), 2], [1, True, Decimal(1), 2], [Decimal(1), 1, True, 2]):
        table = dp.PrivateTable(pd.DataFrame({"x": pd.Series(cells, dtype=object)}), schema)
        expected = [0 if cell is True else 2 if cell == 2 else 1 for cell in cells]
        assert table.positions("x").values.tolist() == expected


@pytest.mark.parametrize("odd", [1j, 3 + 4j, "word", None])
def test_one_complex_cell_does_not_empty_the_column_of_a_private_test(odd: object) -> None:
    values: list[Any] = [*range(300), *range(1_000, 1_300)]
    groups = ["a"] * 300 + ["b"] * 300
    values[50] = odd
    result = dp_mann_whitney(values, groups, epsilon=1, levels=("a", "b"), seed=1)
    assert result.pvalue < 1e-3
