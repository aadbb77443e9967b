"""Files that differ in one record: does what the other records mean stay the same, down to the last position?

Every other layer starts from tables in memory. This one starts from bytes: a file is written, one record of it is
replaced by a strange one, both files are read by the same declared layout, and every other row must land in the same
position of every column, with as many rows as before and no error.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any, TypeAlias
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth_core.arrays import FloatArray
from dpsynth_core.audit.checks import AuditCheck, verdict
from dpsynth_core.errors import DPSynthError
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.readers.read import read_table
from dpsynth_core.table.schema import Schema

PositionsByColumn: TypeAlias = dict[str, FloatArray]

ROWS = 7
"""Records of every file; the strange one takes the place of the first, a middle or the last one."""

COLUMNS: list[dict[str, Any]] = [
    {"name": "real", "kind": "continuous", "lower": 0, "upper": 100},
    {"name": "decimal", "kind": "continuous", "lower": 0, "upper": 100, "decimals": 1, "nullable": True},
    {"name": "whole", "kind": "integer", "lower": 0, "upper": 9, "nullable": True},
    {"name": "label", "kind": "categorical", "categories": ["red", "green", "blue"]},
    {"name": "number label", "kind": "categorical", "categories": [1, 2, 2.5], "nullable": True},
    {"name": "code", "kind": "categorical", "categories": ["007", "7", "other"], "other": "other"},
    {"name": "grade", "kind": "ordinal", "categories": ["low", "mid", "high"], "nullable": True},
    {"name": "flag", "kind": "boolean", "nullable": True},
    {"name": "yes or no", "kind": "boolean", "categories": ["no", "yes"]},
    {"name": "day", "kind": "date", "lower": "1900-01-01", "upper": "9999-12-31", "nullable": True},
    {"name": "moment", "kind": "date", "lower": "2000-01-01", "upper": "2030-12-31"},
]

RECORDS: list[list[Any]] = [
    [12.5, 0.1, 3, "red", 1, "007", "low", True, "yes", date(2024, 1, 2), datetime(2024, 1, 2, 23, 59)],
    [99.999, 27.5, 9, "green", 2.5, "7", "high", False, "no", date(9999, 12, 31), datetime(2000, 1, 1)],
    [0.0, None, None, "blue", None, "unheard of", None, None, "yes", None, datetime(2030, 12, 31, 12)],
]

CELLS: tuple[Any, ...] = (
    *(
        None,
        "",
        " ",
        "NA",
        "?",
        "-",
        ".",
        "unknown",
        "None",
        "nan",
        "NaN",
        "NAN",
        "#N/A",
        "#DIV/0!",
        "inf",
        "-Infinity",
    ),
    *(
        "27.5",
        "27,5",
        "1,234.5",
        "1.234,5",
        "1e5",
        "1e400",
        "-1e-400",
        "0x1F",
        "1_000",
        "00123",
        "+4912345",
        "5 %",
        "$5",
    ),
    *(
        "(5)",
        "<5",
        "1/2",
        "١٢",
        "９",
        "9" * 400,
        "TRUE",
        "true",
        "False",
        "yes",
        "Y",
        "2",
        "2.0",
        "2.50",
        "7.0",
        "red ",
    ),
    *("RED", "réd", "2024-02-30", "2024-01-02T03:04:05.123456789", "2024-01-02T03:04:05+14:00", "9999-12-31T23:59:59Z"),
    *("0001-01-01", "20240102", "2024", "1/2/2024", "31.12.1999", "now", "today", "a,b", "a;b\tc|d", 'say "hi"'),
    *(
        "x" * 40_000,
        "two\nlines",
        "car\rriage",
        "\r\n",
        "\u00a0",
        "\u200b",
        "\ufeff",
        "\ufffd",
        "e\u0301",
        "🎉",
        "\x00",
    ),
    *("\x1a", "=1+1", "<b>&amp;</b>", 0, -0.0, 1e308, -1e308, 2**53 + 1, 10**30, True, False, 3.0, 0.1),
    *(date(1, 1, 1), date(9999, 12, 31), datetime(2024, 1, 2, 3, 4, 5, 678901)),
)
"""What the strange record holds, in every column at once."""

RAW_BYTES: tuple[bytes, ...] = (b"\xff\xfe", b"\xe9", b"\xc3", b"\x80\x81", b"\xf0\x9f", b"\xed\xa0\x80", b"\x00\x00")
"""Cells of a text file that are no text."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FileKind:
    """A way to write records into a file, and the layout to read it by."""

    write: Callable[[Sequence[Sequence[Any]]], bytes]
    layout: FileLayout


def schema_for(layout: FileLayout) -> Schema:
    """The audited columns, read by a layout."""
    columns = [{**column, "public": True} for column in COLUMNS]
    return Schema.from_dict({"columns": columns, "file": layout.to_dict()})


