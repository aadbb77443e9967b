"""Whether draws have nothing to do with each other: within a call, between calls, stages and runs, drawn ahead or not.

Each sampler draws several vectors that ought to be independent. Nothing may occur twice (a stretch of equal numbers
that chance would produce once in 10^12 audits), and vectors may not be correlated, straight, backwards or shifted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter
from scipy import stats

from dpsynth_core.arrays import FloatArray
from dpsynth_core.audit.checks import AuditCheck, Size, audit_check, seed_for
from dpsynth_core.audit.noise_law import PLENTY, SOURCES
from dpsynth_core.audit.subject import Source
from dpsynth_core.privacy.accounting import GaussianDraw
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise, SecureNoise
from dpsynth_core.privacy.primitives import Gaussian
from dpsynth_core.privacy.samplers import FLOATS_PER_THREAD, VALUES_PER_THREAD

WINDOW = 12
"""So many equal numbers in a row are no chance: each is one of hundreds."""
LAGS = (0, 1, 2, 7)
SCALE = 150.0
EPSILON = 1
KEYED_SOURCES = 64
SENSITIVITY = int(SCALE)
LENGTH = max(VALUES_PER_THREAD, FLOATS_PER_THREAD // 16)
"""Of a vector: enough for the threads and the drawing ahead that large tables have."""


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """Draws that ought to be independent of each other."""

    name: str
    draw: Callable[[Noise, int], FloatArray]
    """One vector."""
    repeats: bool = True
    """Whether equal stretches can be looked for: not where few different numbers are drawn."""


def _laplace(noise: Noise, size: int) -> FloatArray:
    zeros = np.zeros(size, dtype=np.int64)
    return noise.laplace(zeros, sensitivity=SENSITIVITY, epsilon=EPSILON, label="joint").astype(np.float64)


def _prefetched_laplace(noise: Noise, size: int) -> FloatArray:
    noise.prefetch_laplace(size + 7, sensitivity=SENSITIVITY, epsilon=EPSILON)
    return _laplace(noise, size)


def _gaussian(noise: Noise, size: int) -> FloatArray:
    charge = noise.open_charge("joint", sensitivity=1, epsilon=EPSILON)
    draw = GaussianDraw(scale=SCALE, values=1)
    call = Gaussian(values=np.zeros(size, dtype=np.int64), draw=draw, charge=charge)
    return np.asarray(noise._perform(call), dtype=np.float64)


def _sparse(noise: Noise, size: int) -> FloatArray:
    keys, values = np.arange(size), np.full(size, 1)
    drawn = noise.sparse_laplace(
        keys,
        values,
        zeros=0,
        threshold=1,
        pick=lambda few: np.zeros(few, dtype=np.int64),
        sensitivity=SENSITIVITY,
        epsilon=EPSILON,
        label="joint",
    )
    return drawn.values.astype(np.float64)


def _decisions(noise: Noise, size: int) -> FloatArray:
    charge = noise.open_charge("joint", sensitivity=1, epsilon=EPSILON)
    passed, _ = noise.decisions(
        np.arange(size),
        np.zeros(size, dtype=np.int64),
        zeros=0,
        threshold=1,
        pick=lambda few: np.zeros(few, dtype=np.int64),
        scale=SCALE,
        charge=charge,
    )
    return passed.astype(np.float64)


def _prefetched_uniform(noise: Noise, size: int) -> FloatArray:
    if size >= FLOATS_PER_THREAD // 16:  # arrays of this size are what a large table's rows are drawn from
        size = FLOATS_PER_THREAD
    noise.prefetch_uniform(size, 2)
    return noise.uniform(size)


def _selections(noise: Noise, size: int) -> FloatArray:
    scores = np.zeros(512)
    few = max(40, size // 40)
    picks = [noise.exponential(scores, sensitivity=1, epsilon=EPSILON, label="joint") for _ in range(few)]
    return np.array(picks, dtype=np.float64)


VECTORS = (
    Vectors(name="laplace", draw=_laplace),
    Vectors(name="laplace drawn ahead", draw=_prefetched_laplace),
    Vectors(name="gaussian", draw=_gaussian),
    Vectors(name="sparse_laplace", draw=_sparse),
    Vectors(name="decisions", draw=_decisions, repeats=False),
    Vectors(name="uniform", draw=lambda noise, size: noise.uniform(size)),
    Vectors(name="uniform drawn ahead", draw=_prefetched_uniform),
    Vectors(name="integers", draw=lambda noise, size: noise.integers(997, size).astype(np.float64)),
    Vectors(name="distinct", draw=lambda noise, size: noise.distinct(50 * size, size).astype(np.float64)),
    Vectors(name="exponential", draw=_selections),
)


def joint_checks(
    size: Size, root: int, sources: dict[str, Source] | None = None, *, subject: str = "samplers"
) -> Iterator[AuditCheck]:
    """Three vectors of one run and one of another, of every sampler of every source."""
    length = min(LENGTH, size.draws)
    for source_name, source in (sources or SOURCES).items():
        for kind in VECTORS:
            seeds = (seed_for(root, "joint", source_name, kind.name, run) for run in range(2))
            one, other = (source(PLENTY, seed) for seed in seeds)
            drawn = [kind.draw(noise, length) for noise in (one, one, one, other)]
            problem = (kind.repeats and repeated(drawn)) or correlated(drawn, size.level)
            good, detail = not problem, problem or f"{sum(map(len, drawn)):,} draws"
            yield audit_check("joint law", subject, f"{kind.name}, {source_name}", good, detail)
        # Stages of one run ask for different kinds of noise, one after the other and in turn.
        run = source(PLENTY, seed_for(root, "joint", source_name, "stages"))
        stages = [kind.draw(run, length) for kind in (*VECTORS, *VECTORS) if kind.repeats]
        problem = repeated(stages) or correlated(stages, size.level)
        detail = problem or f"{len(stages)} stages, {sum(map(len, stages)):,} draws"
        yield audit_check("joint law", subject, f"stages of one run, {source_name}", not problem, detail)


def secrecy_checks(
    source: Callable[[Budget], SecureNoise] = SecureNoise, *, subject: str = "samplers"
) -> Iterator[AuditCheck]:
    """Whether whoever knows all that a program can know could guess the keys of release noise.

    Every generator of every source must be a cryptographic one with a key of its own, of which every bit takes both
    values, whatever the process's own streams were seeded with. That a bit does not change in so many sources has a
    probability of 2^-63.
    """
    generators = []
    for _ in range(KEYED_SOURCES):
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002  keys from the process's own streams must show
        noise = source(PLENTY)
        noise.prefetch_uniform(FLOATS_PER_THREAD, 1)
        ahead = [] if noise._uniforms is None else [noise._uniforms._generator]
        generators.append([*noise._generators, *ahead])
    kinds = {type(each.bit_generator).__name__ for own in generators for each in own}
    good = kinds == {AESCounter.__name__}
    yield audit_check("joint law", subject, "generators of releases", good, ", ".join(sorted(kinds)))
    keys = np.array([[each.bit_generator.state["s"]["seed"][:2] for each in own] for own in generators])
    bits = np.unpackbits(keys.astype("<u8").view(np.uint8), axis=-1)
    # Between sources for every generator of a source, and between the generators of a source.
    stuck = int((bits.min(axis=0) == bits.max(axis=0)).sum())
    alike = sum(len({key.tobytes() for key in own}) < len(own) for own in keys)
    problem = f"{stuck} bits of a key never change" if stuck else f"{alike} sources use a key twice" if alike else ""
    detail = problem or f"{bits.shape[-1]} bits in each of {keys.shape[0] * keys.shape[1]} keys"
    yield audit_check("joint law", subject, "keys of releases", not problem, detail)


def repeated(vectors: list[FloatArray]) -> str:
    """In words where a stretch of numbers occurs twice, in one vector or in two; empty if nowhere.

    Example:
        >>> numbers = np.random.default_rng(1).normal(size=(2, 99)).round(6)
        >>> repeated(list(numbers)), repeated([numbers[0], numbers[0][50:]])
        ('', 'vector 2 repeats a stretch of vector 1')
    """
    places = np.concatenate([_hashes(vector) for vector in vectors])
    owner = np.concatenate([np.full(len(_hashes(vector)), i) for i, vector in enumerate(vectors, start=1)])
    order = np.argsort(places, kind="stable")
    again = np.flatnonzero(places[order][1:] == places[order][:-1])
    if not len(again):
        return ""
    first, second = owner[order[again[0]]], owner[order[again[0] + 1]]
    return f"vector {second} repeats a stretch of vector {first}"


def _hashes(vector: FloatArray) -> NDArray[np.uint64]:
    """Of every stretch. Two of a million stretches have the same one by chance about once in 10^8 audits."""
    if len(vector) < WINDOW:
        return np.zeros(0, dtype=np.uint64)
    bits = np.ascontiguousarray(vector, dtype=np.float64).view(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    weights = np.random.default_rng(0).integers(0, 2**63, WINDOW).astype(np.uint64) * np.uint64(2) + np.uint64(1)
    stretches = len(vector) - WINDOW + 1
    total = np.zeros(stretches, dtype=np.uint64)
    for place, weight in enumerate(weights):
        total += mixed[place : place + stretches] * weight
    return total


def correlated(vectors: list[FloatArray], level: float) -> str:
    """In words which vectors are correlated, straight, backwards or shifted; empty if none.

    Each correlation of m independent pairs is about N(0, 1/m); the level is shared among all that are looked at.
    """
    ways = [
        (i, j, lag, turn)
        for i, j in combinations_with_replacement(range(len(vectors)), 2)
        for lag, turn in product(LAGS, (1, -1))
        if i != j or (lag > 0 and turn > 0)
    ]
    threshold = float(stats.norm.isf(level / (2 * len(ways))))
    ranks = [_standard(vector) for vector in vectors]
    for i, j, lag, turn in ways:
        first, second = ranks[i], ranks[j][::turn]
        pairs = min(len(first), len(second)) - lag
        score = float(first[:pairs] @ second[lag : lag + pairs]) / np.sqrt(pairs)
        if abs(score) > threshold:
            turned = " backwards" if turn < 0 else ""
            return f"vectors {i + 1} and {j + 1}{turned}, {lag} apart: correlation {score / np.sqrt(pairs):.2g}"
    return ""


def _standard(vector: FloatArray) -> FloatArray:
    # Ranks: a few huge values of a heavy-tailed law would make the score anything but normal.
    ranks = stats.rankdata(vector)
    spread = ranks.std()
    return np.asarray((ranks - ranks.mean()) / (spread if spread else 1.0))
