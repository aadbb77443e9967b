"""Attack on sensitivities: tables and replaced rows that move a draw's input as far as they can.

Pairs that somebody has thought of leave out the worst one, most of all with many columns. Hill climbing changes a cell,
a row or a column at a time and keeps whatever moves some input further, as a multiple of what its draw declares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.audit.checks import AuditCheck, Size, audit_check, seed_for
from dpsynth_core.audit.shapes import Shape, cell_at
from dpsynth_core.audit.subject import Subject
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.pmse.parents import DEPENDENCE_SENSITIVITY, dependence
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.recording import Recorder, Replay, ReplayMismatchError
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MISSING = 2.0
"""Stands for a missing cell; shares of a column's range go from 0 to 1."""
ENDS = (0.0, 1.0, 0.5, MISSING)
SEARCHED = (
    Shape(columns=("continuous", "integer", "may be missing", "date"), rows=4),
    Shape(columns=("integer", "continuous", "categorical"), rows=20),
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
        end = ENDS[int(generator.integers(len(ENDS)))] if generator.random() < 1 / 2 else float(generator.random())
        at, column = int(generator.integers(len(cells))), int(generator.integers(cells.shape[1]))
        match int(generator.integers(8)):
            case 0:
                cells[at] = end
            case 1:
                cells[1:, column] = end
            case 2 | 3:
                row[column] = end
            case 4:
                row[:] = end
            case _:
                cells[at, column] = end
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


def largest_moves(
    subject: Subject, mechanism: Mechanism, shape: Shape, steps: int, generator: np.random.Generator
) -> dict[str, float]:
    """By label of the draw, the furthest that the search moves its input, as a multiple of the declared sensitivity.

    Every label climbs by itself: the first that reaches its bound would otherwise keep the others where they are.
    """
    schema, budget = shape.schema, subject.budget(shape.epsilon).per_row(shape.rows_per_person)
    width = len(schema.columns)
    start = Attack(cells=generator.random((shape.rows, width)), row=generator.random(width))
    best: dict[str, tuple[float, Attack]] = {}
    tried = start
    for step in range(steps + 1):
        for label, moved in _moved(subject, mechanism, tried.tables(schema), budget).items():
            if label not in best or moved >= best[label][0]:
                best[label] = moved, tried
        climbing = [label for label, (moved, _) in best.items() if moved < 1] or list(best)
        tried = best[climbing[step % len(climbing)]][1].changed(generator) if climbing else start.changed(generator)
    return {label: moved for label, (moved, _) in best.items()}


def _moved(
    subject: Subject, mechanism: Mechanism, tables: tuple[PrivateTable, PrivateTable], budget: Budget
) -> dict[str, float]:
    recorder = Recorder(subject.source(budget, np.random.SeedSequence(0)))
    mechanism.fit(tables[0], recorder)
    replay = Replay(recorder)
    with suppress(ReplayMismatchError):  # that the calls differ is what replays are about
        mechanism.fit(tables[1], replay)
    return replay.moves


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
            found = largest_moves(subject, mechanism, shape, steps, np.random.default_rng(seed))
            largest = max(found.values(), default=0.0)
            detail = "; ".join(f"{label}: {moved:.3f}" for label, moved in found.items())
            case = f"{setting}; {shape.name}; {steps} steps"
            yield audit_check(
                "sensitivity search", subject.name, case, largest <= 1, detail, measured=largest, claimed=1.0
            )


# ------------------------------------------------------------------------------------------------- scores by themselves


@dataclass(frozen=True, kw_only=True)
class Score:
    """A score of two columns' codes that a selection is made by, and what it is declared to move by."""

    name: str
    score: Callable[[IntArray, IntArray], float]
    declared: float
    """As a multiple of 1/n."""


SCORES = (Score(name="dependence of two columns", score=dependence, declared=float(DEPENDENCE_SENSITIVITY)),)
SCORED_ROWS, SCORED_LEVELS = 24, 8


def score_checks(size: Size, root: int) -> Iterator[AuditCheck]:
    """Thousands of steps on the score alone: within a run, where other draws take most of the time, few are made."""
    for score in SCORES:
        seed = seed_for(root, "score", score.name)
        found = max(_climbed(score, 15 * size.search, np.random.default_rng(part)) for part in seed.spawn(6))
        detail = f"moved by {found:.3f}/n, declared is {score.declared:g}/n"
        figures = {"measured": found, "claimed": score.declared}
        yield audit_check(
            "sensitivity search", score.name, "codes of two columns", found <= score.declared, detail, **figures
        )


def _climbed(score: Score, steps: int, generator: np.random.Generator) -> float:
    """The furthest that a replaced row moves the score, times the number of rows."""
    codes = generator.integers(0, SCORED_LEVELS, (SCORED_ROWS + 1, 2))  # the last row replaces the first
    best = 0.0
    for _ in range(steps):
        tried = codes.copy()
        tried[int(generator.integers(SCORED_ROWS + 1)), int(generator.integers(2))] = generator.integers(SCORED_LEVELS)
        first, second = score.score(*tried[:-1].T), score.score(*tried[1:].T)
        moved = SCORED_ROWS * abs(first - second)
        if moved >= best:
            codes, best = tried, moved
    return best
