"""Reading Excel workbooks, which can ask for far more memory than they are large."""

from __future__ import annotations

import datetime as dt
import io
import lzma
import math
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, TypeAlias
from xml.parsers import expat

import numpy as np
import pandas as pd
from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum

from dpsynth_core.errors import IntakeError
from dpsynth_core.table.readers import csv as text
from dpsynth_core.table.readers.frames import frame
from dpsynth_core.table.readers.limits import NO_ROWS, WANTED, Limits, check_shape, too_long, too_unpacked

ExcelCell: TypeAlias = "float | str | bool | dt.date | dt.time | dt.timedelta"

_DAMAGED_XLSX = "This Excel file is damaged or was cut short; open it in Excel and save it again as .xlsx."
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    expat.ExpatError,
    OSError,
    EOFError,
    RuntimeError,  # also an encrypted member and, as NotImplementedError, an unknown compression
    ValueError,
    OverflowError,
    MemoryError,
)
_OTHER_ARCHIVES = (
    ("xl/workbook.bin", "a binary Excel file (.xlsb)"),
    ("word/document.xml", "a Word document"),
    ("ppt/presentation.xml", "a PowerPoint presentation"),
    ("content.xml", "an OpenDocument file"),
)
_MAX_MEMBERS = 10_000
_CELL_BYTES = 64  # a cell of a sheet takes 32 bytes, and the sheet is held twice for a moment


def read_xlsx(data: bytes, limits: Limits, header: bool | None) -> pd.DataFrame:
    """The first sheet with data in the bytes of an Excel file."""
    try:
        rows = _first_sheet(_checked_archive(data, limits))
    except IntakeError:
        raise
    except (*_ZIP_ERRORS, CalamineError):
        raise IntakeError(_DAMAGED_XLSX) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # how the sheet parser reports a defect of its own
            raise
        raise IntakeError(_DAMAGED_XLSX) from None
    if not rows:
        raise IntakeError("No sheet of this Excel file has any data; upload one with at least one row.")
    sample = [[_label(cell) for cell in row] for row in rows[:1_000]]
    named = text.has_header(sample) if header is None else header
    names = text.clean_names(sample[0] if named else [""] * len(sample[0]))
    if len(rows) == int(named):
        raise IntakeError(NO_ROWS)
    check_shape(len(rows) - int(named), len(names), limits)
    columns = enumerate(zip(*rows[int(named) :], strict=True), start=1)
    return frame(names, (_sheet_column(cells, number, limits) for number, cells in columns))


def _checked_archive(data: bytes, limits: Limits) -> io.BytesIO:
    """Return an archive of the same members, unpacked, once their size, extent and texts are known.

    The sheet parser holds a sheet as a full rectangle and copies every shared text, and a process cannot
    survive its running out of memory. A far-off cell, a text repeated a million times or a false size in
    the directory must therefore be found before it starts, and it must see the very bytes that were checked.
    """
    if data.count(b"PK\x01\x02") > _MAX_MEMBERS:
        raise IntakeError(too_unpacked(limits))
    unpacked = io.BytesIO()
    scan = _WorkbookScan()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(unpacked, "w") as checked:
        members = {member.filename: member for member in archive.infolist()}
        _check_workbook(members)
        if sum(member.file_size for member in members.values()) > limits.decompressed_bytes:
            raise IntakeError(too_unpacked(limits))
        for name in members:
            if name.endswith((".xml", ".rels")):  # pictures and macros are left behind
                # Reading stops at the declared size, which was added up above.
                content = archive.read(name)
                scan.read(content, limits)
                checked.writestr(name, content)
    scan.check_texts(limits)
    unpacked.seek(0)
    return unpacked


def _check_workbook(members: dict[str, zipfile.ZipInfo]) -> None:
    if "xl/workbook.xml" in members:
        return
    kind = next((kind for name, kind in _OTHER_ARCHIVES if name in members), "a ZIP archive")
    raise IntakeError(f"This file is {kind}, not a table; {WANTED}")


