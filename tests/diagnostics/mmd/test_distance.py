"""Kernel distances: against a plain double loop, closed forms and each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsynth_core.diagnostics.mmd.distance import kernel_density, kernel_mean, mmd, sup_density_distance
from dpsynth_core.errors import ParameterError

Array = NDArray[np.float64]


def slow_mean(X: Array, Y: Array, gamma: float, wx: Array, wy: Array) -> float:
    total = 0.0
    for x, u in zip(X, wx / wx.sum(), strict=True):
        for y, v in zip(Y, wy / wy.sum(), strict=True):
            total += u * v * math.exp(-gamma * sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))
    return total


def slow_mmd(X: Array, Y: Array, gamma: float, wx: Array, wy: Array) -> float:
    squared = slow_mean(X, X, gamma, wx, wx) - 2 * slow_mean(X, Y, gamma, wx, wy) + slow_mean(Y, Y, gamma, wy, wy)
    return math.sqrt(max(0.0, squared))


@st.composite
def two_sets(draw: st.DrawFn) -> tuple[Array, Array, Array, Array, float]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m, d = draw(st.integers(1, 40)), draw(st.integers(1, 40)), draw(st.integers(1, 6))
    far = draw(st.sampled_from([0.0, 1e6]))  # far from the origin, where careless squares lose digits
    X, Y = rng.normal(far, 1, (n, d)), rng.normal(far + 0.5, 2, (m, d))
    return X, Y, rng.random(n) + 0.01, rng.random(m) + 0.01, draw(st.sampled_from([0.01, 0.5, 7.0]))


@given(two_sets())
def test_blocks_agree_with_a_double_loop(sets: tuple[Array, Array, Array, Array, float]) -> None:
    X, Y, wx, wy, gamma = sets
    assert kernel_mean(X, Y, gamma, wx, wy) == pytest.approx(slow_mean(X, Y, gamma, wx, wy), rel=1e-9, abs=1e-15)
    assert mmd(X, Y, gamma, wx, wy) == pytest.approx(slow_mmd(X, Y, gamma, wx, wy), rel=1e-6, abs=1e-7)


@given(two_sets())
def test_it_is_a_distance(sets: tuple[Array, Array, Array, Array, float]) -> None:
    X, Y, wx, wy, gamma = sets
    there, back = mmd(X, Y, gamma, wx, wy), mmd(Y, X, gamma, wy, wx)
    assert there == pytest.approx(back, rel=1e-6, abs=1e-7)
    assert 0 <= there <= math.sqrt(2) + 1e-12
    assert mmd(X, X.copy(), gamma, wx, wx.copy()) == pytest.approx(0, abs=1e-7)
    at = np.concatenate([X, Y])
    assert sup_density_distance(X, Y, gamma, at, wx, wy) <= there + 1e-7


def test_sets_larger_than_a_block_agree_with_plain_arithmetic() -> None:
    rng = np.random.default_rng(5)
    X, Y = rng.normal(size=(2500, 3)), rng.normal(0.1, 1, size=(1100, 3))
    w = rng.random(2500)
    pairs = np.exp(-0.4 * np.square(X[:, None] - Y[None]).sum(axis=2))
    own = np.exp(-0.4 * np.square(X[:, None] - X[None]).sum(axis=2))
    share = w / w.sum()
    assert kernel_mean(X, Y, 0.4, w) == pytest.approx(share @ pairs.mean(axis=1), rel=1e-12)
    assert kernel_mean(X, X, 0.4, w, w) == pytest.approx(share @ own @ share, rel=1e-12)
    assert kernel_density(Y, 0.4, X) == pytest.approx(pairs.mean(axis=1), rel=1e-12)


def test_weights_are_repetitions() -> None:
    rng = np.random.default_rng(1)
    X, Y, times = rng.normal(size=(50, 2)), rng.normal(size=(30, 2)), rng.integers(1, 5, 50)
    assert mmd(X, Y, 1.0, wx=times) == pytest.approx(mmd(np.repeat(X, times, axis=0), Y, 1.0), rel=1e-9)
    assert mmd(X, Y, 1.0, wx=times) == pytest.approx(mmd(X, Y, 1.0, wx=times * 1e80), rel=1e-12)


def test_a_known_inner_product_is_reused() -> None:
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(200, 2)), rng.normal(size=(30, 2))
    assert mmd(X, Y, 1.0, xx=kernel_mean(X, X, 1.0)) == mmd(X, Y, 1.0)


def test_two_points_and_a_single_column() -> None:
    assert mmd([0.0], [1.0], 0.5) == pytest.approx(math.sqrt(2 - 2 * math.exp(-0.5)))
    assert mmd([[0.0]], [[1.0]], 0.5) == mmd([0.0], [1.0], 0.5)
    assert mmd([0.0], [1e9], 0.5) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("d", [1, 3])
def test_samples_of_a_gaussian_have_the_closed_form(d: int) -> None:
    """Kreačić et al., Equation 22: E k(x, x') = (1 + 4 gamma)^(-d/2) for two standard Gaussian vectors.

    The V-statistic of n points exceeds it by (1 - E k)/n on average; its standard deviation is below 1.5/sqrt(n).
    """
    n, gamma = 4000, 0.3
    Z = np.random.default_rng(d).normal(size=(n, d))
    expected = (1 + 4 * gamma) ** (-d / 2)
    assert kernel_mean(Z, Z, gamma) == pytest.approx(expected + (1 - expected) / n, abs=6 * 1.5 / math.sqrt(n))
    # KD of the law at a point z: (1 + 2 gamma)^(-d/2) exp(-gamma |z|^2 / (1 + 2 gamma)).
    at = np.linspace(-2, 2, 9)[:, None] * np.ones(d)
    law = (1 + 2 * gamma) ** (-d / 2) * np.exp(-gamma * np.square(at).sum(axis=1) / (1 + 2 * gamma))
    assert np.abs(kernel_density(Z, gamma, at) - law).max() < 6 * 0.5 / math.sqrt(n)


def test_two_gaussians_are_as_far_apart_as_the_closed_form_says() -> None:
    """Gauss-Hermite quadrature turns each law into weighted points, so that no sampling error is left.

    For N(0, 1) and N(m, s^2): E k(x, y) = (1 + 2 gamma (1 + s^2))^(-1/2) exp(-gamma m^2 / (1 + 2 gamma (1 + s^2))).
    """
    gamma, m, s = 0.3, 0.7, 1.4
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)

    def law(total: float, shift: float) -> float:
        spread = 1 + 2 * gamma * total
        return spread**-0.5 * math.exp(-gamma * shift**2 / spread)

    expected = math.sqrt(law(2, 0) - 2 * law(1 + s * s, m) + law(2 * s * s, 0))
    assert mmd(nodes, m + s * nodes, gamma, weights, weights) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("parameter", "arguments"),
    [
        ("X", {"X": [[math.nan]]}),
        ("X", {"X": [["Alice"]]}),
        ("X", {"X": np.zeros((0, 1))}),
        ("X", {"X": [[1e200]]}),
        ("Y", {"Y": [[0.0, 0.0]]}),
        ("gamma", {"gamma": 0.0}),
        ("gamma", {"gamma": math.inf}),
        ("wx", {"wx": [1.0, 2.0]}),
        ("wx", {"wx": [-1.0]}),
        ("wy", {"wy": [0.0]}),
        ("xx", {"xx": 1.5}),
    ],
)
def test_bad_input_is_named_without_quoting_a_cell(parameter: str, arguments: dict[str, object]) -> None:
    good: dict[str, object] = {"X": [[0.0]], "Y": [[1.0]], "gamma": 1.0}
    with pytest.raises(ParameterError) as caught:
        mmd(**{**good, **arguments})  # type: ignore[arg-type]
    assert caught.value.parameter == parameter
    assert "Alice" not in str(caught.value)
