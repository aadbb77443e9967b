"""Reading Parquet, whose declared sizes may be false."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dpsynth_core.errors import IntakeError
from dpsynth_core.table.readers.frames import frame, series_of
from dpsynth_core.table.readers.limits import NO_ROWS, Limits, check_shape, too_unpacked
from dpsynth_core.table.readers.sniff import clean_names

_DAMAGED_PARQUET = "This Parquet file is damaged or was cut short; export or download it again."
_PARQUET_ERRORS = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, OverflowError)


def read_parquet(data: bytes, limits: Limits) -> pd.DataFrame:
    """The table in the bytes of a Parquet file."""
    try:
        names, columns = _parquet_columns(data, limits)
        return frame(names, (series_of(standard_type(columns.pop(0))) for _ in names))
    except (IntakeError, MemoryError):  # the latter is one of Arrow's errors, too
        raise
    except _PARQUET_ERRORS:
        raise IntakeError(_DAMAGED_PARQUET) from None


def _parquet_columns(data: bytes, limits: Limits) -> tuple[list[str], list[pa.ChunkedArray]]:
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    schema, metadata = file.schema_arrow, file.metadata
    check_shape(metadata.num_rows, len(schema), limits)
    if sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)) > (
        limits.decompressed_bytes
    ):
        raise IntakeError(too_unpacked(limits))
    names = clean_names(schema.names)
    for name, kind in zip(names, schema.types, strict=True):
        check_kind(name, kind)
    # Texts are read as dictionaries: a long one repeated many times is then held once until it is weighed.
    texts = [column.name for column in schema if _is_text(column.type)]
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True, read_dictionary=texts)
    pieces: list[list[pa.Array]] = [[] for _ in names]
    rows = held = 0
    for batch in file.iter_batches(batch_size=max(1_024, 1_048_576 // max(1, len(names)))):
        batch.validate(full=True)  # declared sizes, offsets and encodings may all be false
        rows += batch.num_rows
        check_shape(rows, len(names), limits)
        for index, column in enumerate(batch.columns):
            held += _weight(column)
            if held > limits.decompressed_bytes:
                raise IntakeError(too_unpacked(limits))
            pieces[index].append(column.dictionary_decode() if pa.types.is_dictionary(column.type) else column)
    if rows == 0:
        raise IntakeError(NO_ROWS)
    return names, [pa.chunked_array(arrays) for arrays in pieces]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def check_kind(name: str, kind: pa.DataType) -> None:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_a = pa.types
    plain = (is_a.is_integer, is_a.is_floating, is_a.is_decimal, is_a.is_boolean, is_a.is_null, _is_text)
    if any(test(kind) for test in (*plain, is_a.is_timestamp, is_a.is_date, is_a.is_time)):
        return
    what = "values of a kind that is not supported"
    if is_a.is_nested(kind):
        what = "nested values (lists or records)"
    elif is_a.is_binary(kind) or is_a.is_large_binary(kind) or is_a.is_fixed_size_binary(kind):
        what = "raw bytes"
    raise IntakeError(
        f"Column {name!r} holds {what}; remove it, or turn it into text, numbers or dates before uploading."
    )


def _weight(column: pa.Array) -> int:
    """Return the bytes that a piece of a column will take."""
    if not pa.types.is_dictionary(column.type):
        return max(int(column.nbytes), 8 * len(column))
    if not _is_text(column.type.value_type):
        return 8 * len(column)
    lengths = pc.cast(pc.binary_length(column.dictionary), pa.int64())
    return int(pc.sum(lengths.take(column.indices)).as_py() or 0) + 8 * len(column)


def standard_type(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert to one of the types that a table may have, by the column's type alone."""
    kind, is_a = column.type, pa.types
    if is_a.is_integer(kind) and not is_a.is_uint64(kind):
        return column.cast(pa.int64())
    if is_a.is_floating(kind) or is_a.is_null(kind) or is_a.is_uint64(kind):
        return column.cast(pa.float64(), safe=False)
    if is_a.is_date(kind):
        return column.cast(pa.timestamp("s" if is_a.is_date32(kind) else "ms"))
    if is_a.is_timestamp(kind):
        return column.cast(pa.timestamp(kind.unit))  # a time zone is dropped: the clock is UTC's
    # Decimals as text: their digits are what the cell says, and Arrow rounds them twice on the way to a double.
    return column if is_a.is_boolean(kind) else column.cast(pa.string())
