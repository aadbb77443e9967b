"""The draws that can be made, one small dataclass each, and the charge that pays for a draw on private values.

A draw says what the replay on a neighbouring table needs to know: its *public form*, which is everything about it that
must not depend on a single row, and its *distance* to the same draw on the other table, in the unit in which its charge
declares the sensitivity.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.privacy.accounting import GaussianDraw, SampledDraw, SelectionDraw
from dpsynth_core.privacy.budget import Budget

Pick: TypeAlias = Callable[[int], NDArray[Any]]
"""Returns the keys of that many different cells, drawn uniformly from those that hold no row."""
Walk: TypeAlias = Callable[[np.random.Generator, float], Any]
"""A random walk towards the density exp(score / scale), given its randomness and the scale."""
Output = TypeVar("Output")


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What one draw on private values costs, or a planned sequence of them."""

    label: str
    """What the draw was for, in the mechanism's words."""
    primitive: str
    """The ``name`` of the draw."""
    sensitivity: Fraction
    """The most that one replaced row can change the input: in L1 for counts, in every score for a selection; 1 for
    Gaussian charges, whose draws say how far a row can move them."""
    budget: Budget


@dataclass(frozen=True, kw_only=True, eq=False)
class Call(ABC, Generic[Output]):
    """One draw, as it reaches the sampler."""

    name: ClassVar[str]

    def public_form(self) -> tuple[Any, ...]:
        """Everything about the draw that must not depend on a single row: of arrays the shape, else the value."""
        values = [getattr(self, field.name) for field in fields(self)]
        return self.name, *(v.shape if isinstance(v, np.ndarray) else v for v in values if not callable(v))

    def distance(self, other: Self) -> float:  # noqa: ARG002  nothing private enters a free draw
        """How far a neighbouring table moves the private input, in the unit of the charge's sensitivity."""
        return 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class PaidCall(Call[Output]):
    """A draw on private values."""

    charge: Charge

    @abstractmethod
    def distance(self, other: Self) -> float:
        """Every draw on private values has its own."""


# ------------------------------------------------------------------------------------------------- noise on every value


