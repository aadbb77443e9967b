"""Why a column or a pair differs: noise, single columns that are too coarse, or a relation that the release lacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.base import Result, TablePair
from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.diagnostics.total_variation import coarse, total_variation
from dpsynth_core.runs.expected_error import COLUMN_CELLS, PAIR_CELLS, ExpectedError

TRACE = 1e-3
"""Of independent columns, mixed in so that every cell can be scaled to the original's columns."""
SCALINGS = 200
TOLERANCE = 1e-9

Cause = Literal["noise", "columns", "relation"]


@dataclass(frozen=True, kw_only=True)
class Causes:
    """A difference between original and synthetic rows, divided among its causes. Private: for internal review."""

    names: tuple[str, ...]
    """The column, or the two columns."""
    total: float
    """Total variation: the share of rows that would have to move to another cell."""
    noise: float | None
    """What noise would do to a table like this one, by the release's own estimate; None where there is none."""
    columns: float
    """What remains because single columns have other shares than in the original: bins that are too coarse for them."""
    relation: float
    """What remains because the columns do not go together as they did."""
    releasable: Literal[False] = field(default=False, init=False)

    @property
    def main(self) -> Cause:
        """The largest of them."""
        parts: dict[Cause, float] = {"noise": self.noise or 0.0, "columns": self.columns, "relation": self.relation}
        return max(parts, key=lambda cause: parts[cause])


def causes(pair: TablePair, names: tuple[str, ...], expected: ExpectedError | None) -> Causes:
    """Divide the difference in one column or in one pair of columns, on the grid of its diagnostic.

    The release's estimate of its own error comes first, because no change of the method avoids noise at this budget. A
    pair's remainder is shared between columns and relation: the synthetic pair is scaled to the original's single
    columns (iterative proportional fitting), which keeps its odds ratios. How far scaling moves it is the columns'
    part; how far the result is from the original is the relation's.
    """
    original, synthetic = _shares(pair, names)
    total = float(total_variation(original.ravel(), synthetic.ravel()))
    noise = None if expected is None else min(total, expected.of(names))
    rest = total - (noise or 0.0)
    if len(names) == 1:
        return Causes(names=names, total=total, noise=noise, columns=rest, relation=0.0)
    scaled = scaled_to(synthetic, original.sum(axis=1), original.sum(axis=0))
    of_columns = float(total_variation(scaled.ravel(), synthetic.ravel()))
    of_relation = float(total_variation(original.ravel(), scaled.ravel()))
    part = of_relation / (of_columns + of_relation) if of_columns + of_relation > 0 else 0.0
    return Causes(names=names, total=total, noise=noise, columns=rest * (1 - part), relation=rest * part)


def concerned(result: Result, evaluation: Evaluation) -> tuple[str, ...]:
    """The column or pair whose difference explains a result best; none where nothing could be computed.

    For models that tell rows apart, that is what gives the rows away first; for the whole table, its worst pair.
    """
    if result.headline.columns:
        return tuple(dict.fromkeys(result.headline.columns))[:2]
    if "giveaways" in result.tables:
        given = result.tables["giveaways"]
        return tuple(given.loc[given["importance"] > 0, "column"])[:2]
    pairs = evaluation.get("pairs")
    return pairs.headline.columns if pairs is not None else ()


def scaled_to(table: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """A table with the given margins and the odds ratios of another one, but for a trace of independence.

    Example:
        >>> scaled_to(np.array([[0.4, 0.1], [0.1, 0.4]]), np.array([0.5, 0.5]), np.array([0.5, 0.5])).round(2).tolist()
        [[0.4, 0.1], [0.1, 0.4]]
    """
    out = (1 - TRACE) * table + TRACE * np.outer(rows, columns)
    for _ in range(SCALINGS):
        out = out * _ratio(rows, out.sum(axis=1))[:, None]
        out = out * _ratio(columns, out.sum(axis=0))
        if np.abs(out.sum(axis=1) - rows).max() < TOLERANCE:
            break
    return np.asarray(out)


def _ratio(wanted: FloatArray, present: FloatArray) -> FloatArray:
    return np.divide(wanted, present, out=np.zeros_like(wanted), where=present > 0)


def _shares(pair: TablePair, names: tuple[str, ...]) -> list[FloatArray]:
    """Each table's shares of all cells, one axis for each column."""
    cells = COLUMN_CELLS if len(names) == 1 else PAIR_CELLS
    columns = [coarse(pair.original.schema[name], cells) for name in names]
    bins = {column.name: column.levels for column in columns if column.is_numeric}
    tables = (pair.original.every_row, pair.synthetic)
    return [table.counts(names, bins=bins).dense() / table.n for table in tables]
