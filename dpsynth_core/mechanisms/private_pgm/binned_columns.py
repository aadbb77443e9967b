"""A column as the graphical model sees it: bins with noisy counts, gathered into groups for the pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.private_pgm.allocation import COUNT_COLUMNS, FIND_BINS, Allocation
from dpsynth_core.mechanisms.private_pgm.bins import Bins, adaptive_bins, passes_needed
from dpsynth_core.mechanisms.private_pgm.denoise import category_counts, ordered_counts
from dpsynth_core.mechanisms.private_pgm.estimation import Measurement
from dpsynth_core.mechanisms.private_pgm.graphical_model import ConditionalTable
from dpsynth_core.mechanisms.private_pgm.measuring import Measurer
from dpsynth_core.table.private_table import PrivateTable


@dataclass(frozen=True, kw_only=True)
class BinnedColumn:
    """A measured column. Everything here was paid for."""

    bins: Bins
    counts: FloatArray
    """Rows in each bin, with the noise smoothed out."""
    groups: IntArray
    std: float
    """Of the noise on a bin's count."""

    @property
    def size(self) -> int:
        return int(self.groups.max()) + 1

    @property
    def group_counts(self) -> FloatArray:
        return np.bincount(self.groups, weights=self.counts, minlength=self.size).astype(np.float64)

    def measurement(self, variable: int) -> Measurement:
        std = self.std * float(np.sqrt(len(self.counts) / self.size))
        return Measurement(clique=(variable,), values=self.group_counts, std=std)

    def bins_given_group(self, group: int, bin_: int) -> ConditionalTable:
        joint = np.zeros((self.size, len(self.counts)))
        # A trace of mass keeps the bins of an empty group defined.
        joint[self.groups, np.arange(len(self.counts))] = self.counts + 1e-9
        return ConditionalTable.of((group,), (bin_,), joint)


def find_bins(table: PrivateTable, name: str, measurer: Measurer, allocation: Allocation) -> Bins:
    """A column's bins: as declared, one for each value, or found with noisy histograms."""
    column = table.schema[name]
    passes = passes_needed(column, allocation.bins)
    if not passes:
        return Bins.equal(column, allocation.bins)

    def measure(counts: IntArray) -> tuple[IntArray, float]:
        return measurer.histogram(counts, allocation.look, FIND_BINS)

    return adaptive_bins(table, column, measure, bins=allocation.bins, passes=passes)


def measure_column(table: PrivateTable, bins: Bins, measurer: Measurer, allocation: Allocation) -> BinnedColumn:
    """A column's counts, without what the noise alone added."""
    column = bins.axis.column
    exact = np.bincount(bins.codes(table), minlength=bins.size)
    noisy, std = measurer.histogram(exact, allocation.columns[column.name], COUNT_COLUMNS, rows=table.n)
    values = noisy.astype(np.float64)
    if column.is_numeric:
        counts = ordered_counts(values, bins.widths, std, table.n)
    else:
        counts = category_counts(values, std, table.n)
    return BinnedColumn(bins=bins, counts=counts, groups=group_bins(bins, counts, allocation.groups), std=std)


def group_bins(bins: Bins, counts: FloatArray, max_groups: int) -> IntArray:
    """The group of each bin, from noisy counts alone: runs of about equal mass for ordered bins.

    Unordered categories have a group each while they are among the largest; the others share the last one. Missing
    values have a group of their own among ordered bins and count as one more category otherwise.
    """
    size = len(counts)
    if size <= max_groups:
        return np.arange(size)
    if not bins.ordered:
        rank = np.empty(size, dtype=np.int64)
        rank[np.argsort(-counts, kind="stable")] = np.arange(size)
        return np.minimum(rank, max_groups - 1)
    values = len(bins.edges) - 1
    groups = np.empty(size, dtype=np.int64)
    groups[:values] = _equal_runs(counts[:values], max(1, max_groups - (size - values)))
    groups[values:] = groups[values - 1] + 1
    return groups


def _equal_runs(counts: FloatArray, max_runs: int) -> IntArray:
    """Consecutive runs; a new one begins where the mass so far is nearest to the next multiple of an equal share."""
    total = counts.sum()
    if total <= 0:
        return np.arange(len(counts)) * max_runs // len(counts)
    middle = np.cumsum(counts) - counts / 2
    groups = np.minimum((middle * max_runs / total).astype(np.int64), max_runs - 1)
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)
