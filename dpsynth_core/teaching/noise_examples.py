"""Noise made visible: one histogram and one tree, as often as you like.

For teaching, on public or simulated tables only: true counts are shown with the noisy ones, and nothing is paid for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from dpsynth_core.arrays import IntArray
from dpsynth_core.diagnostics.total_variation import coarse
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

HISTOGRAM_CELLS = 30


@dataclass(frozen=True, kw_only=True)
class NoisyHistogram:
    column: Column
    """With the cells that were counted."""
    true: IntArray
    """Rows in each cell, missing ones last."""
    noisy: IntArray
    """The same plus noise; counts below zero are possible."""


def noisy_histogram(table: pd.DataFrame, schema: Schema, name: str, *, epsilon: Amount, seed: int) -> NoisyHistogram:
    """Rows in every cell of a column, and the same with discrete Laplace noise (scale 2 / epsilon at one row each).

    Example:
        >>> from dpsynth_core.table.examples import EXAMPLES
        >>> example = EXAMPLES["two_groups_signal"]
        >>> drawn = noisy_histogram(example.load(), example.schema, "group", epsilon=1, seed=1)
        >>> int(drawn.true.sum())
        500
    """
    column = coarse(schema[name], HISTOGRAM_CELLS)
    bins = {name: column.levels} if column.is_numeric else None
    true = PrivateTable(table, schema.select([name])).counts([name], bins=bins).dense()
    budget = Budget.of(epsilon).per_row(schema.rows_per_person)
    noise = SeededNoise(budget, seed)
    noisy = noise.laplace(true, sensitivity=HISTOGRAM_SENSITIVITY, epsilon=budget.epsilon, label="histogram")
    return NoisyHistogram(column=column, true=true, noisy=noisy)


def grown_tree(
    table: pd.DataFrame, schema: Schema, names: Sequence[str], *, epsilon: Amount, seed: int
) -> PartitionModel:
    """The boxes that a private KD tree makes of a few columns."""
    chosen = schema.select(names)
    private = PrivateTable(table[list(names)], chosen)
    release = synthesize(private, KDTree.suggest(chosen, private.n, epsilon), epsilon=epsilon, seed=seed)
    if not isinstance(release.model, PartitionModel):
        raise DPSynthError("This tree has no boxes to draw.")
    return release.model
