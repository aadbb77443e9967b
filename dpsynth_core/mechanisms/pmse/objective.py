"""How well a model's sample hides among the original rows: a score of parameters with a bound on what one row does.

Rows are told apart by the best tree of depth two, or by all cells of two columns at once: by the mean squared deviation
of propensity scores from their mean (pMSE), or by the mean absolute one, which up to a factor is the total variation.

The sample is g(theta; z) with z fixed before any row is seen, so the score is a fixed function of theta. Cuts of
numbers are equally wide in units of the sample's mean and standard deviation, so that finding a cell is arithmetic;
cuts of labels are the labels. Both depend on theta and z only, which is what bounds the score's sensitivity
(docs/proofs.md).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dpsynth_core.arrays import FloatArray, Int32Array, IntArray
from dpsynth_core.jit import compiled
from dpsynth_core.mechanisms.pmse.column_models import NOMINAL, ORDERED, ColumnModel, ColumnModels, column_models
from dpsynth_core.mechanisms.pmse.drawing import correlations, draw_column, feature_scales, features_of, natural
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.trees.search import all_cells, best_pair, distance

TREE, SQUARES, DISTANCE = 0, 1, 2
"""Who tells the rows apart: the best tree of depth two; all cells of two columns at once, by the same pMSE; or all
cells by the total variation between the two tables' shares."""
CELLS = 32
"""Of a column of numbers."""
CELL_WIDTH = 0.2
"""In standard deviations of the sample."""
CELLS_TOGETHER = 2
"""Cells of a number that are one where all cells are looked at at once: 0.4 standard deviations."""
ROUNDING = Fraction(1, 2**40)
"""More than two means of distances over up to a thousand pairs can be off in double precision. (The bound on a pMSE is
never reached, which leaves room for its rounding.)"""


@dataclass(frozen=True, kw_only=True)
class Randomness:
    """What a table of some rows is made from: one line for each column."""

    z: FloatArray
    """Standard normal for numbers and ordered labels, uniform for categories."""
    gap: FloatArray
    """Uniform: decides which values are missing."""

    @classmethod
    def draw(cls, models: ColumnModels, rows: int, noise: Noise, *, even: bool = False) -> Randomness:
        """Independent of any private value. ``even``: spread evenly over the law of each column, in random order."""

        def line() -> FloatArray:
            if not even:
                return noise.uniform(rows)
            order = np.argsort(noise.uniform(rows))
            return (order + noise.uniform(rows)) / rows

        z = np.stack([line() for _ in models])
        latent = [model.form != NOMINAL for model in models]
        z[latent] = ndtri(np.clip(z[latent], 1e-15, 1 - 1e-15))
        return cls(z=z, gap=np.stack([line() if model.column.nullable else np.ones(rows) for model in models]))


