"""Draws have nothing to do with each other, and if they had, it would be noticed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.audit.checks import QUICK, failures
from dpsynth_core.audit.joint_law import correlated, joint_checks
from dpsynth_core.audit.subject import Source
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SecureNoise, SeededNoise

SEED = 20_261_117


def test_nothing_refutes_independence() -> None:
    assert not failures(joint_checks(QUICK, SEED))


class UsedTwice(SeededNoise):
    """One vector of noise serves every call that asks for as many values."""

    def __init__(self, budget: Budget, seed: int | np.random.SeedSequence) -> None:
        super().__init__(budget, seed)
        self._kept: dict[tuple[int, ...], IntArray] = {}

    def _add_laplace(self, values: IntArray, scale: float) -> IntArray:
        fresh = super()._add_laplace(np.zeros_like(values), scale)
        return values + self._kept.setdefault(values.shape, fresh)


class Antithetic(UsedTwice):
    """Every other vector is the one before with its signs turned."""

    def _add_laplace(self, values: IntArray, scale: float) -> IntArray:
        before = self._kept.pop(values.shape, None)
        if before is not None:
            return values - before
        return super()._add_laplace(values, scale)


class SameSeed(SeededNoise):
    """Two runs draw the same."""

    def __init__(self, budget: Budget, seed: int | np.random.SeedSequence) -> None:
        super().__init__(budget, 5)
        del seed


class DrawnAheadTwice(SecureNoise):
    """What was drawn ahead is handed out again."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget)
        self._stock: IntArray | None = None

    def _add_laplace(self, values: IntArray, scale: float) -> IntArray:
        if self._stock is None and self._prefetched is not None:
            self._stock = self._prefetched.add_to(np.zeros_like(values))
        return super()._add_laplace(values, scale) if self._stock is None else values + self._stock[: values.size]


BROKEN: dict[str, Source] = {
    "used twice": UsedTwice,
    "antithetic": Antithetic,
    "same seed": SameSeed,
    "drawn ahead twice": lambda budget, _: DrawnAheadTwice(budget),
}


@pytest.mark.parametrize("name", BROKEN)
def test_noise_that_is_used_again_is_noticed(name: str) -> None:
    assert failures(joint_checks(QUICK, SEED, {name: BROKEN[name]}))


@pytest.mark.parametrize("change", [lambda v: v[::-1], lambda v: np.roll(v, 2), lambda v: -3 * v])
def test_a_vector_made_of_another_is_noticed(change: Callable[[FloatArray], Any]) -> None:
    generator = np.random.default_rng(SEED)
    first, other = generator.laplace(size=4_000), generator.laplace(size=4_000)
    assert not correlated([first, other], 1e-6)
    assert correlated([first, change(first) + 2 * other], 1e-6)