@dataclass(frozen=True, kw_only=True, eq=False)
class Laplace(PaidCall[IntArray]):
    """Discrete Laplace noise on every value, P(k) proportional to exp(-|k| / scale)."""

    name = "laplace"
    values: IntArray
    scale: float

    def distance(self, other: Self) -> float:
        """In L1."""
        return float(_moved(self.values, other.values).sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Gaussian(PaidCall[IntArray]):
    """Discrete Gaussian noise on every value, P(k) proportional to exp(-k^2 / 2 scale^2)."""

    name = "gaussian"
    values: IntArray
    draw: GaussianDraw

    def distance(self, other: Self) -> float:
        """How many values moved and how far each moved, as shares of what the plan declares."""
        moved = _moved(self.values, other.values)
        return float(max(np.count_nonzero(moved) / self.draw.values, moved.max(initial=0.0) / self.draw.shift))


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledGaussian(PaidCall[IntArray]):
    """Discrete Gaussian noise on a sum over a few parts of the rows, which nobody learns."""

    name = "sampled_gaussian"
    values: IntArray
    draw: SampledDraw

    def distance(self, other: Self) -> float:
        """Euclidean, as a share of what the plan declares."""
        return math.sqrt(float((_moved(self.values, other.values) ** 2).sum()) / self.draw.squared)


# ------------------------------------------------------------------- counts of which only the occupied cells are listed


@dataclass(frozen=True, kw_only=True)
class SparseNoisy:
    """Noisy counts over a domain of which only the occupied cells are listed."""

    values: IntArray
    """For each listed cell, its count plus noise, whether or not it reaches the threshold."""
    extra_keys: NDArray[Any]
    """Empty cells whose noise alone reaches the threshold."""
    extra_values: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class ListedCounts(PaidCall[Output]):
    """A draw on counts of which only those of occupied cells are listed."""

    keys: NDArray[Any]
    """Which cell each count belongs to."""
    values: IntArray

    def counts(self) -> dict[Any, int]:
        """The listed counts by cell."""
        keys = (tuple(key) if isinstance(key, list) else key for key in self.keys.tolist())
        return dict(zip(keys, self.values.tolist(), strict=True))

    def distance(self, other: Self) -> float:
        """In L1: a cell that is not listed holds nothing."""
        first, second = self.counts(), other.counts()
        return float(sum(abs(first.get(cell, 0) - second.get(cell, 0)) for cell in first.keys() | second.keys()))


@dataclass(frozen=True, kw_only=True, eq=False)
class ThresholdedCounts(ListedCounts[SparseNoisy]):
    """Discrete Laplace noise on all cells of a domain, of which only those that reach a threshold are kept."""

    zeros: int
    """Cells that hold no row."""
    threshold: int
    pick: Pick
    scale: float

    def __post_init__(self) -> None:
        if self.zeros < 0 or (self.zeros and self.threshold < 1):
            # Below one, most of the empty cells would pass, and the domain may be larger than memory.
            raise ParameterError("threshold", self.threshold, allowed="at least 1 where there are empty cells")

    def public_form(self) -> tuple[Any, ...]:
        """The size of the domain; how many of its cells are listed depends on the rows."""
        return self.name, self.charge, self.scale, self.threshold, len(self.keys) + self.zeros


class SparseLaplace(ThresholdedCounts):
    """Hands out the noisy counts."""

    name = "sparse_laplace"


class Decisions(ThresholdedCounts):
    """Hands out only on which side of the threshold each noisy count lies: values are right in that respect alone."""

    name = "decisions"


@dataclass(frozen=True, kw_only=True, eq=False)
class Smoothed(ListedCounts[IntArray]):
    """Cells drawn with probability proportional to count + alpha, over a domain of this shape."""

    name = "smoothed"
    shape: tuple[int, ...]
    draws: int
    alpha: Fraction

    def public_form(self) -> tuple[Any, ...]:
        """All but which cells hold rows."""
        return self.name, self.charge, self.shape, self.draws, self.alpha


# ---------------------------------------------------------------------------------------------------------- selections


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredCall(PaidCall[Output]):
    """A draw that prefers high scores: the law of the exponential mechanism is P(i) ~ exp(score_i / scale)."""

    scores: FloatArray
    scale: float

    def distance(self, other: Self) -> float:
        """The largest difference of any score."""
        return float(_moved(self.scores, other.scores).max(initial=0.0))


class Exponential(ScoredCall[int]):
    """An index, by the exponential mechanism."""

    name = "exponential"


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedExponential(ScoredCall[int]):
    """An index, by the exponential mechanism, under a charge that pays for several draws."""

    name = "shared_exponential"
    draw: SelectionDraw

    def distance(self, other: Self) -> float:
        """As a share of what the draw declares."""
        return super().distance(other) / self.draw.sensitivity


class PermuteAndFlip(ScoredCall[int]):
    """An index, by permute-and-flip."""

    name = "permute_and_flip"


@dataclass(frozen=True, kw_only=True, eq=False)
class Metropolis(ScoredCall[Any]):
    """Where a random walk ends, for outcomes of which no list can be made; the scores are those where it starts."""

    name = "metropolis"
    walk: Walk


def _moved(first: NDArray[Any], second: NDArray[Any]) -> FloatArray:
    """By how much each value differs; infinitely where one is not a number."""
    moved = np.abs(second.astype(np.float64) - first.astype(np.float64))
    return np.where(np.isnan(moved), np.inf, moved)


# ----------------------------------------------------------- randomness that no private value touches, free of charge


class FreeCall(Call[Output]):
    """A draw that costs nothing."""


@dataclass(frozen=True, kw_only=True)
class UniformIntegers(FreeCall[NDArray[Any]]):
    """From 0 to ``below - 1``."""

    name = "integers"
    below: int
    size: int


@dataclass(frozen=True, kw_only=True)
class DistinctIntegers(FreeCall[NDArray[Any]]):
    """Different ones from 0 to ``below - 1``, in random order."""

    name = "distinct"
    below: int
    size: int


@dataclass(frozen=True, kw_only=True)
class UniformFloats(FreeCall[FloatArray]):
    """From [0, 1)."""

    name = "uniform"
    size: int
