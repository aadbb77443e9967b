"""The guarantee begins at the bytes: one record of a file moves no other row."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from dpsynth_core.audit import reading
from dpsynth_core.audit.checks import failures
from dpsynth_core.audit.reading import (
    CELLS,
    COLUMNS,
    FILE_KINDS,
    RAW_BYTES,
    ROWS,
    FileKind,
    reading_checks,
    reading_problem,
)
from dpsynth_core.table.column import KINDS
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.schema import Schema


def test_no_strange_record_moves_another_row() -> None:
    checks = list(reading_checks())
    assert not failures(checks)
    assert {check.subject for check in checks} == set(FILE_KINDS)
    assert len(set(map(repr, (*CELLS, *RAW_BYTES)))) >= 60
    assert {column["kind"] for column in COLUMNS} == set(KINDS)


def test_a_reader_that_types_whole_columns_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: typing a column by all of its cells is what it is there to notice."""
    honest = reading.read_table

    def typed(data: bytes, schema: Schema) -> pd.DataFrame:
        table = honest(data, schema)
        column = table["real"].fillna("")
        table["real"] = column if column.str.fullmatch("[0-9.]*").all() else "0"
        return table

    monkeypatch.setattr(reading, "read_table", typed)
    assert "real" in reading_problem(FILE_KINDS["comma-separated"], "word", 0)


def test_a_reader_that_drops_blank_records_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = reading.read_table
    monkeypatch.setattr(reading, "read_table", lambda data, schema: honest(data, schema).dropna(how="all"))
    assert reading_problem(FILE_KINDS["comma-separated"], None, ROWS - 1)


def test_a_sheet_whose_number_of_rows_is_not_declared_is_found_out() -> None:
    sheet = FILE_KINDS["Excel"]
    open_ended = FileKind(write=sheet.write, layout=replace(sheet.layout, rows=None))
    assert reading_problem(open_ended, None, ROWS - 1)
    assert FileLayout.from_dict(sheet.layout.to_dict()) == sheet.layout
