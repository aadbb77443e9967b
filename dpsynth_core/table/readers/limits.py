"""How large a table may be, and what is said of one that is too large."""

from __future__ import annotations

from dataclasses import dataclass, fields

from dpsynth_core.errors import IntakeError, ParameterError

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How large a table may be; each limit is checked before the memory is taken wherever that is possible."""

    bytes: int = 200 * _MIB
    """Size of the file as it is stored."""
    rows: int = 10_000_000
    """Rows, the header not counted."""
    columns: int = 1_000
    """Columns."""
    decompressed_bytes: int = 2_048 * _MIB
    """Size of a Parquet or Excel table once unpacked, as declared and as found."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if value < 1:
                raise ParameterError(limit.name, value, allowed="at least 1")


DEFAULT_LIMITS = Limits()

WANTED = "upload CSV, TSV, Parquet or Excel (.xlsx)."
NO_ROWS = "This table has column names but no rows; upload one with at least one row."


def _size(count: int) -> str:
    return f"{count / _MIB:,.0f} MiB" if count >= _MIB else f"{count:,} bytes"


def too_large(limits: Limits) -> str:
    """What to say of a file that is too large."""
    return f"This file is larger than {_size(limits.bytes)}; upload a smaller extract of it."


def check_shape(rows: int, columns: int, limits: Limits) -> None:
    """Refuse a table with more rows or columns than allowed."""
    if columns > limits.columns:
        raise IntakeError(f"This table has more than {limits.columns:,} columns; remove those that you do not need.")
    if rows > limits.rows:
        raise IntakeError(f"This table has more than {limits.rows:,} rows; upload a smaller extract of it.")


def too_unpacked(limits: Limits) -> str:
    """What to say of a file that is too large once unpacked."""
    return (
        f"This table takes more than {_size(limits.decompressed_bytes)} once unpacked; upload a smaller extract of it."
    )
