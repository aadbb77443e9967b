"""Gaussian noise: its law, what several draws cost together, and that nothing is drawn beyond the plan."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dpsynth_core as dp
from dpsynth_core.errors import BudgetError
from dpsynth_core.privacy.accounting import GaussianDraw, calibrated, composed_delta, gaussian_delta, gaussian_mu
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise, SecureNoise, SeededNoise
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
def test_the_cost_of_one_value_is_that_of_its_law(scale: float, shift: int, epsilon: float) -> None:
    found = composed_delta([GaussianDraw(scale=scale, values=1, shift=shift)], Fraction(repr(float(epsilon))))
    truth = exact_delta(scale, shift, epsilon)
    assert truth <= found <= 1.01 * truth + 1e-12


def test_many_draws_cost_what_one_wider_one_does() -> None:
    """Gaussian losses compose like the squares of shift over scale; the discretised bound is above, not far."""
    draws = [GaussianDraw(scale=scale, values=2) for scale in (14.0, 17.0, 20.0)] * 4
    mu = math.sqrt(sum(2 / draw.scale**2 for draw in draws))
    low, high = stats.norm.cdf([mu / 2 - 1 / mu, -mu / 2 - 1 / mu])
    assert low - math.e * high <= composed_delta(draws, ONE) <= 1.2 * (low - math.e * high)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), ONE, Fraction(8)])
def test_calibrated_draws_keep_delta_and_waste_little(epsilon: Fraction) -> None:
    draws = [
        GaussianDraw(scale=1.0, values=2),
        GaussianDraw(scale=0.3, values=2),
        GaussianDraw(scale=9, values=45, shift=2),
    ]
    made = calibrated(draws, epsilon, MILLIONTH)
    assert composed_delta(made, epsilon) <= MILLIONTH
    spent = math.sqrt(sum(draw.values * (draw.shift / draw.scale) ** 2 for draw in made))
    assert spent >= 0.97 * gaussian_mu(float(epsilon), 1e-6)
    assert made[0].scale / made[1].scale == pytest.approx(1 / 0.3, rel=1e-4)


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
        calibrated([HISTOGRAM], ONE, Fraction(0))


@pytest.mark.parametrize("source", [SecureNoise(Budget.of(1, "1e-3")), SeededNoise(Budget.of(1, "1e-3"), 5)])
def test_draws_follow_the_discrete_gaussian_law(source: Noise) -> None:
    charge = source.open_gaussian([HISTOGRAM], epsilon=1, delta="1e-3", label="test")
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
    charge = noise.open_gaussian([wide], epsilon=1, delta="1e-6", label="test")
    assert np.std(noise.gaussian(np.zeros(20_000, dtype=int), wide, charge)) == pytest.approx(5_000, rel=0.05)


def test_nothing_is_drawn_beyond_the_plan() -> None:
    noise = SeededNoise(Budget.of(1, "1e-3"), 0)
    with pytest.raises(BudgetError, match="together need delta"):
        noise.open_gaussian([HISTOGRAM] * 50, epsilon=1, delta="1e-3", label="too much")
    assert noise.charges == ()
    charge = noise.open_gaussian([HISTOGRAM], epsilon=1, delta="1e-3", label="once")
    noise.gaussian(np.zeros(3, dtype=int), HISTOGRAM, charge)
    with pytest.raises(BudgetError, match="do not include another"):
        noise.gaussian(np.zeros(3, dtype=int), HISTOGRAM, charge)
    with pytest.raises(BudgetError, match="would bring this run"):
        noise.open_gaussian([HISTOGRAM], epsilon=1, delta="1e-3", label="again")
    assert noise.spent == Budget.of(1, "1e-3")


@pytest.mark.parametrize(
    ("moved", "excess"), [([1, -1, 0], 1.0), ([1, -2, 1], 2.0), ([1, 0, 0], 1.0), ([1, 1, 1], 1.5)]
)
def test_a_replay_measures_how_many_values_move_and_how_far(moved: list[int], excess: float) -> None:
    recorder = Recorder(SeededNoise(Budget.of(1, "1e-3"), 0))
    charge = recorder.open_gaussian([HISTOGRAM], epsilon=1, delta="1e-3", label="test")
    recorder.gaussian(np.array([5, 5, 5]), HISTOGRAM, charge)
    replay = Replay(recorder)
    charge = replay.open_gaussian([HISTOGRAM], epsilon=1, delta="1e-3", label="test")
    replay.gaussian(np.array([5, 5, 5]) + moved, HISTOGRAM, charge)
    assert replay.excess == excess