class _WorkbookScan:
    """How far the sheets of a workbook reach, and what their shared texts add up to."""

    def __init__(self) -> None:
        self._bottom = self._right = 0  # the last row and column of the current member with a value
        self._row = self._column = 0
        self._columns: dict[str, int] = {}
        self._lengths: list[int] = []  # of the shared texts in the current member
        self._longest: list[int] = []  # the same over all members: only one counts, but which is not known
        self._uses: Counter[int] = Counter()  # how many cells show each shared text
        self._shared = self._awaiting = self._counted = False
        self._parser = expat.ParserCreate()

    def read(self, content: bytes, limits: Limits) -> None:
        """Follow one member of the archive, and refuse a sheet that reaches too far."""
        self._bottom = self._right = self._row = self._column = 0
        self._lengths = []
        # The sheet parser takes every file for UTF-8, so this one must, whatever the file declares.
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.StartDoctypeDeclHandler = _refuse_doctype
        # Listened to only so that a number with a comment or the like in it arrives in pieces.
        self._parser.CommentHandler = self._parser.ProcessingInstructionHandler = _ignore
        self._parser.StartCdataSectionHandler = _ignore
        self._parser.Parse(content, True)
        self._longest = [max(pair) for pair in zip_longest(self._longest, self._lengths, fillvalue=0)]
        check_shape(self._bottom - 1, self._right, limits)
        if self._bottom * self._right * _CELL_BYTES > limits.decompressed_bytes:
            raise IntakeError(
                "This sheet has values far apart, so it is too large to read; delete what lies outside the "
                "table, or save the sheet as CSV."
            )

    def check_texts(self, limits: Limits) -> None:
        """Refuse shared texts that add up to too much."""
        if any(index >= len(self._longest) for index in self._uses):
            raise IntakeError(_DAMAGED_XLSX)
        if sum(self._longest[index] * count for index, count in self._uses.items()) > limits.decompressed_bytes:
            raise IntakeError(too_unpacked(limits))

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        # Called for every element of every sheet, so the two commonest come first and calls are few.
        if name == "c":
            reference = attributes.get("r")
            if reference is None:
                self._column += 1
            else:
                letters = reference.rstrip("0123456789")
                self._column = self._columns.get(letters) or self._learn(letters)
                self._row = int(reference[len(letters) :])
            self._shared = attributes.get("t") == "s"
            self._awaiting = False
        elif name in ("v", "is"):
            self._bottom = max(self._bottom, self._row)
            self._right = max(self._right, self._column)
            if self._shared:
                self._awaiting, self._counted = True, False
                self._parser.CharacterDataHandler = self._use
        elif name == "row":
            self._row = int(attributes["r"]) if "r" in attributes else self._row + 1
            self._column = 0
        elif name == "si":
            self._lengths.append(0)
        elif name == "t":
            self._parser.CharacterDataHandler = self._measure if self._lengths else None
        elif ":" in name:
            self._start(name.rpartition(":")[2], attributes)

    def _learn(self, letters: str) -> int:
        if not re.fullmatch(r"[A-Za-z]{1,3}", letters):
            raise IntakeError(_DAMAGED_XLSX)
        number = 0
        for letter in letters.upper():
            number = number * 26 + ord(letter) - ord("A") + 1
        self._columns[letters] = number
        return number

    def _use(self, index: str) -> None:
        if not self._awaiting or index.isspace():  # white space between two cells
            return
        if self._counted:  # a number in pieces, which the sheet parser may put together otherwise
            raise IntakeError(_DAMAGED_XLSX)
        self._uses[int(index)] += 1
        self._counted = True

    def _measure(self, content: str) -> None:
        self._lengths[-1] += len(content)


def _ignore(*_: Any) -> None: ...


def _refuse_doctype(*_: Any) -> None:
    raise IntakeError(_DAMAGED_XLSX)


def _first_sheet(unpacked: io.BytesIO) -> list[list[ExcelCell]]:
    """Return the filled rows of the first sheet with data; a hidden sheet counts only if no other has any."""
    with CalamineWorkbook.from_filelike(unpacked) as workbook:
        sheets = sorted(workbook.sheets_metadata, key=lambda sheet: sheet.visible != SheetVisibleEnum.Visible)
        for sheet in sheets:
            rows = workbook.get_sheet_by_name(sheet.name).to_python()
            filled = [row for row in rows if any(cell != "" for cell in row)]
            if filled:
                return filled
    return []


def _sheet_column(cells: Sequence[ExcelCell], number: int, limits: Limits) -> pd.Series:
    gaps = [isinstance(cell, str) and cell.strip() in text.MISSING for cell in cells]
    kinds = {type(cell) for cell, gap in zip(cells, gaps, strict=True) if not gap}
    values = [None if gap else cell for cell, gap in zip(cells, gaps, strict=True)]
    if not kinds:
        return pd.Series(np.full(len(cells), np.nan))
    if kinds == {bool}:
        return pd.Series(values, dtype="boolean" if any(gaps) else "bool")
    if kinds <= {int, float}:
        return _number_column(values, gaps)
    if kinds <= {dt.date, dt.datetime}:
        return pd.Series(np.array(values, dtype="datetime64[us]"))
    labels = [None if value is None else _label(value) for value in values]
    if any(label is not None and len(label) > limits.field_characters for label in labels):
        raise IntakeError(too_long(number, limits))
    return pd.Series(labels, dtype="str")


def _number_column(values: Sequence[Any], gaps: Sequence[bool]) -> pd.Series:
    # Excel keeps every number as a fraction; whole ones are exact up to 2**53.
    numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    known = numbers[~np.asarray(gaps)]
    if not (np.isfinite(known).all() and (known == np.round(known)).all() and (abs(known) <= 2**53).all()):
        return pd.Series(numbers)
    integers = np.where(gaps, 0, numbers).astype(np.int64)
    return pd.Series(pd.arrays.IntegerArray(integers, np.asarray(gaps))) if any(gaps) else pd.Series(integers)


def _label(cell: ExcelCell) -> str:
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, dt.datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) <= 2**53:
        return str(int(cell))
    return str(cell)
