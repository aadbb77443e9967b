"""A trained generator, which is all that is released: weights, and rows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.dp_gan.network_shape import LOGIT_BOUND, SLOPE
from dpsynth_core.mechanisms.dp_gan.point_layout import PointLayout
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.encoding import codec_for

Layers: TypeAlias = tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]
"""Matrix and bias of each layer."""
CHUNK_ROWS = 50_000
_MIN_UNIFORM = 2.0**-54
"""Added to uniform numbers, so that none is zero."""


@dataclass(frozen=True, kw_only=True)
class Generator:
    """A fully connected network that turns random numbers into rows. Safe to show: nothing here is private."""

    layout: PointLayout
    layers: Layers

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        parts = [self._codes(min(CHUNK_ROWS, rows - start), noise) for start in range(0, rows, CHUNK_ROWS)]
        columns = {}
        for index, block in enumerate(self.layout.blocks):
            values = np.concatenate([values[:, block.start] for values, _ in parts])
            codes = np.concatenate([codes[:, index] for _, codes in parts])
            columns[block.column.name] = codec_for(block.column).restore(block.positions(values, codes))
        return pd.DataFrame(columns, copy=False)

    def _codes(self, rows: int, noise: Noise) -> tuple[FloatArray, IntArray]:
        """Values of numbers, and for each column its label or whether it is missing."""
        latent = self.layers[0][0].shape[0]
        raw = self._outputs(ndtri(noise.uniform(rows * latent).reshape(rows, latent) + _MIN_UNIFORM))
        # The largest of logits plus Gumbel noise is a draw from their softmax.
        uniform = noise.uniform(rows * self.layout.size).reshape(rows, -1) + _MIN_UNIFORM
        logits = LOGIT_BOUND * np.tanh(raw[:, : self.layout.size] / LOGIT_BOUND) - np.log(-np.log(uniform))
        codes = np.zeros((rows, len(self.layout.blocks)), dtype=np.int64)
        for index, block in enumerate(self.layout.blocks):
            if block.levels:
                codes[:, index] = np.argmax(logits[:, block.labels], axis=1)
        return np.tanh(raw), codes

    def _outputs(self, inputs: FloatArray) -> FloatArray:
        for matrix, bias in self.layers[:-1]:
            inputs = inputs @ matrix.astype(np.float64) + bias
            inputs = np.where(inputs > 0, inputs, SLOPE * inputs)
        matrix, bias = self.layers[-1]
        return np.asarray(inputs @ matrix.astype(np.float64) + bias, dtype=np.float64)
