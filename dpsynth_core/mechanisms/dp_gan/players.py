"""The generator and its critics during one training, and their moves in JAX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.dp_gan import network
from dpsynth_core.mechanisms.dp_gan.generator import Layers
from dpsynth_core.mechanisms.dp_gan.network_shape import NetworkShape
from dpsynth_core.mechanisms.dp_gan.point_layout import PointLayout

CRITICS_AT_ONCE = 4
"""Critics that are trained together; always so many, so that one compiled function serves every schedule."""


class Players:
    """A generator in training. Critics have no memory: each round trains new ones."""

    def __init__(self, layout: PointLayout, shape: NetworkShape, *, rounds: int, noise_std: float, key: int) -> None:
        self._shape, self._rounds = shape, rounds
        public = {"shape": shape, "where": network.coordinates(layout)}
        self._gradients, self._improved = partial(network.gradients, **public), partial(network.improved, **public)
        self._key = jax.random.key(key)
        self._weights = network.fresh_generator(shape, jax.random.fold_in(self._key, 0))
        self._memory = network.RULE.init(self._weights)
        self._mean = self._weights
        self._rate = network.learning_rate(noise_std)

    def _keys(self, turn: int) -> tuple[jax.Array, jax.Array]:
        critics, batch = jax.random.split(jax.random.fold_in(self._key, turn + 1))
        return critics, batch

    def compile(self) -> None:
        """Have both moves compiled, on rows that belong to nobody."""
        nobody = np.zeros((1, self._shape.width), dtype=np.float32)
        self.gradients(0, [nobody])
        step = jnp.zeros((self._shape.batch, self._shape.width))
        self._improved(self._weights, self._memory, step, self._keys(0)[1], self._rate)

    def gradients(self, turn: int, parts: Sequence[NDArray[np.float32]]) -> tuple[NDArray[Any], float]:
        """Each new critic's gradients at the round's generated rows, and the mean gap that the critics see: private."""
        critics, batch = self._keys(turn)
        started = []
        for start in range(0, len(parts), CRITICS_AT_ONCE):
            some = parts[start : start + CRITICS_AT_ONCE]
            rows = np.zeros((CRITICS_AT_ONCE, self._shape.part, self._shape.width), dtype=np.float32)
            sizes = np.ones(CRITICS_AT_ONCE, dtype=np.int32)
            for index, part in enumerate(some):
                rows[index, : len(part)], sizes[index] = part, len(part)
            started.append((len(some), *self._gradients(self._weights, rows, sizes, critics, batch)))
        # Collected once all of them are started: JAX trains them side by side where there are cores.
        gradients = np.concatenate([np.asarray(slopes)[:some] for some, slopes, _ in started])
        gaps = np.concatenate([np.asarray(gap)[:some] for some, _, gap in started])
        return gradients, float(gaps.mean())

    def learn(self, turn: int, gradient: FloatArray) -> float:
        """One step of the generator along a sanitised gradient; how far its weights moved."""
        wide = np.zeros((self._shape.batch, self._shape.width), dtype=np.float32)
        wide[:, : gradient.shape[1]] = gradient
        # Steps shrink to a tenth over the rounds, and the weights of the last half are averaged: both calm the noise.
        rate = self._rate * (1 - 0.9 * turn / self._rounds)
        batch = self._keys(turn)[1]
        self._weights, self._memory, moved = self._improved(self._weights, self._memory, wide, batch, rate)
        since = turn - self._rounds // 2
        self._mean = network.averaged(self._mean, self._weights, 1 / max(1, since + 1))
        return float(moved)

    def layers(self) -> Layers:
        """The averaged weights, as they are released."""
        return tuple((np.asarray(matrix), np.asarray(bias)) for matrix, bias in self._mean)