class PMSEObjective:
    """The score of one block of columns after the other; what is settled stays.

    ``judge``: all cells of two columns see more than the best tree, and they are a single partition that follows from
    theta and z, so one row moves their pMSE as little as a tree's. The distance also tells small differences apart: a
    square is flat near its best value, while the bound on one row, which epsilon pays for, is that of large ones.
    """

    def __init__(self, table: PrivateTable, models: ColumnModels, randomness: Randomness, *, judge: int = TREE) -> None:
        self.models = models
        self._judge = judge
        self._random = randomness
        made = randomness.z.shape[1]
        self._original = np.stack([model.values(table.positions(model.column.name)) for model in models])
        self._layout = np.array([_layout(model) for model in models], dtype=np.int64)
        total = models[-1].before + models[-1].features
        self._features = np.zeros((max(total, 1), made))
        self._centre, self._spread = np.zeros(max(total, 1)), np.ones(max(total, 1))
        self._synthetic_cells = np.zeros((len(models), made), dtype=np.int32)
        self._original_cells = np.zeros((len(models), table.n), dtype=np.int32)
        self._values = np.zeros((len(models), made))
        self.natural: list[FloatArray] = []
        self.rows = made + table.n
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1)

    @property
    def sensitivity(self) -> Fraction:
        """The most that one replaced row can change a score."""
        given = self._original.shape[1]
        return sensitivity_of(self._judge, given, self.rows - given)

    @property
    def first(self) -> int:
        return len(self.natural)

    @property
    def scales(self) -> tuple[FloatArray, FloatArray]:
        """Centre and spread of every settled feature."""
        return self._centre, self._spread

    def __call__(self, thetas: FloatArray, last: int, pairs: IntArray) -> FloatArray:
        """The score of each line of parameters for the columns from ``first`` to ``last``.

        Args:
            thetas: One line for each candidate.
            last: The last column of the block.
            pairs: Pairs of columns whose scores are averaged; twice the same for a column by itself.
        """
        fixed = self._layout, self._original, self._random.z, self._random.gap
        settled_cells = self._synthetic_cells, self._original_cells
        settled = self._features, correlations(self._features, self.models[self.first].before), settled_cells

        def some(lines: FloatArray) -> FloatArray:
            return _scores(lines, (self.first, last), pairs, self._judge, fixed, settled)

        # Scores are computed outside the interpreter's lock.
        cores = min(os.cpu_count() or 1, len(thetas))
        return np.concatenate(list(self._pool.map(some, np.array_split(thetas, cores))))

    def settle_empty(self, until: int) -> None:
        """Fix the columns before ``until``, which have no parameters."""
        while self.first < until:
            self.settle(np.zeros(0), self.first)

    def settle(self, theta: FloatArray, last: int) -> None:
        """Fix the block's columns at these parameters."""
        for j in range(self.first, last + 1):
            model, layout = self.models[j], self._layout[j]
            given = natural(layout, theta[: model.size], correlations(self._features, model.before))
            theta = theta[model.size :]
            values, latent = self._values[j], np.empty(self._features.shape[1])
            draw_column(layout, given, self._features, self._random.z[j], self._random.gap[j], values, latent)
            own = slice(model.before, model.before + model.features)
            feature_scales(layout, values, self._centre[own], self._spread[own])
            features_of(layout, values, latent, self._centre[own], self._spread[own], self._features[own])
            assign_cells(layout, values, self._original[j], self._synthetic_cells[j], self._original_cells[j])
            self.natural.append(given)


def sensitivity_of(judge: int, given: int, made: int) -> Fraction:
    """The most that one of ``given`` original rows can change a score with ``made`` rows of the model.

    docs/proofs.md, section 12. For the distance two cells' shares move by 1/n each, whatever the model's rows.
    """
    return Fraction(1, given) + ROUNDING if judge == DISTANCE else Fraction(1, given + made)


def warm_up() -> None:
    """Compile now (or load what an earlier process compiled), so that nobody waits for it later."""
    column = {"name": "x", "kind": "continuous", "lower": 0, "upper": 1, "public": True}
    schema = Schema.from_dict({"columns": [column]})
    table, even = PrivateTable(pd.DataFrame({"x": [0.5]}), schema), np.linspace(-1, 1, 4)[None]
    objective = PMSEObjective(table, column_models(schema, "normal"), Randomness(z=even, gap=np.ones_like(even)))
    objective(np.zeros((1, 2)), 0, np.array([[0, 0]]))
    objective.settle(np.zeros(2), 0)


def _layout(model: ColumnModel) -> tuple[int, ...]:
    """For compiled code: how the column is made, its parameters and features, and its cells."""
    cells = (model.levels or CELLS) + model.column.nullable
    together = 1 if model.levels else CELLS_TOGETHER
    return *model.layout, model.size, model.features, cells, int(model.form == NOMINAL), together


