"""The original that every synthetic table of a sweep is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.features import features, frequent_labels, uniform_rows
from dpsynth_core.diagnostics.mmd.diagnostic import halves_distance, median_gamma
from dpsynth_core.diagnostics.mmd.distance import mmd
from dpsynth_core.diagnostics.pmse.logistic import logistic_pmse
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.teaching.sweep.distances import CellCodes, Slopes, error_by_size, variation

Key = TypeVar("Key", str, int)
LABELS = 20
"""Labels of a column that get a coefficient of their own in the regression."""
PMSE_ROWS, MMD_ROWS = 20_000, 600
"""Maximum rows of either table behind pMSE and MMD."""
FRESH_SAMPLES = 10


@dataclass(frozen=True, kw_only=True)
class Original:
    """The original, with everything that is the same for every comparison."""

    private: PrivateTable
    cells: CellCodes
    labels: dict[str, list[int]]
    """Labels with a coefficient of their own, by column."""
    pmse_rows: FloatArray
    mmd_rows: FloatArray
    gamma: float
    """Of the kernel of MMD."""
    noise: float
    """MMD between the original and rows drawn uniformly from the declared domain."""
    slopes: Slopes | None
    """None if there is nothing to regress on."""
    seed: int

    @classmethod
    def of(cls, private: PrivateTable, seed: int) -> Original:
        rng = np.random.default_rng([seed, 1])
        labels = frequent_labels(private, LABELS)
        pmse_rows = _sample(features(private, labels).values, PMSE_ROWS, rng)
        mmd_rows = _sample(pmse_rows, MMD_ROWS, rng)
        gamma = median_gamma(mmd_rows, rng) if len(mmd_rows) > 1 else 1.0
        noise_rows = features(uniform_rows(private, MMD_ROWS, rng), labels).values
        return cls(
            private=private,
            cells=CellCodes.of(private),
            labels=labels,
            pmse_rows=pmse_rows,
            mmd_rows=mmd_rows,
            gamma=gamma,
            noise=mmd(mmd_rows, noise_rows, gamma),
            slopes=Slopes.of(private),
            seed=seed,
        )

    def measure(self, made: pd.DataFrame, rng: np.random.Generator) -> tuple[dict[str, float], dict[int, float]]:
        """Every aspect of a synthetic table that can be measured, and the error of groups by their size."""
        synthetic = PrivateTable(made, self.private.schema)
        cells = CellCodes.of(synthetic)
        measured = variation(self.cells, cells)
        other = features(synthetic, self.labels)
        rows = _sample(other.values, PMSE_ROWS, rng)
        score = logistic_pmse(replace(other, values=self.pmse_rows), replace(other, values=rows))
        if score is not None:
            measured["pmse"] = score.beyond_chance
        if self.noise:
            measured["mmd"] = mmd(self.mmd_rows, _sample(rows, MMD_ROWS, rng), self.gamma) / self.noise
        if self.slopes is not None:
            measured["slope"] = self.slopes.error(synthetic)
        return measured, error_by_size(self.cells, cells)

    def references(self) -> tuple[dict[str, float], dict[int, float]]:
        """What a fresh sample would show: from pairs of samples with replacement of the original, or by theory."""
        rng = np.random.default_rng([self.seed, 2])
        n = self.private.n
        pairs = [[self.cells.take(rng.integers(n, size=n)) for _ in range(2)] for _ in range(FRESH_SAMPLES)]
        expected = _means([variation(*pair) for pair in pairs])
        if len(self.mmd_rows) > 3 and self.noise:
            expected["mmd"] = halves_distance(self.mmd_rows, len(self.mmd_rows), self.gamma, rng) / self.noise
        if self.slopes is not None:
            expected["slope"] = float(np.mean([self.slopes.fresh_error(rng) for _ in range(FRESH_SAMPLES)]))
        groups = _means([error_by_size(*pair) for pair in pairs])
        # Nothing is beyond chance in a fresh sample; a valid test at the 5% level is wrong 5% of the time.
        return {**expected, "pmse": 0.0, "type_one": 0.05}, dict(sorted(groups.items()))


def _means(draws: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    keys = dict.fromkeys(key for draw in draws for key in draw)
    return {key: float(np.mean([draw[key] for draw in draws if key in draw])) for key in keys}


def _sample(rows: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    return rows if len(rows) <= size else rows[rng.choice(len(rows), size, replace=False)]
