"""Randomness that no private value touches, and that is therefore free of charge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast

from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.privacy.primitives import Call, Primitive


class FreeDraws(ABC):
    """What every source of randomness draws for nothing."""

    @abstractmethod
    def _perform(self, call: Call) -> Any:
        """Draw."""

    def integers(self, below: int, size: int) -> NDArray[Any]:
        """Uniform whole numbers from 0 to ``below - 1``; an object array of Python ints beyond 63 bits."""
        if below < 1:
            raise ParameterError("below", below, allowed="at least 1")
        return cast("NDArray[Any]", self._free("integers", below, size))

    def distinct(self, below: int, size: int) -> NDArray[Any]:
        """That many different uniform whole numbers from 0 to ``below - 1``, without listing them all."""
        if not 0 <= size <= below:
            raise ParameterError("size", size, allowed=f"from 0 to {below}")
        return cast("NDArray[Any]", self._free("distinct", below, size))

    def uniform(self, size: int) -> FloatArray:
        """Uniform numbers from [0, 1)."""
        return cast("FloatArray", self._free("uniform", size))

    def binomial(self, trials: int, probability: float) -> int:
        """Number of successes in that many independent trials."""
        if trials < 0 or not 0 <= probability <= 1:
            raise ParameterError("probability", probability, allowed="from 0 to 1, with at least 0 trials")
        return int(self._free("binomial", trials, probability))

    def geometric(self, probability: float, size: int) -> IntArray:
        """Failures before the first success (from 0): the tail of discrete Laplace noise above any threshold."""
        if not 0 < probability <= 1:
            raise ParameterError("probability", probability, allowed="greater than 0, at most 1")
        return cast("IntArray", self._free("geometric", probability, size))

    def _free(self, primitive: Primitive, *parameters: int | float) -> Any:
        return self._perform(Call(primitive=primitive, private=None, parameters=parameters, charge=None))
