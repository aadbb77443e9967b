"""A generator in JAX that is trained to have a given mean embedding: nothing but that mean is known of the rows.

JAX takes long to import, so this module is imported only where needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dpsynth_core.arrays import FloatArray
from dpsynth_core.jit import keep_programs
from dpsynth_core.mechanisms.dp_gan.generator import Layers
from dpsynth_core.mechanisms.dp_gan.network import (
    GUMBEL_BOUND,
    Coordinates,
    Weights,
    coordinates,
    forward,
    fresh_generator,
)
from dpsynth_core.mechanisms.dp_gan.network_shape import LOGIT_BOUND, TEMPERATURE, NetworkShape
from dpsynth_core.mechanisms.mean_embedding.domain_points import PointSpace

keep_programs(jax)

RULE = optax.scale_by_adam(b1=0.9, b2=0.99)
RATE = 0.01
FEW_NUMBERS = 3
"""Columns of numbers over which untrained rows may be spread widely."""
STEPS_AT_ONCE = 25
"""Between two reports of progress."""


class Matching:
    """A generator in training."""

    def __init__(
        self,
        space: PointSpace,
        omega: FloatArray,
        mean: FloatArray,
        *,
        label: int | None,
        batch: int,
        hidden: int,
        key: int,
    ) -> None:
        layout = space.layout
        self._shape = NetworkShape(width=layout.width, hidden=hidden, batch=batch, critic_steps=0, part=0)
        self._key = jax.random.key(key)
        self._weights = _gathered(fresh_generator(self._shape, jax.random.fold_in(self._key, 0)), space)
        self._memory = RULE.init(self._weights)
        wide = np.zeros((layout.width, omega.shape[1]), dtype=np.float32)
        wide[: space.size] = omega * space.scales[:, None]
        chosen = np.zeros((layout.width, len(mean)), dtype=np.float32)
        if label is not None:
            chosen[layout.blocks[label].labels] = np.eye(len(mean), dtype=np.float32)
        self._public: dict[str, Any] = {
            "omega": jnp.asarray(wide),
            "mean": jnp.asarray(mean, jnp.float32),
            "chosen": jnp.asarray(chosen),
            "groups": jnp.asarray(np.where(layout.groups < 0, layout.width, layout.groups)),
            "where": coordinates(layout),
        }
        self._labelled = label is not None

    def train(self, steps: int) -> Iterator[int]:
        """Take so many steps, and say after every few how many have been taken."""
        for start in range(0, steps, STEPS_AT_ONCE):
            taken = np.arange(start, min(start + STEPS_AT_ONCE, steps))
            # Steps shrink to a tenth in the end.
            rates = RATE * (1 - 0.9 * taken / steps)
            padded = np.zeros(STEPS_AT_ONCE, dtype=np.float32)
            padded[: len(taken)] = rates  # a rate of zero is no step
            self._weights, self._memory = _steps(
                self._weights,
                self._memory,
                jnp.asarray(padded),
                jax.random.fold_in(self._key, start + 1),
                shape=self._shape,
                labelled=self._labelled,
                **self._public,
            )
            yield int(taken[-1]) + 1

    def layers(self) -> Layers:
        """The weights, as they are released."""
        return tuple((np.asarray(matrix), np.asarray(bias)) for matrix, bias in self._weights)


def _gathered(weights: Weights, space: PointSpace) -> Weights:
    """An untrained generator whose rows lie close together where there are many columns.

    Spread over the whole domain they would be so far from each other, in kernel widths, that no step seems to help.
    """
    numbers = int(space.layout.numbers.sum())
    shrink = jnp.where(jnp.asarray(space.layout.numbers), min(1.0, math.sqrt(FEW_NUMBERS / max(1, numbers))), 1.0)
    last, bias = weights[-1]
    return [*weights[:-1], (last * shrink, bias)]


def generated(
    weights: Weights, key: jax.Array, where: Coordinates, *, shape: NetworkShape, groups: jax.Array
) -> jax.Array:
    """Rows as the generator will draw them: numbers through tanh, labels as one choice each.

    The choice is a hard one, as in the released rows; its gradient is that of the soft one (Jang et al. 2017).
    """
    own, choice = jax.random.split(key)
    raw = forward(weights, jax.random.normal(own, (shape.batch, shape.latent)))
    gumbel = jnp.minimum(jax.random.gumbel(choice, raw.shape), GUMBEL_BOUND)
    logits = LOGIT_BOUND * jnp.tanh(raw / LOGIT_BOUND) + gumbel
    share = jnp.exp(logits / TEMPERATURE) * where.labels
    soft = share / (share @ where.alike + (1 - where.labels))
    largest = jax.ops.segment_max(logits.T, groups, num_segments=shape.width + 1).T
    hard = (logits >= largest[:, groups]) * where.labels
    labels = soft + jax.lax.stop_gradient(hard - soft)
    present = 1 - where.gated + where.gated * labels[:, where.gates]
    return labels + jnp.tanh(raw) * where.numbers * present


@partial(jax.jit, static_argnames=("shape", "labelled"))
def _steps(
    weights: Weights,
    memory: Any,
    rates: jax.Array,
    key: jax.Array,
    *,
    shape: NetworkShape,
    labelled: bool,
    omega: jax.Array,
    mean: jax.Array,
    chosen: jax.Array,
    groups: jax.Array,
    where: Coordinates,
) -> tuple[Weights, Any]:
    def loss(weights: Weights, key: jax.Array) -> jax.Array:
        rows = generated(weights, key, where, shape=shape, groups=groups)
        angles = rows @ omega
        features = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1) / jnp.sqrt(omega.shape[1])
        labels = rows @ chosen if labelled else jnp.ones((shape.batch, 1))
        # Harder et al., Eq. 6: the squared distance between the generated rows' mean and the noisy one.
        return jnp.sum((labels.T @ features / shape.batch - mean) ** 2)

    def step(state: Any, each: Any) -> Any:
        weights, memory = state
        rate, key = each
        change, moved = RULE.update(jax.grad(loss)(weights, key), memory)
        change = jax.tree.map(lambda part: -rate * part, change)
        return (optax.apply_updates(weights, change), moved), None

    (weights, memory), _ = jax.lax.scan(step, (weights, memory), (rates, jax.random.split(key, len(rates))))
    return weights, memory