def write_text(records: Sequence[Sequence[Any]], delimiter: str = ",", decimal: str = ".") -> bytes:
    """A text file with a header; bytes are written as they are."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter)
    writer.writerow([column["name"] for column in COLUMNS])
    lines = [out.getvalue().encode()]
    for record in records:
        line = io.StringIO(newline="")
        cells = [cell if not isinstance(cell, bytes) else "BYTES" for cell in record]
        csv.writer(line, delimiter=delimiter).writerow([_as_text(cell, decimal) for cell in cells])
        raw = next((cell for cell in record if isinstance(cell, bytes)), b"")
        lines.append(line.getvalue().encode("utf-8", "replace").replace(b"BYTES", raw))
    return b"".join(lines)


def _as_text(cell: Any, decimal: str) -> str:
    text = "" if cell is None else cell.isoformat() if isinstance(cell, date) else str(cell)
    return text.replace(".", decimal) if isinstance(cell, float) else text


def write_parquet(records: Sequence[Sequence[Any]]) -> bytes:
    """A Parquet file as tools write it: one type for a column, text where its cells have no type in common."""
    columns = {column["name"]: _arrow([record[i] for record in records]) for i, column in enumerate(COLUMNS)}
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def _arrow(cells: list[Any]) -> pa.Array:
    if len({float if type(cell) is int else type(cell) for cell in cells if cell is not None}) <= 1:
        try:
            return pa.array(cells)
        except (pa.ArrowException, OverflowError):
            pass  # a whole number that no type of Parquet holds
    return pa.array([None if cell is None else _as_text(cell, ".") for cell in cells])


def write_workbook(records: Sequence[Sequence[Any]]) -> bytes:
    """A workbook with one sheet."""
    header = [column["name"] for column in COLUMNS]
    rows = "".join(
        f'<row r="{number}">{"".join(_cell_xml(cell, i, number) for i, cell in enumerate(row))}</row>'
        for number, row in enumerate([header, *records], start=1)
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _WORKBOOK.items():
            archive.writestr(name, content)
        archive.writestr(
            "xl/worksheets/sheet1.xml", f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        )
    return out.getvalue()


_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_WORKBOOK = {
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="r" Type="{_OFFICE}/officeDocument" '
    'Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
    '<sheet name="Data" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}"><Relationship Id="rId1" '
    f'Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
    "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs>'
    "</styleSheet>",
}
_DAY_ZERO = datetime(1899, 12, 30)


def _cell_xml(cell: Any, index: int, row: int) -> str:
    reference = f"{chr(ord('A') + index)}{row}"
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return f'<c r="{reference}" t="b"><v>{int(cell)}</v></c>'
    if isinstance(cell, date):
        moment = cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)
        if moment < datetime(1901, 1, 1):
            return f'<c r="{reference}" t="inlineStr"><is><t>{moment.isoformat()}</t></is></c>'  # Excel has no such day
        days = (moment - _DAY_ZERO).total_seconds() / 86_400
        return f'<c r="{reference}" s="1"><v>{days!r}</v></c>'
    if isinstance(cell, int | float):
        return f'<c r="{reference}"><v>{cell!r}</v></c>'
    text = escape("".join(mark for mark in str(cell) if mark in "\t\n\r" or mark >= " "))
    return f'<c r="{reference}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


FILE_KINDS: dict[str, FileKind] = {
    "comma-separated": FileKind(write=write_text, layout=FileLayout()),
    "tab-separated": FileKind(write=lambda rows: write_text(rows, "\t"), layout=FileLayout(delimiter="\t")),
    "decimal comma": FileKind(
        write=lambda rows: write_text(rows, ";", ","), layout=FileLayout(delimiter=";", decimal=",", thousands=".")
    ),
    "Excel": FileKind(
        write=write_workbook, layout=FileLayout(format="excel", sheet="Data", fields=len(COLUMNS), rows=ROWS)
    ),
    "Parquet": FileKind(write=write_parquet, layout=FileLayout(format="parquet")),
}


def reading_checks() -> Iterator[AuditCheck]:
    """Every kind of file with every strange record in three places; one check for each kind and cell."""
    for name, kind in FILE_KINDS.items():
        cells = (*CELLS, *RAW_BYTES) if kind.layout.format == "text" else CELLS
        for cell in cells:
            problem = "; ".join(filter(None, (reading_problem(kind, cell, row) for row in (0, ROWS // 2, ROWS - 1))))
            shown = repr(cell)
            case = f"a record of {shown if len(shown) < 40 else shown[:36] + '...'}"
            yield AuditCheck(layer="reading", subject=name, case=case, verdict=verdict(not problem), detail=problem)


def reading_problem(kind: FileKind, cell: Any, row: int) -> str:
    """What goes wrong when a record of nothing but this cell replaces one; empty if nothing does."""
    records = [RECORDS[i % len(RECORDS)] for i in range(ROWS)]
    strange = [*records[:row], [cell] * len(COLUMNS), *records[row + 1 :]]
    schema, before = _undisturbed(kind)
    try:
        after = _positions(kind.write(strange), schema)
    except DPSynthError as error:
        return f"row {row}: {error}"
    others = [i for i in range(ROWS) if i != row]
    moved = [name for name in schema.names if before[name].shape != after[name].shape]
    moved = moved or [name for name in schema.names if not np.array_equal(before[name][others], after[name][others])]
    return f"row {row}: other rows of {', '.join(moved)} moved" if moved else ""


@lru_cache(maxsize=32)
def _undisturbed(kind: FileKind) -> tuple[Schema, PositionsByColumn]:
    schema = schema_for(kind.layout)
    return schema, _positions(kind.write([RECORDS[i % len(RECORDS)] for i in range(ROWS)]), schema)


def _positions(data: bytes, schema: Schema) -> PositionsByColumn:
    """Each row's position in each column; -1 where it is missing."""
    private = PrivateTable(read_table(data, schema), schema)
    found = {}
    for name in schema.names:
        positions = private.positions(name)
        values = positions.values.astype(np.float64)
        found[name] = values if positions.missing is None else np.where(positions.missing, -1.0, values)
    return found
