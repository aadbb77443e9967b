"""Projection onto the simplex: met, and nothing nearer lies on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_core.mechanisms.simplex import project_to_simplex

noisy_counts = st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=40).map(np.array)


@given(values=noisy_counts, total=st.just(0.0) | st.floats(1e-3, 1e5))
def test_the_simplex_is_met_and_nothing_nearer_lies_on_it(values: np.ndarray[Any, Any], total: float) -> None:
    found = project_to_simplex(values, total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-9, abs=1e-6)
    # Kuhn-Tucker: what stays positive was lowered by one and the same amount, and nothing was lowered by less.
    lowered = values - found
    if total > 0:
        assert np.ptp(lowered[found > 0]) < 1e-6
        assert (lowered[found == 0] <= lowered[found > 0].max() + 1e-6).all()


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=12), st.floats(0.1, 100))
@settings(max_examples=100, deadline=None)
def test_the_simplex_gets_the_nearest_point(points: list[float], total: float) -> None:
    y = np.array([points])
    found = project_to_simplex(y, total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total, rel=1e-9)
    rng = np.random.default_rng(len(points))
    for other in rng.dirichlet(np.ones(len(points)), 20) * total:
        assert np.linalg.norm(found - y) <= np.linalg.norm(other - y) + 1e-6
