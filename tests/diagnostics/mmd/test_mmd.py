from __future__ import annotations

import math

import numpy as np
import pytest

from dpsynth_core.diagnostics.mmd.diagnostic import halves_distance, median_gamma, mmd_with_error, permutation_test
from dpsynth_core.diagnostics.mmd.distance import mmd
from dpsynth_core.diagnostics.mmd.random_features import random_feature_mmd


def cloud(rows: int, seed: int, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(shift, 1, size=(rows, 3))


def test_the_distance_with_its_error_is_the_exact_one() -> None:
    x, y = cloud(70, 1), cloud(50, 2, 0.5)
    value, error = mmd_with_error(x, y, 0.2)
    assert value == pytest.approx(mmd(x, y, 0.2), abs=1e-9)
    assert error > 0


def test_the_standard_error_is_the_spread_over_samples() -> None:
    found = [mmd_with_error(cloud(150, 2 * i), cloud(150, 2 * i + 1, 0.8), 0.2) for i in range(150)]
    spread = np.std([value for value, _ in found], ddof=1)
    # The standard deviation of 150 draws is known to about 6%; the delta method adds its own error.
    assert np.mean([error for _, error in found]) == pytest.approx(spread, rel=0.25)


def test_random_features_are_within_their_stated_error() -> None:
    x, y = cloud(300, 1), cloud(200, 2, 0.3)
    exact = mmd(x, y, 0.2)
    found = [random_feature_mmd(x, y, 0.2, np.random.default_rng(seed), 256) for seed in range(100)]
    scores = [(one.value**2 - exact**2) / (2 * one.value * one.error) for one in found]
    assert abs(np.mean(scores)) < 0.5  # five standard errors of a mean of 100
    assert 0.7 < np.std(scores) < 1.3
    assert found[0].sampling == pytest.approx(mmd_with_error(x, y, 0.2)[1], rel=0.3)


def test_permutation_p_values_are_uniform_under_one_law_and_small_under_two() -> None:
    p_values = [
        permutation_test(cloud(40, 2 * i), cloud(40, 2 * i + 1), 0.2, np.random.default_rng(i), permutations=99)[0]
        for i in range(200)
    ]
    assert min(p_values) >= 0.01
    rejected = sum(p <= 0.05 for p in p_values)
    assert rejected <= 25  # P(Bin(200, 0.05) > 25) < 1e-4
    p_value, null = permutation_test(cloud(60, 1), cloud(60, 2, 1.0), 0.2, np.random.default_rng(0), permutations=499)
    assert p_value == pytest.approx(1 / 500)
    assert len(null) == 499


def test_permuting_is_done_without_computing_the_kernel_again() -> None:
    """The first rearrangements, by the definition: the distance between the rearranged point sets."""
    x, y = cloud(12, 1), cloud(9, 2)
    rng = np.random.default_rng(3)
    _, null = permutation_test(x, y, 0.3, rng, permutations=25)
    pooled, rng = np.concatenate([x, y]), np.random.default_rng(3)
    for distance in null:
        signs = rng.permutation(np.repeat([1, -1], [12, 9]))
        assert distance == pytest.approx(mmd(pooled[signs > 0], pooled[signs < 0], 0.3), abs=1e-9)


def test_two_halves_scaled_to_full_size_are_as_far_apart_as_two_samples() -> None:
    halves = [halves_distance(cloud(400, i), 400, 0.2, np.random.default_rng(i)) for i in range(30)]
    samples = [mmd(cloud(400, 100 + i), cloud(400, 200 + i), 0.2) for i in range(30)]
    error = math.hypot(np.std(halves), np.std(samples)) / math.sqrt(30)
    assert abs(np.mean(halves) - np.mean(samples)) < 5 * error


def test_gamma_is_one_over_the_median_square_distance() -> None:
    points = np.array([[0.0], [1.0], [3.0]])
    assert median_gamma(points, np.random.default_rng(0)) == pytest.approx(1 / 4)
    assert median_gamma(np.zeros((5, 2)), np.random.default_rng(0)) == 1.0
