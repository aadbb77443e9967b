"""Balog's two algorithms and DP-MERF: what one row can move, what the noise costs, and what comes out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dpsynth_core as dp
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.mean_embedding.balog_features import fitted
from dpsynth_core.mechanisms.mean_embedding.balog_points import orthonormal
from dpsynth_core.mechanisms.mean_embedding.domain_points import (
    PointSpace,
    WeightedPoints,
    gaussian_kernel,
    nearest_shares,
)
from dpsynth_core.mechanisms.mean_embedding.dp_merf import DPMERF
from dpsynth_core.mechanisms.mean_embedding.fourier import ascent, fourier, frequencies
from dpsynth_core.mechanisms.mean_embedding.noisy_mean import STEPS, embedded_sum, mean_draw, on_lattice
from dpsynth_core.mechanisms.recommend import recommended
from dpsynth_core.privacy.accounting import ROUNDING, gaussian_delta, gaussian_mu
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.progress import no_progress
from tests.tables.schemas import mixed_schema, mixed_table

DELTA = Fraction(1, 10**6)
COMPARATORS = ("balog_points", "balog_features", "dp_merf")
NUMBERS = dp.Schema.from_dict(
    {"columns": [{"name": name, "kind": "continuous", "lower": -5, "upper": 5, "public": True} for name in "xy"]}
)


def noise(seed: int = 0) -> SeededNoise:
    return SeededNoise(Budget.of(1, DELTA), seed)


def two_clouds(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    left = rng.random(n) < 0.7
    return pd.DataFrame(
        {"x": rng.normal(np.where(left, -2, 2), 0.5).clip(-5, 5), "y": rng.normal(np.where(left, 1, -1), 0.5)}
    )


# What one row can move


@given(
    arrays(np.float64, (2, 7), elements=st.floats(allow_nan=True, allow_infinity=True)),
    st.sampled_from([1e-300, 1e-3, 1.0, 3.0, 1e300]),
)
@settings(max_examples=300)
def test_no_vector_is_longer_than_one_whatever_it_was(vectors: Any, factor: float) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        whole = on_lattice(vectors * factor).astype(object)
    for vector in whole:
        assert sum(value**2 for value in vector) <= STEPS**2  # in whole numbers, without rounding
    assert sum((a - b) ** 2 for a, b in zip(*whole, strict=True)) <= (2 * STEPS) ** 2


def test_two_steps_are_attained_so_that_the_bound_is_not_loose() -> None:
    whole = on_lattice(np.array([[1.0, 0.0], [-1.0, 0.0]]))
    assert np.abs(whole[0] - whole[1]).max() >= 2 * STEPS * (1 - 1e-5)


@pytest.mark.parametrize("label", [None, "sex", "pain"])
def test_a_replaced_row_moves_all_sums_together_by_no_more_than_declared(label: str | None) -> None:
    """Every kind of replacement: other numbers, another label, a missing one; by brute force over many rows."""
    schema, rng = mixed_schema(), np.random.default_rng(1)
    space, omega = PointSpace.of(schema, None), frequencies(40, PointSpace.of(schema, None).size, noise())
    mechanism = DPMERF(label=label)
    before = mixed_table(30)

    def sums(table: pd.DataFrame) -> Any:
        private = dp.PrivateTable(table, schema)
        return embedded_sum(
            space.encode(private),
            mechanism._groups(private),
            lambda rows: fourier(rows, omega),
            shape=(mechanism._labels(schema), 80),
            progress=no_progress,
        )

    base, largest = sums(before), 0
    for seed in range(60):
        after = before.copy()
        row = int(rng.integers(30))
        after.loc[row] = mixed_table(1, seed=100 + seed).loc[0]
        after.loc[row, "pain"] = [None, "no", "some", "much"][seed % 4]
        moved = int(np.square((sums(after) - base).astype(object)).sum())
        largest = max(largest, moved)
    assert largest <= mean_draw(Fraction(1), DELTA).squared
    assert largest >= STEPS**2  # it does move


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 10), Fraction(1), Fraction(10), Fraction(100)])
def test_the_noise_is_that_of_the_gaussian_mechanism_and_hardly_more(epsilon: Fraction) -> None:
    draw = mean_draw(epsilon, DELTA)
    mu = 2 * STEPS / math.sqrt(draw.scale**2 - ROUNDING**2)
    # Balle & Wang's exact curve, computed apart from the accountant that accepted the draw.
    assert float(gaussian_delta(np.array(float(epsilon)), mu)) <= float(DELTA)
    assert mu >= 0.97 * gaussian_mu(float(epsilon), float(DELTA))


def test_several_rows_of_a_person_get_as_much_more_noise() -> None:
    """By Budget.per_row: k rows a person run at epsilon / k and a delta that the group property pays for."""
    for k in (2, 4):
        table = dp.PrivateTable(mixed_table(60), mixed_schema(rows_per_person=k))
        release = dp.synthesize(table, MECHANISMS["balog_points"](points=5), epsilon=1, delta=DELTA, seed=0)
        (charge,) = release.charges
        assert charge.budget == Budget.of(1, DELTA).per_row(k)
        assert release.guarantee.rows_per_person == k


# The parts


def test_features_have_norm_one_and_the_kernels_inner_products() -> None:
    rng = np.random.default_rng(2)
    points = rng.normal(size=(20, 3))
    features = fourier(points, frequencies(20_000, 3, noise()))
    np.testing.assert_allclose(np.square(features).sum(axis=1), 1, atol=1e-12)
    # 20,000 frequencies: standard errors below 0.006.
    np.testing.assert_allclose(features @ features.T, gaussian_kernel(points, points), atol=0.03)


def test_the_gradient_is_the_slope_of_the_inner_product() -> None:
    rng = np.random.default_rng(3)
    omega, wanted, point = rng.normal(size=(2, 30)), rng.normal(size=60), rng.normal(size=(1, 2))
    for axis in range(2):
        step = np.zeros((1, 2))
        step[0, axis] = 1e-6
        slope = (fourier(point + step, omega) - fourier(point - step, omega)) @ wanted / 2e-6
        assert ascent(point, omega, wanted)[0, axis] == pytest.approx(float(slope[0]), abs=1e-5)


def test_projections_are_shorter_than_what_is_projected() -> None:
    rng = np.random.default_rng(4)
    points, rows = rng.normal(size=(15, 2)), rng.normal(size=(200, 2)) * 2
    basis = orthonormal(gaussian_kernel(points, points))
    lengths = np.square(gaussian_kernel(rows, points) @ basis).sum(axis=1)
    assert (lengths <= 1 + 1e-9).all()  # |k(x, .)| = 1
    np.testing.assert_allclose(np.square(gaussian_kernel(points, points) @ basis).sum(axis=1), 1, atol=1e-6)


def test_shares_and_weights_recover_a_mixture() -> None:
    rng = np.random.default_rng(5)
    basis, shares = rng.normal(size=(50, 6)), np.array([0.5, 0.3, 0.2, 0, 0, 0])
    np.testing.assert_allclose(nearest_shares(basis, basis @ shares), shares, atol=1e-6)
    np.testing.assert_allclose(fitted(basis, basis @ shares), shares, atol=1e-5)
    assert nearest_shares(basis, np.zeros(50)).tolist() == [1 / 6] * 6


def test_rows_that_differ_in_one_label_are_two_kernel_widths_apart() -> None:
    schema = mixed_schema()
    table = mixed_table(1)
    private = [dp.PrivateTable(table.assign(sex=sex), schema) for sex in ("f", "m")]
    space = PointSpace.of(schema, None)
    first, second = (space.encode(each) for each in private)
    assert float(gaussian_kernel(first, second)[0, 0]) == pytest.approx(math.exp(-2))


# What comes out


@pytest.mark.parametrize("key", ["balog_points", "balog_features"])
def test_with_hardly_any_noise_the_clouds_are_found(key: str) -> None:
    table = dp.PrivateTable(two_clouds(3_000), NUMBERS)
    release = dp.synthesize(table, MECHANISMS[key](), epsilon=100, delta=DELTA, seed=1)
    assert isinstance(release.model, WeightedPoints)
    rows = release.sample(3_000)
    assert (rows["x"] < 0).mean() == pytest.approx(0.7, abs=0.06)
    assert rows.loc[rows["x"] < 0, "y"].mean() == pytest.approx(1, abs=0.3)
    assert rows.loc[rows["x"] > 0, "y"].mean() == pytest.approx(-1, abs=0.3)
    assert release.model.shares.min() >= 0


def test_more_epsilon_brings_the_released_weights_closer_to_the_mean_embedding() -> None:
    table = dp.PrivateTable(two_clouds(2_000), NUMBERS)
    space = PointSpace.of(NUMBERS, None)
    rows = space.encode(table)
    distances = []
    for epsilon in (0.01, 0.1, 1, 100):
        found = dp.synthesize(table, MECHANISMS["balog_points"](points=60), epsilon=epsilon, delta=DELTA, seed=2).model
        assert isinstance(found, WeightedPoints)
        at, w = gaussian_kernel(rows, found.points).mean(axis=0), found.weights
        squared = gaussian_kernel(rows, rows).mean() - 2 * w @ at + w @ gaussian_kernel(found.points, found.points) @ w
        distances.append(math.sqrt(max(0.0, float(squared))))
    assert distances == sorted(distances, reverse=True)


@pytest.mark.slow
def test_dp_merf_keeps_what_tells_a_label() -> None:
    """Rows of either label come from their own cloud."""
    schema = dp.Schema.from_dict(
        {"columns": [*NUMBERS.to_dict()["columns"], {"name": "left", "kind": "boolean", "public": True}]}
    )
    rows = two_clouds(3_000)
    table = dp.PrivateTable(rows.assign(left=rows["x"] < 0), schema)
    for label in (None, "left"):
        made = dp.synthesize(table, MECHANISMS["dp_merf"](label=label), epsilon=10, delta=DELTA, seed=3).sample()  # type: ignore[call-arg]
        assert made["left"].mean() == pytest.approx(0.7, abs=0.1)
        assert (made["left"] == (made["x"] < 0)).mean() > 0.9
        assert made.loc[made["left"], "y"].mean() == pytest.approx(1, abs=0.3)


def test_a_label_must_be_a_column_of_labels() -> None:
    table = dp.PrivateTable(mixed_table(50), mixed_schema())
    for wrong in ("income", "colour"):
        with pytest.raises(dp.ParameterError, match="label"):
            MECHANISMS["dp_merf"](label=wrong).plan(table.schema, 50, Budget.of(1, DELTA))  # type: ignore[call-arg]


# Comparators


def test_comparators_are_marked_need_a_delta_and_are_never_recommended() -> None:
    marked = {key for key, kind in MECHANISMS.items() if kind.comparator}
    assert marked == set(COMPARATORS)
    for key in COMPARATORS:
        assert MECHANISMS[key].needs_delta
        with pytest.raises(dp.ParameterError, match="delta"):
            dp.synthesize(dp.PrivateTable(mixed_table(20), mixed_schema()), MECHANISMS[key](), epsilon=1)
    assert not {recommended(example.schema) for example in dp.EXAMPLES.values()} & marked
