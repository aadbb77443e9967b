"""How far two tables are apart: column by column, pair by pair, group by group, and in the slopes of a regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.diagnostics.total_variation import coarse, total_variation
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.regression.design import Design, build, choose, estimable, is_logistic
from dpsynth_core.inference.regression.fitting import fit, standardised
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable

COLUMN_CELLS, PAIR_CELLS = 30, 8
"""Maximum cells of a range, alone and in pairs: as in the diagnostics."""
MIN_GROUPS = 3
"""Groups of about the same size that are needed before their typical error is stated."""


@dataclass(frozen=True, kw_only=True)
class CellCodes:
    """The cell of every row, column by column."""

    fine: dict[str, IntArray]
    """For single columns."""
    coarse: dict[str, IntArray]
    """For pairs."""

    @classmethod
    def of(cls, table: PrivateTable) -> CellCodes:
        fine, rough = (
            {c.name: codec_for(coarse(c, cells)).codes(table.positions(c.name)) for c in table.schema}
            for cells in (COLUMN_CELLS, PAIR_CELLS)
        )
        return cls(fine=fine, coarse=rough)

    def take(self, rows: IntArray) -> CellCodes:
        """The same for some of the rows, by index."""
        fine, rough = ({name: codes[rows] for name, codes in part.items()} for part in (self.fine, self.coarse))
        return CellCodes(fine=fine, coarse=rough)


def variation(first: CellCodes, second: CellCodes) -> dict[str, float]:
    """Total variation of the worst column, and of a pair of columns on average."""
    columns = [total_variation(*counts) for counts in _column_counts(first.fine, second.fine)]
    pairs = [total_variation(*counts) for counts in _pair_counts(first.coarse, second.coarse)]
    return {"column": max(map(float, columns)), **({"pairs": float(np.mean(pairs))} if pairs else {})}


def error_by_size(first: CellCodes, second: CellCodes) -> dict[int, float]:
    """The typical relative error of a group's size; groups are the cells of columns and pairs.

    Keys are powers of two: the groups of the first table with at least so many rows and fewer than twice as many. The
    value is the median of ``|c' - c| / c`` over them. The two tables have the same number of rows.
    """
    counts = [*_column_counts(first.fine, second.fine), *_pair_counts(first.fine, second.fine)]
    size, other = (np.concatenate(part) for part in zip(*counts, strict=True))
    size, other = size[size > 0], other[size > 0]
    error = np.abs(other - size) / size
    # A count of rows is exact in floating point, and so is the exponent of a power of two.
    power = np.frexp(size.astype(np.float64))[1] - 1
    return {
        int(2**k): float(np.median(error[power == k]))
        for k in np.unique(power)
        if np.count_nonzero(power == k) >= MIN_GROUPS
    }


def _column_counts(first: dict[str, IntArray], second: dict[str, IntArray]) -> list[tuple[IntArray, IntArray]]:
    return [_counts(codes, second[name]) for name, codes in first.items()]


def _pair_counts(first: dict[str, IntArray], second: dict[str, IntArray]) -> list[tuple[IntArray, IntArray]]:
    """Rows in every cell of every pair of columns, in both tables."""
    counts = []
    for a, b in combinations(first, 2):
        width = 1 + max(int(part[b].max()) for part in (first, second))
        counts.append(_counts(*(part[a] * width + part[b] for part in (first, second))))
    return counts


def _counts(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    cells = 1 + int(max(first.max(), second.max()))
    left, right = (np.bincount(codes, minlength=cells) for codes in (first, second))
    return left, right


@dataclass(frozen=True, kw_only=True)
class Slopes:
    """The slopes of the outcome that the original's columns explain best."""

    design: Design
    """Of the original."""
    predictors: tuple[str, ...]
    logistic: bool
    values: FloatArray
    """In standard deviations of the outcome per standard deviation of the term."""

    @classmethod
    def of(cls, table: PrivateTable) -> Slopes | None:
        """None if no column explains another."""
        outcome, *predictors = choose(table, None, None, table.n) or ("",)
        if not predictors:
            return None
        full = build(table, outcome, predictors)
        design, logistic = full.only(estimable(full.X)), is_logistic(table.schema[outcome])
        try:
            values = standardised(fit(design, logistic=logistic).estimate, design, logistic=logistic)
        except DPSynthError:
            return None
        return cls(design=design, predictors=tuple(predictors), logistic=logistic, values=values)

    def error(self, synthetic: PrivateTable) -> float:
        """The largest difference of a slope; one that the synthetic rows do not determine counts as zero there."""
        full = build(synthetic, self.design.outcome.column, self.predictors)
        names = [term.name for term in full.terms]
        other = full.only([names.index(term.name) for term in self.design.terms])
        return float(np.abs(self._slopes(other) - self.values).max())

    def fresh_error(self, rng: np.random.Generator) -> float:
        """The same between two samples with replacement of the original."""
        first, second = (
            self._slopes(replace(self.design, y=self.design.y[rows], X=self.design.X[rows]))
            for rows in rng.integers(self.design.n, size=(2, self.design.n))
        )
        return float(np.abs(first - second).max())

    def _slopes(self, design: Design) -> FloatArray:
        try:
            slopes = standardised(fit(design, logistic=self.logistic).estimate, self.design, logistic=self.logistic)
        except DPSynthError:
            # An outcome that does not vary any more has no slopes at all.
            return np.zeros(len(self.values))
        return np.nan_to_num(slopes, nan=0.0)
