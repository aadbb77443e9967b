"""Simulating the null through a histogram mechanism, as tables of counts, thousands at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.group_comparison import GroupComparison, group_labels
from dpsynth_core.inference.histograms import HISTOGRAMS, GroupIndices, HistogramLaw, law_of
from dpsynth_core.mechanisms.partition.grid import Grid
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.private_table import PrivateTable

CELLS_AT_ONCE = 200_000
"""Cells of all simulated tables that are held at a time."""


def null_statistics(
    law: HistogramLaw, released: FloatArray, indices: GroupIndices, simulations: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The statistic of each released table of counts, and those of simulated null releases for each."""
    observed = law.statistic(released, indices)
    simulated = np.empty((len(released), simulations))
    step = max(1, CELLS_AT_ONCE // (simulations * math.prod(law.shape)))
    for start in range(0, len(released), step):
        part = released[start : start + step]
        null = law.nuisance(part).draw(simulations, rng)
        simulated[start : start + step] = law.statistic(law.run(null, rng), indices).reshape(len(part), -1)
    return observed, simulated


@dataclass(frozen=True, kw_only=True)
class CountedRelease:
    """A release of a histogram mechanism over nothing but a group and a value, as counts."""

    law: HistogramLaw
    counts: FloatArray
    """Synthetic rows by group and value, missing levels included."""
    indices: GroupIndices

    @classmethod
    def of(
        cls, release: Release, comparisons: Sequence[GroupComparison], synthetic: pd.DataFrame
    ) -> CountedRelease | None:
        """None where counts do not suffice: more columns, or another mechanism."""
        mechanism, schema, budget = release.mechanism, release.schema, release.budget
        if budget is None or len(schema.columns) != 2 or not isinstance(mechanism, HISTOGRAMS):
            return None
        comparison = comparisons[0]
        value, group = comparison.value.name, comparison.group.name
        axes = {axis.column.name: axis for axis in Grid.of(schema, mechanism.bins).axes}
        if axes[group].slots != len(group_labels(comparison.group)):
            return None  # the grid does not keep the groups apart
        table = PrivateTable(synthetic, schema)
        shape = axes[group].size, axes[value].size
        index = np.ravel_multi_index((axes[group].locate(table), axes[value].locate(table)), shape)
        epsilon = budget.per_row(schema.rows_per_person).epsilon
        law = law_of(mechanism, shape, release.n, epsilon, group_first=schema.names[0] == group)
        if law is None:
            return None
        first, second = comparison.codes
        return cls(
            law=law,
            counts=np.bincount(index, minlength=math.prod(shape)).reshape(shape).astype(np.float64),
            indices=GroupIndices(first=first, second=second, values=axes[value].slots),
        )

    def statistics(self, simulations: int, rng: np.random.Generator) -> tuple[float, FloatArray]:
        observed, simulated = null_statistics(self.law, self.counts[None], self.indices, simulations, rng)
        return float(observed[0]), simulated[0]
