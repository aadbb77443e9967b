"""Grids with unlisted empty cells against noise on every cell, and what is refused before it is allocated."""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.mechanisms.partition.grid import Grid, _picker, noisy_grid
from dpsynth_core.mechanisms.partition.thresholds import spurious_threshold
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.laplace import laplace_variance
from dpsynth_core.privacy.noise import SeededNoise
from tests.tables.boxes import Box, Side, agreement, cells, count, noisy_counts, schema_of, table_of, tail

SIDES = (Side(3), Side(2, nullable=True))
ROWS = ((0, 0),) * 3 + ((2, 2),) + ((1, 1),) * 2


@pytest.mark.parametrize("occupied", [[0], [5], [0, 1, 2], [3, 1, 6], [7], [0, 2, 4, 6], []])
def test_empty_cells_are_picked_uniformly_and_occupied_ones_never(occupied: list[int]) -> None:
    pick = _picker(8, np.array(occupied, dtype=np.int64), SeededNoise(Budget.of(1), seed=2))
    empty = sorted(set(range(8)) - set(occupied))
    for size in (1, 2, len(empty)):
        subsets = [frozenset(chosen) for chosen in combinations(empty, size)]
        seen = Counter(frozenset(pick(size).tolist()) for _ in range(1_500))
        assert agreement(seen, dict.fromkeys(subsets, 1 / len(subsets))) > 1e-4
    assert pick(0).tolist() == []


@given(st.sets(st.integers(0, 2**62 - 1), max_size=20), st.integers(0, 50))
def test_picks_from_a_huge_grid_are_empty_and_different(occupied: set[int], size: int) -> None:
    pick = _picker(2**62, np.array(sorted(occupied), dtype=np.int64), SeededNoise(Budget.of(1), seed=1))
    chosen = pick(size).tolist()
    assert len(set(chosen)) == size
    assert not set(chosen) & occupied
    assert all(0 <= cell < 2**62 for cell in chosen)


def released(cells_: np.ndarray, counts: np.ndarray) -> dict[Box, int]:
    return {tuple((i, i + 1) for i in cell): c for cell, c in zip(cells_.tolist(), counts.tolist(), strict=True)}


@pytest.mark.parametrize("threshold", [1, 3])
def test_unlisted_cells_have_the_law_of_noise_on_every_cell(threshold: int) -> None:
    """Algorithm 5 against Algorithm 4: which cells pass, by how much, and jointly how many."""
    epsilon, runs = Fraction(3, 2), 2_000
    scale = 2 / float(epsilon)
    grid, table = Grid.of(schema_of(SIDES), None), table_of(ROWS, SIDES)
    seen: Counter[tuple[Box, int]] = Counter()
    sizes: Counter[int] = Counter()
    for seed in range(runs):
        noise = SeededNoise(Budget(epsilon=epsilon), seed=seed)
        kept = released(*noisy_grid(grid, table, noise, threshold=threshold, label="t", most=1000))
        seen.update(kept.items())
        sizes[len(kept)] += 1
        assert noise.spent == noise.budget
    passing = []
    for box in cells(SIDES):
        rows = count(ROWS, box)
        law: dict[int | None, float] = {
            k: tail(scale, k - rows) - tail(scale, k + 1 - rows) for k in range(threshold, threshold + 9)
        }
        passing.append(tail(scale, threshold - rows))
        law[None] = 1 - sum(law.values())
        observed: Counter[int | None] = Counter({k: seen[box, k] for k in law if k is not None})
        observed[None] = runs - observed.total()
        assert agreement(observed, law) > 1e-4
    number = {0: 1.0}  # how many of independent cells pass
    for p in passing:
        number = {k: number.get(k, 0) * (1 - p) + number.get(k - 1, 0) * p for k in range(len(number) + 1)}
    assert agreement(sizes, number) > 1e-4


def test_the_plain_algorithm_agrees_with_the_fast_one_in_its_means() -> None:
    generator, epsilon = np.random.default_rng(3), 1.5
    grid, table = Grid.of(schema_of(SIDES), None), table_of(ROWS, SIDES)
    plain: Counter[Box] = Counter()
    fast: Counter[Box] = Counter()
    runs = 1_000
    for seed in range(runs):
        plain.update(noisy_counts(ROWS, list(cells(SIDES)), 2 / epsilon, 2, generator).keys())
        noise = SeededNoise(Budget.of("1.5"), seed=10_000 + seed)
        fast.update(released(*noisy_grid(grid, table, noise, threshold=2, label="t", most=1000)).keys())
    for box in cells(SIDES):
        table_2x2 = [[plain[box], runs - plain[box]], [fast[box], runs - fast[box]]]
        assert stats.fisher_exact(table_2x2).pvalue > 1e-4


@given(cells_=st.integers(1, 2**62), rows=st.integers(1, 10**7), scale=st.fractions(Fraction(1, 10), Fraction(1000)))
def test_the_default_threshold_is_the_smallest_at_which_noise_invents_one_row_in_a_hundred(
    cells_: int, rows: int, scale: Fraction
) -> None:
    threshold = spurious_threshold(cells_, rows, scale)
    a = math.exp(-1 / scale)

    def invented(t: int) -> float:
        # E[X; X >= t] of one cell by its tails: t P(X >= t) + sum over k > t of P(X >= k).
        each = t * tail(float(scale), t) + tail(float(scale), t + 1) / (1 - a)
        return cells_ * each

    assert threshold >= 1
    assert invented(threshold) <= rows / 100 * (1 + 1e-6)
    assert threshold == 1 or invented(threshold - 1) >= rows / 100 * (1 - 1e-6)


def test_the_default_threshold_does_what_it_says_in_a_run() -> None:
    sides = (Side(40), Side(40))
    table = table_of([(0, 0)] * 2_000, sides)
    invented = []
    for seed in range(200):
        model = KDGrid().fit(table, SeededNoise(Budget.of(1), seed=seed))
        spurious = (model.low != 0).any(axis=1)
        # Weights are rescaled to the number of rows; undo that by the heavy cell, whose noise is a few rows.
        invented.append(model.weights[spurious].sum())
    assert 0.3 * 20 < np.mean(invented) < 1.5 * 20


@given(st.fractions(Fraction(1, 20), Fraction(50)))
def test_the_variance_of_the_noise_is_that_of_its_law(scale: Fraction) -> None:
    k = np.arange(-4000, 4001)
    law = np.exp(-np.abs(k) / float(scale))
    assert math.isclose(laplace_variance(scale), (k**2 * law).sum() / law.sum(), rel_tol=1e-6)


@pytest.mark.parametrize(
    "mechanism", [PerturbedHistogram(bins=1000), KDGrid(bins=1000, threshold=1), KDGrid(bins=60_000)]
)
def test_too_many_cells_are_refused_before_anything_is_allocated(mechanism: PerturbedHistogram | KDGrid) -> None:
    table = table_of([(1, 1, 1, 1)] * 10, [Side(60_000)] * 4)
    noise = SeededNoise(Budget.of(1), seed=0)
    tracemalloc.start()
    with pytest.raises(ParameterError, match="KD tree or Smoothed histogram"):
        mechanism.fit(table, noise)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000
    assert noise.charges == ()
