"""Counting a column of a table on the server, for a private estimate of its range or categories."""

from __future__ import annotations

from dpsynth_core.ledger.sources import SourceTable
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SecureNoise
from dpsynth_core.progress import Progress
from dpsynth_core.runs.opening import reading
from dpsynth_core.table.estimate import ColumnCounts
from dpsynth_core.table.schema import Schema


def count_column(table: SourceTable, schema: Schema, name: str, budget: Budget, *, progress: Progress) -> ColumnCounts:
    """Rows of a column by bin if it holds numbers, else by label. The counts are exact: noise is added by whoever pays.

    Args:
        table: Which one, and who asks.
        schema: What is known of its columns.
        name: The column.
        budget: Of the estimate; nothing is spent of it here.
        progress: Told how many rows are read; raises to cancel.
    """
    with table.opened(schema) as rows:
        watched = rows.watched(reading(progress, "Counting the column", 0, 1))
        if schema[name].is_numeric:
            return watched.range_counts(name)
        return watched.label_counts(name, SecureNoise(budget))
