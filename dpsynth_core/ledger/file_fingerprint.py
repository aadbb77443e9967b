"""The name under which the ledger finds a file again, however its layout is declared.

The account belongs to the bytes: a layout that is declared differently must not open a second account for the same
people. So the fingerprint is taken from the table that the file seems to hold, and never from the declared layout.
Columns get the types that files had when they were typed on reading, and blank records are left out as they were
then, so that accounts opened in those days are found again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpsynth_core.errors import IntakeError
from dpsynth_core.ledger.fingerprint import fingerprint
from dpsynth_core.ledger.multiset_fingerprint import multiset_fingerprint
from dpsynth_core.ledger.row_sketch import RowSketch, sketch_rows, with_lines
from dpsynth_core.table.file_layout import DEFAULT_MISSING, FileLayout, layout_of
from dpsynth_core.table.readers.read import read_cells

_LEADING_ZERO = r"^[+-]?0[0-9xX]"
_WHOLE_NUMBER = r"^[+-]?[0-9]+$"
_FEW = 20


def file_fingerprints(data: bytes, key: bytes) -> tuple[str, ...]:
    """The names of a file under the installation key: the one for a new account, then any other that it has or had.

    Example:
        >>> typed = pd.DataFrame({"age": [31, 45], "dose": [0.5, 27.5]})
        >>> file_fingerprints(b"age;dose\\n31;0,5\\n\\n45;27,5\\n", bytes(32))[0] == fingerprint(typed, bytes(32))
        True
    """
    return (*_first_fingerprints(data, key), content_fingerprint(data, key))


def content_fingerprint(data: bytes, key: bytes) -> str:
    """The name that the same content has where it is too long to be held (``multiset_fingerprint.py``).

    Of text it is that of the lines, so that no layout changes it; else that of the cells.
    """
    try:
        table = read_cells(data, FileLayout(format="parquet"))
    except IntakeError:
        table = pd.DataFrame({"line": text_lines(data)})
    return multiset_fingerprint(table, key)


def text_lines(data: bytes) -> pd.Series[Any]:
    """The lines of a text, whatever its encoding: every byte is a character."""
    lines = data.decode("latin-1").split("\n")
    return pd.Series([line.removesuffix("\r") for line in lines[: -1 if not lines[-1] else None]], dtype="str")


def file_sketch(data: bytes, key: bytes) -> RowSketch:
    """By which a file that shares most of its rows with another is recognised, however its layout is declared."""
    try:
        table = read_cells(data, None)
    except IntakeError:
        return with_lines(RowSketch(parts={}), [text_lines(data)], key)
    layout = layout_of(table.attrs)
    assert layout is not None  # noqa: S101  every table from a file has one
    if layout.format == "parquet":
        return sketch_rows(table, key)
    lines = [text_lines(data)] if layout.format == "text" else []
    return sketch_rows(_typed_table(data, table, layout), key, lines=lines)


def _first_fingerprints(data: bytes, key: bytes) -> tuple[str, ...]:
    try:
        table = read_cells(data, None)
    except IntakeError:
        # Readable only by a declared layout: its lines, which no layout changes, are its content.
        lines = pd.DataFrame({"line": pd.Series(data.decode("latin-1").splitlines(), dtype="str")})
        return (fingerprint(lines, key),)
    layout = layout_of(table.attrs)
    assert layout is not None  # noqa: S101  every table from a file has one
    if layout.format == "parquet":
        now, before = fingerprint(table, key), fingerprint(_parquet_before(data, table), key)
        return (now,) if now == before else (now, before)
    return (fingerprint(_typed_table(data, table, layout), key),)


def _typed_table(data: bytes, table: pd.DataFrame, layout: FileLayout) -> pd.DataFrame:
    """The table without blank records, each column with the type that all of its cells have in common."""
    table = table[~_blank_records(data, table, layout)]
    if layout.format == "excel":
        return table.mask(table.map(lambda cell: isinstance(cell, str) and cell.strip() in DEFAULT_MISSING))
    decimal_comma = layout.delimiter == ";"
    return pd.DataFrame(
        {name: _typed(table[name], decimal_comma=decimal_comma).to_pandas() for name in table.columns}, copy=False
    )


def _blank_records(data: bytes, table: pd.DataFrame, layout: FileLayout) -> Any:
    empty = table.isna().all(axis=1).to_numpy()
    if layout.format == "excel" or not empty.any():
        return empty
    from dpsynth_core.table.readers.delimited import blank_records  # noqa: PLC0415  loads the compiler

    return blank_records(data, layout)


def _typed(column: pd.Series[Any], *, decimal_comma: bool) -> pa.Array:
    """Whole numbers, numbers or text; whichever of them every cell is.

    Codes stay text: numbers with a needless zero in front, and whole numbers beyond 64 bits or with a plus.
    """
    texts = pa.array(column, type=pa.large_string(), from_pandas=True)
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    coded = texts.dictionary_encode()
    bare = pc.utf8_trim_whitespace(coded.dictionary)
    value = _as_numbers(bare)
    if value is None and decimal_comma and not pc.any(pc.match_substring(bare, ".")).as_py():
        value = _as_numbers(pc.replace_substring(bare, ",", "."))
    return texts if value is None else value.take(coded.indices)


def _as_numbers(texts: pa.Array) -> pa.Array | None:
    """Distinct texts as whole numbers or as doubles; None where one of them is neither."""
    if pc.any(pc.match_substring_regex(texts, _LEADING_ZERO)).as_py():
        return None
    whole = pc.all(pc.match_substring_regex(texts, _WHOLE_NUMBER)).as_py()
    try:
        pc.cast(texts[:_FEW], pa.float64())  # a cast that fails takes long, and most texts fail at once
        numbers = pc.cast(texts, pa.int64() if whole else pa.float64())
    except pa.ArrowInvalid:
        return None
    return None if not whole and pc.any(pc.is_nan(numbers)).as_py() else numbers


def _parquet_before(data: bytes, table: pd.DataFrame) -> pd.DataFrame:
    """Decimals were rounded to doubles by Arrow, and unsigned numbers of 64 bits were whole if all of them fit."""
    stored = pq.ParquetFile(pa.BufferReader(data))
    before = table.copy(deep=False)
    for index, field in enumerate(stored.schema_arrow):
        if pa.types.is_decimal(field.type) or pa.types.is_uint64(field.type):
            column = stored.read([field.name]).column(0)
            top = pc.max(column).as_py() or 0
            whole = pa.types.is_uint64(field.type) and top < 2**63
            cast = column.cast(pa.int64() if whole else pa.float64(), safe=False)
            types = {pa.int64(): pd.Int64Dtype()} if column.null_count else {}
            before.isetitem(index, np.asarray(cast) if not types else cast.to_pandas(types_mapper=types.get).array)
    return before
