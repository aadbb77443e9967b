"""The two networks in JAX: a generator of rows, and a critic that tells generated rows from those of one part.

Nothing here keeps a state. A critic starts anew in every round, from weights that do not depend on the data, so the
gradients it hands back are a function of its own rows, of the generator and of public randomness, and of nothing else:
``docs/proofs.md``, section 20, depends on that. JAX takes long to import, so this module is imported only where needed.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dpsynth_core.jit import keep_programs
from dpsynth_core.mechanisms.dp_gan.network_shape import LOGIT_BOUND, SLOPE, TEMPERATURE, NetworkShape
from dpsynth_core.mechanisms.dp_gan.point_layout import PointLayout

keep_programs(jax)

Weights: TypeAlias = "list[tuple[jax.Array, jax.Array]]"
GUMBEL_BOUND = 12.0
PENALTY = 10.0
"""Weight of the gradient penalty (Gulrajani et al. 2017): it keeps the critic's gradients near norm one, where they are
clipped."""
CRITIC_RULE = optax.adam(3e-3, b1=0.5, b2=0.9)
RULE = optax.scale_by_adam(b1=0.5, b2=0.99)
"""The generator's; its rate changes from round to round."""
MAX_RATE, UNIT_NOISE_RATE = 0.01, 0.002
"""Learning rate of the generator: at most, and where noise on a mean gradient is as large as the gradient may be."""


class Coordinates(NamedTuple):
    """A layout as arrays, so that layouts of equal width share compiled code."""

    numbers: jax.Array
    """1 for values of numbers."""
    labels: jax.Array
    """1 for shares of labels."""
    alike: jax.Array
    """1 where two coordinates are labels of the same column."""
    gates: jax.Array
    """For each coordinate, the one that says whether it is present."""
    gated: jax.Array
    """1 where there is one."""


def coordinates(layout: PointLayout) -> Coordinates:
    groups, gates = layout.groups, layout.gates
    labels = groups >= 0
    return Coordinates(
        numbers=jnp.asarray(layout.numbers, jnp.float32),
        labels=jnp.asarray(labels, jnp.float32),
        alike=jnp.asarray((groups[:, None] == groups[None, :]) & labels[:, None], jnp.float32),
        gates=jnp.asarray(np.maximum(gates, 0)),
        gated=jnp.asarray(gates >= 0, jnp.float32),
    )


def fresh(key: jax.Array, sizes: tuple[int, ...]) -> Weights:
    """Weights that know nothing (He et al. 2015)."""
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(k, (a, b)) * jnp.sqrt(2.0 / a), jnp.zeros(b))
        for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]


def fresh_generator(shape: NetworkShape, key: jax.Array) -> Weights:
    """An untrained generator: its last layer is small, so that all labels are about equally likely."""
    weights = fresh(key, shape.generator)
    last, bias = weights[-1]
    return [*weights[:-1], (last * 0.3, bias)]


def forward(weights: Weights, inputs: jax.Array) -> jax.Array:
    for matrix, bias in weights[:-1]:
        inputs = jax.nn.leaky_relu(inputs @ matrix + bias, SLOPE)
    matrix, bias = weights[-1]
    return inputs @ matrix + bias


def emit(weights: Weights, key: jax.Array, rows: int, shape: NetworkShape, where: Coordinates) -> jax.Array:
    """Generated rows: numbers through tanh, labels as a soft choice (Gumbel-softmax; Jang et al. 2017)."""
    own, choice = jax.random.split(key)
    raw = forward(weights, jax.random.normal(own, (rows, shape.latent)))
    gumbel = jnp.minimum(jax.random.gumbel(choice, raw.shape), GUMBEL_BOUND)
    logits = LOGIT_BOUND * jnp.tanh(raw / LOGIT_BOUND)  # bounded, so that no exponential overflows
    share = jnp.exp((logits + gumbel) / TEMPERATURE) * where.labels
    soft = share / (share @ where.alike + (1 - where.labels))
    present = 1 - where.gated + where.gated * soft[:, where.gates]
    return soft + jnp.tanh(raw) * where.numbers * present


