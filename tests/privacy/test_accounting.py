"""Gaussian noise: its law, what several draws cost together, and that nothing is drawn beyond what was paid for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

import dpsynth_core as dp
from dpsynth_core.errors import BudgetError
from dpsynth_core.privacy.accounting import (
    LATTICE,
    LATTICE_LOSS,
    MAX_MOVED,
    MIN_SCALE,
    GaussianDraw,
    SelectionDraw,
    affordable_cost,
    gaussian_delta,
    gaussian_mu,
)
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise, SecureNoise, SeededNoise
from dpsynth_core.privacy.primitives import SharedExponential
from dpsynth_core.privacy.recording import Recorder, Replay

ONE, MILLIONTH = Fraction(1), Fraction(1, 10**6)
HISTOGRAM = GaussianDraw(scale=6.0, values=2)


def exact_delta(scale: float, shift: int, epsilon: float) -> float:
    """The smallest delta of one discrete Gaussian value, by summing the law itself."""
    k = np.arange(-600, 601)
    p = np.exp(-(k.astype(float) ** 2) / (2 * scale**2))
    q = np.exp(-((k - shift).astype(float) ** 2) / (2 * scale**2))
    return float(np.maximum(p / p.sum() - math.exp(epsilon) * q / q.sum(), 0).sum())


@pytest.mark.parametrize(("scale", "shift", "epsilon"), [(2.0, 1, 1), (6.0, 1, 1), (6.0, 2, 1), (3.0, 1, 0.5)])
def test_the_cost_of_one_value_is_not_below_that_of_its_law(scale: float, shift: int, epsilon: float) -> None:
    priced = math.sqrt(GaussianDraw(scale=scale, values=1, shift=shift).cost)
    assert exact_delta(scale, shift, epsilon) <= gaussian_delta(np.array(epsilon), priced)


def composed_delta(draws: list[GaussianDraw], selections: list[SelectionDraw], epsilon: float) -> float:
    """A reference: dp-accounting's composition of the discrete laws, and of the worst pair of two outcomes."""
    from dp_accounting.pld import privacy_loss_distribution as losses

    interval = 5e-5 * epsilon
    each = [
        losses.from_discrete_gaussian_mechanism(
            draw.scale, sensitivity=draw.shift, value_discretization_interval=interval
        ).self_compose(draw.values)
        for draw in draws
    ]
    for selection in selections:
        # Scores that move by the sensitivity in opposite directions: randomised response of epsilon = 2 s / scale / 2.
        keep = 1 / (1 + math.exp(-selection.sensitivity / selection.scale))
        each.append(losses.from_randomized_response(2 * (1 - keep), 2, value_discretization_interval=interval))
    total = each[0]
    for one in each[1:]:
        total = total.compose(one)
    return float(total.get_delta_for_epsilon(epsilon))


@pytest.mark.parametrize(("epsilon", "least"), [(0.1, 1e-7), (1.0, 1e-7), (8.0, 0.0)])
def test_draws_that_spend_all_of_a_charge_keep_its_delta_and_waste_little(epsilon: float, least: float) -> None:
    """Little where noise is wide against whole numbers, which few draws at a large epsilon are not."""
    whole = affordable_cost(Fraction(repr(epsilon)), MILLIONTH)
    draws = [GaussianDraw.costing(whole * share, values=2) for share in (0.3, 0.25, 0.2, 0.1)]
    selections = [SelectionDraw.costing(whole * 0.05, sensitivity=2) for _ in range(3)]
    assert 0.999 * whole <= sum(each.cost for each in [*draws, *selections]) <= whole
    assert least <= composed_delta(draws, selections, epsilon) <= 1e-6


def test_a_selections_cost_is_that_of_the_event_that_tells_most() -> None:
    """P(S) and Q(S) whose odds are e^eta apart: their normal quantiles are furthest apart around one half."""
    for eta in (0.01, 0.3, 1.0, 4.0, 12.0):
        cost = SelectionDraw(scale=2 / eta, sensitivity=1).cost
        p = special.expit(np.linspace(-20, 20, 20_001))
        q = special.expit(special.logit(p) - eta)
        apart = (special.ndtri(p) - special.ndtri(q)).max()
        assert apart <= math.sqrt(cost) * (1 + 1e-9)
        assert math.sqrt(cost) == pytest.approx(2 * special.ndtri(special.expit(eta / 2)), rel=1e-9)


@pytest.mark.parametrize("cost", [1e-8, 1e-3, 0.1, 2.0, 50.0])
def test_a_draw_for_a_cost_costs_no_more_and_hardly_less(cost: float) -> None:
    histogram = GaussianDraw.costing(cost, values=2)
    assert 0.999 * cost <= histogram.cost <= cost or histogram.scale == MIN_SCALE
    assert 0.999 * cost <= SelectionDraw.costing(cost, sensitivity=2).cost <= cost


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 8.0, 50.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3, 0.3])
def test_the_root_is_never_on_the_side_of_less_noise(epsilon: float, delta: float) -> None:
    """Compared with plain bisection that keeps the private side."""
    low, high = 0.0, 100.0
    for _ in range(200):
        mu = (low + high) / 2
        low, high = (mu, high) if gaussian_delta(np.array(epsilon), mu) <= delta else (low, mu)
    found = gaussian_mu(epsilon, delta)
    assert low * (1 - 1e-9) <= found <= low * (1 + 1e-9)
    assert gaussian_delta(np.array(epsilon), found) <= delta * (1 + 1e-9)


