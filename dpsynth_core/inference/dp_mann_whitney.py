"""The differentially private Mann-Whitney test on the original rows (Couch, Kazan, Shi, Bray & Groce 2019).

Part of epsilon buys a lower bound m* of the smaller group's size, which fails with probability delta; given it, U may
be released with noise in proportion to n - m*. Noise is whole-numbered: 2U is a whole number, ties included. Where rows
may belong to neither group, both sizes are bounded, and the noise is in proportion to the larger one. Proofs and
constants: ``docs/proofs.md``, section 18.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.inference.mann_whitney import GroupsError, check_levels
from dpsynth_core.inference.null_law import smaller_u
from dpsynth_core.privacy.budget import Amount, Budget, Guarantee, float_up
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY
from dpsynth_core.privacy.noise import Noise, SecureNoise, SeededNoise
from dpsynth_core.privacy.primitives import Charge
from dpsynth_core.table.cells import column_numbers

SIZE_SHARE = Fraction(65, 100)
"""Of epsilon, for the smaller group's size; the rest is for U."""
DELTA = 1e-6
_MERGED = 1024


@dataclass(frozen=True, kw_only=True)
class SizeBounds:
    """What noisy sizes say about two groups; each bound fails with probability at most delta."""

    least: tuple[int, int]
    """Rows that the groups have at least."""
    larger: int
    """Rows that the larger one has at most: 2U moves by at most twice as many."""


@dataclass(frozen=True, kw_only=True)
class GroupCounts:
    """All that the test needs of the rows: whole numbers, exact and private but for ``n`` and ``covering``."""

    n: int
    """Rows, whether or not they belong to either group."""
    sizes: tuple[int, int]
    doubled: int
    """2 min(U1, U2)."""
    covering: bool
    """Whether, by public facts, every row is in one of the two groups: then one noisy size tells both."""

    @classmethod
    def of(cls, values: FloatArray, first: BoolArray, left_out: BoolArray | None = None) -> GroupCounts:
        """Count rows whose group is known.

        Args:
            values: Each row's number.
            first: Who is in the first group.
            left_out: Who is in neither group; everybody else is in the second if not in the first. None where that is
                impossible by public facts.
        """
        kept = slice(None) if left_out is None else ~left_out
        chosen = first[kept]
        n1 = int(chosen.sum())
        sizes, doubled = (n1, len(chosen) - n1), doubled_u(values[kept], chosen)
        return cls(n=len(values), sizes=sizes, doubled=doubled, covering=left_out is None)


@dataclass(frozen=True, kw_only=True)
class DPMannWhitney:
    """What the private test releases. Everything here was paid for."""

    statistic: float
    """min(U1, U2) with noise; it may be negative."""
    pvalue: float
    """Chance of a noisy statistic at most this small, were both groups from one distribution."""
    smaller: int
    """m*: with probability 1 - delta the smaller group has at least this many rows. Where rows may belong to neither
    group, that probability is 1 - 2 delta."""
    n: int
    """Rows, which are public."""
    scale: float
    """Of the noise in ``statistic``."""
    guarantee: Guarantee
    charges: tuple[Charge, ...]


def dp_mann_whitney(
    values: ArrayLike,
    groups: ArrayLike,
    epsilon: Amount,
    delta: Amount = DELTA,
    *,
    levels: Sequence[Any] | None = None,
    seed: int | None = None,
    watch: Callable[[Charge], None] | None = None,
) -> DPMannWhitney:
    """Test privately whether two groups of private rows come from one distribution.

    No row can make the test fail, because an error that depends on a row would give it away: a missing value counts
    as tied with every other, and a row whose group is missing or undeclared is put into one by a fair coin. Both keep
    the test valid and cost power.

    Args:
        values: Each row's number.
        groups: Each row's group.
        epsilon: The loss granted.
        delta: Probability, granted too, that m* exceeds the smaller group's size.
        levels: The two groups, as public knowledge. None: False and True for truth values, the categories of a
            categorical column; else the two that occur, which voids the guarantee.
        seed: For simulation only: a test that can be repeated is not private.
        watch: Told of every charge before anything is drawn under it.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> group = np.arange(400) < 200
        >>> dp_mann_whitney(rng.normal(size=400) + group, group, epsilon=1, seed=1).pvalue < 0.01
        True
    """
    budget = Budget.of(epsilon, delta)
    if not 0 < budget.delta < Fraction(1, 2):
        raise ParameterError("delta", str(delta), allowed="greater than 0 and less than 0.5", remedy="Try 1e-6.")
    numeric = column_numbers(pd.Series(np.asarray(values)))
    labels = groups if isinstance(groups, pd.Series) else pd.Series(groups)
    if len(labels) != len(numeric) or len(numeric) < 2:
        raise ParameterError(
            "groups", f"{len(labels)} rows", allowed=f"at least 2 rows, one for each of the {len(numeric)} values"
        )
    declared, public = _declared(labels) if levels is None else (check_levels(levels), True)
    noise: Noise = SecureNoise(budget) if seed is None else SeededNoise(budget, seed)
    noise.watch = watch
    claim = noise.judge(Guarantee(status="proven", budget=budget))
    if not public:
        claim = claim.weakened("void", "The two groups were read from the data, not declared.")
    return release_test(numeric, _first_group(labels, declared, noise), noise, claim=claim)


