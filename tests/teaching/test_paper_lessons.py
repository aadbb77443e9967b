"""The lessons on bin widths and on one row: closed forms against plain sums and simulation, bounds against trees."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from dpsynth_core.charts.lessons import bin_width_chart, row_moves_chart
from dpsynth_core.diagnostics.mmd.distance import mmd
from dpsynth_core.errors import ParameterError
from dpsynth_core.teaching.bin_width import (
    RANGE,
    best_weights,
    bin_widths,
    kl_divergence,
    noisy_squared_mmd,
    squared_mmd,
)
from dpsynth_core.teaching.grid_promises import grid_promises
from dpsynth_core.teaching.one_row import BEST, PAPER_BOUND, PROVEN_BOUND, ROUNDING, one_row_moves


@pytest.mark.parametrize("width", [0.3, 0.8, 1.5])
def test_the_divergence_is_the_integral(width: float) -> None:
    """Equation 25 against numerical integration of q log(q / p)."""
    weights = best_weights(width, side_bins=3)
    total = 0.0
    for i, weight in zip(range(-3, 4), weights, strict=True):
        low, high, q = (i - 0.5) * width, (i + 0.5) * width, weight / width
        total += integrate.quad(lambda x, q=q: q * (np.log(q) - stats.norm.logpdf(x)), low, high)[0]
    assert kl_divergence(width, weights) == pytest.approx(total, rel=1e-9)


def test_no_other_weights_have_a_smaller_divergence() -> None:
    """Equations 26 and 27 are the minimum: every small change that keeps the sum makes it larger."""
    weights, rng = best_weights(0.7), np.random.default_rng(1)
    least = kl_divergence(0.7, weights)
    for _ in range(50):
        step = rng.normal(size=len(weights)) * 1e-3 * weights.min()
        assert kl_divergence(0.7, weights + step - step.mean()) > least


def test_the_distance_is_that_of_a_large_sample() -> None:
    """Section H.1 against the plain MMD of 40,000 normal rows, which adds about 1/200 of sampling error."""
    points, weights = np.arange(-2, 3) * 1.2, best_weights(1.2, side_bins=2)
    rows = np.random.default_rng(3).normal(size=(20_000, 1))
    sampled = mmd(rows, points[:, None], 0.5, wy=weights)
    assert np.sqrt(squared_mmd(points, weights)) == pytest.approx(sampled, abs=4 / np.sqrt(20_000))


def test_noise_adds_what_the_closed_form_says() -> None:
    """Against simulated noise on the exact shares: the mean of 3,000 squared distances, within five standard errors."""
    bins, epsilon, rows, rng = 10, 0.5, 300, np.random.default_rng(5)
    edges = np.linspace(-RANGE, RANGE, bins + 1)
    shares, centres = np.diff(stats.norm.cdf(edges)), (edges[1:] + edges[:-1]) / 2
    stay = np.exp(-epsilon / 2)
    noise = rng.geometric(1 - stay, (3_000, bins)) - rng.geometric(1 - stay, (3_000, bins))
    found = [squared_mmd(centres, shares + each / rows) for each in noise]
    error = float(np.std(found)) / np.sqrt(len(found))
    assert noisy_squared_mmd(bins, epsilon=epsilon, rows=rows) == pytest.approx(np.mean(found), abs=5 * error)


def test_more_privacy_asks_for_wider_bins() -> None:
    best = [bin_widths(epsilon=epsilon, rows=500).best for epsilon in (0.1, 1.0, 10.0)]
    assert best == sorted(best, reverse=True)
    assert best[1] == pytest.approx(0.75, abs=0.1)  # what the lesson's right answer says
    chart = bin_width_chart(bin_widths(epsilon=1.0, rows=500), 1.0)
    assert f"{best[1]:.2f}" in chart.alt
    assert len(chart.table) == 77


@pytest.mark.slow
def test_one_row_moves_greedy_trees_beyond_the_bound_and_the_best_tree_never() -> None:
    found = one_row_moves(rows=1_000, simulations=150, seed=1)
    assert found.worst(BEST) <= PROVEN_BOUND + ROUNDING
    assert found.worst("greedy, depth 1") <= PROVEN_BOUND + ROUNDING, "with one split, greedy is best"
    assert found.worst("greedy, depth 5") > 5
    assert found.violations > 5
    chart = row_moves_chart(found)
    lines = {line.name: set(line.y) for line in chart.figure.data if line.mode == "lines"}
    assert lines == {"paper's bound, 1/n": {PAPER_BOUND}, "proven for the best tree, 1/(2n)": {PROVEN_BOUND}}
    assert chart.table["beyond 1/(2n)"].tolist()[-1] == 0
    assert chart.table["beyond 1/n"].sum() == found.violations


@pytest.mark.parametrize(("columns", "bins", "epsilon"), [(1, 100, 1), (1, 20, 10), (2, 32, 10), (3, 8, 1), (4, 12, 1)])
def test_what_happens_is_within_what_the_theory_promises(columns: int, bins: int, epsilon: int) -> None:
    found = grid_promises(columns=columns, bins=bins, n=50_000, epsilon=Fraction(epsilon))
    assert [promise.theorem for promise in found] == [3, 5, 6]
    for promise in found:
        assert 0 <= promise.measured <= 1
        assert (promise.bound is None) == bool(promise.why_not)
        if promise.bound is not None:
            assert promise.measured <= promise.bound
    assert found[0].threshold == 1 < found[1].threshold == found[2].threshold


def test_grids_too_large_for_a_picture_are_refused() -> None:
    with pytest.raises(ParameterError, match="cells is 1000000; allowed"):
        grid_promises(columns=2, bins=1_000, n=1_000, epsilon=Fraction(1))
