"""What can be checked without looking at a private row: the synthetic rows against the schema they come with."""

from __future__ import annotations

import pandas as pd

from dpsynth_core.review.checklist_item import ChecklistItem
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.table.encoding import moved_cells
from dpsynth_core.table.schema import Schema


def rows_check(outcome: RunResult) -> ChecklistItem:
    """Whether the synthetic rows are what the schema says: its columns, and no value outside the declared domain."""
    wrong = [problem for table in outcome.tables for problem in _problems(table, outcome.schema)]
    rows = " + ".join(f"{len(table):,}" for table in outcome.tables)
    return ChecklistItem(
        key="rows",
        group="Synthetic rows",
        title="The rows are what the schema declares",
        asked="its columns, and every value within its domain",
        measured=f"{rows} rows, {len(outcome.schema.names)} columns" + (": not as declared" if wrong else ""),
        state="fail" if wrong else "pass",
        evidence=wrong[0] if wrong else "Every synthetic value lies within the declared bounds and categories.",
        details=tuple(wrong[1:]),
        final=True,
    )


def _problems(table: pd.DataFrame, schema: Schema) -> list[str]:
    if list(table.columns) != list(schema.names):
        return ["The synthetic table does not have exactly the schema's columns."]
    if not len(table):
        return ["The synthetic table has no rows."]
    moved = {name: cells.total for name, cells in moved_cells(table, schema).items() if cells.total}
    return [f"{name}: {count:,} values lie outside what is declared." for name, count in moved.items()]
