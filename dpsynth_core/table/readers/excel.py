"""Reading Excel workbooks, which can ask for far more memory than they are large."""

from __future__ import annotations

import datetime as dt
import io
import lzma
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
from dpsynth_core.table.cells import cell_text
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.readers.frames import frame
from dpsynth_core.table.readers.limits import NO_ROWS, WANTED, Limits, check_shape, too_unpacked
from dpsynth_core.table.readers.sniff import clean_names, has_header

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
)
_OTHER_ARCHIVES = (
    ("xl/workbook.bin", "a binary Excel file (.xlsb)"),
    ("word/document.xml", "a Word document"),
    ("ppt/presentation.xml", "a PowerPoint presentation"),
    ("content.xml", "an OpenDocument file"),
)
_MAX_MEMBERS = 10_000
_CELL_BYTES = 64  # a cell of a sheet takes 32 bytes, and the sheet is held twice for a moment


def read_xlsx(
    data: bytes, layout: FileLayout | None, limits: Limits, header: bool | None = None
) -> tuple[FileLayout, pd.DataFrame]:
    """A sheet in the bytes of an Excel file, by its declared layout or (without one) by the layout it seems to have."""
    try:
        name, rows = _sheet(_checked_archive(data, limits), None if layout is None else layout.sheet)
    except (IntakeError, MemoryError):
        raise
    except (*_ZIP_ERRORS, CalamineError) as error:
        if "memory" in str(error):  # how the parsers of XML and ZIP say that there is none left
            raise MemoryError from None
        raise IntakeError(_DAMAGED_XLSX) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # how the sheet parser reports a defect of its own
            raise
        raise IntakeError(_DAMAGED_XLSX) from None
    if layout is None:
        layout = _sniffed(name, rows, header)
    first = layout.skip_rows + layout.header
    titles = rows[layout.skip_rows][layout.skip_columns :] if layout.header and len(rows) > layout.skip_rows else []
    width = layout.fields or len(titles)
    height = layout.rows or max(0, len(rows) - first)
    if any(cell != "" for row in rows[first:] for cell in row[layout.skip_columns + width :]):
        raise IntakeError(
            f"A row of this sheet has cells to the right of its {width} columns; delete what lies outside the table, "
            "or declare how many columns it has."
        )
    if len(rows) > first + height:
        raise IntakeError(f"This sheet has more than the {height:,} rows that are declared for it.")
    if not height or not width:
        raise IntakeError(NO_ROWS)
    check_shape(height, width, limits)
    names = clean_names([_title(cell) for cell in titles[:width]] + [""] * (width - len(titles)))
    return layout, frame(names, (_column(rows, first, height, layout.skip_columns + i) for i in range(width)))


def _sniffed(sheet: str, rows: Sequence[Sequence[ExcelCell]], header: bool | None) -> FileLayout:
    filled = [i for i, row in enumerate(rows) if any(cell != "" for cell in row)]
    if not filled:
        raise IntakeError("No sheet of this Excel file has any data; upload one with at least one row.")
    left = min(next(i for i, cell in enumerate(rows[row]) if cell != "") for row in filled)
    sample = [[_title(cell) for cell in row[left:]] for row in rows[filled[0] : filled[0] + 1_000]]
    named = has_header(sample) if header is None else header
    if filled[-1] == filled[0] and named:
        raise IntakeError(NO_ROWS)
    return FileLayout(
        format="excel",
        sheet=sheet,
        skip_rows=filled[0],
        skip_columns=left,
        header=named,
        fields=len(rows[0]) - left,
        rows=filled[-1] + 1 - filled[0] - named,
    )


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


def _sheet(unpacked: io.BytesIO, wanted: str | None) -> tuple[str, list[list[ExcelCell]]]:
    """The rows of a sheet from its first cell on: the named one, or the first with data, hidden ones last."""
    with CalamineWorkbook.from_filelike(unpacked) as workbook:
        sheets = sorted(workbook.sheets_metadata, key=lambda sheet: sheet.visible != SheetVisibleEnum.Visible)
        names = [sheet.name for sheet in sheets]
        if wanted is not None and wanted not in names:
            raise IntakeError("This Excel file has no sheet of the declared name; declare which sheet holds the table.")
        for name in names if wanted is None else [wanted]:
            rows = workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
            if wanted is not None or any(cell != "" for row in rows for cell in row):
                return name, rows
    raise IntakeError("No sheet of this Excel file has any data; upload one with at least one row.")


def _column(rows: Sequence[Sequence[ExcelCell]], first: int, height: int, index: int) -> pd.Series[Any]:
    """The cells of a column as they are; an empty one, or one that the sheet does not reach, is missing."""
    cells = [row[index] if index < len(row) else "" for row in rows[first : first + height]]
    values = [None if isinstance(cell, str) and not cell.strip() else cell for cell in cells]
    values += [None] * (height - len(values))
    kinds = {type(value) for value in values}
    # How a column is stored has no say in what its cells mean (table/cells.py); floats only save memory.
    return pd.Series(values, dtype=np.float64 if kinds == {float} else str if kinds <= {str, type(None)} else object)


def _title(cell: ExcelCell) -> str:
    return str(cell).upper() if isinstance(cell, bool) else cell_text(cell)
