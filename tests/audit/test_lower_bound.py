"""The bound never exceeds the truth more often than it may, and comes near it with enough runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpsynth_core.audit.lower_bound import ceiling, lower_bound, proportion


@given(runs=st.integers(1, 400), data=st.data(), alpha=st.sampled_from([0.05, 1e-3, 1e-8]))
def test_ends_are_those_of_clopper_and_pearson(runs: int, data: st.DataObject, alpha: float) -> None:
    hits = data.draw(st.integers(0, runs))
    low, high = proportion(hits, runs, alpha)
    known = stats.binomtest(hits, runs).proportion_ci(1 - 2 * alpha, "exact")
    assert math.isclose(float(low), known.low, rel_tol=1e-6, abs_tol=1e-12)
    assert math.isclose(float(high), known.high, rel_tol=1e-6, abs_tol=1e-12)


def laplace_pair(epsilon: float, runs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy counts of 0 and 1 that cost exactly epsilon to tell apart."""
    generator = np.random.default_rng(seed)
    success = -math.expm1(-epsilon)
    noise = generator.geometric(success, (2, runs)) - generator.geometric(success, (2, runs))
    return (0 + noise[0]).astype(float), (1 + noise[1]).astype(float)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_bound_comes_near_the_truth_and_stays_below(epsilon: float) -> None:
    bound = lower_bound(*laplace_pair(epsilon, 200_000, 1), alpha=1e-6)
    assert 0.85 * epsilon < bound.epsilon <= epsilon
    assert not bound.refutes(epsilon)
    assert bound.refutes(0.8 * epsilon)


def test_it_errs_no_more_often_than_it_may() -> None:
    epsilon, alpha, repetitions = 0.3, 0.1, 400
    wrong = sum(lower_bound(*laplace_pair(epsilon, 300, seed), alpha=alpha).refutes(epsilon) for seed in range(400))
    assert stats.binomtest(wrong, repetitions, alpha, alternative="greater").pvalue > 1e-3


def test_the_half_that_chooses_does_not_test() -> None:
    """Samples that differ in the first half only: whatever is chosen there proves nothing in the second."""
    first = np.append(np.zeros(500), np.random.default_rng(1).random(500))
    second = np.append(np.ones(500), np.random.default_rng(2).random(500))
    assert lower_bound(first, second, alpha=1e-3).epsilon == 0.0


def test_certainty_reaches_the_ceiling_and_delta_lowers_it() -> None:
    apart = np.zeros(1000), np.ones(1000)
    bound = lower_bound(*apart, alpha=1e-6)
    assert math.isclose(bound.epsilon, ceiling(1000, alpha=1e-6))
    assert lower_bound(*apart, alpha=1e-6, delta=0.5).epsilon < bound.epsilon
    assert bound.hits == (500, 0)


def test_a_gaussian_shift_shows_in_mu() -> None:
    generator = np.random.default_rng(3)
    first, second = generator.normal(0, 1, 100_000), generator.normal(2, 1, 100_000)
    bound = lower_bound(first, second, alpha=1e-6)
    assert 1.2 < bound.mu <= 2.0


def test_equal_samples_prove_nothing() -> None:
    same = np.ones(100)
    bound = lower_bound(same, same, alpha=0.05)
    assert bound.epsilon == 0.0
    assert bound.mu == 0.0
