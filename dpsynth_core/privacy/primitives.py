"""What passes between a mechanism and the samplers: calls, their charges and their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import IntArray
from dpsynth_core.privacy.budget import Budget

Primitive: TypeAlias = Literal[
    "laplace", "gaussian", "sampled_gaussian", "sparse_laplace", "decisions", "smoothed", "exponential",
    "permute_and_flip", "metropolis", "integers", "uniform", "binomial", "geometric", "distinct",
]  # fmt: skip
Pick: TypeAlias = Callable[[int], NDArray[Any]]
"""Returns the keys of that many different cells, drawn uniformly from those that hold no row."""
Walk: TypeAlias = Callable[[np.random.Generator, float], Any]
"""A random walk towards the density exp(score / scale), given its randomness and the scale."""


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What one draw on private values costs."""

    label: str
    """What the draw was for, in the mechanism's words."""
    primitive: Primitive
    """Which sampler."""
    sensitivity: Fraction
    """The most that one replaced row can change the input: L1 for laplace, per score for a selection."""
    budget: Budget
    """Its share."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One draw, as it reaches the sampler."""

    primitive: Primitive
    """Which sampler."""
    private: NDArray[Any] | None
    """The private values that enter, or None for randomness that no private value touches."""
    parameters: tuple[int | float, ...]
    """What else the sampler needs: a scale, a size, a probability."""
    charge: Charge | None
    """What the draw costs; None where ``private`` is None."""
    keys: NDArray[Any] | None = None
    """Which cell each private value belongs to, where only the occupied cells of a larger domain are given."""
    pick: Pick | None = None
    """Names empty cells, where empty ones take part in the draw without being listed."""
    walk: Walk | None = None
    """Draws by walking, where no list of all outcomes can be made."""


@dataclass(frozen=True, kw_only=True)
class SparseNoisy:
    """Noisy counts over a domain of which only the occupied cells are listed."""

    values: IntArray
    """For each listed cell, its count plus noise, whether or not it reaches the threshold."""
    extra_keys: NDArray[Any]
    """Empty cells whose noise alone reaches the threshold."""
    extra_values: IntArray
    """Their noise."""
