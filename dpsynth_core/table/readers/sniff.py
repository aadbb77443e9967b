"""Proposing the layout of a text file by looking at it.

What is found here was read from the data: it saves typing, and it becomes a public fact only when a person declares it.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from dpsynth_core.errors import IntakeError
from dpsynth_core.table.file_layout import DEFAULT_MISSING, FileLayout

EMPTY = "This file is empty; upload a table with a header and at least one row."
MAX_NAME = 256

_SAMPLE_BYTES = 256 * 1024
_SAMPLE_ROWS = 1_000
_PIECE_BYTES = 8 * 1024 * 1024
_DELIMITERS = "\t;|,"  # from the rarest in ordinary text to the commonest: the rarer one wins a tie
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CP1252_GAPS = (0x81, 0x8D, 0x8F, 0x90, 0x9D)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
_EXCEL_HINT = re.compile(r'"?sep=([\t;|,])"?(?=\r|\n)', re.IGNORECASE)
_VALUE = re.compile(r"[-+(]?[$€£]?\d[\dTZ.,:/\s-]*(?:[eE][-+]?\d+)?\s?[%€)]?|[-+]?[.,]\d+|true|false", re.IGNORECASE)
_POINT, _COMMA = re.compile(r"[+-]?\d+\.\d+"), re.compile(r"[+-]?\d+,\d+")
_GROUPED_BY_COMMA = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_GROUPED_BY_POINT = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+,\d+")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_NOT_TEXT = (
    "This file does not contain readable text, so it may be damaged or of another kind; "
    "upload CSV, TSV, Parquet or Excel (.xlsx)."
)


def sniff_text(data: bytes, header: bool | None = None) -> FileLayout:
    """The layout that a text file seems to have; ``header`` says whether its first row names the columns."""
    encoding = sniff_encoding(data)
    whole = len(data) <= _SAMPLE_BYTES
    sample = data[:_SAMPLE_BYTES].decode(encoding, "ignore").removeprefix("\ufeff")
    _check_text(data, encoding, sample)
    hint = _EXCEL_HINT.match(sample)
    skipped = _leading_lines(sample, hint is not None)
    body = "".join(_LINE.findall(sample)[skipped:])
    delimiter, spaced, rows = _sniff_delimiter(body, None if hint is None else hint[1], whole=whole)
    named = has_header(rows) if header is None else header
    decimal, thousands = _number_signs([cell.strip() for row in rows[named:] for cell in row], delimiter)
    return FileLayout(
        encoding=encoding,
        delimiter=delimiter,
        space_after_delimiter=spaced,
        skip_rows=skipped,
        header=named,
        fields=None if named else len(rows[0]),
        decimal=decimal,
        thousands=thousands,
    )


def sniff_encoding(data: bytes) -> str:
    """A byte order mark decides.

    Without one, zeros in every second byte mean UTF-16, valid UTF-8 is UTF-8, and anything else is taken for Western
    European text (Windows-1252, or Latin-1 where that leaves gaps).
    """
    marked = next((encoding for mark, encoding in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
    if marked is not None:
        return marked
    sample = data[:4096]
    half = len(sample) // 2
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.05 * half:
        return "utf-16-be"
    if _is_utf8(data):
        return "utf-8"
    return "latin-1" if any(gap in data for gap in _CP1252_GAPS) else "cp1252"


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


def _check_text(data: bytes, encoding: str, sample: str) -> None:
    zeros = "\0" in sample if encoding.startswith(("utf-16", "utf-32")) else b"\0" in data
    if zeros or len(_CONTROLS.findall(sample)) * 50 > len(sample):
        raise IntakeError(_NOT_TEXT)
    if not sample.strip() and len(data) <= _SAMPLE_BYTES:
        raise IntakeError(EMPTY)


def _leading_lines(sample: str, hint: bool) -> int:
    """Excel's `sep=` line and blank lines above the first record."""
    lines = _LINE.findall(sample)
    skipped = int(hint)
    while skipped < len(lines) and not lines[skipped].strip():
        skipped += 1
    return skipped


