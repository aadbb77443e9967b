"""A column as the graphical model sees it: bins with noisy counts, gathered into groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.private_pgm.bins import Bins, found_bins
from dpsynth_core.mechanisms.private_pgm.denoise import category_counts, ordered_counts
from dpsynth_core.mechanisms.private_pgm.graphical import Step
from dpsynth_core.mechanisms.private_pgm.groups import grouped
from dpsynth_core.mechanisms.private_pgm.inference import Measurement
from dpsynth_core.mechanisms.private_pgm.meter import Meter
from dpsynth_core.mechanisms.private_pgm.outlay import LOOKS, SINGLES, Outlay
from dpsynth_core.table.private_table import PrivateTable


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
