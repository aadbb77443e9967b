"""Counts and sizes above a threshold have exactly their law, and no float decides them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpsynth_core.privacy import exact
from dpsynth_core.privacy.exact import BITS, geometric, tail_count
from dpsynth_core.privacy.laplace import laplace_tail

LEVEL = 1e-4
"""With a fixed seed, a sound sampler passes or fails for good; ten tests at this level leave a sound one in peace."""


class Bits:
    """A generator whose first numbers are given; the others come from a seed."""

    def __init__(self, first: list[int], seed: int = 0) -> None:
        self.first = list(first)
        self.rest = np.random.default_rng(seed)

    def integers(self, low: int, high: int, size: int | None = None) -> object:
        if size is None:
            return self.first.pop(0) if self.first else self.rest.integers(low, high)
        given = [self.first.pop(0) for _ in range(min(size, len(self.first)))]
        return np.array([*given, *self.rest.integers(low, high, size=size - len(given))], dtype=np.int64)

    def bytes(self, length: int) -> bytes:
        return self.rest.bytes(length)


@pytest.mark.parametrize("scale", [0.5, 2.0, 37.3])
def test_sizes_are_geometric(scale: float) -> None:
    drawn = geometric(np.random.default_rng(1), scale, 100_000)
    cells = np.minimum(drawn, math.ceil(4 * scale))
    tail = np.exp(-np.arange(cells.max() + 1) / scale)
    law = np.append(tail[:-1] - tail[1:], tail[-1])
    assert stats.chisquare(np.bincount(cells, minlength=len(law)), law * len(drawn)).pvalue > LEVEL


@pytest.mark.parametrize(
    ("trials", "scale", "threshold"), [(40, 1.0, 1), (1_000, 2.0, 3), (10**6, 2.0, 20), (2**70, 2.0, 92), (3, 8.0, 1)]
)
def test_counts_are_binomial(trials: int, scale: float, threshold: int) -> None:
    generator = np.random.default_rng(2)
    drawn = np.array([tail_count(generator, trials, scale, threshold) for _ in range(4_000)])
    tail = laplace_tail(scale, threshold)
    # So many trials of so small a chance are Poisson to more digits than a sample shows.
    law = stats.binom(trials, tail) if trials < 2**50 else stats.poisson(float(Fraction(tail) * trials))
    low, high = int(law.ppf(0.001)), int(law.ppf(0.999))
    cells = np.clip(drawn, low, high) - low
    share = law.pmf(np.arange(low, high + 1))
    share[0], share[-1] = law.cdf(low), law.sf(high - 1)
    enough = share * len(drawn) >= 1
    counted = np.bincount(cells, minlength=len(share))
    expected = np.append(share[enough], share[~enough].sum()) * len(drawn)
    observed = np.append(counted[enough], counted[~enough].sum())
    assert stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue > LEVEL


@pytest.mark.parametrize("seed", range(40))
def test_longer_arithmetic_counts_what_doubles_count(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits, settled by doubles and settled by whole numbers."""
    quick = tail_count(np.random.default_rng(seed), 3_000, 2.5, 9)
    sizes = geometric(np.random.default_rng(seed), 2.5, 20)
    monkeypatch.setattr(exact, "EPSILON", 0.01)  # nothing is certain any more
    assert tail_count(np.random.default_rng(seed), 3_000, 2.5, 9) == quick
    assert geometric(np.random.default_rng(seed), 2.5, 20).tolist() == sizes.tolist()


def test_where_bits_cannot_settle_it_more_are_drawn() -> None:
    """U = exp(-1/scale) within 62 bits: whether the size is 0 or 1 depends on the bits that follow."""
    edge = math.floor(Fraction(math.exp(-1.0)) * 2**BITS)
    near = {int(geometric(Bits([edge + step], seed), 1.0, 1)[0]) for step in range(-600, 600, 50) for seed in (1, 2)}
    assert near == {0, 1}
    far = geometric(Bits([edge - 2**20, edge + 2**20]), 1.0, 2)
    assert far.tolist() == [1, 0]


def test_an_outcome_of_tiny_probability_is_possible() -> None:
    """A sampler of 53-bit floats would give it probability zero on one table and not on its neighbour."""
    assert geometric(Bits([0], seed=3), 1.0, 1)[0] > 62 * math.log(2)
    assert tail_count(Bits([0]), 10, 1.0, 40) == 0
    assert tail_count(Bits([2**BITS - 1] * 5), 5, 1.0, 40) == 5


@pytest.mark.parametrize(("trials", "scale", "threshold"), [(0, 2.0, 3), (10, 1e-3, 5), (2**60, 2.0, 3_000)])
def test_where_nothing_is_expected_nothing_comes(trials: int, scale: float, threshold: int) -> None:
    assert tail_count(np.random.default_rng(4), trials, scale, threshold) == 0


def test_domains_larger_than_a_double() -> None:
    generator, cells = np.random.default_rng(5), 32**300
    expected = math.exp(math.log(cells) - 2_070 / 2 - math.log1p(math.exp(-0.5)))
    drawn = [tail_count(generator, cells, 2.0, 2_070) for _ in range(400)]
    assert abs(np.mean(drawn) - expected) < 4 * math.sqrt(expected / len(drawn))
