"""Text tables: which encoding, which delimiter, whether there is a header, which type each column has.

Sniffing looks at a bounded prefix. The table itself is parsed as text by pyarrow, and each column is given a
type from its exact text, so that "00123" stays a code and "None" stays a label.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dpsynth_core.errors import IntakeError
from dpsynth_core.table.column import MAX_NAME

MISSING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null")
"""The only cells of a text file that count as missing; "None" and "N" are labels like any other."""

EMPTY = "This file is empty; upload a table with a header and at least one row."
"""What to say about a file without a single cell."""

_SAMPLE_BYTES = 256 * 1024
_SAMPLE_ROWS = 1_000
_BLOCK_BYTES = 16 * 1024 * 1024  # also the longest record, so more than a wide table of long texts needs
_PIECE_BYTES = 8 * 1024 * 1024
_DELIMITERS = "\t;|,"  # from the rarest in ordinary text to the commonest: the rarer one wins a tie
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CP1252_GAPS = (0x81, 0x8D, 0x8F, 0x90, 0x9D)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
_EXCEL_HINT = re.compile(rb'"?sep=([\t;|,])"?(?=\r|\n)', re.IGNORECASE)
_VALUE = re.compile(r"[-+(]?[$€£]?\d[\dTZ.,:/\s-]*(?:[eE][-+]?\d+)?\s?[%€)]?|[-+]?[.,]\d+|true|false", re.IGNORECASE)
_LEADING_ZERO = r"^[+-]?0[0-9xX]"
_WHOLE_NUMBER = r"^[+-]?[0-9]+$"
_TRUE = ("True", "TRUE", "true")
_FALSE = ("False", "FALSE", "false")
_NOT_TEXT = (
    "This file does not contain readable text, so it may be damaged or of another kind; "
    "upload CSV, TSV, Parquet or Excel (.xlsx)."
)


@dataclass(frozen=True, kw_only=True)
class TextLayout:
    """How a text file is laid out."""

    delimiter: str
    """The character between two fields."""
    spaced: bool
    """Whether there is a space between a delimiter and an opening quotation mark, as in `1, "a, b"`."""
    rows: list[list[str]]
    """The first records, as text; the first of them is the header if there is one."""


def to_utf8(data: bytes) -> bytes:
    """Return the text as UTF-8 that ends in a line break, whatever its encoding was.

    A byte order mark decides. Without one, zeros in every second byte mean UTF-16, valid UTF-8 is UTF-8, and
    anything else is taken for Western European text (Windows-1252, or Latin-1 where that leaves gaps).
    """
    mark, encoding = next(((m, e) for m, e in _MARKS if data.startswith(m)), (b"", ""))
    data = data[len(mark) :]
    if (encoding or "utf-8") == "utf-8" and b"\0" not in data and _is_utf8(data):
        text = data
    else:
        text = _transcoded(data, encoding or _guess_encoding(data))
    sample = text[:_SAMPLE_BYTES].decode("utf-8", "ignore")
    if b"\0" in text or len(_CONTROLS.findall(sample)) * 50 > len(sample):
        raise IntakeError(_NOT_TEXT)
    if text.isspace() or not text:
        raise IntakeError(EMPTY)
    return text if text.endswith((b"\n", b"\r")) else text + b"\n"


def _pieces(data: bytes) -> Iterator[bytes]:
    view = memoryview(data)
    return (bytes(view[start : start + _PIECE_BYTES]) for start in range(0, len(view), _PIECE_BYTES))


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        for _ in codecs.iterdecode(_pieces(data), "utf-8"):
            pass
    except UnicodeDecodeError:
        return False
    return True


def _guess_encoding(data: bytes) -> str:
    sample = data[:4096]
    half = len(sample) // 2
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if even + odd == 0:
        return "latin-1" if any(gap in data for gap in _CP1252_GAPS) else "cp1252"
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.05 * half:
        return "utf-16-be"
    return "latin-1"  # keeps the zeros, which then give the file away as no text


def _transcoded(data: bytes, encoding: str) -> bytes:
    try:
        return b"".join(piece.encode() for piece in codecs.iterdecode(_pieces(data), encoding))
    except UnicodeError:
        raise IntakeError(
            f"This file says that it is {encoding[:-3] if encoding[-3:] in ('-le', '-be') else encoding} text "
            "but is not, or it was cut short; save it again as CSV UTF-8."
        ) from None


def sniff(text: bytes) -> tuple[bytes, TextLayout]:
    """Find the delimiter, and return the text without Excel's `sep=` line beside its layout.

    Each candidate parses the sample; the one that cuts the largest share of records into the same number of
    fields (more than one) wins, then the one whose cells look most like numbers and dates, then the rarer
    character. If none cuts at least half of the records alike, the file is one column.
    """
    hint = _EXCEL_HINT.match(text)
    if hint:
        text = text[hint.end() :]  # leaves a blank line, so that line numbers still hold
    sample = text[:_SAMPLE_BYTES].decode("utf-8", "ignore")
    complete = len(text) <= _SAMPLE_BYTES
    parsed = {mark: _records(sample, mark, complete=complete) for mark in _DELIMITERS}
    best = hint[1].decode() if hint else max(_DELIMITERS, key=lambda mark: _consistency(parsed[mark]))
    if not hint and _consistency(parsed[best])[0] < 0.5:
        best = ","
    spaced = any(cell.startswith(' "') for row in parsed[best] for cell in row)
    rows = _records(sample, best, complete=complete, spaced=True) if spaced else parsed[best]
    if not rows:
        if complete:
            raise IntakeError(EMPTY)
        raise IntakeError(
            "The first line is too long for a header; check the column names and the quotation marks in it."
        )
    return text, TextLayout(delimiter=best, spaced=spaced, rows=rows)


def _records(sample: str, delimiter: str, *, complete: bool, spaced: bool = False) -> list[list[str]]:
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, skipinitialspace=spaced)
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in reader if row)
    except csv.Error:
        return rows[:_SAMPLE_ROWS]  # a cell that swallows the rest: what came before it is whole
    if not complete:
        rows = rows[:-1]  # the cut may have gone through the last record
    return rows[:_SAMPLE_ROWS]


def _consistency(rows: Sequence[Sequence[str]]) -> tuple[float, float]:
    if not rows:
        return 0.0, 0.0
    width, votes = Counter(len(row) for row in rows).most_common(1)[0]
    if width == 1:
        return 0.0, 0.0
    cells = [cell for row in rows for cell in row]
    return votes / len(rows), sum(map(looks_like_value, cells)) / len(cells)


def looks_like_value(cell: str) -> bool:
    """Say whether a cell reads as a number, an amount, a date, a time or true/false."""
    return _VALUE.fullmatch(cell.strip()) is not None


def has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Say whether the first row names the columns.

    It does when none of its cells looks like a value (a number, a date, true/false), more than half of them
    are filled in and distinct, and fewer than half of those turn up again further down their own column.
    In doubt the row is data: a record taken for a header would be shown to everybody.
    """
    first, rest = rows[0], rows[1:]
    if any(looks_like_value(cell) for cell in first):
        return False
    names = {cell.strip(): i for i, cell in enumerate(first) if cell.strip() not in MISSING}
    if len(names) * 2 <= len(first):
        return False
    again = sum(any(i < len(row) and row[i].strip() == name for row in rest) for name, i in names.items())
    return again * 2 < len(names)