def release_test(
    values: FloatArray, first: BoolArray, noise: Noise, *, claim: Guarantee, left_out: BoolArray | None = None
) -> DPMannWhitney:
    """The test on rows whose group is known, with all of the noise's budget; the rows are as in ``GroupCounts.of``."""
    return release_counts(GroupCounts.of(values, first, left_out), noise, claim=claim)


def release_counts(counted: GroupCounts, noise: Noise, *, claim: Guarantee) -> DPMannWhitney:
    """The test on rows that were counted, with all of the noise's budget; ``claim`` is what may be claimed for it."""
    n = counted.n
    if counted.covering:
        smaller, noisy = _release(counted.doubled, counted.sizes[0], n, noise)
        bounds = SizeBounds(least=(smaller, n - smaller), larger=n - smaller)
    else:
        bounds, noisy = _release_among_others(counted.doubled, counted.sizes, n, noise)
    scale = float_up(2 * bounds.larger / _shares(noise.budget.epsilon)[1])
    return DPMannWhitney(
        statistic=noisy / 2,
        pvalue=float(_pvalue(np.array([noisy]), bounds.least, scale)[0]),
        smaller=min(bounds.least),
        n=n,
        scale=scale / 2,
        guarantee=claim,
        charges=noise.charges,
    )


def _declared(labels: pd.Series[Any]) -> tuple[tuple[Any, Any], bool]:
    """The two groups, and whether they are public facts."""
    if labels.dtype == np.bool_:
        return (False, True), True
    if isinstance(labels.dtype, pd.CategoricalDtype):
        return check_levels(labels.dtype.categories.tolist()), True
    found = labels.dropna().unique().tolist()
    if len(found) != 2:
        raise GroupsError("The group column must hold exactly two groups. Declare them with ``levels``.")
    return check_levels(sorted(found)), False


def _first_group(labels: pd.Series[Any], levels: tuple[Any, Any], noise: Noise) -> BoolArray:
    """Who is in the first group; a fair coin decides for whoever is in neither."""
    first, second = ((labels == level).fillna(value=False).to_numpy(dtype=np.bool_) for level in levels)
    # A coin for every row, used or not: how many are drawn must not depend on the rows.
    coin = noise.uniform(len(labels)) < 0.5
    return np.where(first | second, first, coin)


def doubled_u(values: FloatArray, first: BoolArray) -> int:
    """2 min(U1, U2): every pair counts 2, 1 or 0, and 1 if a value of it is missing."""
    known = ~np.isnan(values)
    distinct, index = np.unique(values[known], return_inverse=True)
    a = np.bincount(index[first[known]], minlength=len(distinct))
    b = np.bincount(index[~first[known]], minlength=len(distinct))
    n1, n2, known1, known2 = int(first.sum()), int((~first).sum()), int(a.sum()), int(b.sum())
    larger = int((a * (2 * np.cumsum(b) - b)).sum()) + n1 * n2 - known1 * known2
    return min(larger, 2 * n1 * n2 - larger)


def size_margin(epsilon: Fraction, delta: Fraction) -> int:
    """The least whole c with P(DLap(1/epsilon) > c) = a^(c+1)/(1+a) at most delta, a = exp(-epsilon), rounded up."""
    rate = float(epsilon)
    # The rounding of the logarithms is less than the hair that is added before rounding up.
    least = (-math.log(delta) - math.log1p(math.exp(-rate))) / rate - 1
    return max(0, math.ceil(least * (1 + 1e-12) + 1e-9))


def _shares(epsilon: Fraction) -> tuple[Fraction, Fraction]:
    return epsilon * SIZE_SHARE, epsilon * (1 - SIZE_SHARE)


