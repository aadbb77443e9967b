"""How finely to cut a thresholded grid, chosen privately (docs/proofs.md, "How finely to cut a grid")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.partition.grid import MOST_BINS, Grid
from dpsynth_core.mechanisms.partition.thresholds import invented_rows, spurious_threshold
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema

WIDTH_COST = 4.0
"""Share of rows that a cell as wide as the range costs; settled on simulated tables (docs/results/kd_trees.md)."""
INVENTED_SHARE = 0.0025
"""Of the rows that empty cells may invent: fewer than on a grid that is not chosen, as lost rows find a place here."""
STEPS_PER_DOUBLING = 4
COARSEST, FINEST = 1 / 4, 8.0
"""Of the bins to choose from, as multiples of the bins that suit rows spread over the whole domain."""
MIN_NEIGHBOURS = 2
"""Kept cells beside a dropped one that make it likely to hold rows: one alone may be noise."""
MAX_SPREAD_COLUMNS = 3
"""Numeric columns up to which neighbours are looked for: their number grows threefold with each."""
LOSS_SENSITIVITY = 2
"""One replaced row moves two counts by one each, and with them ``rows_at_risk`` by at most two."""


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """A grid and a threshold that could be used."""

    bins: int
    """Along every numeric column."""
    threshold: int
    public_cost: int
    """Rows that its width and its empty cells cost: a matter of public facts."""


def resolutions(
    schema: Schema, n: int, *, around: int, scale: Fraction, threshold: int | None, most: int
) -> tuple[Resolution, ...]:
    """Grids from a quarter to eight times ``around`` bins, with a threshold for each, or the given one.

    Args:
        schema: Public facts about the columns.
        n: Rows.
        around: Bins along every numeric column that suit rows spread over the whole domain.
        scale: Of the noise on the counts.
        threshold: For all grids; None: empty cells invent at most one row in four hundred.
        most: Cells that a grid may have.
    """
    found: dict[int, Resolution] = {}
    steps = round(math.log2(FINEST / COARSEST) * STEPS_PER_DOUBLING)
    for step in range(steps + 1):
        bins = max(2, min(round(around * COARSEST * 2 ** (step / STEPS_PER_DOUBLING)), MOST_BINS))
        cells = Grid.of(schema, bins).cells
        if cells > most:
            break
        value = threshold or spurious_threshold(cells, n, scale, share=INVENTED_SHARE)
        cost = n * WIDTH_COST / bins + invented_rows(cells, value, scale)
        found[bins] = Resolution(bins=bins, threshold=value, public_cost=math.ceil(min(cost, 2 * n)))
    return tuple(found.values())


def rows_at_risk(counts: IntArray, threshold: int) -> int:
    """About how many rows lie in cells that noise and threshold may empty: private.

    All rows of a cell up to the threshold; from there on fewer, none from twice the threshold. The rows of cells below
    the threshold alone would say it more directly, but one row could move that by a whole threshold.

    Example:
        >>> rows_at_risk(np.array([2, 5, 8, 30]), 5)
        9
    """
    return int(np.minimum(counts, np.maximum(2 * threshold - counts, 0)).sum())


def with_lost_rows(
    grid: Grid, cells: IntArray, counts: IntArray, *, rows: int, threshold: int
) -> tuple[IntArray, FloatArray]:
    """The kept cells, and dropped cells beside them, which get the rows that are missing from the total.

    Only the edges of a crowd are dropped for having few rows, so what is missing lies next to what was kept. A dropped
    cell with two kept neighbours or more gets a share by their number, up to the threshold. Uses released counts and
    the public number of rows alone.
    """
    weights = counts.astype(np.float64)
    numeric = [i for i, axis in enumerate(grid.axes) if axis.column.is_numeric]
    lost = rows - float(weights.sum())
    if lost <= 0 or not len(cells) or not 1 <= len(numeric) <= MAX_SPREAD_COLUMNS:
        return cells, weights
    ends = np.array([grid.axes[i].slots for i in numeric])  # a missing value has no neighbours
    inside = cells[(cells[:, numeric] < ends).all(axis=1)]
    found = []
    for offset in itertools.product((-1, 0, 1), repeat=len(numeric)):
        moved = inside.copy()
        moved[:, numeric] += np.array(offset)
        if any(offset):
            found.append(moved[((moved[:, numeric] >= 0) & (moved[:, numeric] < ends)).all(axis=1)])
    flat = np.ravel_multi_index(tuple(np.concatenate(found).T), grid.shape)
    beside, neighbours = np.unique(flat, return_counts=True)
    kept = np.ravel_multi_index(tuple(cells.T), grid.shape)
    dropped = ~np.isin(beside, kept) & (neighbours >= MIN_NEIGHBOURS)
    beside, neighbours = beside[dropped], neighbours[dropped]
    if not len(beside):
        return cells, weights
    share = np.minimum(lost * neighbours / neighbours.sum(), threshold)
    extra = np.column_stack(np.unravel_index(beside, grid.shape)).astype(np.int64)
    return np.concatenate([cells, extra]), np.append(weights, share)


def choose_resolution(
    table: PrivateRows, candidates: Sequence[Resolution], noise: Noise, *, epsilon: Fraction, progress: Progress
) -> Resolution:
    """The candidate that costs the fewest rows, up to noise."""
    progress("Choosing how finely to cut", 0.0)
    counted = table.histograms([Grid.of(table.schema, candidate.bins).axes for candidate in candidates])
    scores = []
    for candidate, (_, counts) in zip(candidates, counted, strict=True):
        # Whole numbers, so that no rounding adds to the sensitivity.
        scores.append(-candidate.public_cost - rows_at_risk(counts, candidate.threshold))
    chosen = noise.permute_and_flip(
        np.array(scores, dtype=np.int64), sensitivity=LOSS_SENSITIVITY, epsilon=epsilon, label="how finely to cut"
    )
    return candidates[chosen]