def clean_names(raw: Sequence[str]) -> list[str]:
    """Return unique, non-empty names: blanks become `column_3`, repeated names get `_2`, `_3` and so on."""
    bare = [_bare(name) for name in raw]
    for number, name in enumerate(bare, start=1):
        if len(name) > MAX_NAME:
            raise IntakeError(
                f"The name of column {number} has more than {MAX_NAME} characters; shorten it, or check "
                "that the first row holds the column names."
            )
    names: list[str] = []
    taken: set[str] = set()
    reserved = set(bare)
    for number, name in enumerate(bare, start=1):
        unique = _unique(name or f"column_{number}", taken, reserved - {name})
        names.append(unique)
        taken.add(unique)
    return names


def _bare(name: str) -> str:
    spaced = "".join(" " if unicodedata.category(mark) == "Cc" else mark for mark in name)
    visible = [i for i, mark in enumerate(spaced) if unicodedata.category(mark) not in _EDGES]
    return spaced[visible[0] : visible[-1] + 1] if visible else ""


_EDGES = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


def _unique(name: str, taken: set[str], reserved: set[str]) -> str:
    candidate, number = name, 2
    while candidate in taken or candidate in reserved:
        candidate, number = f"{name}_{number}", number + 1
    return candidate


def parse(text: bytes, layout: TextLayout) -> pa.Table:
    """Parse the text into columns of strings with missing cells null; the header is still the first row.

    Raises:
        IntakeError: A record has more fields than the first one, or a quotation mark is never closed.
    """
    if layout.spaced:
        text = _evened(text, layout)
    try:
        table = _parse_strictly(text, layout)
    except pa.ArrowException:
        table = None
    if table is None or table.num_columns != len(layout.rows[0]) or _may_end_inside_quotes(table):
        try:
            table = _parse_strictly(_evened(text, layout), layout)
        except pa.ArrowException:
            raise IntakeError("The rows of this file cannot be told apart; save it again as CSV UTF-8.") from None
    return table


