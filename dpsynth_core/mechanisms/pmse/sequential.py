"""A sequential model with its parameters settled: makes any number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.pmse.column_models import ColumnModels
from dpsynth_core.mechanisms.pmse.drawing import draw_column, features_of
from dpsynth_core.mechanisms.pmse.objective import PMSEObjective, Randomness
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.encoding import codec_for


@dataclass(frozen=True, kw_only=True)
class SequentialModel:
    """Columns one after the other, each from those before it."""

    models: ColumnModels
    natural: tuple[FloatArray, ...]
    centre: FloatArray
    spread: FloatArray
    """Centre and spread of every feature before scaling."""

    @classmethod
    def of(cls, objective: PMSEObjective) -> SequentialModel:
        centre, spread = (each.copy() for each in objective.scales)
        return cls(models=objective.models, natural=tuple(objective.natural), centre=centre, spread=spread)

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """That many rows, with fresh randomness."""
        lines = zip(self.models, self.draw(Randomness.draw(self.models, rows, noise)), strict=True)
        return pd.DataFrame({m.column.name: codec_for(m.column).restore(m.positions(line)) for m, line in lines})

    def draw(self, randomness: Randomness) -> FloatArray:
        """g(theta; z): one line of values for each column."""
        rows = randomness.z.shape[1]
        features = np.zeros((len(self.centre), rows))
        values, latent = np.empty((len(self.models), rows)), np.empty(rows)
        for j, (model, given) in enumerate(zip(self.models, self.natural, strict=True)):
            layout = np.array(model.layout)
            draw_column(layout, given, features, randomness.z[j], randomness.gap[j], values[j], latent)
            own = slice(model.before, model.before + model.features)
            features_of(layout, values[j], latent, self.centre[own], self.spread[own], features[own])
        return values


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Several models of the same table, each paid for: one for each synthetic data set (l in the paper)."""

    models: tuple[SequentialModel, ...]

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """That many rows, an equal share from each model."""
        shares = np.diff(np.linspace(0, rows, len(self.models) + 1).astype(np.int64))
        tables = [model.sample(int(size), noise) for model, size in zip(self.models, shares, strict=True) if size]
        return pd.concat(tables, ignore_index=True)

    def samples(self, rows: int, noise: Noise) -> list[pd.DataFrame]:
        """One table of that many rows from each model, for the combining rules of Raab et al. (2017)."""
        return [model.sample(rows, noise) for model in self.models]
