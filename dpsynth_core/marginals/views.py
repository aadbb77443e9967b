"""A column as the graphical model sees it: bins with noisy counts, gathered into groups."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsynth_core.encoding import FloatArray, IntArray
from dpsynth_core.marginals.bins import Bins, found_bins
from dpsynth_core.marginals.denoise import category_counts, ordered_counts, shrunk_towards
from dpsynth_core.marginals.graphical import Step
from dpsynth_core.marginals.groups import grouped
from dpsynth_core.marginals.inference import Measurement
from dpsynth_core.marginals.meter import Key, Meter
from dpsynth_core.marginals.outlay import LOOKS, SINGLES, Outlay
from dpsynth_core.private import PrivateTable

LEAST_TRUST = 0.2
"""A table that was drawn towards what was expected is taken for no more exact than this share of its variance says."""
PRICE_OF_NOISE = 0.4
"""Half the mean absolute error of a Gaussian in units of its deviation: what a pair's score must earn for each cell."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Everything here was paid for."""

    bins: Bins
    """The column's bins."""
    counts: FloatArray
    """Rows in each bin, after noise was taken care of."""
    groups: IntArray
    """The group of each bin."""
    deviation: float
    """Standard deviation of the noise on a bin's count."""

    @property
    def size(self) -> int:
        """Number of groups."""
        return int(self.groups.max()) + 1

    @property
    def group_counts(self) -> FloatArray:
        """Rows in each group."""
        return np.bincount(self.groups, weights=self.counts, minlength=self.size).astype(np.float64)

    def measurement(self, variable: int) -> Measurement:
        """The groups' counts as a measurement of a variable."""
        spread = self.deviation * float(np.sqrt(len(self.counts) / self.size))
        return Measurement(variables=(variable,), values=self.group_counts, deviation=spread)

    def step(self, group: int, bin_: int) -> Step:
        """Bins given groups."""
        joint = np.zeros((self.size, len(self.counts)))
        # A trace of mass keeps the bins of an empty group defined.
        joint[self.groups, np.arange(len(self.counts))] = self.counts + 1e-9
        return Step.of((group,), (bin_,), joint)


def look_at(table: PrivateTable, name: str, meter: Meter, outlay: Outlay) -> Bins:
    """A column's bins: as declared, one for each value, or found by noisy looks."""
    column, looks = table.schema[name], outlay.looks[name]
    if not looks:
        return Bins.equal(column, outlay.bins)
    turns = iter(range(looks))
    return found_bins(
        table,
        column,
        lambda counts: meter.histogram((LOOKS, name, next(turns)), counts),
        wanted=outlay.bins,
        looks=looks,
    )


def measure_single(table: PrivateTable, bins: Bins, meter: Meter, *, groups: int) -> View:
    """A column's counts, without what the noise alone put there."""
    name = bins.axis.column.name
    exact = np.bincount(bins.codes(table), minlength=bins.size)
    noisy, deviation = meter.histogram((SINGLES, name), exact, rows=table.n)
    values = noisy.astype(np.float64)
    if bins.axis.column.is_numeric:
        counts = ordered_counts(values, bins.widths, deviation, table.n)
    else:
        counts = category_counts(values, deviation, table.n)
    return View(bins=bins, counts=counts, groups=grouped(bins, counts, groups), deviation=deviation)


def group_codes(table: PrivateTable, views: list[View]) -> list[IntArray]:
    """Each row's group in every column: private."""
    return [view.groups[view.bins.codes(table)] for view in views]


def pair_table(codes: list[IntArray], sizes: list[int], pair: tuple[int, int]) -> IntArray:
    """Rows by the groups of two columns: private."""
    first, second = pair
    flat = codes[first] * sizes[second] + codes[second]
    return np.bincount(flat, minlength=sizes[first] * sizes[second]).reshape(sizes[first], sizes[second])


def all_pairs(size: int) -> list[tuple[int, int]]:
    """Every pair of variables."""
    return list(combinations(range(size), 2))


def pair_scores(
    codes: list[IntArray], sizes: list[int], expected: dict[tuple[int, int], FloatArray], *, deviation: float
) -> IntArray:
    """How wrong each pair's expected table is (L1), less what noise would cost on each of its cells.

    Expected tables are rounded to whole rows, so that scores are whole numbers and one replaced row changes each by at
    most two.
    """
    return np.array(
        [
            int(np.abs(pair_table(codes, sizes, pair) - np.rint(table).astype(np.int64)).sum())
            - round(PRICE_OF_NOISE * deviation * table.size)
            for pair, table in expected.items()
        ],
        dtype=np.int64,
    )


def measure_pair(
    meter: Meter, key: Key, exact: IntArray, *, pair: tuple[int, int], expected: FloatArray, rows: int
) -> Measurement:
    """A pair's counts, drawn towards what was expected by as much as noise explains of the difference."""
    noisy, deviation = meter.histogram(key, exact, rows=rows)
    values, weight = shrunk_towards(noisy.astype(np.float64), expected, deviation)
    return Measurement(variables=pair, values=values, deviation=deviation * float(np.sqrt(max(weight, LEAST_TRUST))))
