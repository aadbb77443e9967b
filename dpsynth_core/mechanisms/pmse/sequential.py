"""A sequential model with its parameters settled: makes any number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.pmse.drawing import draw_column, features_of
from dpsynth_core.mechanisms.pmse.parts import Part
from dpsynth_core.mechanisms.pmse.score import Randomness, Score
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.encoding import codec_for


@dataclass(frozen=True, kw_only=True)
class SequentialModel:
    """Columns one after the other, each from those before it."""

    parts: tuple[Part, ...]
    """What is public about each column."""
    natural: tuple[FloatArray, ...]
    """Natural parameters of each column."""
    centre: FloatArray
    """Of every feature before scaling."""
    spread: FloatArray
    """Likewise."""

    @classmethod
    def of(cls, score: Score) -> SequentialModel:
        """What a score has settled."""
        centre, spread = score.scales
        return cls(parts=score.parts, natural=tuple(score.natural), centre=centre.copy(), spread=spread.copy())

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """That many rows, with fresh randomness."""
        values = self.draw(Randomness.draw(self.parts, rows, noise))
        return pd.DataFrame(
            {
                part.column.name: codec_for(part.column).restore(part.positions(line))
                for part, line in zip(self.parts, values, strict=True)
            }
        )

    def draw(self, randomness: Randomness) -> FloatArray:
        """g(theta; z): one line of values for each column."""
        rows = randomness.z.shape[1]
        features = np.zeros((len(self.centre), rows))
        values, latent = np.empty((len(self.parts), rows)), np.empty(rows)
        for j, (part, given) in enumerate(zip(self.parts, self.natural, strict=True)):
            nullable = int(part.column.nullable)
            draw_column(
                part.form, part.levels, part.steps, nullable, part.before, given, features, randomness.z[j],
                randomness.gap[j], values[j], latent,
            )  # fmt: skip
            own = slice(part.before, part.before + part.features)
            features_of(part.form, part.levels, values[j], latent, self.centre[own], self.spread[own], features[own])
        return values


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Several models of the same table, each paid for: one for each synthetic data set (l in the paper)."""

    models: tuple[SequentialModel, ...]
    """One for each data set."""

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """That many rows, an equal share from each model."""
        shares = np.diff(np.linspace(0, rows, len(self.models) + 1).astype(np.int64))
        tables = [model.sample(int(size), noise) for model, size in zip(self.models, shares, strict=True) if size]
        return pd.concat(tables, ignore_index=True)

    def samples(self, rows: int, noise: Noise) -> list[pd.DataFrame]:
        """One table of that many rows from each model, for the combining rules of Raab et al. (2017)."""
        return [model.sample(rows, noise) for model in self.models]
