"""Reading a file as a table: text, Parquet or Excel, recognised by content and never by name.

Whatever is wrong with a file ends in an `IntakeError` of one sentence that holds no cell of it.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TypeAlias

import pandas as pd
import pyarrow as pa

from dpsynth_core.errors import IntakeError
from dpsynth_core.table.file_layout import FileFormat, FileLayout, remember_layout
from dpsynth_core.table.readers.frames import frame, series_of
from dpsynth_core.table.readers.limits import DEFAULT_LIMITS, NO_ROWS, WANTED, Limits, check_shape, too_large
from dpsynth_core.table.readers.sniff import EMPTY, clean_names, sniff_text
from dpsynth_core.table.schema import Schema

_FOREIGN = (
    (rb"\x89PNG", "a PNG image"),
    (rb"\xff\xd8\xff", "a JPEG image"),
    (rb"GIF8[79]a", "a GIF image"),
    (rb"RIFF....WEBP", "a WebP image"),
    (rb"II\*\x00|MM\x00\*", "a TIFF image"),
    (rb"%PDF-", "a PDF document"),
    (rb"\{\\rtf", "an RTF document"),
    (rb"\x1f\x8b", "a gzip archive"),
    (rb"BZh[1-9]1AY", "a bzip2 archive"),
    (rb"\xfd7zXZ\x00", "an xz archive"),
    (rb"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (rb"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (rb"Rar!\x1a", "a RAR archive"),
    (rb"PK\x05\x06", "an empty ZIP archive"),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel (.xls) or password-protected file"),
    (rb"SQLite format 3\x00", "an SQLite database"),
    (rb"\x80[\x02-\x05][^\x00-\x08]", "a Python pickle"),
    (rb"\x93NUMPY", "a NumPy array"),
    (rb"ARROW1\x00\x00", "a Feather file"),
    (rb"PARE.*PARE\Z", "an encrypted Parquet file"),
    (rb"\x89HDF", "an HDF5 file"),
    (rb"\$FL[23]@\(#\)", "an SPSS file"),
    (rb"<stata_dta>", "a Stata file"),
    (rb"(?:\xef\xbb\xbf)?\s*<(?i:!doctype html|html|head|body|table)\b", "an HTML page"),
    (rb"(?:\xef\xbb\xbf)?\s*<\?xml", "an XML document"),
    (rb"(?:\xef\xbb\xbf)?\s*(?:\{\s*[\"}]|\[\s*(?:[\[{\"\]]|-?\d))", "a JSON document"),
)
_SIGNATURES = tuple((re.compile(magic, re.DOTALL), kind) for magic, kind in _FOREIGN)


def read_table(
    source: str | os.PathLike[str] | bytes,
    schema: Schema | None = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    header: bool | None = None,
) -> pd.DataFrame:
    """Read a file, or the bytes of one, as a table of cells.

    With a schema that declares the file's layout, reading is record by record and nothing is guessed. Otherwise the
    layout is guessed from the file, and a release made from the table is void. Cells of a text file stay text, those
    of Excel and Parquet keep their own types; each means something only through its declared column. Nothing in a file
    is ever executed: an Excel formula counts as the value stored beside it.

    Args:
        source: A path, or the content itself.
        schema: Whose ``file`` declares the layout.
        limits: How large the table may be.
        header: Where the layout is guessed: whether the first row names the columns; None guesses that too.

    Raises:
        IntakeError: The file is no table, is broken as a whole or exceeds a limit.
    """
    data = source if isinstance(source, bytes) else file_content(source, limits)
    declared = None if schema is None else schema.file
    try:
        return read_cells(data, declared, limits=limits, header=header)
    except MemoryError:
        raise IntakeError("There is not enough memory to read this file; read a smaller extract of it.") from None


def read_cells(
    data: bytes, layout: FileLayout | None, *, limits: Limits = DEFAULT_LIMITS, header: bool | None = None
) -> pd.DataFrame:
    """The table in the bytes of a file; without a layout it is guessed.

    A lack of memory stays a MemoryError: it says nothing about the file, and must not change under which name the
    ledger finds it.
    """
    if len(data) > limits.bytes:
        raise IntakeError(too_large(limits))
    if not data:
        raise IntakeError(EMPTY)
    found = _format(data)
    if layout is not None and layout.format != found:
        raise IntakeError(f"This file is declared as {layout.format} but looks like {found}; correct its layout.")
    if layout is None and found == "text":
        _refuse_foreign(data)
    reader = {"text": _read_text, "excel": _read_excel, "parquet": _read_parquet}[found]
    used, table = reader(data, layout, limits, header)
    remember_layout(table.attrs, used)
    return table


def guess_layout(data: bytes) -> FileLayout | None:
    """The layout that a text file seems to have, even one that it breaks; None where there is no text to guess by."""
    try:
        if _format(data) != "text":
            return None
        _refuse_foreign(data)
        return sniff_text(data)
    except IntakeError:
        return None


def _format(data: bytes) -> FileFormat:
    if data.startswith(b"PK\x03\x04"):
        return "excel"
    # "PAR1" alone may as well be the first column name of a text file.
    if data.startswith(b"PAR1") and (data.startswith(b"PAR1\x15") or data.endswith(b"PAR1")):
        return "parquet"
    return "text"


def _refuse_foreign(data: bytes) -> None:
    kind = next((kind for magic, kind in _SIGNATURES if magic.match(data)), None)
    if kind:
        raise IntakeError(f"This file is {kind}, not a table; {WANTED}")


def file_content(path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS) -> bytes:
    """The bytes of a file that is not too large."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise IntakeError("There is no file at this path; check its spelling.") from None
    except (OSError, ValueError):  # the latter for a path that no system accepts
        raise IntakeError("This path cannot be opened; check its spelling and your access to it.") from None
    if stat.S_ISDIR(status.st_mode):
        raise IntakeError("This path is a folder; choose a file inside it.")
    if not stat.S_ISREG(status.st_mode):
        raise IntakeError("This path is not an ordinary file; choose one.")
    if status.st_size > limits.bytes:
        raise IntakeError(too_large(limits))
    try:
        with open(path, "rb") as file:
            return file.read(limits.bytes + 1)  # the file may have grown meanwhile
    except OSError:
        raise IntakeError("This file cannot be opened; check that you are allowed to read it.") from None


_Read: TypeAlias = tuple[FileLayout, pd.DataFrame]


def _read_text(data: bytes, layout: FileLayout | None, limits: Limits, header: bool | None) -> _Read:
    from dpsynth_core.table.readers.delimited import read_fields  # noqa: PLC0415  loads the compiler

    layout = layout or sniff_text(data, header)
    header_cells, columns = read_fields(data, layout)
    check_shape(0, len(columns), limits)
    if not columns or not len(columns[0]):
        raise IntakeError(NO_ROWS)
    check_shape(len(columns[0]), len(columns), limits)
    names = clean_names(header_cells if layout.header else [""] * len(columns))
    return layout, frame(names, (series_of(pa.chunked_array([column])) for column in columns))


def _read_excel(data: bytes, layout: FileLayout | None, limits: Limits, header: bool | None) -> _Read:
    from dpsynth_core.table.readers.excel import read_xlsx  # noqa: PLC0415  only where it is needed

    return read_xlsx(data, layout, limits, header)


def _read_parquet(data: bytes, layout: FileLayout | None, limits: Limits, _header: bool | None) -> _Read:
    from dpsynth_core.table.readers.parquet import read_parquet  # noqa: PLC0415  only where it is needed

    return layout or FileLayout(format="parquet"), read_parquet(data, limits)
