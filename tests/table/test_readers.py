"""Reading files as tables: what is understood, what is refused, and what a refusal never says."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import gzip
import io
import json
import os
import pickle
import sqlite3
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsynth_core.errors import IntakeError, ParameterError
from dpsynth_core.privacy.budget import Budget, Guarantee
from dpsynth_core.table.file_layout import DEFAULT_MISSING, layout_of
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.readers.limits import Limits
from dpsynth_core.table.readers.read import read_table
from dpsynth_core.table.schema import Schema
from dpsynth_core.table.suggest import suggest_schema
from tests.tables.workbooks import MAIN, archive, shared_strings, sheet_xml, workbook

SECRET = "Zq7SECRETzQ"  # noqa: S105
SMALL = Limits(bytes=10_000_000, decompressed_bytes=50_000_000)


def kinds(table: pd.DataFrame) -> list[str]:
    return [str(kind) for kind in table.dtypes]


def refusal(source: Any, **options: Any) -> str:
    with pytest.raises(IntakeError) as caught:
        read_table(source, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def parquet(table: pa.Table | pd.DataFrame, **options: Any) -> bytes:
    out = io.BytesIO()
    if isinstance(table, pd.DataFrame):
        table.to_parquet(out)
    else:
        pq.write_table(table, out, **options)
    return out.getvalue()


# --- text: awkward but well-formed ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('a,b\n1,"x, y"\n', [["1", "x, y"]]),
        ('a,b\n1,"ha ""ha"" ha"\n3,4\n', [["1", 'ha "ha" ha'], ["3", "4"]]),
        ('a,b\n1,"ha \n""ha"" \nha"\n3,4\n', [["1", 'ha \n"ha" \nha'], ["3", "4"]]),
        ('a,b\r\n1,"one\r\ntwo"\r\n', [["1", "one\r\ntwo"]]),
        ('a,b\r1,x\r2,"y\rz"\r', [["1", "x"], ["2", "y\rz"]]),
        ("a,b\n1,37°36'37.8\"N\n", [["1", "37°36'37.8\"N"]]),
        ('k,v\n1,"{""t"": ""P"", ""c"": [102.0, 0.5]}"\n', [["1", '{"t": "P", "c": [102.0, 0.5]}']]),
        ("\n\na,b\n\n1,x\n\n", [[None, None], ["1", "x"], [None, None]]),
        ('a, b\n1, "x, y"\n2, "z"\n', [["1", "x, y"], ["2", "z"]]),
        ("a,b\n1,x\n2", [["1", "x"], ["2", None]]),
        ("sep=;\na;b\n1;x,y\n", [["1", "x,y"]]),
        ("a,b\n1,ʤ", [["1", "ʤ"]]),
    ],
)
def test_awkward_text_is_read_right(content: str, expected: list[list[str | None]]) -> None:
    table = read_table(content.encode(), header=True)
    got = [[None if pd.isna(cell) else str(cell) for cell in row] for row in table.itertuples(index=False)]
    assert got == expected
    assert list(table.index) == list(range(len(expected)))
    assert isinstance(table.index, pd.RangeIndex)


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_delimiter_is_found(delimiter: str) -> None:
    rows = [["name", "age", "city"], ["Ann", "31", "Oslo"], ["Bob", "44", "Rome"]]
    table = read_table("\n".join(delimiter.join(row) for row in rows).encode())
    assert list(table.columns) == ["name", "age", "city"]
    assert kinds(table) == ["str", "str", "str"]


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("3,14;2,5\n1,5;9,0\n", 2),
        ("name;note\nAnn;a, b\nBob;c, d\n", 2),
        ("id,tags\n1,a|b\n2,c|d\n", 2),
        ("name|1.5,2.5\nother|3.5,4.5\n", 2),
        ("colour\nred\nblue\n", 1),
        ("1\n2\n3\n", 1),
    ],
)
def test_delimiter_that_cuts_evenly_wins(content: str, columns: int) -> None:
    assert read_table(content.encode()).shape[1] == columns


def test_long_quoted_records_do_not_mislead_the_sample() -> None:
    long = "\n".join("a, b; c" for _ in range(3_000))
    content = "id;note\n" + "".join(f'{n};"{long}"\n' for n in range(40))
    table = read_table(content.encode())
    assert len(content) > 500_000
    assert table.shape == (40, 2)
    assert table["note"].iloc[-1] == long


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_unicode_encodings(encoding: str) -> None:
    content = "name,city\n" + "José,Köln\nZoë,Łódź\n" * 20
    table = read_table(content.encode(encoding))
    assert list(table.columns) == ["name", "city"]
    assert table["city"].iloc[1] == "Łódź"


def test_utf16_big_endian_with_mark() -> None:
    assert read_table(b"\xfe\xff" + "név,b\ná,2\n".encode("utf-16-be")).columns[0] == "név"


def test_western_text_with_late_accents() -> None:
    content = ("name,price\n" + "Ann,1\n" * 60_000 + "José,2\n").encode("latin-1")
    assert read_table(content)["name"].iloc[-1] == "José"
    assert read_table("name,n\n“Ann”,5€\n".encode("cp1252")).iloc[0].tolist() == ["“Ann”", "5€"]
    assert read_table(b"name,n\n" + b"Ann,1\n" * 20 + b"\x81\xe9,5\n")["name"].iloc[-1] == "\x81é"


# --- text: header and names ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("a,b\n1,2\n", True),
        ("1,2\n3,4\n", False),
        ("Ann,31\nBob,44\n", False),
        ("name,city\nAnn,Oslo\n", True),
        ("red,yes\nblue,no\nred,yes\nblue,yes\n", False),
        ("2020-01-01,x\n2020-01-02,y\n", False),
        ("true,x\nfalse,y\n", False),
        ("25-00503,M\n25-00504,F\n", False),
        ("$1.50,x\n$2.50,y\n", False),
        (",a,b\n0,1,2\n", True),
        (",,b\n0,1,2\n", False),
        ("Age (years),2020 income\n1,2\n", True),
    ],
)
def test_header_is_found(content: str, named: bool) -> None:
    table = read_table(content.encode())
    assert len(table) == len(content.splitlines()) - int(named)
    assert (table.columns[-1] == f"column_{table.shape[1]}") is not named


def test_header_can_be_dictated() -> None:
    assert list(read_table(b"1,2\n3,4\n", header=True).columns) == ["1", "2"]
    table = read_table(b"a,b\nc,d\n", header=False)
    assert table.to_numpy().tolist() == [["a", "b"], ["c", "d"]]


def test_names_are_cleaned_and_unique() -> None:
    content = '  a ,"b\nc",,a,a,a_2,column_3,\u200bx\ufeff,\x07\n1,2,3,4,5,6,7,8,9\n'
    table = read_table(content.encode(), header=True)
    assert list(table.columns) == ["a", "b c", "column_3_2", "a_3", "a_4", "a_2", "column_3", "x", "column_9"]


def test_over_long_name_is_refused() -> None:
    assert "column 2" in refusal(b"a," + b"n" * 300 + b"\n1,2\n")


# --- text: types ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "kind", "bounds"),
    [
        (["1", "-2", "0"], "integer", (-2, 1)),
        (["1", "", "3", "2"], "integer", (1, 3)),
        (["1.5", "2", "-0.25", ".5", "1e3"], "continuous", None),
        (["1.5", "NA", "7"], "continuous", None),
        (["True", "False"], "boolean", None),
        (["TRUE", "", "false"], "boolean", None),
        (["00123", "45678"], "categorical", None),
        (["-012", "3"], "categorical", None),
        (["0x1F", "2"], "categorical", None),
        (["92233720368547758070", "1"], "categorical", None),
        (["+4912345", "+491"], "categorical", None),
        (["+1.5", "-2.5"], "continuous", None),
        ([" 1", "2 ", " NA ", "5"], "integer", (1, 5)),
        (["None", "N", "n/a", "-"], "categorical", None),
        (["NAN", "1.5"], "categorical", None),
        (["1", "x"], "categorical", None),
        (["3,14", "2,5", "1,5"], "continuous", None),
    ],
)
def test_text_stays_text_and_its_kind_is_only_suggested(
    cells: list[str], kind: str, bounds: tuple[int, int] | None
) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([["id", "v"], *([f"r{i}", cell] for i, cell in enumerate(cells))])
    table = read_table(out.getvalue().encode(), header=True)
    assert kinds(table) == ["str", "str"]
    expected = [None if cell.strip() in DEFAULT_MISSING else cell for cell in cells]
    assert [None if pd.isna(value) else value for value in table["v"]] == expected
    column = suggest_schema(table)["v"]
    assert column.kind == kind
    assert column.nullable == (None in expected)
    if bounds is not None:
        assert column.lower is not None
        assert column.lower <= bounds[0]
        assert column.upper >= bounds[1]


@pytest.mark.parametrize(
    ("content", "sentence", "thousands"),
    [
        (b"a;b\n3,14;1\n2,5;2\n", "semicolon-separated, UTF-8, decimal comma, header in row 1", ""),
        (b"a;b\n1.234,5;1\n2,5;2\n", "semicolon-separated, UTF-8, decimal comma, header in row 1", "."),
        (b'a,b\n"1,234.5",1\n"12,000",2\n', "comma-separated, UTF-8, decimal point, header in row 1", ","),
        (b"a\tb\n1.5\t2\n", "tab-separated, UTF-8, decimal point, header in row 1", ""),
        (b"1|2\n3|4\n", "separated by |, UTF-8, decimal point, no header", ""),
        ("a;b\n5€;1\n".encode("cp1252"), "semicolon-separated, Windows-1252, decimal point, header in row 1", ""),
        (b"sep=;\na;b\n1;2\n", "semicolon-separated, UTF-8, decimal point, header in row 2", ""),
    ],
)
def test_the_layout_is_suggested_in_one_plain_line(content: bytes, sentence: str, thousands: str) -> None:
    layout = layout_of(read_table(content).attrs)
    assert layout is not None
    assert layout.sentence() == sentence
    assert layout.thousands == thousands
    assert suggest_schema(read_table(content)).file == layout


def test_a_declared_layout_is_kept_to() -> None:
    """What sniffing would say does not matter: the schema says how the file is laid out."""
    facts = {
        "columns": [{"name": "x", "kind": "continuous", "lower": 0, "upper": 9, "public": True}],
        "file": {"delimiter": ";", "decimal": ",", "missing": ["?"]},
    }
    schema = Schema.from_dict(facts)
    table = read_table(b"x;y\n1,5;a,b\n?;NA\n\n2.5\n", schema)
    assert [None if pd.isna(cell) else cell for cell in table["x"]] == ["1,5", None, None, "2.5"]
    assert [None if pd.isna(cell) else cell for cell in table["y"]] == ["a,b", "NA", None, None]
    assert layout_of(table.attrs) == schema.file
    assert PrivateTable(table, schema).positions("x").values.tolist() == [1.5, 4.5, 4.5, 4.5]
    assert Schema.from_json(schema.to_json()) == schema


def test_a_guessed_layout_voids_the_guarantee() -> None:
    content = b"x\n1\n2\n"
    columns = [{"name": "x", "kind": "integer", "lower": 0, "upper": 9, "public": True}]
    undeclared = Schema.from_dict({"columns": columns})
    declared = Schema.from_dict({"columns": columns, "file": {"format": "text"}})
    proven = Guarantee(status="proven", budget=Budget.of(1))
    guessed = PrivateTable(read_table(content), undeclared).judge(proven)
    assert guessed.status == "void"
    assert "layout" in " ".join(guessed.caveats)
    assert PrivateTable(read_table(content, undeclared), undeclared).judge(proven).status == "void"
    assert PrivateTable(read_table(content, declared), declared).judge(proven).status == "proven"
    # A person who declares what was guessed makes it a public fact.
    accepted = replace(undeclared, file=suggest_schema(read_table(content)).file)
    assert PrivateTable(read_table(content), accepted).judge(proven).status == "proven"
    # A table that comes from no file begins with its own cells.
    assert PrivateTable(pd.DataFrame({"x": [1, 2]}), undeclared).judge(proven).status == "proven"


def test_result_can_be_changed_in_place() -> None:
    csv_table = read_table(b"a,b,c,d\n1,1.5,,True\n2,2.5,4,False\n")
    parquet_table = read_table(parquet(pa.table({"a": [1, 2], "b": [1.5, 2.5], "c": [None, 4]})))
    for table in (csv_table, parquet_table):
        new = ["9", "9.5", "9"] if table["a"].dtype == "str" else [9, 9.5, 9]
        for name, value in zip("abc", new, strict=True):
            table.loc[0, name] = value
        assert table.loc[0, ["a", "b", "c"]].tolist() == new


LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"])
CELLS = st.text(LETTERS | st.sampled_from('",;|\t\n\r '), max_size=8).map(lambda cell: f"t{cell}")


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_written_text_is_read_back(rows: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows([["first", "second"], *rows])
    table = read_table(out.getvalue().encode(), header=True)
    assert table.to_numpy().tolist() == rows


# --- text: refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "empty"),
        (b" \n\r\n\t ", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"a,b\n", "no rows"),
        (b"a,b", "no rows"),
        (b"a,b\n1,2\n3,4,5\n", "Line 3 has more than"),
        (b'a,b\n1,"x\ny"\n\n3,4,5\n', "Line 5 has more than"),
        (b"Report 2020\n\nid,name,x\n1,2,3\n4,5,6\n", "Line 3 has more than"),
        (b'a,b\n1,2\n3,"4\n5,6\n', "line 3 is never closed"),
        (b'a,b\n5" pipe,2\n3,"4\n5,6', "line 3 is never closed"),
        (b"\x00\x01\x02\x03\xff\xfe" * 50, "readable text"),
        (bytes(range(1, 32)) * 9, "readable text"),
        (b"a,b\n1,\x00\n", "readable text"),
        (b"\xff\xfea\x00,\x00b", "cut short"),
    ],
)
def test_text_that_is_no_table_is_refused(content: bytes, part: str) -> None:
    assert part in refusal(content)


def test_cell_too_long_for_one_record() -> None:
    assert "line 2" in refusal(b'a,b\n1,"' + b"x" * 140_000 + b"\n" * 5)
    assert len(read_table(b"a,b\n1," + b"x" * 140_000 + b"\n")["b"][0]) == 140_000
    assert "first line" in refusal(b"a" * 300_000 + b"\n1\n")


# --- limits --------------------------------------------------------------------------------------------


def test_limits_must_be_positive() -> None:
    with pytest.raises(ParameterError):
        Limits(rows=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: "\n".join(",".join(map(str, row)) for row in rows).encode(),
        lambda rows: parquet(pd.DataFrame(rows[1:], columns=rows[0])),
        lambda rows: workbook(sheet_xml(rows)),
    ],
    ids=["csv", "parquet", "xlsx"],
)
def test_limits_hold_for_every_format(make: Callable[[list[list[Any]]], bytes]) -> None:
    content = make([["a", "b", "c"], *([f"x{n}", "long" * 10, n] for n in range(20))])
    assert read_table(content).shape == (20, 3)
    assert read_table(content, limits=Limits(rows=20, columns=3)).shape == (20, 3)
    assert "more than 19 rows" in refusal(content, limits=Limits(rows=19))
    assert "more than 2 columns" in refusal(content, limits=Limits(columns=2))
    assert "larger than 50 bytes" in refusal(content, limits=Limits(bytes=50))


def test_unpacked_size_is_limited() -> None:
    small = Limits(decompressed_bytes=100_000)
    assert "once unpacked" in refusal(parquet(pa.table({"n": list(range(50_000))})), limits=small)
    # Repetition makes a tiny file: a hundred thousand copies of one long text.
    repeated = parquet(pa.table({"s": pa.array(["x" * 1_000] * 5_000).dictionary_encode()}))
    assert len(repeated) < 5_000
    assert "once unpacked" in refusal(repeated, limits=Limits(decompressed_bytes=1_000_000))
    assert "once unpacked" in refusal(workbook(sheet_xml([["y" * 30_000]] * 10)), limits=small)


def test_shared_texts_of_a_workbook_are_added_up() -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(1, 201))
    content = workbook(rows, extra=shared_strings("x" * 30_000))
    assert "once unpacked" in refusal(content, limits=Limits(decompressed_bytes=1_000_000))
    assert len(read_table(content, header=False)) == 200


@pytest.mark.parametrize(
    "rows",
    [
        '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="ALL1048576"><v>1</v></c></row>',
        '<row r="1"><c r="ALL1"><v>1</v></c></row><row r="1048576"><c r="A1048576"><v>1</v></c></row>',
        "<row/>" * 300_000 + "<row>" + "<c/>" * 900 + "<c><v>1</v></c></row>",
        f'<x:row xmlns:x="{MAIN}" r="1048576"><x:c r="ALL1048576"><x:v>1</x:v></x:c></x:row>',
    ],
    ids=["corner", "two edges", "no references", "prefixed"],
)
def test_far_away_cells_are_refused_before_they_take_memory(rows: str) -> None:
    assert "far apart" in refusal(workbook(rows), limits=Limits(decompressed_bytes=100_000_000))


def test_formatting_far_below_the_table_is_harmless() -> None:
    rows = sheet_xml([["a", "b"], [1, 2]]) + '<row r="1048576"><c r="XFD1048576" s="1"/></row>'
    assert read_table(workbook(rows)).shape == (1, 2)


def test_sizes_declared_too_small_are_no_way_around_a_limit() -> None:
    content = workbook(sheet_xml([["a"], *([n] for n in range(2_000))]))
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        true = opened.getinfo("xl/worksheets/sheet1.xml").file_size
    assert "damaged" in refusal(content.replace(true.to_bytes(4, "little"), (64).to_bytes(4, "little")))


# --- other kinds of file -------------------------------------------------------------------------------


def sqlite_file(folder: Path) -> bytes:
    path = folder / "t.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (a)")
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 20, "a PNG image"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a JPEG image"),
        (b"GIF89a\x01\x00", "a GIF image"),
        (b"%PDF-1.7\n", "a PDF document"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "a gzip archive"),
        (archive({"data.csv": "a,b\n1,2\n"}), "a ZIP archive"),
        (archive({"word/document.xml": "<w/>"}), "a Word document"),
        (archive({"content.xml": "<o/>"}), "an OpenDocument file"),
        (archive({"xl/workbook.bin": "x"}), ".xlsb"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 50, ".xls"),
        (b"\n <!DOCTYPE html>\n<p>hi", "an HTML page"),
        (b"<html><body>", "an HTML page"),
        (b'<?xml version="1.0"?><a/>', "an XML document"),
        (json.dumps({"a": [1]}).encode(), "a JSON document"),
        (json.dumps([{"a": 1}]).encode(), "a JSON document"),
        (b'{"a": 1}\n{"a": 2}\n', "a JSON document"),
        *((pickle.dumps({"a": [1, 2]}, protocol=protocol), "a Python pickle") for protocol in (2, 3, 4, 5)),
    ],
)
def test_other_files_are_named(content: bytes, part: str) -> None:
    message = refusal(content)
    assert part in message
    assert "CSV" in message


def test_database_is_named(tmp_path: Path) -> None:
    assert "an SQLite database" in refusal(sqlite_file(tmp_path))


@pytest.mark.parametrize("first", ["parent", "PAR1", "PAREnt", "GIF", "FEA1", "ORC", "BM", "[x]", "II"])
def test_names_that_resemble_signatures_are_read(first: str) -> None:
    assert list(read_table(f"{first},b\n1,2\n".encode()).columns) == [first, "b"]


def test_paths(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"  # the name lies; the content counts
    path.write_bytes(b"a,b\n1,2\n")
    assert read_table(path).shape == read_table(str(path)).shape == (1, 2)
    assert "no file" in refusal(tmp_path / "absent.csv")
    assert "folder" in refusal(tmp_path)
    assert "larger than 3 bytes" in refusal(path, limits=Limits(bytes=3))
    assert "spelling" in refusal("a\0b")
    assert "spelling" in refusal("x" * 5_000)
    os.mkfifo(tmp_path / "pipe")
    assert "ordinary file" in refusal(tmp_path / "pipe")


# --- Parquet -------------------------------------------------------------------------------------------


def test_parquet_types() -> None:
    moment = dt.datetime(2020, 1, 2, 3, 4, 5)
    columns = {
        "small": (pa.array([1, 2], pa.int8()), "int64"),
        "unsigned": (pa.array([1, 2], pa.uint64()), "float64"),
        "huge": (pa.array([1, 2**64 - 1], pa.uint64()), "float64"),
        "gaps": (pa.array([1, None], pa.int32()), "Int64"),
        "half": (pa.array([1.5, None], pa.float32()), "float64"),
        "money": (pa.array([decimal.Decimal("1.25"), None]), "str"),
        "flag": (pa.array([True, False]), "bool"),
        "maybe": (pa.array([True, None]), "boolean"),
        "word": (pa.array(["NA", None]), "str"),
        "long": (pa.array(["x", "y"], pa.large_string()), "str"),
        "category": (pa.array(["x", "y"]).dictionary_encode(), "str"),
        "day": (pa.array([moment.date(), None]), "datetime64[s]"),
        "moment": (pa.array([moment, None], pa.timestamp("us")), "datetime64[us]"),
        "zoned": (pa.array([moment, None], pa.timestamp("ms", tz="Europe/Oslo")), "datetime64[ms]"),
        "clock": (pa.array([moment.time(), None]), "str"),
        "nothing": (pa.nulls(2), "float64"),
    }
    table = read_table(parquet(pa.table({name: column for name, (column, _) in columns.items()})))
    assert dict(zip(table.columns, kinds(table), strict=True)) == {n: k for n, (_, k) in columns.items()}
    assert table["word"].iloc[0] == "NA"
    assert table["day"].iloc[0] == pd.Timestamp(2020, 1, 2)
    assert table["gaps"].isna().tolist() == [False, True]
    assert table["money"].iloc[0] == "1.25"


def test_parquet_index_and_names() -> None:
    frame = pd.DataFrame({"c": pd.Categorical([3, 4, 3])}, index=pd.Index([7, 8, 9], name="key"))
    table = read_table(parquet(frame))
    assert table.to_dict("list") == {"c": [3, 4, 3], "key": [7, 8, 9]}
    assert isinstance(table.index, pd.RangeIndex)
    twice = pa.Table.from_arrays([pa.array([1]), pa.array(["x"])], names=["a", "a"])
    assert list(read_table(parquet(twice)).columns) == ["a", "a_2"]


def test_parquet_index_metadata_that_lies() -> None:
    table = pa.table({"a": [1, 2]})
    for lie in (b"{", b'{"index_columns": ["absent"]}', b'{"index_columns": [{"kind": "range", "stop": 99}]}'):
        assert len(read_table(parquet(table.replace_schema_metadata({b"pandas": lie})))) == 2


@pytest.mark.parametrize(
    ("column", "part"),
    [
        (pa.array([[1], [2]]), "nested"),
        (pa.array([{"x": 1}, {"x": 2}]), "nested"),
        (pa.array([b"x", b"y"]), "raw bytes"),
        (pa.array([b"xx", b"yy"], pa.binary(2)), "raw bytes"),
        (pa.array([1, 2], pa.duration("s")), "not supported"),
    ],
)
def test_parquet_columns_that_are_refused_by_name(column: pa.Array, part: str) -> None:
    message = refusal(parquet(pa.table({"fine": [1, 2], "odd one": column})))
    assert "'odd one'" in message
    assert part in message


def test_empty_parquet() -> None:
    assert "no rows" in refusal(parquet(pa.table({"a": pa.array([], pa.int64())})))
    assert refusal(parquet(pa.table({})))


def test_parquet_text_that_is_not_utf8() -> None:
    raw = pa.array([b"ok", b"\xff\xfe"], pa.binary())
    false = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    assert "damaged" in refusal(parquet(pa.table({"s": false}), use_dictionary=False))


# --- Excel ---------------------------------------------------------------------------------------------


def test_workbook_types() -> None:
    day = dt.date(2020, 1, 2)
    rows = [
        ["whole", "gaps", "part", "flag", "maybe", "day", "word", "mixed", "code", "nothing"],
        [1, 1, 1.5, True, True, day, "x", 5, "007", None],
        [2, None, 2, False, None, None, "NA", "five", "008", "#N/A"],
        [3, "NA", 3, True, False, day, "None", day, "9", ""],
    ]
    table = read_table(workbook(sheet_xml(rows)))
    assert list(table.columns) == rows[0]
    float_, text, cells = "float64", "str", "object"
    assert kinds(table) == [float_, cells, float_, cells, cells, cells, text, cells, text, text]
    assert table["mixed"].tolist() == [5.0, "five", day]
    assert table["code"].tolist() == ["007", "008", "9"]
    assert table["day"].iloc[0] == day
    found = {column.name: column.kind for column in suggest_schema(table)}
    assert (found["whole"], found["gaps"], found["part"]) == ("integer", "categorical", "continuous")
    assert (found["flag"], found["maybe"], found["day"]) == ("boolean", "boolean", "date")


def test_formulas_are_never_evaluated() -> None:
    rows = (
        sheet_xml([["a", "b"]])
        + '<row r="2"><c r="A2"><f>1+1</f><v>7</v></c><c r="B2" t="str"><f>NOW()</f><v>kept</v></c></row>'
        + '<row r="3"><c r="A3"><f>2+2</f></c><c r="B3" t="e"><v>#DIV/0!</v></c></row>'
        + '<row r="4"><c r="A4"><v>8</v></c></row>'
    )
    table = read_table(workbook(rows))
    assert [None if pd.isna(cell) else cell for cell in table["a"]] == [7, None, 8]
    assert table["b"].iloc[0] == "kept"
    assert table["b"].isna().tolist() == [False, True, True]


def test_first_sheet_with_data_is_read() -> None:
    one, two = sheet_xml([["a"], [1]]), sheet_xml([["b"], [2]])
    assert list(read_table(workbook("", one, two)).columns) == ["a"]
    assert list(read_table(workbook(one, two, hidden=[1])).columns) == ["b"]
    assert "No sheet" in refusal(workbook("", ""))
    assert "no rows" in refusal(workbook(sheet_xml([["a", "b"]])))


def test_workbook_shared_texts_and_blank_rows() -> None:
    rows = (
        '<row r="3"><c r="B3" t="s"><v>0</v></c><c r="C3" t="s"><v>1</v></c></row>'
        '<row r="5"><c r="B5"><v>1</v></c>\n<c r="C5" t="s"><v>2</v></c></row>'
    )
    table = read_table(workbook(rows, extra=shared_strings("n", "w", "word")))
    assert table.astype(object).where(table.notna(), None).to_dict("list") == {"n": [None, 1], "w": [None, "word"]}


@pytest.mark.parametrize(
    "rows",
    [
        '<row r="1"><c r="A1" t="s"><v>9</v></c></row>',
        '<row r="1"><c r="A1" t="s"><v>-</v></c></row>',
        '<row r="1"><c r="ZZZZ1"><v>1</v></c></row>',
        '<row r="one"><c><v>1</v></c></row>',
        '<row r="1"><c r="A1"><v>1</v></row>',
        "<row><c t='s'><v>0<!-- -->0</v></c></row>",
    ],
)
def test_damaged_workbooks(rows: str) -> None:
    assert "damaged" in refusal(workbook(rows, extra=shared_strings("x")))


def test_entities_are_not_expanded() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    assert "damaged" in refusal(workbook(sheet_xml([["a"], [1]]), extra={"xl/theme.xml": bomb}))


# --- nothing private in a refusal, nothing foreign as an error ------------------------------------------


def secret_files() -> dict[str, bytes]:
    line = f"{SECRET},{SECRET}\n"
    good = parquet(pa.table({"a": [SECRET] * 50, "b": [[SECRET]] * 50}))
    flat = parquet(pa.table({"a": [f"{SECRET}{n}" for n in range(50)]}), compression="none")
    sheet = workbook(sheet_xml([["a", "b"], *([SECRET, n] for n in range(50))]))
    return {
        "too many fields": f"a,b\n{line}{SECRET},{SECRET},{SECRET}\n".encode(),
        "open quote": f'a,b\n{line}1,"{SECRET}\n'.encode(),
        "open quote early": f'"{SECRET},b\n{line}'.encode(),
        "long name": f"{SECRET * 100},b\n1,2\n".encode(),
        "huge name": f"{SECRET * 50_000},b\n1,2\n".encode(),
        "zero byte": f"a,b\n{line}\0".encode(),
        "only a header": f"{SECRET},b\n".encode(),
        "cut UTF-16": f"a,b\n{line}".encode("utf-16")[:-1],
        "title": f"{SECRET}\na,b\n{line}{line}".encode(),
        "json": json.dumps({"a": SECRET}).encode(),
        "html": f"<html>{SECRET}".encode(),
        "zip": archive({"x.csv": SECRET}),
        "nested parquet": good,
        "cut parquet": flat[:-20],
        "broken parquet": flat.replace(SECRET.encode(), b"\xff" * len(SECRET)),
        "short parquet": flat[: len(flat) // 2],
        "broken sheet": workbook(f'<row r="1"><c r="{SECRET}"><v>{SECRET}</v></c></row>'),
        "odd index": workbook(f'<row r="1"><c r="A1" t="s"><v>{SECRET}</v></c></row>'),
        "cut sheet": sheet[:-30],
        "no sheet": archive({"xl/workbook.xml": SECRET}),
    }


@pytest.mark.parametrize("name", secret_files())
def test_no_refusal_contains_a_cell(name: str, tmp_path: Path) -> None:
    content = secret_files()[name]
    assert SECRET not in refusal(content, limits=SMALL)
    path = tmp_path / "file"
    path.write_bytes(content)
    assert SECRET not in refusal(path, limits=SMALL)


def only_refuses(content: bytes) -> None:
    try:
        table = read_table(content, limits=SMALL)
    except IntakeError as error:
        assert SECRET not in str(error)  # noqa: PT017
        return
    assert len(table) > 0
    assert len(set(table.columns)) == table.shape[1]
    assert all(isinstance(name, str) and name for name in table.columns)


FUZZ = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEED_PARQUET = parquet(
    pa.table({"s": [SECRET, "x", None] * 9, "n": [1, None, 3] * 9, "f": [0.5] * 27}), row_group_size=10
)
SEED_SHEET = workbook(sheet_xml([["name", "n"], *([SECRET, n] for n in range(9))]), extra=shared_strings(SECRET))


@given(st.binary(max_size=300))
@FUZZ
def test_random_bytes_never_escape(content: bytes) -> None:
    only_refuses(content)


@given(st.sampled_from([b"PAR1", b"PAR1\x15", b"PK\x03\x04", b"\xff\xfe", b"\xef\xbb\xbf", b"a,b\n"]), st.binary())
@FUZZ
def test_random_bytes_after_a_signature_never_escape(start: bytes, content: bytes) -> None:
    only_refuses(start + content)
    only_refuses(start + content + b"PAR1")


@given(st.text(st.sampled_from('ab1,;|\t"\n\r -.é0'), max_size=80))
@FUZZ
def test_random_text_never_escapes(content: str) -> None:
    for encoding in ("utf-8", "utf-16", "latin-1"):
        only_refuses(content.encode(encoding))


@given(
    st.sampled_from([SEED_PARQUET, SEED_SHEET]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=6),
    st.floats(0.5, 1),
)
@FUZZ
def test_damaged_files_never_escape(seed: bytes, changes: list[tuple[float, int]], kept: float) -> None:
    content = bytearray(seed)
    for place, value in changes:
        content[int(place * (len(content) - 1))] = value
    only_refuses(bytes(content[: int(len(content) * kept)] if kept < 0.75 else content))


@given(st.sampled_from([1, 3, 5]), st.floats(0, 1), st.sampled_from(["<", ">", '"', "9", "\x01", "", "<row>", "é"]))
@FUZZ
def test_damaged_sheets_never_escape(member: int, place: float, patch: str) -> None:
    with zipfile.ZipFile(io.BytesIO(SEED_SHEET)) as opened:
        members = {name: opened.read(name).decode() for name in opened.namelist()}
    name = list(members)[member]
    cut = int(place * len(members[name]))
    members[name] = members[name][:cut] + patch + members[name][cut + 1 :]
    only_refuses(archive(members))