def test_without_delta_there_is_no_gaussian_noise() -> None:
    with pytest.raises(dp.ParameterError, match="delta"):
        affordable_cost(ONE, Fraction(0))


@pytest.mark.parametrize("source", [SecureNoise(Budget.of(1, "1e-3")), SeededNoise(Budget.of(1, "1e-3"), 5)])
def test_draws_follow_the_discrete_gaussian_law(source: Noise) -> None:
    charge = source.open_gaussian(epsilon=1, delta="1e-3", label="test")
    drawn = source.gaussian(np.full(20_000, 7), HISTOGRAM, charge) - 7
    cells = np.arange(-12, 13)
    law = np.exp(-(np.arange(-100, 101).astype(float) ** 2) / 72)
    inside = law[np.isin(np.arange(-100, 101), cells)] / law.sum()
    seen = np.array([(drawn == k).sum() for k in cells])
    observed, expected = np.append(seen, 20_000 - seen.sum()), np.append(inside, 1 - inside.sum()) * 20_000
    assert stats.chisquare(observed, expected).pvalue > 1e-9


def test_a_wide_seeded_draw_has_its_deviation() -> None:
    wide = GaussianDraw(scale=5_000.0, values=2)
    noise = SeededNoise(Budget.of(1, "1e-6"), 1)
    charge = noise.open_gaussian(epsilon=1, delta="1e-6", label="test")
    assert np.std(noise.gaussian(np.zeros(20_000, dtype=int), wide, charge)) == pytest.approx(5_000, rel=0.05)


def test_nothing_is_drawn_beyond_what_a_charge_allows() -> None:
    noise = SeededNoise(Budget.of(1, "1e-3"), 0)
    unpaid = SeededNoise(Budget.of(1, "1e-3"), 0).open_gaussian(epsilon=1, delta="1e-3", label="elsewhere")
    with pytest.raises(BudgetError, match="not paid for"):
        noise.gaussian(np.zeros(3, dtype=int), HISTOGRAM, unpaid)
    charge = noise.open_gaussian(epsilon=1, delta="1e-3", label="once")
    whole = affordable_cost(ONE, Fraction(1, 1000))
    noise.gaussian(np.zeros(3, dtype=int), GaussianDraw.costing(whole / 2, values=2), charge)
    noise.shared_exponential(np.zeros(3), SelectionDraw.costing(whole / 4, sensitivity=2), charge)
    with pytest.raises(BudgetError, match="together"):
        noise.shared_exponential(np.zeros(3), SelectionDraw.costing(whole / 3, sensitivity=2), charge)
    with pytest.raises(BudgetError, match="together"):
        noise.gaussian(np.zeros(3, dtype=int), GaussianDraw.costing(whole / 3, values=2), charge)
    noise.gaussian(np.zeros(3, dtype=int), GaussianDraw.costing(whole / 5, values=2), charge)
    with pytest.raises(BudgetError, match="would bring this run"):
        noise.open_gaussian(epsilon=1, delta="1e-3", label="again")
    assert noise.spent == Budget.of(1, "1e-3")


def test_many_tiny_draws_are_refused_before_rounding_to_integers_could_matter() -> None:
    noise = SeededNoise(Budget.of(1, "1e-3"), 0)
    charge = noise.open_gaussian(epsilon=1, delta="1e-3", label="many")
    tiny = GaussianDraw(scale=1e8, values=MAX_MOVED)
    noise.gaussian(np.zeros(3, dtype=int), tiny, charge)
    with pytest.raises(BudgetError, match="together"):
        noise.gaussian(np.zeros(3, dtype=int), tiny, charge)
    lattice = 2 * sum(math.exp(-2 * math.pi**2 * LATTICE**2 * i**2) for i in range(1, 5))
    assert 2 * MAX_MOVED * (math.log1p(lattice) - math.log1p(-lattice)) <= LATTICE_LOSS


@pytest.mark.parametrize("source", [SecureNoise(Budget.of(1, "1e-3")), SeededNoise(Budget.of(1, "1e-3"), 5)])
def test_selections_follow_the_exponential_mechanisms_law(source: Noise) -> None:
    charge = source.open_gaussian(epsilon=1, delta="1e-3", label="test")
    draw, scores = SelectionDraw(scale=40.0, sensitivity=1), np.array([0.0, 40.0, 80.0])
    call = SharedExponential(scores=scores, scale=draw.scale, draw=draw, charge=charge)
    seen = np.bincount([source._perform(call) for _ in range(3_000)], minlength=3)
    assert stats.chisquare(seen, special.softmax(scores / 40) * 3_000).pvalue > 1e-9


@pytest.mark.parametrize(
    ("moved", "excess"), [([1, -1, 0], 1.0), ([1, -2, 1], 2.0), ([1, 0, 0], 1.0), ([1, 1, 1], 1.5)]
)
def test_a_replay_measures_how_many_values_move_and_how_far(moved: list[int], excess: float) -> None:
    recorder = Recorder(SeededNoise(Budget.of(1, "1e-3"), 0))
    charge = recorder.open_gaussian(epsilon=1, delta="1e-3", label="test")
    recorder.gaussian(np.array([5, 5, 5]), HISTOGRAM, charge)
    replay = Replay(recorder)
    charge = replay.open_gaussian(epsilon=1, delta="1e-3", label="test")
    replay.gaussian(np.array([5, 5, 5]) + moved, HISTOGRAM, charge)
    assert replay.excess == excess
