"""Some rows of a long table at hand, for what needs rows, and all of them to be counted, for what needs counts."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

SAMPLE_ROWS = 200_000
"""Rows of a long table that people look at and that are compared one by one, at most."""
SAMPLE_CELLS = 20_000_000
"""Cells of them, at most: fewer rows of a wide table."""


def sample_size(n: int, columns: int) -> int:
    """How many of a table's rows are held.

    Example:
        >>> sample_size(10**8, 5), sample_size(10**8, 400), sample_size(70, 5)
        (200000, 50000, 70)
    """
    return min(n, SAMPLE_ROWS, max(1, SAMPLE_CELLS // max(columns, 1)))


def sample_sentence(rows: int, of: int) -> str:
    """What was computed on how many rows."""
    return f"computed on {rows:,} of {of:,} rows"


class RowSample(PrivateTable):
    """Rows of a long table that were drawn by position, whatever they hold."""

    def __init__(self, table: pd.DataFrame, schema: Schema, *, of: int, every_row: PrivateRows | None = None) -> None:
        """Encode the sample.

        Args:
            table: The rows at hand.
            schema: The public facts.
            of: Rows of the whole table.
            every_row: The whole table, where it can be counted.
        """
        super().__init__(table, schema)
        self._of, self._every_row = of, every_row

    @property
    def every_row(self) -> PrivateRows:
        return super().every_row if self._every_row is None else self._every_row

    @property
    def rows_in_all(self) -> int:
        return self._of

    @property
    def basis(self) -> str:
        return sample_sentence(self.n, self._of)

    def select(self, names: Iterable[str]) -> PrivateTable:
        chosen = super().select(names)
        if self._every_row is not None and isinstance(chosen, RowSample):
            chosen._every_row = self._every_row.select(chosen.schema.names)
        return chosen
