"""Attack on sensitivities: tables and replaced rows that move a draw's input as far as they can.

Pairs that somebody has thought of leave out the worst one, most of all with many columns. Hill climbing changes a cell,
a row or a column at a time and keeps whatever moves some input further, as a multiple of what its draw declares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.audit.checks import AuditCheck, Size, audit_check, seed_for
from dpsynth_core.audit.shapes import Shape, cell_at
from dpsynth_core.audit.subject import Subject
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.recording import Recorder, Replay, ReplayMismatchError
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MISSING = 2.0
"""Stands for a missing cell; shares of a column's range go from 0 to 1."""
ENDS = (0.0, 1.0, 0.5, MISSING)
SEARCHED = (
    Shape(columns=("continuous", "integer", "may be missing", "date"), rows=4),
    Shape(columns=("categorical", "continuous", "ordinal"), rows=6),
    Shape(columns=("boolean", "with other"), rows=3),
)


@dataclass(frozen=True, kw_only=True)
class Attack:
    """A table as shares of its columns' ranges, and what its first row is replaced by."""

    cells: FloatArray
    row: FloatArray

    def changed(self, generator: np.random.Generator) -> Attack:
        """A cell, a row, a column or the replacement set to an end of its range, the middle, or nothing."""
        cells, row = self.cells.copy(), self.row.copy()
        end = ENDS[int(generator.integers(len(ENDS)))] if generator.random() < 3 / 4 else float(generator.random())
        at, column = int(generator.integers(len(cells))), int(generator.integers(cells.shape[1]))
        match int(generator.integers(5)):
            case 0:
                cells[at, column] = end
            case 1:
                cells[at] = end
            case 2:
                cells[1:, column] = end
            case 3:
                row[column] = end
            case _:
                row[:] = end
        return Attack(cells=cells, row=row)

    def tables(self, schema: Schema) -> tuple[PrivateTable, PrivateTable]:
        replaced = self.cells.copy()
        replaced[0] = self.row
        return PrivateTable(_frame(schema, self.cells), schema), PrivateTable(_frame(schema, replaced), schema)


def _frame(schema: Schema, cells: FloatArray) -> pd.DataFrame:
    def cell(column: Any, share: float) -> Any:
        return None if share == MISSING else cell_at(column, share)

    return pd.DataFrame(
        {
            column.name: pd.Series([cell(column, share) for share in cells[:, place]], dtype=object)
            for place, column in enumerate(schema)
        }
    )


def largest_move(
    subject: Subject, mechanism: Mechanism, shape: Shape, steps: int, generator: np.random.Generator
) -> float:
    """The furthest that the search moves an input, as a multiple of the declared sensitivity."""
    schema, budget = shape.schema, subject.budget(shape.epsilon)
    width = len(schema.columns)
    best = Attack(cells=np.round(generator.random((shape.rows, width))), row=np.round(generator.random(width)))
    found = _moved(subject, mechanism, best.tables(schema), budget)
    for _ in range(steps):
        tried = best.changed(generator)
        moved = _moved(subject, mechanism, tried.tables(schema), budget)
        if moved >= found:
            best, found = tried, moved
    return found


def _moved(subject: Subject, mechanism: Mechanism, tables: tuple[PrivateTable, PrivateTable], budget: Any) -> float:
    recorder = Recorder(subject.source(budget, np.random.SeedSequence(0)))
    try:
        mechanism.fit(tables[0], recorder)
        replay = Replay(recorder)
        mechanism.fit(tables[1], replay)
    except ReplayMismatchError:
        return replay.excess  # that the calls differ is what replays are about
    return replay.excess


def search_checks(subject: Subject, size: Size, root: int) -> Iterator[AuditCheck]:
    """Every setting on every shape that is searched; the largest move found stands beside what is declared."""
    for shape in SEARCHED:
        try:
            settings = subject.settings(shape.schema, shape.rows, shape.epsilon)
        except DPSynthError:
            continue
        for setting, mechanism in settings.items():
            steps = max(4, round(size.search * min(1.0, subject.runs / 200)))
            seed = seed_for(root, "search", subject.name, setting, shape.name)
            found = largest_move(subject, mechanism, shape, steps, np.random.default_rng(seed))
            detail = f"{steps} steps moved an input by at most {found:.3f} of what is declared"
            case = f"{setting}; {shape.name}"
            yield audit_check("sensitivity search", subject.name, case, found <= 1, detail, measured=found, claimed=1.0)
