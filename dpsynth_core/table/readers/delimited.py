"""Text files by a declared layout: every record by itself, every cell as text.

The grammar gives every sequence of bytes a meaning, but for two things that break a file as a whole: a quotation mark
that is never closed, and a record with more fields than the header. Both are errors, before anything is charged. A
record with fewer fields lacks the last ones; a blank line is a record; a byte that cannot be decoded spoils its own
cell.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dpsynth_core.arrays import BoolArray, IntArray
from dpsynth_core.errors import IntakeError
from dpsynth_core.table.cell_loops import ByteArray, OffsetArray, copy_fields, count_records, find_fields
from dpsynth_core.table.file_layout import FileLayout

MAX_BYTES = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """How records are found in a text, or in a piece of one."""

    layout: FileLayout
    width: int = 0
    """Fields in a record; 0: the first record tells."""
    header: bool | None = None
    """Whether the first record names the columns; None: as the layout says."""
    first_line: int | None = None
    """The number of the text's first line in its file; None: the one below the lines that are skipped."""

    @property
    def signs(self) -> tuple[int, bool, bool]:
        return ord(self.layout.delimiter), self.layout.quoting, self.layout.space_after_delimiter

    @property
    def has_header(self) -> bool:
        return self.layout.header if self.header is None else self.header


def read_fields(data: bytes, layout: FileLayout) -> tuple[list[str], list[pa.Array]]:
    """The header, empty texts where there is none, and each column as text, with markers of missing values as null."""
    return read_text_fields(_text_of(data, layout), _whole_file(layout))


def read_text_fields(text: bytes, grammar: Grammar) -> tuple[list[str], list[pa.Array]]:
    """The same for text that is UTF-8 already, without the lines to skip."""
    content, starts, stops, quotes = _find_fields(text, grammar)
    first = int(grammar.has_header and starts.shape[1] > 0)
    header = _columns(content, starts[:, :first], stops[:, :first], quotes[:, :first], markers=())
    missing = grammar.layout.missing
    columns = _columns(content, starts[:, first:], stops[:, first:], quotes[:, first:], markers=missing)
    return ["".join(name.fill_null("").to_pylist()) for name in header], columns


def _text_of(data: bytes, layout: FileLayout) -> bytes:
    return without_lines(as_utf8(data, layout.encoding), layout.skip_rows)


def _whole_file(layout: FileLayout) -> Grammar:
    return Grammar(layout=layout, width=0 if layout.header else layout.fields or 0)


def blank_records(data: bytes, layout: FileLayout) -> BoolArray:
    """Which records, the header left out, are lines with nothing in them."""
    _, starts, stops, quotes = _find_fields(_text_of(data, layout), _whole_file(layout))
    first = int(layout.header and starts.shape[1] > 0)
    alone = (starts[1:, first:] < 0).all(axis=0)
    blank: BoolArray = alone & (starts[0, first:] == stops[0, first:]) & ~quotes[0, first:]
    return blank


def _find_fields(data: bytes, grammar: Grammar) -> tuple[ByteArray, OffsetArray, OffsetArray, BoolArray]:
    """The text, and where each field of each record starts and stops, and whether it is quoted."""
    text = np.frombuffer(data, dtype=np.uint8)
    if len(text) > MAX_BYTES:
        raise IntakeError("This file is too large to be read in one piece; upload a smaller extract of it.")
    records, width, too_wide, unclosed = count_records(text, *grammar.signs, grammar.width)
    if unclosed >= 0:
        raise IntakeError(
            f"A quotation mark in the record that starts on line {_line(text, unclosed, grammar)} is never closed; "
            "close it or remove it, or declare that this file puts no cells in quotation marks."
        )
    if too_wide >= 0:
        raise IntakeError(
            f"Line {_line(text, too_wide, grammar)} has more than {width} fields, which is how many the first row has; "
            "put quotation marks around cells that contain the delimiter, or declare how many lines stand above the "
            "column names."
        )
    shape = (width, records)
    starts, stops = np.full(shape, -1, dtype=np.int32), np.zeros(shape, dtype=np.int32)
    quotes = np.zeros(shape, dtype=np.bool_)
    find_fields(text, *grammar.signs, starts, stops, quotes)
    return text, starts, stops, quotes


def as_utf8(data: bytes, encoding: str) -> bytes:
    """The text as valid UTF-8 without a byte order mark; bytes that cannot be decoded become replacement characters.

    Delimiters, quotation marks and line breaks are ASCII, and no part of a longer character in any encoding that is
    read byte by byte: a wrong byte cannot swallow them.
    """
    name = codecs.lookup(encoding).name
    if name == "utf-8":
        data = data.removeprefix(codecs.BOM_UTF8)
        if data.isascii():
            return data
    elif name.startswith(("utf-16", "utf-32")) and len(data) % (int(name[4:6]) // 8):
        raise IntakeError(f"This file is not {encoding} text, or it was cut short; declare another encoding.")
    return data.decode(encoding, "replace").removeprefix("\ufeff").encode("utf-8", "replace")


def _line(text: ByteArray, position: int, grammar: Grammar) -> int:
    first = 1 + grammar.layout.skip_rows if grammar.first_line is None else grammar.first_line
    return first + line_breaks(bytes(text[:position]))


def line_breaks(text: bytes) -> int:
    """How often a line ends."""
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def without_lines(text: bytes, count: int) -> bytes:
    """The text below its first lines, however those end."""
    for _ in range(count):
        end = min((at for at in (text.find(b"\n"), text.find(b"\r")) if at >= 0), default=len(text))
        text = text[end + (2 if text[end : end + 2] == b"\r\n" else 1) :]
    return text


def _columns(
    text: ByteArray, starts: OffsetArray, stops: OffsetArray, quotes: BoolArray, markers: tuple[str, ...]
) -> list[pa.Array]:
    filled = [marker.encode() for marker in markers if marker]
    ends = np.cumsum([len(marker) for marker in filled], dtype=np.int64)
    joined = np.frombuffer(b"".join(filled), dtype=np.uint8)
    return [_column(text, *fields, joined, ends) for fields in zip(starts, stops, quotes, strict=True)]


def _column(  # noqa: PLR0917
    text: ByteArray,
    starts: OffsetArray,
    stops: OffsetArray,
    quotes: BoolArray,
    markers: ByteArray,
    marker_ends: IntArray,
) -> pa.Array:
    rows = len(starts)
    content = np.empty(int(np.where(starts < 0, 0, stops - starts).sum()), dtype=np.uint8)
    offsets, present = np.empty(rows + 1, dtype=np.int64), np.empty(rows, dtype=np.bool_)
    length = copy_fields(text, starts, stops, quotes, markers, marker_ends, content, offsets, present)
    validity = pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(
        pa.large_string(), rows, [validity, pa.py_buffer(offsets), pa.py_buffer(content[:length])]
    )