def _release(doubled: int, n1: int, n: int, noise: Noise) -> tuple[int, int]:
    """m* and the noisy 2 min(U1, U2): Couch et al., Algorithms 5 and 6."""
    for_size, for_u = _shares(noise.budget.epsilon)
    drawn = noise.laplace(
        np.array([n1]), sensitivity=1, epsilon=for_size, delta=noise.budget.delta, label="size of the smaller group"
    )
    smaller = int(lower_bound(drawn, n, for_size, noise.budget.delta)[0])
    noisy = noise.laplace(np.array([doubled]), sensitivity=2 * (n - smaller), epsilon=for_u, label="U")
    return smaller, int(noisy[0])


def _release_among_others(doubled: int, sizes: tuple[int, int], n: int, noise: Noise) -> tuple[SizeBounds, int]:
    """Bounds of both sizes and the noisy 2 min(U1, U2), where some rows belong to neither group."""
    for_size, for_u = _shares(noise.budget.epsilon)
    drawn = noise.laplace(
        np.array(sizes),
        sensitivity=HISTOGRAM_SENSITIVITY,
        epsilon=for_size,
        delta=noise.budget.delta,
        label="sizes of the groups",
    )
    bounds = size_bounds((int(drawn[0]), int(drawn[1])), n, for_size, noise.budget.delta)
    noisy = noise.laplace(np.array([doubled]), sensitivity=2 * bounds.larger, epsilon=for_u, label="U")
    return bounds, int(noisy[0])


def size_bounds(noisy_sizes: tuple[int, int], n: int, epsilon: Fraction, delta: Fraction) -> SizeBounds:
    """From two sizes with DLap(2/epsilon) noise: least = n_i~ - c, larger = max(n1~, n2~) + c, both within 0 to n."""
    margin = size_margin(epsilon / HISTOGRAM_SENSITIVITY, delta)
    first, second = (min(max(size - margin, 0), n) for size in noisy_sizes)
    return SizeBounds(least=(first, second), larger=min(max(*noisy_sizes, 1 - margin) + margin, n))


def lower_bound(noisy_size: IntArray, n: int, epsilon: Fraction, delta: Fraction) -> IntArray:
    """m* = max(min(n1~, n - n1~) - c, 0): exceeds the smaller group's size with probability at most delta."""
    bound: IntArray = np.maximum(np.minimum(noisy_size, n - noisy_size) - size_margin(epsilon, delta), 0)
    return bound


def _pvalue(noisy: IntArray, sizes: tuple[int, int], scale: float, most: int | None = None) -> FloatArray:
    """P(2 min(U1, U2) + DLap(scale) <= noisy) under the null with groups of these sizes."""
    points, chances = smaller_u(*sizes, most)
    return np.clip(laplace_cdf(noisy[:, None] - 2 * points[None, :], scale) @ chances, 0.0, 1.0)


def laplace_cdf(x: FloatArray, scale: float) -> FloatArray:
    """P(DLap(scale) <= x) at whole numbers, and its smooth continuation between them."""
    a = math.exp(-1 / scale)
    tail = np.exp(-np.abs(np.where(x < 0, x, x + 1)) / scale) / (1 + a)
    return np.where(x < 0, tail, 1 - tail)


def dp_pvalues(
    doubled: IntArray, n1: int, n: int, *, epsilon: Amount, delta: Amount = DELTA, rng: np.random.Generator
) -> FloatArray:
    """p-values of many simulated tables at once, with simulation noise: for experiments, never for a release."""
    budget = Budget.of(epsilon, delta)
    for_size, for_u = _shares(budget.epsilon)
    drawn = n1 + discrete_laplace(rng, float_up(1 / for_size), doubled.shape).astype(np.int64)
    smaller = lower_bound(drawn, n, for_size, budget.delta)
    out = np.ones(len(doubled))
    for size in np.unique(smaller):
        at = smaller == size
        scale = float_up(2 * (n - int(size)) / for_u)
        noisy = doubled[at] + discrete_laplace(rng, scale, int(at.sum())).astype(np.int64)
        out[at] = _pvalue(noisy, (int(size), n - int(size)), scale, _MERGED)
    return out


def discrete_laplace(rng: np.random.Generator, scale: float, size: int | tuple[int, ...]) -> FloatArray:
    """Simulation noise from one exponential number and one bit each: whole numbers, as floats.

    P(|X| >= k) = 2 a^k / (1 + a) for k >= 1 with a = exp(-1/scale), so |X| is the whole part of
    scale (E + ln(2 / (1 + a))) for E exponential; the bit is its sign.
    """
    x = rng.standard_exponential(size)
    x += math.log(2 / (1 + math.exp(-1 / scale)))
    x *= scale
    np.floor(x, out=x)
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-x.size // 8)), dtype=np.uint8), count=x.size)
    x *= 1.0 - 2.0 * bits.reshape(x.shape)
    return x
