"""The smoothed histogram: its exact law, how tight its constant is, and coins of exactly rational bias."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpsynth_core.mechanisms.smoothed_histogram import SmoothedHistogram, smoothing_constant
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise, SecureNoise, SeededNoise
from dpsynth_core.privacy.samplers import _bernoulli
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from tests.tables.boxes import Side, schema_of, table_of


def precisely(epsilon: Fraction, draws: int) -> Fraction:
    """1 / (exp(eps/m) - 1) to two hundred digits."""
    with localcontext(prec=260):
        rate = Decimal(epsilon.numerator) / Decimal(epsilon.denominator * draws)
        return Fraction(1 / (rate.exp() - 1))


@given(epsilon=st.fractions(Fraction(1, 10**6), Fraction(50)).filter(bool), draws=st.integers(1, 10**7))
def test_the_constant_is_rounded_up_and_hardly(epsilon: Fraction, draws: int) -> None:
    alpha, least = smoothing_constant(epsilon, draws), precisely(epsilon, draws)
    assert alpha >= least
    assert alpha <= least * (1 + Fraction(1, 10**11))
    assert alpha < 2 * draws / epsilon  # the paper's constant is larger, about twice


@pytest.mark.parametrize(("epsilon", "draws"), [(Fraction(1, 10**9), 10**8), (Fraction(700), 1), (Fraction(3000), 2)])
def test_the_constant_is_right_at_the_ends_of_the_range(epsilon: Fraction, draws: int) -> None:
    alpha, least = smoothing_constant(epsilon, draws), precisely(epsilon, draws)
    assert least <= alpha <= least * (1 + Fraction(1, 10**11))


def sequence_losses(n: int, cells: int, draws: int, alpha: Fraction) -> Fraction:
    """The largest likelihood ratio over all neighbours and all sequences of cells drawn, in exact arithmetic."""
    worst = Fraction(1)
    tables = [c for c in product(range(n + 1), repeat=cells) if sum(c) == n]
    for counts in tables:
        for source, target in product(range(cells), repeat=2):
            if source == target or not counts[source]:
                continue
            other = list(counts)
            other[source] -= 1
            other[target] += 1
            single = [(counts[i] + alpha) / (other[i] + alpha) for i in range(cells)]  # the normaliser is the same
            for sequence in product(range(cells), repeat=draws):
                worst = max(worst, math.prod(single[i] for i in sequence))
    return worst


@pytest.mark.parametrize(("n", "cells", "draws"), [(1, 2, 1), (2, 3, 3), (3, 2, 5), (4, 3, 2)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
def test_the_loss_is_epsilon_and_not_less(n: int, cells: int, draws: int, epsilon: Fraction) -> None:
    tight = math.log(sequence_losses(n, cells, draws, smoothing_constant(epsilon, draws)))
    assert float(epsilon) * 0.999 < tight <= float(epsilon) * (1 + 1e-12)
    paper = math.log(sequence_losses(n, cells, draws, 2 * draws / epsilon))
    assert paper < 0.51 * float(epsilon) * (1 + float(epsilon) / draws)
    # A constant one percent smaller would be found out.
    assert math.log(sequence_losses(n, cells, draws, smoothing_constant(epsilon, draws) * Fraction(99, 100))) > epsilon


@given(epsilon=st.floats(0.01, 20), n=st.integers(1, 10**6), cells=st.integers(1, 10**9))
def test_as_many_draws_as_rows_is_wasserman_and_zhou(epsilon: float, n: int, cells: int) -> None:
    exact = Fraction(repr(epsilon))
    alpha = float(smoothing_constant(exact, n))
    share = cells * alpha / (n + cells * alpha)
    assert math.isclose(share, cells / (cells + n * math.expm1(epsilon / n)), rel_tol=1e-9)


SOURCES = {"seeded": lambda: SeededNoise(Budget.of(10**6), seed=8), "secure": lambda: SecureNoise(Budget.of(10**6))}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("alpha", [Fraction(1, 1000), Fraction(7, 3), Fraction(10**30 + 1, 10**29)])
def test_cells_are_drawn_by_count_plus_constant(source: str, alpha: Fraction) -> None:
    sides = [Side(3), Side(2, nullable=True)]
    counts = Counter({(0, 0): 4, (2, 1): 1, (1, 2): 2})
    noise: Noise = SOURCES[source]()
    listed = np.array(sorted(counts))
    drawn = noise.smoothed(
        listed,
        np.array([counts[tuple(cell)] for cell in listed.tolist()]),
        shape=(3, 3),
        draws=40_000,
        alpha=alpha,
        epsilon=1,
        label="test",
    )
    every = list(product(range(3), range(sides[1].size)))
    law = np.array([counts[cell] + float(alpha) for cell in every])
    observed = Counter(map(tuple, drawn.tolist()))
    got = np.array([observed[cell] for cell in every])
    assert got.sum() == 40_000
    want = law / law.sum() * got.sum()
    if want.min() < 5:  # the unoccupied cells together
        rare = want < 5
        got, want = np.append(got[~rare], got[rare].sum()), np.append(want[~rare], want[rare].sum())
    assert stats.chisquare(got, want).pvalue > 1e-9


def test_the_mechanism_draws_from_the_law_it_claims() -> None:
    sides = [Side(2, label=True), Side(3)]
    table = table_of([(0, 0)] * 3 + [(1, 2)], sides)
    epsilon, draws = Fraction(2), 3
    alpha = float(smoothing_constant(epsilon, draws))
    seen: Counter[tuple[int, int]] = Counter()
    mechanism = SmoothedHistogram(rows=draws)
    for seed in range(1_500):
        model = mechanism.fit(table, SeededNoise(Budget(epsilon=epsilon), seed=seed))
        seen.update(map(tuple, model.low.tolist()))
    every = list(product(range(2), range(3)))
    law = np.array([{(0, 0): 3, (1, 2): 1}.get(cell, 0) + alpha for cell in every])
    assert stats.chisquare([seen[cell] for cell in every], law / law.sum() * 1_500 * draws).pvalue > 1e-3


def test_a_domain_beyond_sixty_three_bits_is_drawn_from_uniformly() -> None:
    sides = [Side(1000)] * 30
    table = table_of([(7,) * 30] * 5, sides)
    mechanism = SmoothedHistogram(bins=1000, rows=4_000)
    model = mechanism.fit(table, SeededNoise(Budget.of(1), seed=3))
    assert math.prod(axis.size for axis in model.axes) == 1000**30
    assert (model.low >= 0).all()
    assert (model.high <= 1000).all()
    for column in model.low.T[:5]:
        assert stats.kstest((column + 0.5) / 1000, "uniform").pvalue > 1e-3
    frame = model.sample(50, SeededNoise(Budget.of(1), seed=4))
    assert frame.shape == (50, 30)


def test_a_domain_beyond_sixty_three_bits_still_shows_the_rows_that_epsilon_pays_for() -> None:
    table = table_of([(7,) * 30] * 5, [Side(1000)] * 30)
    noise = SeededNoise(Budget.of(10_000), seed=3)
    model = SmoothedHistogram(bins=1000, rows=2).fit(table, noise)
    assert (model.low == 7).all()
    assert noise.spent == noise.budget


AWKWARD = [
    Fraction(1, 3),
    Fraction(2, 3),
    Fraction(1, 2),
    Fraction(0),
    Fraction(1),
    Fraction(1, 2**62),
    Fraction(1, 2**70),
    1 - Fraction(1, 2**70),
    Fraction(10**40, 10**40 + 1),
    Fraction(2**61 + 1, 2**62),
    Fraction(1, 10**40),
]


class Scripted:
    """A generator whose whole numbers are written down beforehand."""

    def __init__(self, *values: int) -> None:
        self.values = list(values)

    def integers(self, low: int, high: int, size: int) -> np.ndarray:
        assert (low, high) == (0, 2**62)
        taken, self.values = self.values[:size], self.values[size:]
        return np.array(taken, dtype=np.int64)


@pytest.mark.parametrize("probability", AWKWARD)
def test_a_coin_decides_by_the_binary_digits_of_its_bias_and_ties_go_on(probability: Fraction) -> None:
    """Heads if and only if the drawn binary fraction is below the bias, to the last digit: 124 of them here."""
    first = min(math.floor(probability * 2**62), 2**62 - 1)
    second = min(math.floor((probability * 2**62 - first) * 2**62), 2**62 - 1)
    for a in {max(first - 1, 0), first, min(first + 1, 2**62 - 1)}:
        for b in {max(second - 1, 0), min(second + 1, 2**62 - 1), 0, 2**62 - 1} - {second}:
            drawn = Fraction(a, 2**62) + Fraction(b, 2**124)
            heads = _bernoulli(Scripted(a, b, 0), probability, 1)  # type: ignore[arg-type]
            assert bool(heads[0]) == (drawn < probability)


def test_coins_fall_as_often_as_they_should() -> None:
    generator = np.random.default_rng(12)
    for probability in AWKWARD:
        heads = int(_bernoulli(generator, probability, 20_000).sum())
        assert stats.binomtest(heads, 20_000, float(probability)).pvalue > 1e-3


def test_strange_cells_never_enter_the_law() -> None:
    schema = schema_of([Side(3)])
    frame = pd.DataFrame({"c0": [np.inf, -np.inf, np.nan, 1e300, 1.0]})
    table = PrivateTable(frame, Schema(columns=schema.columns))
    model = SmoothedHistogram(rows=3).fit(table, SeededNoise(Budget.of(1), seed=0))
    assert ((model.low >= 0) & (model.high <= 3)).all()
