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
from dpsynth_core.diagnostics.mmd.random_features import characteristic, draw_frequencies
from dpsynth_core.diagnostics.pmse.logistic import logistic_pmse
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.teaching.sweep.distances import CellCodes, Slopes, error_by_size, variation

Key = TypeVar("Key", str, int)
LABELS = 20
"""Labels of a column that get a coefficient of their own in the regression."""
MAX_ROWS = 20_000
"""Of either table behind pMSE and MMD; the distance that chance alone gives falls with them."""
MMD_FREQUENCIES = 256
"""Random features behind MMD, the same ones for every table, so that their error moves all marks together."""
FRESH_SAMPLES = 10


@dataclass(frozen=True, kw_only=True)
class Original:
    """The original, with everything that is the same for every comparison."""

    private: PrivateTable
    cells: CellCodes
    labels: dict[str, list[int]]
    """Labels with a coefficient of their own, by column."""
    rows: FloatArray
    """As points, for pMSE and MMD."""
    gamma: float
    """Of the kernel of MMD."""
    frequencies: FloatArray
    """Of its random features."""
    noise: float
    """MMD between the original and rows drawn uniformly from the declared domain."""
    slopes: Slopes | None
    """None if there is nothing to regress on."""
    seed: int

    @classmethod
    def of(cls, private: PrivateTable, seed: int) -> Original:
        rng = np.random.default_rng([seed, 1])
        labels = frequent_labels(private, LABELS)
        rows = _sample(features(private, labels).values, MAX_ROWS, rng)
        gamma = median_gamma(rows, rng) if len(rows) > 1 else 1.0
        noise_rows = features(uniform_rows(private, len(rows), rng), labels).values
        frequencies = draw_frequencies(rows.shape[1], MMD_FREQUENCIES, gamma, rng)
        return cls(
            private=private,
            cells=CellCodes.of(private),
            labels=labels,
            rows=rows,
            gamma=gamma,
            frequencies=frequencies,
            noise=_distance(rows, noise_rows, frequencies),
            slopes=Slopes.of(private),
            seed=seed,
        )

    def measure(self, made: pd.DataFrame, rng: np.random.Generator) -> tuple[dict[str, float], dict[int, float]]:
        """Every aspect of a synthetic table that can be measured, and the error of groups by their size."""
        synthetic = PrivateTable(made, self.private.schema)
        cells = CellCodes.of(synthetic)
        measured = variation(self.cells, cells)
        other = features(synthetic, self.labels)
        rows = _sample(other.values, MAX_ROWS, rng)
        score = logistic_pmse(replace(other, values=self.rows), replace(other, values=rows))
        if score is not None:
            measured["pmse"] = score.beyond_chance
        if self.noise:
            measured["mmd"] = _distance(self.rows, rows, self.frequencies) / self.noise
        if self.slopes is not None:
            measured["slope"] = self.slopes.error(synthetic)
        return measured, error_by_size(self.cells, cells)

    def references(self) -> tuple[dict[str, float], dict[int, float]]:
        """What a fresh sample would show: from pairs of samples with replacement of the original, or by theory."""
        rng = np.random.default_rng([self.seed, 2])
        n = self.private.n
        pairs = [[self.cells.take(rng.integers(n, size=n)) for _ in range(2)] for _ in range(FRESH_SAMPLES)]
        expected = _means([variation(*pair) for pair in pairs])
        if len(self.rows) > 3 and self.noise:
            expected["mmd"] = halves_distance(self.rows, len(self.rows), self.gamma, rng) / self.noise
        if self.slopes is not None:
            expected["slope"] = float(np.mean([self.slopes.fresh_error(rng) for _ in range(FRESH_SAMPLES)]))
        groups = _means([error_by_size(*pair) for pair in pairs])
        # Nothing is beyond chance in a fresh sample; a valid test at the 5% level is wrong 5% of the time.
        return {**expected, "pmse": 0.0, "type_one": 0.05}, dict(sorted(groups.items()))


def _distance(x: FloatArray, y: FloatArray, frequencies: FloatArray) -> float:
    """MMD by random features."""
    origin = x.mean(axis=0)
    gap = characteristic(x - origin, frequencies) - characteristic(y - origin, frequencies)
    return float(np.sqrt((gap**2).sum(axis=0).mean()))


def _means(draws: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    keys = dict.fromkeys(key for draw in draws for key in draw)
    return {key: float(np.mean([draw[key] for draw in draws if key in draw])) for key in keys}


def _sample(rows: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    return rows if len(rows) <= size else rows[rng.choice(len(rows), size, replace=False)]
