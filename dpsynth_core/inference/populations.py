"""Where simulated groups come from: Gaussians as in the paper, or any shape, one shifted against the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.table.schema import Schema

LOWER, UPPER = 1.0, 100.0
"""Range of the paper's simulated values (Montoya Perez et al., section 4.1)."""
MEAN, NULL_STD, SIGNAL_STD = 50.0, 2.0, 1.0
VALUE, GROUP = "value", "group"


@dataclass(frozen=True, kw_only=True)
class NormalDistribution:
    mean: float
    std: float

    def below(self, x: FloatArray) -> FloatArray:
        """P(X <= x)."""
        return np.asarray(ndtr((x - self.mean) / self.std), dtype=np.float64)

    def draw(self, rng: np.random.Generator, size: tuple[int, int]) -> FloatArray:
        return rng.normal(self.mean, self.std, size)


@dataclass(frozen=True, kw_only=True)
class HistogramDistribution:
    """Any histogram over the declared range, uniform within its cells, moved by ``shift``."""

    shares: tuple[float, ...]
    """Of the cells, adding up to one."""
    lower: float
    upper: float
    shift: float = 0.0
    """In units of the value."""

    @cached_property
    def _edges(self) -> FloatArray:
        return np.linspace(self.lower, self.upper, len(self.shares) + 1)

    @cached_property
    def _ends(self) -> FloatArray:
        ends = np.concatenate([[0.0], np.cumsum(self.shares)])
        return np.asarray(ends / ends[-1])

    @property
    def std(self) -> float:
        """Standard deviation: between the cells' centres, and of the uniform law within them."""
        centres, width = (self._edges[1:] + self._edges[:-1]) / 2, self._edges[1] - self._edges[0]
        mean = float(np.dot(self.shares, centres))
        return math.sqrt(float(np.dot(self.shares, (centres - mean) ** 2)) + width**2 / 12)

    def below(self, x: FloatArray) -> FloatArray:
        """P(X <= x)."""
        return np.interp(x - self.shift, self._edges, self._ends)

    def draw(self, rng: np.random.Generator, size: tuple[int, int]) -> FloatArray:
        cell = rng.choice(len(self.shares), size=size, p=np.diff(self._ends))
        width = self._edges[1] - self._edges[0]
        return np.asarray(self._edges[cell] + width * rng.random(size) + self.shift)


GroupDistribution: TypeAlias = NormalDistribution | HistogramDistribution
"""One group's distribution before it is fitted into the declared range."""


@dataclass(frozen=True, kw_only=True)
class Population:
    """Two groups of fixed sizes."""

    n1: int
    n2: int
    first: GroupDistribution
    second: GroupDistribution
    lower: float = LOWER
    """Left end of the declared range; values beyond are moved to it."""
    upper: float = UPPER

    @property
    def n(self) -> int:
        return self.n1 + self.n2

    def schema(self, bins: int) -> Schema:
        """Public facts of a table of the two groups."""
        group = {"name": GROUP, "kind": "boolean", "public": True}
        value = {"name": VALUE, "kind": "continuous", "lower": self.lower, "upper": self.upper, "bins": bins}
        return Schema.from_dict({"columns": [group, {**value, "public": True}]})

    def counts(self, tables: int, bins: int, rng: np.random.Generator) -> IntArray:
        """Counts by group (False first) and cell of that many tables: the law of drawing rows and counting them."""
        edges = np.linspace(self.lower, self.upper, bins + 1)[1:-1]
        drawn = np.empty((tables, 2, bins), dtype=np.int64)
        for group, (size, law) in enumerate(((self.n1, self.first), (self.n2, self.second))):
            chances = np.diff(np.concatenate([[0.0], law.below(edges), [1.0]]))
            # The likeliest cells first: once all rows are placed, the sampler stops.
            order = np.argsort(-chances, kind="stable")
            drawn[:, group, order] = rng.multinomial(size, np.maximum(chances[order], 0.0), size=tables)
        return drawn

    def rows(self, tables: int, rng: np.random.Generator) -> FloatArray:
        """Values of that many tables, the first group's before the second's, inside the declared range."""
        parts = [law.draw(rng, (tables, size)) for size, law in ((self.n1, self.first), (self.n2, self.second))]
        return np.clip(np.concatenate(parts, axis=1), self.lower, self.upper)


def populations(
    *, n1: int, n2: int, effect: float, shape: ArrayLike | None = None, lower: float = LOWER, upper: float = UPPER
) -> tuple[Population, Population]:
    """Without and with a difference of ``effect`` standard deviations between the groups.

    Without a shape, the paper's Gaussians: both groups N(50, 2) without a signal; N(50 + effect, 1) and N(50, 1) with
    one, on a range from 1 to 100 (rescaled to other ranges). With a shape (shares of equal cells over the range), both
    groups have it and the first is moved.
    """
    if min(n1, n2) < 1:
        raise ParameterError("groups", f"{n1} and {n2} rows", allowed="at least one row in each")
    if not math.isfinite(effect) or effect == 0:
        raise ParameterError("effect", effect, allowed="a number of standard deviations other than 0")

    def of(first: GroupDistribution, second: GroupDistribution) -> Population:
        return Population(n1=n1, n2=n2, first=first, second=second, lower=lower, upper=upper)

    if shape is None:
        step = (upper - lower) / (UPPER - LOWER)

        def gaussian(shift: float, std: float) -> NormalDistribution:
            return NormalDistribution(mean=lower + (MEAN + shift - LOWER) * step, std=std * step)

        null = gaussian(0.0, NULL_STD)
        first, second = gaussian(effect * SIGNAL_STD, SIGNAL_STD), gaussian(0.0, SIGNAL_STD)
        return of(null, null), of(first, second)
    shares = np.asarray(shape, dtype=np.float64)
    if shares.ndim != 1 or not np.isfinite(shares).all() or (shares < 0).any() or not shares.sum() > 0:
        raise ParameterError("shape", f"{shares.shape}", allowed="one share from 0 for each cell, not all of them 0")
    flat = HistogramDistribution(shares=tuple((shares / shares.sum()).tolist()), lower=lower, upper=upper)
    return of(flat, flat), of(replace(flat, shift=effect * flat.std), flat)