def slopes(weights: Weights, rows: jax.Array) -> jax.Array:
    """The critic's gradient at each row, layer by layer: the same as differentiating, and much quicker to compile.

    Differentiated again for the penalty, the activations' slopes count as constant, which they are almost everywhere.
    """
    signs = []
    for matrix, bias in weights[:-1]:
        rows = rows @ matrix + bias
        signs.append(jnp.where(rows > 0, 1.0, SLOPE))
        rows = rows * signs[-1]
    back = jnp.broadcast_to(weights[-1][0][:, 0], signs[-1].shape)
    for (matrix, _), sign in zip(weights[-2::-1], signs[::-1], strict=True):
        back = (back * sign) @ matrix.T
    return back


def critic_loss(weights: Weights, real: jax.Array, fake: jax.Array, mix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Wasserstein loss with gradient penalty, and the gap it leaves (Gulrajani et al. 2017, Eq. 3)."""
    gap = forward(weights, real).mean() - forward(weights, fake).mean()
    norms = jnp.sqrt(jnp.sum(slopes(weights, mix * real + (1 - mix) * fake) ** 2, axis=1) + 1e-12)
    return PENALTY * jnp.mean((norms - 1) ** 2) - gap, gap


def trained(
    weights: Weights, rows: jax.Array, size: jax.Array, key: jax.Array, *, shape: NetworkShape, where: Coordinates
) -> tuple[Weights, jax.Array]:
    """A new critic that has learned to tell the first ``size`` rows from generated ones, and the gap it found."""
    start, pool, mixing, picking = jax.random.split(key, 4)
    steps, batch = shape.critic_steps, shape.critic_batch
    fakes = emit(weights, pool, steps * batch, shape, where).reshape(steps, batch, shape.width)
    mixes = jax.random.uniform(mixing, (steps, batch, 1))
    picks = jnp.floor(jax.random.uniform(picking, (steps, batch)) * size).astype(jnp.int32)
    critic = fresh(start, shape.critic)

    def step(state: Any, each: Any) -> Any:
        critic, memory = state
        pick, fake, mix = each
        (_, gap), slope = jax.value_and_grad(critic_loss, has_aux=True)(critic, rows[pick], fake, mix)
        change, memory = CRITIC_RULE.update(slope, memory)
        return (optax.apply_updates(critic, change), memory), gap

    (critic, _), gaps = jax.lax.scan(step, (critic, CRITIC_RULE.init(critic)), (picks, fakes, mixes))
    return critic, gaps[-1]


@partial(jax.jit, static_argnames="shape")
def gradients(
    weights: Weights,
    rows: jax.Array,
    sizes: jax.Array,
    key: jax.Array,
    batch_key: jax.Array,
    *,
    shape: NetworkShape,
    where: Coordinates,
) -> tuple[jax.Array, jax.Array]:
    """For each part a new critic's gradient at each generated row, one by one; and the gap that it found.

    Parts are padded to a common number of rows; ``sizes`` says how many each has. Randomness is public: all critics of
    a round start alike, from ``key``, and the generator's step will use the same ``batch_key``.
    """
    batch = emit(weights, batch_key, shape.batch, shape, where)

    def one(part: jax.Array, size: jax.Array) -> tuple[jax.Array, jax.Array]:
        critic, gap = trained(weights, part, size, key, shape=shape, where=where)
        return jax.vmap(jax.grad(lambda row: forward(critic, row)[0]))(batch), gap

    result: tuple[jax.Array, jax.Array] = jax.vmap(one)(rows, sizes)
    return result


def learning_rate(noise_std: float) -> float:
    """The more noise, the shorter the steps."""
    return float(min(MAX_RATE, UNIT_NOISE_RATE / noise_std))


@partial(jax.jit, static_argnames="shape")
def improved(
    weights: Weights,
    memory: Any,
    noisy: jax.Array,
    batch_key: jax.Array,
    rate: float,
    *,
    shape: NetworkShape,
    where: Coordinates,
) -> tuple[Weights, Any, jax.Array]:
    """One step of the generator along the sanitised gradient: nothing else about the data enters."""

    def loss(weights: Weights) -> jax.Array:
        return -jnp.mean(jnp.sum(noisy * emit(weights, batch_key, shape.batch, shape, where), axis=1))

    change, memory = RULE.update(jax.grad(loss)(weights), memory)
    change = jax.tree.map(lambda each: -rate * each, change)
    return optax.apply_updates(weights, change), memory, optax.tree.norm(change)


@jax.jit
def averaged(mean: Weights, weights: Weights, share: float) -> Weights:
    """The running mean of weights; a share of one starts anew."""
    mixed: Weights = jax.tree.map(lambda old, new: old + share * (new - old), mean, weights)
    return mixed
