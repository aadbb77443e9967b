"""Tables and pictures as files."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Self

import pandas as pd
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.parquet as pq
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

from dpsynth_core.charts.theme import Chart
from dpsynth_core.errors import ParameterError

_FORMULA = re.compile(r"[\t\r\n]|[\s\x00-\x1f\u00ad\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
"""A beginning that makes a spreadsheet treat a text as a formula, wide letters and unseen ones before it included."""


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """What is said of a file beside it."""

    size: int
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> Self:
        return cls(size=len(content), sha256=hashlib.sha256(content).hexdigest())


def safe_csv(table: pd.DataFrame, *, header: bool = True) -> bytes:
    """CSV (UTF-8) that no spreadsheet executes: texts that look like formulas get a leading apostrophe.

    Example:
        >>> safe_csv(pd.DataFrame({"a": ["=1+1", "fine"]}))
        b"a\\n'=1+1\\nfine\\n"
    """
    shown = table.rename(columns=_defused)
    for index, dtype in enumerate(shown.dtypes):
        if not (is_numeric_dtype(dtype) or is_datetime64_any_dtype(dtype)):
            texts = shown.iloc[:, index].astype(object)
            shown.isetitem(index, texts.map(_defused, na_action="ignore").to_numpy())
    buffer = io.BytesIO()  # straight into bytes: as text, a large table would be held twice
    shown.to_csv(buffer, index=False, header=header, date_format="%Y-%m-%d")
    return buffer.getvalue()


def _defused(text: object) -> object:
    if not isinstance(text, str):
        return text
    line = text.replace("\r", " ")  # some readers treat a bare carriage return as the end of a row
    return f"'{line}" if _FORMULA.match(text) else line


def parquet(table: pd.DataFrame) -> bytes:
    """Parquet, which keeps the types."""
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def write_rows(batches: Iterable[pd.DataFrame], path: str | Path) -> int:
    """A new Parquet or CSV file from batches, of which one at a time is held; how many rows it has.

    Example:
        ``write_rows(release.sample_batches(50_000_000), "rows.parquet")``
    """
    write = {".parquet": write_parquet, ".csv": _write_csv}.get(Path(path).suffix)
    if write is None:
        raise ParameterError("path", str(path), allowed="a name that ends in .parquet or .csv")
    with open(path, "xb") as file:
        return write(batches, file)


def write_parquet(batches: Iterable[pd.DataFrame], file: IO[bytes]) -> int:
    """Parquet, a group of rows for each batch."""
    rest = iter(batches)
    first = _arrow(next(rest))
    rows = 0
    with pq.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], (_arrow(batch, first.schema) for batch in rest)):
            writer.write_table(table)
            rows += table.num_rows
    return rows


def _arrow(batch: pd.DataFrame, schema: pa.Schema | None = None) -> pa.Table:
    return pa.Table.from_pandas(batch, schema=schema, preserve_index=False)


def _write_csv(batches: Iterable[pd.DataFrame], file: IO[bytes]) -> int:
    rows = 0
    for batch in batches:
        file.write(safe_csv(batch, header=not rows))
        rows += len(batch)
    return rows


class HashedStream(io.RawIOBase):
    """Writes on to another file, and tells afterwards what has gone there."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file, self._size, self._digest = file, 0, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._file.write(data)
        self._digest.update(data)
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    @property
    def facts(self) -> FileFacts:
        return FileFacts(size=self._size, sha256=self._digest.hexdigest())


def marked_csv(table: pd.DataFrame, mark: str) -> bytes:
    """CSV whose first line, a comment, says what the table is not for."""
    return f"# {mark}\n".encode() + safe_csv(table)


def marked_html(chart: Chart, mark: str) -> bytes:
    """A page of its own with the figure, which needs no network, under a line that says what it is not for."""
    figure = go.Figure(chart.figure)
    title = {"text": f"<b>{mark}</b>", "font": {"size": 14, "color": "#B00020"}}
    figure.update_layout(title=title, paper_bgcolor="white", margin={"t": 90})
    text: str = figure.to_html(include_plotlyjs=True, full_html=True)
    return text.encode()
