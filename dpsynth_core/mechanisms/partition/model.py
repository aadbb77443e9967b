"""A partition with weights: what the partition mechanisms learn, and how rows are drawn from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.encoding import Positions, codec_for

MIN_THREADED_ROWS = 20_000
"""Fewer rows are placed sooner than threads are started."""


@dataclass(frozen=True, kw_only=True)
class PartitionModel:
    """Boxes over the declared domain and the (noisy) number of rows in each. Safe to show: nothing here is private."""

    axes: tuple[Axis, ...]
    """One per column, in the schema's order."""
    low: IntArray
    """First slot of each box, by axis."""
    high: IntArray
    """One past the last slot of each box, by axis."""
    weights: FloatArray
    """Noisy rows in each box: never negative, and adding up to the number of rows."""
    centre: bool
    """Whether rows are placed at the middle of their box or anywhere in it."""

    @classmethod
    def of(
        cls, axes: tuple[Axis, ...], low: IntArray, high: IntArray, weights: FloatArray, *, rows: int, centre: bool
    ) -> PartitionModel:
        """Negative weights become zero and the rest is rescaled to ``rows``; if nothing is left, the domain is."""
        kept = weights > 0
        if not kept.any():
            low, high = np.zeros((1, len(axes)), dtype=np.int64), np.array([[axis.size for axis in axes]])
            weights, kept = np.ones(1), np.ones(1, dtype=np.bool_)
        low, high, positive = low[kept], high[kept], weights[kept]
        # In the order of the domain: the order in which boxes were found would tell which of them hold rows. Boxes do
        # not overlap, so no two of them begin at the same slots.
        order = np.lexsort(low.T[::-1])
        scaled = positive[order] * (rows / positive[order].sum())
        return cls(axes=axes, low=low[order], high=high[order], weights=scaled, centre=centre)

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """That many rows, each box getting its share rounded up or down, in random order."""

        def column(axis: Axis, placing: Callable[[], Positions]) -> pd.Series[Any]:
            return codec_for(axis.column).restore(placing())

        if rows < MIN_THREADED_ROWS:
            made = {axis.column.name: column(axis, placing) for axis, placing in self._placings(rows, noise)}
            return pd.DataFrame(made, copy=False)
        # One column is drawn while others are computed: long arrays are worked on outside the interpreter's lock.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            waiting = {
                axis.column.name: pool.submit(column, axis, placing) for axis, placing in self._placings(rows, noise)
            }
            return pd.DataFrame({name: made.result() for name, made in waiting.items()}, copy=False)

    def positions(self, rows: int, noise: Noise) -> dict[str, Positions]:
        """The same rows, not yet as values."""
        return {axis.column.name: placing() for axis, placing in self._placings(rows, noise)}

    def _placings(self, rows: int, noise: Noise) -> Iterator[tuple[Axis, Callable[[], Positions]]]:
        """For each column in turn, what is drawn for it, and the arithmetic that is left."""
        box = self._allot(rows, noise)[noise.distinct(rows, rows)]
        for axis, low, high in zip(self.axes, self.low.T, self.high.T, strict=True):
            yield axis, axis.placing(low, high, box, noise.uniform, centre=self.centre)

    def _allot(self, rows: int, noise: Noise) -> IntArray:
        """Systematic sampling: one uniform start, then equal steps through the cumulated weights."""
        ends = np.cumsum(self.weights)
        # Marks at (u + k) * total / rows; before a box's end lie as many as there are k below end * rows / total - u.
        before = np.ceil(ends * (rows / ends[-1]) - noise.uniform(1)).clip(0, rows).astype(np.int64)
        before[-1] = rows
        return np.repeat(np.arange(len(ends)), np.diff(before, prepend=0))

    def centres(self) -> FloatArray:
        """The middle of each box on every axis, as positions: for distances between weighted points."""
        every = np.arange(len(self.weights))
        boxes = zip(self.axes, self.low.T, self.high.T, strict=True)
        middles = [axis.place(low, high, every, np.zeros, centre=True).values for axis, low, high in boxes]
        return np.column_stack(middles).astype(np.float64)

    def leaves(self) -> pd.DataFrame:
        """Every box with its bounds and its noisy count, for pictures and for readers."""
        columns: dict[str, list[object]] = {}
        for i, axis in enumerate(self.axes):
            ranges = list(zip(self.low[:, i].tolist(), self.high[:, i].tolist(), strict=True))
            # Boxes share their ranges on an axis, so each range is put into words once.
            words = {ends: axis.describe(*ends) for ends in dict.fromkeys(ranges)}
            ends = [words[range_] for range_ in ranges]
            columns[f"{axis.column.name} from"] = [end[0] for end in ends]
            columns[f"{axis.column.name} to"] = [end[1] for end in ends]
        return pd.DataFrame(columns).assign(rows=self.weights)
