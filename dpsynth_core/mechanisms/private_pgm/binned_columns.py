"""A column as the graphical model sees it: bins with noisy counts, gathered into groups for the pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.private_pgm.allocation import COUNT_COLUMNS, FIND_BINS, Allocation
from dpsynth_core.mechanisms.private_pgm.bins import (
    CELLS,
    Bins,
    FoundBins,
    Look,
    adaptive_bins,
    passes_needed,
    starting_axis,
)
from dpsynth_core.mechanisms.private_pgm.denoise import CoarseCounts, category_counts, ordered_counts, precision
from dpsynth_core.mechanisms.private_pgm.estimation import Measurement
from dpsynth_core.mechanisms.private_pgm.graphical_model import ConditionalTable
from dpsynth_core.mechanisms.private_pgm.measuring import Measurer
from dpsynth_core.mechanisms.private_pgm.pieces import averaged_pieces
from dpsynth_core.mechanisms.private_pgm.spikes import spike_values
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_rows import PrivateRows, full_counts

MIN_LEVEL = 3
"""Groups of a column in its coarsest gathering."""
LIGHT = 0.25
"""Part of an equal share of the rows below which a cell shares its group with a neighbour."""
STRATA = 24
"""Strata of a column, about, in which pairs of drawn rows are brought near to the model."""
TRACE = 1e-9
"""Rows that every bin is given beside its own, so that shares in an empty group are defined."""


@dataclass(frozen=True, kw_only=True)
class BinnedColumn:
    """A measured column. Everything here was paid for."""

    bins: Bins
    counts: FloatArray
    """Rows in each bin, with the noise smoothed out."""
    groups: IntArray
    """The group of each bin."""
    std: float
    """Of the noise on a group's count, about."""
    levels: tuple[IntArray, ...]
    """Coarser and coarser gatherings of the groups, from each group as its own."""
    cells: IntArray
    """One of them: the groups gathered into cells that the column is declared with."""

    @property
    def size(self) -> int:
        return int(self.groups.max()) + 1

    def measurement(self, variable: int) -> Measurement:
        counts = np.bincount(self.groups, weights=self.counts, minlength=self.size).astype(np.float64)
        return Measurement(clique=(variable,), values=counts, std=self.std)

    def bins_given_group(self, group: int, bin_: int) -> ConditionalTable:
        joint = np.zeros((self.size, len(self.counts)))
        # A trace of mass keeps the bins of an empty group defined.
        joint[self.groups, np.arange(len(self.counts))] = self.counts + TRACE
        return ConditionalTable.of((group,), (bin_,), joint)

    def strata(self) -> tuple[IntArray, FloatArray]:
        """The stratum of each bin, at least as fine as groups and about as fine as questions are, and its shares.

        The shares have a row for each group, and add up to one in it.
        """
        finer = group_bins(self.bins, self.counts, max(self.size, STRATA))
        together = self.groups * (int(finer.max()) + 1) + finer
        strata = np.unique(together, return_inverse=True)[1].astype(np.int64)
        shares = np.zeros((self.size, int(strata.max()) + 1))
        np.add.at(shares, (self.groups, strata), self.counts + TRACE)
        return strata, shares / shares.sum(axis=1, keepdims=True)


def count_slots(table: PrivateRows, bins: int) -> dict[str, IntArray]:
    """Rows in each slot of every column, in one pass: private."""
    axes = [starting_axis(column, bins) for column in table.schema]
    counted = table.histograms([[axis] for axis in axes])
    return {axis.column.name: full_counts(counts, (axis.size,)) for axis, counts in zip(axes, counted, strict=True)}


def find_bins(column: Column, slots: IntArray, n: int, measurer: Measurer, allocation: Allocation) -> FoundBins:
    """A column's bins: as declared, one for each value, or found with noisy histograms."""
    shares = iter(allocation.looks[column.name])
    passes = passes_needed(column, allocation.bins)
    if not passes:
        return FoundBins(bins=Bins.equal(column, allocation.bins))

    def measure(counts: IntArray) -> tuple[IntArray, float]:
        return measurer.histogram(counts, next(shares), FIND_BINS)

    return adaptive_bins(
        slots, n, column, measure, bins=allocation.bins, passes=passes, keep_cells=allocation.keep_cells
    )


def measure_column(
    found: FoundBins, slots: IntArray, n: int, measurer: Measurer, allocation: Allocation
) -> BinnedColumn:
    """A column's counts, without what the noise alone added, helped by what looks have counted already."""
    bins = found.bins
    column = bins.axis.column
    exact = bins.gather(slots)
    noisy, std = measurer.histogram(exact, allocation.columns[column.name], COUNT_COLUMNS, rows=n)
    values = noisy.astype(np.float64)
    ordered = column.is_numeric
    coarser = [_smoothed(look, bins) for look in found.looks]
    counts = ordered_counts(values, bins.widths, std, n, coarser) if ordered else category_counts(values, std, n)
    max_groups = allocation.groups if ordered else allocation.label_groups
    groups = group_bins(bins, counts, max_groups)
    group_std = std * float(np.sqrt(len(groups) / (groups.max() + 1)))
    if coarser:
        gathered = np.equal.outer(np.arange(groups.max() + 1), groups).astype(np.float64)
        covariance = gathered @ np.linalg.solve(precision(len(values), std, coarser), gathered.T)
        group_std = float(np.sqrt(np.diag(covariance).mean()))
    cells = _cells(bins, groups) if max_groups >= CELLS else np.arange(groups.max() + 1)
    levels = _levels(bins, counts, groups, cells)
    if found.looks:
        bins = replace(bins, spikes=spike_values(bins, counts, std))
    return BinnedColumn(bins=bins, counts=counts, groups=groups, std=group_std, levels=levels, cells=cells)