@compiled
def assign_cells(
    layout: IntArray, made: FloatArray, given: FloatArray, cells: Int32Array, original: Int32Array
) -> None:
    """The cells of a column's synthetic and original values; what is missing comes last."""
    form, levels = layout[0], layout[1]
    if form >= ORDERED:
        for values, places in ((made, cells), (given, original)):
            for row in range(len(values)):
                places[row] = levels if np.isnan(values[row]) else int(values[row])
        return
    count, total, squares = 0.0, 0.0, 0.0
    for row in range(len(made)):
        if not np.isnan(made[row]):
            count += 1.0
            total += made[row]
            squares += made[row] * made[row]
    mean = total / max(count, 1.0)
    std = np.sqrt(max(squares / max(count, 1.0) - mean * mean, 1e-12))
    _equal_cells(made, mean, 1.0 / (std * CELL_WIDTH), cells)
    _equal_cells(given, mean, 1.0 / (std * CELL_WIDTH), original)


@compiled
def _equal_cells(values: FloatArray, mean: float, rate: float, cells: Int32Array) -> None:
    for row in range(len(values)):
        if np.isnan(values[row]):
            cells[row] = CELLS
        else:
            cells[row] = int(min(max((values[row] - mean) * rate + CELLS / 2, 0.0), CELLS - 1.0))


@compiled
def _line(block: Int32Array, settled: Int32Array, column: int, first: int) -> Int32Array:
    line: Int32Array = block[column - first] if column >= first else settled[column]
    return line


@compiled
def _scores(  # noqa: PLR0917
    thetas: FloatArray,
    columns: tuple[int, int],
    pairs: IntArray,
    judge: int,
    fixed: tuple[IntArray, FloatArray, FloatArray, FloatArray],
    known: tuple[FloatArray, FloatArray, tuple[Int32Array, Int32Array]],
) -> FloatArray:
    """The score of each line of parameters: ``fixed`` is what no parameter changes, ``known`` what is settled."""
    first, last = columns
    layout, original, z, gap = fixed
    settled, correlation, (synthetic_cells, original_cells) = known
    made, given = z.shape[1], original.shape[1]
    rows = float(made + given)
    block = last - first + 1
    a_cells, o_cells = np.empty((block, made), np.int32), np.empty((block, given), np.int32)
    values, latent = np.empty(made), np.empty(made)
    features = settled.copy() if block > 1 else settled
    centre, spread = np.empty(len(settled)), np.empty(len(settled))
    scores = np.zeros(len(thetas))
    for line in range(len(thetas)):
        start = 0
        for j in range(first, last + 1):
            before, size, own = layout[j, 4], layout[j, 5], layout[j, 6]
            among = correlation if j == first else correlations(features, before)
            parameters = natural(layout[j], thetas[line, start : start + size], among)
            start += size
            draw_column(layout[j], parameters, features, z[j], gap[j], values, latent)
            if block > 1:
                feature_scales(layout[j], values, centre[:own], spread[:own])
                features_of(layout[j], values, latent, centre, spread, features[before : before + own])
            assign_cells(layout[j], values, original[j], a_cells[j - first], o_cells[j - first])
        total = 0.0
        for p in range(len(pairs)):
            i, k = pairs[p, 0], pairs[p, 1]
            made_cells = _line(a_cells, synthetic_cells, i, first), _line(a_cells, synthetic_cells, k, first)
            given_cells = _line(o_cells, original_cells, i, first), _line(o_cells, original_cells, k, first)
            sizes, nominal, wide = (
                (layout[i, 7], layout[k, 7]),
                (layout[i, 8], layout[k, 8]),
                (layout[i, 9], layout[k, 9]),
            )
            if judge == DISTANCE:
                total += distance(made_cells, given_cells, sizes, wide) / len(pairs)
                continue
            if judge == SQUARES:
                gain = all_cells(made_cells, given_cells, sizes, wide)
            else:
                gain = best_pair(made_cells, given_cells, sizes, nominal)
            # N pMSE = sum a^2 / (a + o) - m^2 / N
            total += (gain - made * made / rows) / rows / len(pairs)
        scores[line] = total
    return scores
