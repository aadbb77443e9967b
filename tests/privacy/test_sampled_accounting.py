"""What draws on hidden parts cost: against closed forms, plain simulation and brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.privacy.accounting import (
    ROUNDING,
    TAIL,
    SampledDraw,
    _reach,
    gaussian_delta,
    min_multiplier,
    profile,
    sampled_delta,
)
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise

ONE_IN_A_MILLION = Fraction(1, 10**6)


def normal(x: np.ndarray, mean: float) -> np.ndarray:
    return np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float, step: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * step)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), parts=st.integers(1, 5), epsilon=st.floats(-1.5, 1.5), mu=st.floats(0.1, 3))
def test_no_contents_of_parts_break_the_profile(data: st.DataObject, parts: int, epsilon: float, mu: float) -> None:
    """The law of a sum over hidden parts, on a line, by listing all choices; parts hold anything in [-mu/2, mu/2]."""
    chosen = data.draw(st.integers(1, parts))
    places = st.floats(-mu / 2, mu / 2)
    first = data.draw(st.lists(places, min_size=parts, max_size=parts))
    second = [data.draw(places), *first[1:]]
    step = 0.01
    x = np.arange(-parts * mu / 2 - 8, parts * mu / 2 + 8, step)

    def law(values: list[float]) -> np.ndarray:
        return np.mean([normal(x, sum(values[k] for k in w)) for w in combinations(range(parts), chosen)], axis=0)

    allowed = profile(np.array([epsilon]), mu, chosen / parts)[0]
    assert hockey_stick(law(first), law(second), epsilon, step) <= allowed + 1e-6
    assert hockey_stick(law(second), law(first), epsilon, step) <= allowed + 1e-6


def test_the_profile_is_reached() -> None:
    """All other parts on one side, the row's part on the other or with them."""
    mu, parts, step = 1.5, 4, 0.005
    x = np.arange(-9, 9, step)
    others, away = normal(x, -mu / 2), normal(x, mu / 2)
    mixed = (parts - 1) / parts * others + away / parts
    for epsilon in (0.0, 0.1, 0.5):
        allowed = profile(np.array([epsilon]), mu, 1 / parts)[0]
        assert hockey_stick(mixed, others, epsilon, step) == pytest.approx(allowed, abs=1e-5)


def test_without_hiding_it_is_one_gaussian_draw() -> None:
    """At a rate of one, draws compose to a single one of mu sqrt(times)."""
    epsilon = Fraction(1)
    for multiplier, times in ((30.0, 50), (10.0, 4), (5.0, 1)):
        squared = 10**6
        draw = SampledDraw(scale=math.hypot(1e3 * multiplier, ROUNDING), squared=squared, chosen=3, parts=3)
        exact = gaussian_delta(np.array([1.0]), math.sqrt(times) / multiplier)[0]
        assert exact <= sampled_delta(draw, times, epsilon) <= exact * 1.05


def test_hiding_is_worth_something_and_less_than_poisson_accounting_says() -> None:
    from dp_accounting.pld import privacy_loss_distribution as losses

    draw = SampledDraw(scale=math.hypot(1070, ROUNDING), squared=10**6, chosen=1, parts=50)
    ours = sampled_delta(draw, 87, Fraction(1))
    poisson = losses.from_gaussian_mechanism(1.07, sampling_prob=1 / 50).self_compose(87).get_delta_for_epsilon(1.0)
    open_choice = sampled_delta(SampledDraw(scale=draw.scale, squared=10**6, chosen=1, parts=1), 87, Fraction(1))
    assert poisson < ours < 1e-3 < open_choice


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("rate", [1e-4, 0.02, 0.3, 1.0])
def test_losses_beyond_the_grid_are_as_rare_as_stated(mu: float, rate: float) -> None:
    assert profile(np.array([_reach(mu, rate)]), mu, rate)[0] <= TAIL


@pytest.mark.parametrize(("rate", "times", "epsilon"), [(0.02, 200, 1), (1.0, 40, "1/100"), (0.1, 100, 10)])
def test_the_multiplier_is_the_smallest_within_two_percent(rate: float, times: int, epsilon: int | str) -> None:
    found = min_multiplier(rate, times, Fraction(epsilon), ONE_IN_A_MILLION)

    def needed(multiplier: float) -> float:
        parts = round(1 / rate)
        scale = math.hypot(1e3 * multiplier, ROUNDING)
        return sampled_delta(SampledDraw(scale=scale, squared=10**6, chosen=1, parts=parts), times, Fraction(epsilon))

    assert needed(found * 1.0001) <= ONE_IN_A_MILLION
    assert needed(found * 0.98) > ONE_IN_A_MILLION


def test_whole_number_noise_is_a_function_of_real_noise_up_to_nothing() -> None:
    """The lemma of docs/proofs.md, section 20, at a smaller s, where the error can be seen in floats."""
    sigma, shift = 6.0, 3
    k = np.arange(-80, 81)
    discrete = np.exp(-((k - shift) ** 2) / (2 * sigma**2))
    discrete /= discrete.sum()
    for s in (0.5, 0.7):
        spread = math.sqrt(sigma**2 - s**2)
        x = np.arange(-90, 90, 0.005)
        rounding = np.exp(-((k[:, None] - x) ** 2) / (2 * s**2))
        rounded = (rounding / rounding.sum(axis=0)) @ normal((x - shift) / spread, 0) / spread * 0.005
        theta = 2 * sum(math.exp(-2 * math.pi**2 * s**2 * i**2) for i in range(1, 5))
        inside = np.abs(k - shift) < 5 * sigma
        ratio = rounded[inside] / discrete[inside]
        assert (1 - theta) / (1 + theta) * (1 - 1e-9) <= ratio.min()
        assert ratio.max() <= (1 + theta) / (1 - theta) * (1 + 1e-9)


def test_draws_beyond_what_was_paid_for_are_refused() -> None:
    noise = SeededNoise(Budget.of(1, ONE_IN_A_MILLION), 1)
    draw = SampledDraw(scale=50_000.0, squared=10**6, chosen=1, parts=5)
    charge = noise.open_sampled(draw, 2, epsilon=1, delta=ONE_IN_A_MILLION, label="sums")
    assert (noise.spent or Budget.of(1)).delta == ONE_IN_A_MILLION
    for _ in range(2):
        noise.gaussian(np.zeros(3, dtype=np.int64), draw, charge)
    with pytest.raises(dp.BudgetError, match="sums"):
        noise.gaussian(np.zeros(3, dtype=np.int64), draw, charge)
    loud = SampledDraw(scale=100.0, squared=10**6, chosen=1, parts=5)
    with pytest.raises(dp.BudgetError, match="Nothing was drawn"):
        SeededNoise(Budget.of(1, ONE_IN_A_MILLION), 1).open_sampled(
            loud, 2, epsilon=1, delta=ONE_IN_A_MILLION, label="sums"
        )


@pytest.mark.parametrize("wrong", [{"scale": 1.0}, {"squared": 0}, {"chosen": 0}, {"chosen": 9}])
def test_draws_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(dp.ParameterError):
        SampledDraw(**{"scale": 100.0, "squared": 4, "chosen": 1, "parts": 5, **wrong})  # type: ignore[arg-type]