def _parse_strictly(text: bytes, layout: TextLayout) -> pa.Table:
    width = len(layout.rows[0])
    return pa.csv.read_csv(
        pa.BufferReader(text),
        read_options=pa.csv.ReadOptions(autogenerate_column_names=True, block_size=_BLOCK_BYTES),
        parse_options=pa.csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=b'"' in text),
        convert_options=pa.csv.ConvertOptions(
            column_types={f"f{i}": pa.string() for i in range(width)},
            null_values=list(MISSING),
            strings_can_be_null=True,
            check_utf8=False,  # checked while decoding
        ),
    )


def _may_end_inside_quotes(table: pa.Table) -> bool:
    # The text ends in a line break, so a last cell that was never closed has swallowed it.
    last = table.column(table.num_columns - 1)[-1].as_py() if table.num_rows else None
    return last is not None and last.endswith(("\n", "\r"))


def _evened(text: bytes, layout: TextLayout) -> bytes:
    """Rewrite the text with short records filled up, or say on which line it goes wrong."""
    even = io.BytesIO()
    out = io.TextIOWrapper(even, "utf-8", newline="", write_through=True)
    writer = csv.writer(out, delimiter=layout.delimiter, lineterminator="\r\n")
    lines = chain(io.TextIOWrapper(io.BytesIO(text), "utf-8", newline=""), [_END])
    reader = csv.reader(lines, delimiter=layout.delimiter, skipinitialspace=layout.spaced)
    width, line = len(layout.rows[0]), 1
    try:
        for row in reader:
            _check_record(row, line, width)
            if row and row != [_END]:
                writer.writerow(row + [""] * (width - len(row)))
            line = reader.line_num + 1
    except csv.Error:
        raise IntakeError(
            f"The record that starts on line {line} has a cell that is too long; a quotation mark may be missing there."
        ) from None
    return even.getvalue()


_END = "\0"  # appended as a last record; no text that gets this far contains it


def _check_record(row: Sequence[str], line: int, width: int) -> None:
    if row and row[-1].endswith(_END) and row != [_END]:
        raise IntakeError(
            f"A quotation mark in the record that starts on line {line} is never closed; close it or remove it."
        )
    if len(row) > width:
        raise IntakeError(
            f"Line {line} has {len(row)} fields but the first row has {width}; put quotation marks around "
            "cells that contain the delimiter, and remove any title lines above the column names."
        )


def exceeds(column: pa.ChunkedArray | pa.Array, characters: int) -> bool:
    """Say whether a cell of a text column has more characters than allowed."""
    # A text has at least as many bytes as characters, and its bytes need no counting.
    if (pc.max(pc.binary_length(column)).as_py() or 0) <= characters:
        return False
    return (pc.max(pc.utf8_length(column)).as_py() or 0) > characters


def typed(column: pa.ChunkedArray, *, decimal_comma: bool) -> pa.ChunkedArray:
    """Give a column of strings the narrowest type that keeps every cell: int64, double, bool or string.

    A column with a number that starts with a needless zero ("00123") stays text, and so does one of whole
    numbers beyond int64 or with a plus sign: those are codes or telephone numbers. A column with no value at
    all becomes double. Spaces around a number are ignored; text keeps its own.
    """
    value = _as_value(column)
    if value is not None:
        return value
    bare = pc.utf8_trim_whitespace(column)
    bare = pc.if_else(pc.is_in(bare, pa.array(MISSING)), pa.scalar(None, pa.string()), bare)
    value = _as_value(bare)
    if value is None and decimal_comma and not pc.any(pc.match_substring(bare, ".")).as_py():
        value = _as_value(pc.replace_substring(bare, ",", "."))
    return value if value is not None else pc.if_else(pc.is_valid(bare), column, pa.scalar(None, pa.string()))


def _as_value(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), pa.float64())])
    number = _as_number(column)
    if number is not None:
        return None if _has_leading_zero(column) else number
    if pc.all(pc.is_in(column.drop_null(), pa.array(_TRUE + _FALSE))).as_py():
        truth = pc.is_in(column, pa.array(_TRUE))
        return pc.if_else(pc.is_valid(column), truth, pa.scalar(None, pa.bool_()))
    return None


def _as_number(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowInvalid:
        pass
    try:
        number = pc.cast(column, pa.float64())
    except pa.ArrowInvalid:
        return None
    # Spellings such as "NAN" parse as a number that is none, but are not among the missing marks.
    if pc.any(pc.is_nan(number)).as_py() or pc.all(pc.match_substring_regex(column, _WHOLE_NUMBER)).as_py():
        return None
    return number


def _has_leading_zero(column: pa.ChunkedArray) -> bool:
    # The plain prefix test is cheap and leaves few cells to the regular expression.
    starts = [pc.starts_with(column, sign + "0") for sign in ("", "-", "+")]
    suspects = column.filter(pc.or_(pc.or_(starts[0], starts[1]), starts[2]))
    return bool(pc.any(pc.match_substring_regex(suspects, _LEADING_ZERO)).as_py())
