"""Quantiles by buckets are those of the sorted values, or are left to sorting."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_core.arrays import FloatArray
from dpsynth_core.trees.quantiles import quick_quantiles

RNG = np.random.default_rng(4)
SPREAD = {
    "normal": RNG.normal(size=5_000),
    "skewed": RNG.exponential(size=3_000),
    "rounded": np.round(RNG.normal(size=5_000), 2),
    "large": 1e12 + RNG.random(700),
    "tiny": 1e-300 * RNG.random(2_000),
    "many times the same": np.where(RNG.random(4_000) < 0.01, 0.5, RNG.random(4_000)),
}
LEFT = {
    "few": np.arange(100.0),
    "all the same": np.ones(1_000),
    "few different ones": RNG.integers(0, 20, 1_000).astype(np.float64),
    "missing": np.append(RNG.random(1_000), np.nan),
    "infinite": np.append(RNG.random(1_000), -np.inf),
    "too wide": np.append(RNG.random(1_000), [-1.7e308, 1.7e308]),
    "an outlier": np.append(RNG.random(5_000), 1e9),
}


@pytest.mark.parametrize("values", SPREAD.values(), ids=SPREAD)
@pytest.mark.parametrize("bins", [1, 7, 32, 500])
def test_they_are_those_of_the_sorted_values(values: FloatArray, bins: int) -> None:
    found = quick_quantiles(values, bins)
    ordered = np.sort(values)
    ranks = [-(-k * len(values) // bins) - 1 for k in range(1, bins + 1)]
    if found is None:  # as many different values as buckets are not seen as such
        assert bins == 500
        return
    least, thresholds = found
    assert least == ordered[0]
    np.testing.assert_array_equal(thresholds, np.unique(ordered[ranks]))


@pytest.mark.parametrize("values", LEFT.values(), ids=LEFT)
def test_what_takes_sorting_is_left_to_it(values: FloatArray) -> None:
    assert quick_quantiles(values, 32) is None
