"""Tables in memory that differ in one cell: does what the other cells mean stay the same, whatever type they have?

A table that somebody hands over has types that were read from all of its cells: one text among numbers, one gap among
whole numbers, and the whole column is of another type. So columns go from none to all of their cells replaced, one cell
at a time, which passes every point at which a majority, a type or a format could tip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.audit.checks import AuditCheck, audit_check
from dpsynth_core.audit.procedures import Shifted
from dpsynth_core.audit.reading import COLUMNS, RECORDS
from dpsynth_core.errors import DPSynthError
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.estimate import discover_categories, estimate_bounds
from dpsynth_core.table.schema import Schema

USUAL, ODD = 8, (True, " 7 ", "1e400", "0x1F")
"""Cells that are replaced one after the other, and cells beside them that a type or a format would read otherwise."""
ROWS = USUAL + len(ODD)
STRANGE: tuple[Any, ...] = ("7", 7, 2.5, "x", None, True, "2024-01-02", date(2024, 1, 2), "1e400")
PLENTY = Budget.of(10**6, "0.5")
Make = Callable[[list[Any]], "pd.Series[Any]"]
MADE: dict[str, Make] = {
    "type as pandas infers it": lambda cells: pd.Series(cells, name="c"),
    "cells as they are": lambda cells: pd.Series(cells, name="c", dtype=object),
    "all as text": lambda cells: pd.Series(
        [None if cell is None else str(cell) for cell in cells], name="c", dtype="str"
    ),
}


def locality_checks() -> Iterator[AuditCheck]:
    """Every kind of column, and both estimates; one check for each, over all strange cells."""
    for facts in COLUMNS:
        column = Schema.from_dict({"columns": [{**facts, "public": True}]}).columns[0]
        usual = [record[COLUMNS.index(facts)] for record in RECORDS]
        for how, make in MADE.items():
            problems = [problem for cell in STRANGE if (problem := _moved(column, usual, cell, make))]
            yield audit_check("reading", "in memory", f"{column.name}; {how}", not problems, "; ".join(problems[:3]))
    for name, estimate in (("estimated range", _range), ("estimated labels", _labels)):
        for how, make in MADE.items():
            problems = [problem for cell in STRANGE if (problem := _counted(estimate, cell, make))]
            yield audit_check(
                "reading", name, f"one cell after the other; {how}", not problems, "; ".join(problems[:3])
            )


def _tables(usual: list[Any], cell: Any, make: Make) -> Iterator[tuple[int, pd.Series[Any], pd.Series[Any]]]:
    """The row that is replaced next, and the column before and after."""
    cells = [*(usual[i % len(usual)] for i in range(USUAL)), *ODD]
    for row in range(USUAL):
        before = list(cells)
        cells[row] = cell
        yield row, make(before), make(list(cells))


def _moved(column: Column, usual: list[Any], cell: Any, make: Make) -> str:
    codec = codec_for(column)
    for row, first, second in _tables(usual, cell, make):
        others = np.arange(ROWS) != row
        here, there = (codec.positions(series) for series in (first, second))
        missing = [np.zeros(ROWS, dtype=np.bool_) if each.missing is None else each.missing for each in (here, there)]
        codes = [codec.codes(each) for each in (here, there)]
        values = [np.where(gap, -1, each.values) for gap, each in zip(missing, (here, there), strict=True)]
        for before, after in (missing, codes, values):
            if not np.array_equal(before[others], after[others]):
                return f"{cell!r} in row {row} moves others"
    return ""


# ------------------------------------------------------------------------------------------- what estimates count


def _range(series: pd.Series[Any], noise: Shifted) -> None:
    estimate_bounds(series, epsilon=noise.budget.epsilon, noise=noise)


def _labels(series: pd.Series[Any], noise: Shifted) -> None:
    discover_categories(series, epsilon=noise.budget.epsilon, delta=noise.budget.delta, noise=noise)


def _counted(estimate: Callable[[pd.Series[Any], Shifted], None], cell: Any, make: Make) -> str:
    """In words where one cell changes more than two counts by one."""
    for row, first, second in _tables(["a", 1, "b", 20, "30", 1], cell, make):
        counts = []
        for series in (first, second):
            noise = Shifted(PLENTY, 0)
            with suppress(DPSynthError):  # that nothing stands out is a result, and counts were taken before it
                estimate(series, noise)
            counts.append(np.sort(noise.values)[::-1])
        size = max(map(len, counts))
        before, after = (np.pad(each, (0, size - len(each))) for each in counts)
        if np.abs(before - after).sum() > 2 or abs(int(before.sum()) - int(after.sum())) > 1:
            return f"{cell!r} in row {row} changes more counts than two"
    return ""
