"""One batch of rows as an engine hands it over, and what its cells mean: by the one codec that there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd
import pyarrow as pa

from dpsynth_core.errors import IntakeError
from dpsynth_core.table.encoding import Positions, codec_for
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.readers.frames import series_of
from dpsynth_core.table.readers.parquet import check_kind, standard_type
from dpsynth_core.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class RowBatch:
    """Some consecutive rows: cells as they are stored, and their positions in the declared domain."""

    cells: pd.DataFrame
    schema: Schema
    layout: FileLayout
    first: int
    """How many rows of the table come before."""
    _positions: dict[str, Positions] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.cells)

    def positions(self, name: str) -> Positions:
        """Each row's position in a column's declared domain, at full resolution."""
        if name not in self._positions:
            self._positions[name] = codec_for(self.schema[name], self.layout).positions(self.cells[name])
        return self._positions[name]


def cells_of(batch: pa.RecordBatch, names: Sequence[str]) -> pd.DataFrame:
    """An Arrow batch as cells under these names, typed as the Parquet reader does, by the column's type alone."""
    columns = (series_of(standard_type(pa.chunked_array([column])), for_reading=True) for column in batch.columns)
    return pd.DataFrame(dict(zip(names, columns, strict=True)), copy=False)


def check_streamed(name: str, kind: pa.DataType) -> None:
    """Refuse a column of a type that has no cells, or whose cells an engine would write otherwise than the file."""
    check_kind(name, kind)
    if pa.types.is_time(kind):
        raise IntakeError(
            f"Column {name!r} holds times of day, which an engine writes with other digits than the file has; turn it "
            "into text or seconds."
        )
