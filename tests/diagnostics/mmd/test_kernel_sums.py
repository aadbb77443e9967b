"""Compiled sums of the kernel against plain double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsynth_core.diagnostics.mmd.diagnostic import mmd_with_error
from dpsynth_core.diagnostics.mmd.distance import mmd, witnesses
from dpsynth_core.diagnostics.mmd.kernel_sums import density_sums, kernel_points, mutual_sums, own_sums

Array = NDArray[np.float64]


def plain(x: Array, y: Array, gamma: float) -> Array:
    return np.exp(-gamma * np.square(x[:, None] - y[None]).sum(axis=2))


@pytest.mark.parametrize("columns", [1, 4, 5, 11])
@pytest.mark.parametrize("rows", [(1, 1), (3, 1500), (1024, 1025), (2300, 700)])
def test_sums_are_those_of_plain_arithmetic(rows: tuple[int, int], columns: int) -> None:
    """Blocks that fit, that do not, and several threads."""
    rng = np.random.default_rng(sum(rows))
    x, y = (rng.normal(size=(n, columns)) for n in rows)
    u, v = (rng.random(n) / n for n in rows)
    kernel, origin = plain(x, y, 0.3), x.mean(axis=0)
    first, second = (kernel_points(points, origin, 0.3) for points in (x, y))
    at_x, at_y = mutual_sums(first, u, second, v)
    np.testing.assert_allclose(at_x, kernel @ v, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(at_y, u @ kernel, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(density_sums(first, u, second), u @ kernel, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(own_sums(first, u), plain(x, x, 0.3) @ u, rtol=1e-11, atol=1e-13)


def test_the_exponential_is_right_from_zero_to_nothing() -> None:
    """All distances that matter, and some that do not."""
    distances = np.concatenate([np.linspace(0, 10, 5001), [26.0, 1e3, 1e60]])[:, None]
    at = kernel_points(distances, np.zeros(1), 1.0)
    found = density_sums(kernel_points(np.zeros((1, 1)), np.zeros(1), 1.0), np.ones(1), at)
    np.testing.assert_allclose(found, np.exp(-np.square(distances[:, 0])), rtol=0, atol=3e-13)


@pytest.mark.parametrize("shift", [0.0, 0.001, 0.5])
def test_mmd_is_exact_to_seven_digits_even_where_the_tables_are_alike(shift: float) -> None:
    """The root of a small difference magnifies errors: single precision would fail here."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(1500, 5))
    y = rng.permutation(x) + shift
    exact = math.sqrt(max(0.0, plain(x, x, 0.1).mean() - 2 * plain(x, y, 0.1).mean() + plain(y, y, 0.1).mean()))
    assert mmd(x, y, 0.1) == pytest.approx(exact, abs=1e-7)
    assert mmd_with_error(x, y, 0.1)[0] == pytest.approx(exact, abs=1e-7)


def test_witnesses_are_differences_of_densities() -> None:
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(700, 2)), rng.normal(0.3, 1, size=(900, 2))
    at_x, at_y = witnesses(x, y, 0.5)
    np.testing.assert_allclose(at_x, plain(x, x, 0.5).mean(axis=1) - plain(x, y, 0.5).mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(at_y, plain(y, x, 0.5).mean(axis=1) - plain(y, y, 0.5).mean(axis=1), atol=1e-12)
