"""Sources of noise that are broken on purpose."""

from __future__ import annotations

import random
import secrets
from dataclasses import replace
from typing import Any

import numpy as np
from randomgen import AESCounter

from dpsynth_core.arrays import IntArray
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import SecureNoise, SeededNoise
from dpsynth_core.privacy.primitives import (
    Call,
    Charge,
    Exponential,
    Gaussian,
    Laplace,
    SampledGaussian,
    SparseLaplace,
    SparseNoisy,
)


class Unguarded(SeededNoise):
    """A source that does not refuse what the budget does not cover."""

    def _charge(self, primitive: str, label: str, sensitivity: Amount, epsilon: Amount, delta: Amount) -> Charge:
        granted, self.budget = self.budget, Budget.of(10**9)
        try:
            return super()._charge(primitive, label, sensitivity, epsilon, delta)
        finally:
            self.budget = granted


def _halved(call: Call[Any]) -> Call[Any]:
    match call:
        case Laplace() | SparseLaplace():
            return replace(call, scale=call.scale / 2)
        case Gaussian() | SampledGaussian():
            return replace(call, draw=replace(call.draw, scale=call.draw.scale / 2))
    return call


class HalfNoise(SeededNoise):
    """Half the noise that was asked for."""

    def _perform(self, call: Call[Any]) -> Any:
        return super()._perform(_halved(call))


class HalfSecureNoise(SecureNoise):
    """The same in the source of releases."""

    def _perform(self, call: Call[Any]) -> Any:
        return super()._perform(_halved(call))


class ShortKey(SecureNoise):
    """A release whose generators have keys of 32 bits, which can all be tried."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget)
        self._generators = [np.random.Generator(AESCounter(key=secrets.randbits(32))) for _ in self._generators]


class KeyFromTheProcess(SecureNoise):
    """A release whose keys come from the process's own stream, which whoever seeds it knows."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget)
        keys = [random.getrandbits(128) for _ in self._generators]
        self._generators = [np.random.Generator(AESCounter(key=key)) for key in keys]


class OneSided(SeededNoise):
    """Noise that never goes below zero."""

    def _add_laplace(self, values: IntArray, scale: float) -> IntArray:
        return np.asarray(values + np.abs(super()._add_laplace(np.zeros_like(values), scale)))

    def _add_gaussian(self, values: IntArray, scale: float) -> IntArray:
        return np.asarray(values + np.abs(super()._add_gaussian(np.zeros_like(values), scale)))


class EmptyNeverPass(SeededNoise):
    """Empty cells never reach a threshold, so whatever does holds rows."""

    def _perform(self, call: Call[Any]) -> Any:
        output = super()._perform(call)
        if not isinstance(output, SparseNoisy):
            return output
        return replace(output, extra_keys=output.extra_keys[:0], extra_values=output.extra_values[:0])


class FactorTwoMissing(SeededNoise):
    """Selects with probability proportional to exp(epsilon u / sensitivity)."""

    def _perform(self, call: Call[Any]) -> Any:
        if isinstance(call, Exponential):
            call = replace(call, scale=call.scale / 2)
        return super()._perform(call)