def _sniff_delimiter(sample: str, hinted: str | None, *, whole: bool) -> tuple[str, bool, list[list[str]]]:
    """The delimiter, whether blanks follow it before a quotation mark, and the first records.

    Each candidate parses the sample; the one that cuts the largest share of records into the same number of
    fields (more than one) wins, then the one whose cells look most like numbers and dates, then the rarer
    character. If none cuts at least half of the records alike, the file is one column.
    """
    parsed = {mark: _records(sample, mark, whole=whole) for mark in _DELIMITERS}
    best = hinted or max(_DELIMITERS, key=lambda mark: _consistency(parsed[mark]))
    if hinted is None and _consistency(parsed[best])[0] < 0.5:
        best = ","
    spaced = any(cell.startswith(' "') for row in parsed[best] for cell in row)
    rows = _records(sample, best, whole=whole, spaced=True) if spaced else parsed[best]
    if not rows:
        if whole:
            raise IntakeError(EMPTY)
        raise IntakeError(
            "The first line is too long for a header; check the column names and the quotation marks in it."
        )
    return best, spaced, rows


def _number_signs(cells: Sequence[str], delimiter: str) -> tuple[Literal[".", ","], str]:
    """The decimal and the thousands sign that the numbers among these cells seem to have."""
    commas = [cell for cell in cells if _COMMA.fullmatch(cell)]
    points = sum(_POINT.fullmatch(cell) is not None for cell in cells)
    by_comma = sum(_GROUPED_BY_COMMA.fullmatch(cell) is not None for cell in cells)
    by_point = sum(_GROUPED_BY_POINT.fullmatch(cell) is not None for cell in cells)
    grouped = all(_GROUPED_BY_COMMA.fullmatch(cell) for cell in commas)
    if len(commas) + by_point > points and (delimiter == ";" or not grouped):
        return ",", "." if by_point else ""
    return ".", "," if by_comma and grouped else ""


def _records(sample: str, delimiter: str, *, whole: bool, spaced: bool = False) -> list[list[str]]:
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, skipinitialspace=spaced)
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in reader if row)
    except csv.Error:
        return rows[:_SAMPLE_ROWS]  # a cell that swallows the rest: what came before it is whole
    if not whole:
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
    names = {cell.strip(): index for index, cell in enumerate(first) if cell.strip() not in DEFAULT_MISSING}
    if len(names) * 2 <= len(first):
        return False
    again = sum(any(index < len(row) and row[index].strip() == name for row in rest) for name, index in names.items())
    return again * 2 < len(names)


def clean_names(raw: Sequence[str]) -> list[str]:
    """Return unique, non-empty names: blanks become `column_3`, repeated names get `_2`, `_3` and so on."""
    bare = [_bare(name) for name in raw]
    for index, name in enumerate(bare, start=1):
        if len(name) > MAX_NAME:
            raise IntakeError(
                f"The name of column {index} has more than {MAX_NAME} characters; shorten it, or check "
                "that the first row holds the column names."
            )
    names: list[str] = []
    taken: set[str] = set()
    reserved = set(bare)
    for index, name in enumerate(bare, start=1):
        unique = _unique(name or f"column_{index}", taken, reserved - {name})
        names.append(unique)
        taken.add(unique)
    return names


def _bare(name: str) -> str:
    spaced = "".join(" " if unicodedata.category(mark) == "Cc" else mark for mark in name)
    kept = [index for index, mark in enumerate(spaced) if unicodedata.category(mark) not in _EDGES]
    return spaced[kept[0] : kept[-1] + 1] if kept else ""


_EDGES = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})


def _unique(name: str, taken: set[str], reserved: set[str]) -> str:
    candidate, number = name, 2
    while candidate in taken or candidate in reserved:
        candidate, number = f"{name}_{number}", number + 1
    return candidate
