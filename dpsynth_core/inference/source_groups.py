"""Counting two groups of a table on the server, for a private test of them."""

from __future__ import annotations

from dpsynth_core.inference.dp_mann_whitney import GroupCounts
from dpsynth_core.inference.private_comparison import ComparisonRequest, count_groups
from dpsynth_core.ledger.sources import SourceTable
from dpsynth_core.privacy.noise import SecureNoise
from dpsynth_core.progress import Progress
from dpsynth_core.runs.opening import reading
from dpsynth_core.table.schema import Schema


def count_source_groups(
    table: SourceTable, schema: Schema, request: ComparisonRequest, *, progress: Progress
) -> GroupCounts:
    """What the test needs to know of the rows. The counts are exact: noise is added by whoever pays.

    Args:
        table: Which one, and who asks.
        schema: What is known of its columns.
        request: The question; nothing is spent of its budget here.
        progress: Told how many rows are read; raises to cancel.
    """
    with table.opened(schema) as rows:
        watched = rows.watched(reading(progress, "Counting the groups", 0, 1))
        return count_groups(watched, request, SecureNoise(request.budget))
