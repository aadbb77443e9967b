"""Runs and bundles that say more than was paid for, on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpsynth_core.audit.leaving import Execute
from dpsynth_core.runs.configuration import RunResult, execute
from dpsynth_core.table.encoding import moved_cells
from dpsynth_core.table.private_table import PrivateTable
from tests.audit.published import published

Change: TypeAlias = Callable[[RunResult, pd.DataFrame], RunResult]


def changed(change: Change) -> Execute:
    """A run whose result is changed by somebody who still has the original rows."""
    return lambda frame, *given, **options: change(execute(frame, *given, **options), frame)


def _moved(result: RunResult, frame: pd.DataFrame) -> int:
    return sum(each.total for each in moved_cells(frame, result.schema).values())


def _first_column(result: RunResult, frame: pd.DataFrame) -> Any:
    return PrivateTable(frame, result.schema).positions(result.schema.names[0]).values


def clipped_cells_in_a_caveat(result: RunResult, frame: pd.DataFrame) -> RunResult:
    """The guarantee says how many cells lay outside the declared bounds."""
    caveat = f"{_moved(result, frame)} cells were moved into their bounds."
    return replace(result, guarantee=result.guarantee.with_caveat(caveat))


def proven_if_all_fits(result: RunResult, frame: pd.DataFrame) -> RunResult:
    """The status of a guarantee depends on whether all rows fit the declared facts."""
    if not _moved(result, frame):
        return result
    return replace(result, guarantee=result.guarantee.weakened("heuristic", "Some rows do not fit."))


def original_order_kept(result: RunResult, frame: pd.DataFrame) -> RunResult:
    """Synthetic rows are numbered in the order of the original ones."""
    order = np.argsort(_first_column(result, frame), kind="stable")
    tables = [table.set_index(pd.Index(np.resize(order, len(table)))) for table in result.tables]
    return replace(result, tables=tuple(tables))


def original_attached(result: RunResult, frame: pd.DataFrame) -> RunResult:
    """A synthetic table carries a cell of the original as an attribute."""
    for table in result.tables:
        table.attrs["largest"] = str(frame.iloc[:, 0].astype(str).max())
    return result


def error_against_the_original(result: RunResult, frame: pd.DataFrame) -> RunResult:
    """The error that the card states is measured against the original rows."""
    expected = result.expected_error
    if expected is None:
        return result
    apart = abs(_first_column(result, result.tables[0]).mean() - _first_column(result, frame).mean())
    columns = ((expected.columns[0][0], float(apart)), *expected.columns[1:])
    return replace(result, expected_error=replace(expected, columns=columns))


def facts_as_observed(result: RunResult, frame: pd.DataFrame) -> RunResult:
    """Schema, card and metadata state the range that was observed."""
    first = result.schema.columns[0]
    if first.kind != "continuous":
        return result
    seen = replace(first, upper=float(_first_column(result, frame).max()) + 1e-6)
    return replace(result, schema=replace(result.schema, columns=(seen, *result.schema.columns[1:])))


def duration_in_the_card(result: RunResult) -> Mapping[str, bytes]:
    """The card says how long the run took, which depends on the rows."""
    files = published(result)
    return {**files, "data_card.md": files["data_card.md"] + f"Made in {result.seconds:.12f} seconds.\n".encode()}


CHANGES: tuple[Change, ...] = (
    clipped_cells_in_a_caveat,
    proven_if_all_fits,
    original_order_kept,
    original_attached,
    error_against_the_original,
    facts_as_observed,
)
