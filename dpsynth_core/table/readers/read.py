"""Reading a file as a table: text, Parquet or Excel, recognised by content and never by name.

Whatever is wrong with a file ends in an `IntakeError` of one sentence that holds no cell of it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

import pandas as pd
import pyarrow as pa

from dpsynth_core.errors import IntakeError
from dpsynth_core.table.readers import csv as text
from dpsynth_core.table.readers.excel import read_xlsx
from dpsynth_core.table.readers.frames import frame, series_of
from dpsynth_core.table.readers.limits import DEFAULT_LIMITS, NO_ROWS, WANTED, Limits, check_shape, too_large, too_long
from dpsynth_core.table.readers.parquet import read_parquet

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
    source: str | os.PathLike[str] | bytes, *, limits: Limits = DEFAULT_LIMITS, header: bool | None = None
) -> pd.DataFrame:
    """Read a file, or the bytes of one, as a table.

    The result has a RangeIndex and unique, non-empty text column names. Columns are int64, float64, bool,
    datetime64 or str; whole numbers and truth values with gaps are Int64 and boolean, so that they do not
    turn into fractions or text. Nothing in a file is ever executed or evaluated: an Excel formula counts as
    the value stored beside it.

    Args:
        source: A path, or the content itself.
        limits: How large the table may be.
        header: Whether the first row of a text or Excel table names the columns; None finds out.

    Raises:
        IntakeError: The file is no table, is damaged or exceeds a limit.
    """
    data = source if isinstance(source, bytes) else _content(source, limits)
    if len(data) > limits.bytes:
        raise IntakeError(too_large(limits))
    if not data:
        raise IntakeError(text.EMPTY)
    kind = next((kind for magic, kind in _SIGNATURES if magic.match(data)), None)
    if kind:
        raise IntakeError(f"This file is {kind}, not a table; {WANTED}")
    if data.startswith(b"PK\x03\x04"):
        return read_xlsx(data, limits, header)
    # "PAR1" alone may as well be the first column name of a text file.
    if data.startswith(b"PAR1") and (data.startswith(b"PAR1\x15") or data.endswith(b"PAR1")):
        return read_parquet(data, limits)
    return _read_text(data, limits, header)


def _content(path: str | os.PathLike[str], limits: Limits) -> bytes:
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


def _read_text(data: bytes, limits: Limits, header: bool | None) -> pd.DataFrame:
    utf8, layout = text.sniff(text.to_utf8(data))
    check_shape(0, len(layout.rows[0]), limits)
    named = text.has_header(layout.rows) if header is None else header
    names = text.clean_names(layout.rows[0] if named else [""] * len(layout.rows[0]))
    table = text.parse(utf8, layout)
    del utf8
    table = table.slice(1) if named else table
    if table.num_rows == 0:
        raise IntakeError(NO_ROWS)
    check_shape(table.num_rows, table.num_columns, limits)
    strings = table.columns
    del table
    return frame(names, _typed_columns(strings, limits, decimal_comma=layout.delimiter == ";"))


def _typed_columns(strings: list[pa.ChunkedArray], limits: Limits, *, decimal_comma: bool) -> Iterator[pd.Series]:
    for i in range(len(strings)):
        column, strings[i] = strings[i], None  # its text is freed as soon as it has a type
        if text.exceeds(column, limits.field_characters):
            raise IntakeError(too_long(i + 1, limits))
        yield series_of(text.typed(column, decimal_comma=decimal_comma))