def _smoothed(look: Look, bins: Bins) -> CoarseCounts:
    counts = averaged_pieces(look.counts.astype(np.float64), np.diff(look.edges), look.std)
    return CoarseCounts(parts=bins.overlap(look.edges), values=counts, std=look.std)


def _cells(bins: Bins, groups: IntArray) -> IntArray:
    """The cell of each group of a number; of labels the largest have one each, and the others share one.

    Groups split heavy cells and join light ones. What is asked of a table is mostly asked in whole cells, and the sum
    of the parts of a split cell has the noise of them all.
    """
    size = int(groups.max()) + 1
    if not bins.axis.column.is_numeric:
        return _largest(size) if not bins.ordered else np.arange(size)
    values = len(bins.edges) - 1
    cell = np.full(size, CELLS)  # beyond the last one: missing values
    np.minimum.at(cell, groups[:values], np.searchsorted(bins.cell_edges(CELLS), bins.edges[:-1], side="right"))
    return np.unique(cell, return_inverse=True)[1].astype(np.int64)


def _largest(size: int) -> IntArray:
    """Groups of labels are in order of their noisy counts."""
    return np.minimum(np.arange(size), CELLS - 1)


def _levels(bins: Bins, counts: FloatArray, groups: IntArray, cells: IntArray) -> tuple[IntArray, ...]:
    """The groups themselves, cells if these are fewer, then about half as many, and so on down to a few.

    Of labels without an order, the largest stay apart.
    """
    levels = [np.arange(len(cells))]
    size = int(cells.max()) + 1
    if size < len(cells):
        levels.append(cells)
    while bins.ordered and size > MIN_LEVEL:
        size = max(MIN_LEVEL, (size + 1) // 2)
        coarse = group_bins(bins, counts, size)
        # A group goes where most of its rows go, so that coarser groups are made of finer ones.
        votes = np.zeros((len(levels[0]), int(coarse.max()) + 1))
        np.add.at(votes, (groups, coarse), counts + 1e-9)
        levels.append(np.unique(votes.argmax(axis=1), return_inverse=True)[1].astype(np.int64))
    return tuple(levels)


def group_bins(bins: Bins, counts: FloatArray, max_groups: int) -> IntArray:
    """The group of each bin, from noisy counts alone.

    Bins of numbers are gathered within the cells that the column is declared with: light neighbouring cells share a
    group, heavy ones are split into parts of about equal mass. Ordered categories form runs of about equal mass.
    Unordered ones have a group each while they are among the largest; the others share the last one. Missing values
    have a group of their own among ordered bins and count as one more category otherwise.
    """
    size = len(counts)
    if size <= max_groups:
        return np.arange(size)
    if not bins.ordered:
        rank = np.empty(size, dtype=np.int64)
        rank[np.argsort(-counts, kind="stable")] = np.arange(size)
        return np.minimum(rank, max_groups - 1)
    values = len(bins.edges) - 1
    most = max(1, max_groups - (size - values))
    starts = np.arange(values)
    if bins.axis.column.is_numeric:
        # Fewer groups are whole cells joined: wider equal parts would begin within a cell and mix it with the next one.
        cells = np.searchsorted(bins.cell_edges(max(CELLS, most)), bins.edges[:-1], side="right")
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
    groups = np.empty(size, dtype=np.int64)
    groups[:values] = _runs(counts[:values], starts, most)
    groups[values:] = groups[values - 1] + 1
    return groups


def _runs(counts: FloatArray, starts: IntArray, max_runs: int) -> IntArray:
    """Consecutive runs that begin at these bins, joined where they are light and split where they are heavy."""
    ends = [*starts.tolist(), len(counts)]
    total = np.insert(np.cumsum(counts), 0, 0.0)
    light = LIGHT * total[-1] / max_runs

    def mass(i: int) -> float:
        return float(total[ends[i + 1]] - total[ends[i]])

    while len(ends) > 2:
        i = min(range(len(ends) - 1), key=mass)
        if len(ends) - 1 <= max_runs and mass(i) >= light:
            break
        left, right = (mass(j) if 0 <= j < len(ends) - 1 else np.inf for j in (i - 1, i + 1))
        del ends[i if left <= right else i + 1]
    while len(ends) - 1 < max_runs:
        i = max((j for j in range(len(ends) - 1) if ends[j + 1] - ends[j] > 1), key=mass, default=-1)
        if i < 0 or mass(i) <= light:
            break
        inner = np.arange(ends[i] + 1, ends[i + 1])
        middle = (total[ends[i]] + total[ends[i + 1]]) / 2
        ends.insert(i + 1, int(inner[np.argmin(np.abs(total[inner] - middle))]))
    return np.repeat(np.arange(len(ends) - 1), np.diff(ends))
