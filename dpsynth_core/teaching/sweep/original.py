"""The original that every synthetic table of a sweep is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.features import features, frequent_labels
from dpsynth_core.diagnostics.mmd.diagnostic import halves_distance, median_gamma
from dpsynth_core.diagnostics.mmd.distance import mmd
from dpsynth_core.diagnostics.pmse.logistic import logistic_pmse
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.teaching.sweep.cell_codes import CellCodes, cells_of, error_by_size, taken, variation
from dpsynth_core.teaching.sweep.slopes import Slopes

Key = TypeVar("Key", str, int)
LABELS = 20
"""Labels of a column that get a coefficient of their own in the regression."""
REGRESSION_ROWS, DISTANCE_ROWS = 20_000, 600
"""Most rows of either table behind pMSE and behind MMD."""
FRESH_SAMPLES = 10


@dataclass(frozen=True, kw_only=True)
class Original:
    """The original with everything that is the same for every comparison."""

    private: PrivateTable
    """Its rows."""
    cells: CellCodes
    """Where each of them falls."""
    kept: dict[str, list[int]]
    """Labels with a coefficient of their own."""
    rows: FloatArray
    """For pMSE, as coordinates."""
    points: FloatArray
    """For the distance, a random part of these."""
    gamma: float
    """Of the distance's kernel."""
    slopes: Slopes | None
    """Of the regression; None where there is nothing to regress on."""
    seed: int
    """Of what is drawn at random here."""

    @classmethod
    def of(cls, private: PrivateTable, seed: int) -> Original:
        """Everything that is the same for every comparison, worked out once."""
        rng = np.random.default_rng([seed, 1])
        kept = frequent_labels(private, LABELS)
        rows = _some(features(private, kept).values, REGRESSION_ROWS, rng)
        points = _some(rows, DISTANCE_ROWS, rng)
        gamma = median_gamma(points, rng) if len(points) > 1 else 1.0
        return cls(
            private=private, cells=cells_of(private), kept=kept, rows=rows, points=points, gamma=gamma,
            slopes=Slopes.of(private), seed=seed,
        )  # fmt: skip

    def measure(self, made: pd.DataFrame, rng: np.random.Generator) -> tuple[dict[str, float], dict[int, float]]:
        """Every aspect of a synthetic table that can be measured, and the error of groups by their size."""
        synthetic = PrivateTable(made, self.private.schema)
        cells = cells_of(synthetic)
        found = variation(self.cells, cells)
        other = features(synthetic, self.kept)
        coordinates = _some(other.values, REGRESSION_ROWS, rng)
        score = logistic_pmse(
            type(other)(values=self.rows, owner=other.owner, labels=other.labels),
            type(other)(values=coordinates, owner=other.owner, labels=other.labels),
        )
        if score is not None:
            found["pmse"] = score.ratio
        found["mmd"] = mmd(self.points, _some(coordinates, DISTANCE_ROWS, rng), self.gamma)
        if self.slopes is not None:
            found["slope"] = self.slopes.error(synthetic)
        return found, error_by_size(self.cells, cells)

    def references(self) -> tuple[dict[str, float], dict[int, float]]:
        """What a fresh sample would show: two samples, with replacement, of the original; or what theory says."""
        rng = np.random.default_rng([self.seed, 2])
        n = self.private.n
        draws = [[taken(self.cells, rng.integers(n, size=n)) for _ in range(2)] for _ in range(FRESH_SAMPLES)]
        found = _means([variation(*draw) for draw in draws])
        if len(self.points) > 3:
            found["mmd"] = halves_distance(self.points, len(self.points), self.gamma, rng)
        if self.slopes is not None:
            found["slope"] = float(np.mean([self.slopes.fresh(rng) for _ in range(FRESH_SAMPLES)]))
        groups = _means([error_by_size(*draw) for draw in draws])
        # A regression's ratio is one by definition; a valid test at the 5% level is wrong 5% of the time.
        return {**found, "pmse": 1.0, "type_one": 0.05}, dict(sorted(groups.items()))


def _means(draws: Sequence[Mapping[Key, float]]) -> dict[Key, float]:
    keys = {key for draw in draws for key in draw}
    return {key: float(np.mean([draw[key] for draw in draws if key in draw])) for key in keys}


def _some(points: FloatArray, most: int, rng: np.random.Generator) -> FloatArray:
    return points if len(points) <= most else points[rng.choice(len(points), most, replace=False)]
