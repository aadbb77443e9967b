from __future__ import annotations

import contextlib
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpsynth_core.errors import ParameterError
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SecureNoise, SeededNoise
from dpsynth_core.privacy.recording import Recorder, Replay
from dpsynth_core.table.estimate import (
    NothingFoundError,
    check_worthwhile,
    discover_categories,
    discovery_threshold,
    estimate_bounds,
    estimate_prospect,
    range_edges,
)

RNG = np.random.default_rng(11)


def seeded(epsilon: float = 1, delta: float = 0, seed: int = 0) -> SeededNoise:
    return SeededNoise(Budget.of(epsilon, delta), seed=seed)


def test_a_range_is_found_around_nearly_all_rows() -> None:
    incomes = pd.Series(RNG.lognormal(10, 0.5, 5_000))
    found = estimate_bounds(incomes, epsilon=0.5, noise=SecureNoise(Budget.of(0.5)))
    inside = incomes.between(found.lower, found.upper).mean()
    assert inside > 0.95
    assert 0 < found.lower < found.upper <= 1e6
    assert found.guarantee.status == "proven"
    assert found.guarantee.epsilon == 0.5


def test_negative_numbers_missing_values_and_text_are_no_obstacle() -> None:
    values = pd.Series([*RNG.normal(0, 1, 3_000), np.nan, np.inf, -np.inf, "about 3"], dtype=object)
    found = estimate_bounds(values, epsilon=1, noise=seeded())
    assert -5 <= found.lower < 0 < found.upper <= 5


def test_the_edges_are_round_and_symmetric() -> None:
    edges = range_edges()
    assert (np.diff(edges) > 0).all()
    assert (edges == -edges[::-1]).all()
    assert {1e-6, 0.2, 5.0, 1e12} <= set(edges)


def test_too_little_data_says_so_and_charges_all_the_same() -> None:
    noise = seeded(0.1)
    with pytest.raises(NothingFoundError, match="is spent"):
        estimate_bounds(pd.Series([1.0, 2.0]), epsilon=0.1, noise=noise)
    assert noise.spent == Budget.of(0.1)


@given(
    st.lists(st.floats(allow_nan=True), min_size=1, max_size=20),
    st.floats(allow_nan=True),
)
def test_one_replaced_row_moves_the_range_counts_by_at_most_two(rows: list[float], intruder: float) -> None:
    recorder = Recorder(seeded(100))
    replay = None
    for values in (rows, [*rows[:-1], intruder]):
        noise = recorder if replay is None else replay
        with contextlib.suppress(NothingFoundError):
            estimate_bounds(pd.Series(values), epsilon=100, noise=noise)
        replay = replay or Replay(recorder)
    assert replay.finished
    assert replay.excess <= 1


def test_several_rows_per_person_cost_more_noise_for_the_same_claim() -> None:
    noise = Recorder(seeded())
    found = estimate_bounds(pd.Series(RNG.normal(0, 1, 20_000)), epsilon=1, noise=noise, rows_per_person=4)
    assert noise.spent == Budget.of(0.25)
    assert found.guarantee.epsilon == 1
    assert found.guarantee.rows_per_person == 4


def test_common_labels_are_named_and_rare_ones_are_not() -> None:
    labels = pd.Series(["flu"] * 500 + ["cold"] * 300 + ["a very rare disease"], dtype="str")
    found = discover_categories(labels, epsilon=1, delta=1e-6, noise=SecureNoise(Budget.of(1, 1e-6)))
    assert found.categories == ("cold", "flu")
    assert found.guarantee.kind == "approximate"
    assert found.guarantee.delta == 1e-6


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1, 5, 40])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.3])
def test_the_threshold_keeps_a_single_row_hidden(epsilon: float, delta: float) -> None:
    threshold = discovery_threshold(Fraction(repr(epsilon)), Fraction(repr(delta)))
    a = np.exp(-epsilon / 2)

    def passes(t: int) -> float:
        return float(a ** (t - 1) / (1 + a))

    assert passes(threshold) <= delta
    assert passes(threshold - 2) > delta or threshold <= 3  # and it is not needlessly high


def test_the_chance_that_a_single_row_is_named_is_what_delta_says() -> None:
    """At a delta large enough to be seen, over many runs, by exact binomial bounds."""
    epsilon, delta, runs = 1.0, 0.05, 4_000
    threshold = discovery_threshold(Fraction(1), Fraction(1, 20))
    noise = SeededNoise(Budget.of(10**6), seed=3)
    noisy = noise.laplace(np.ones(runs, dtype=int), sensitivity=2, epsilon=epsilon, label="t")
    named = int((noisy >= threshold).sum())
    assert stats.binomtest(named, runs, delta, alternative="greater").pvalue > 1e-6


def test_discovery_needs_a_delta() -> None:
    with pytest.raises(ParameterError, match="delta"):
        discover_categories(pd.Series(["a"]), epsilon=1, delta=0, noise=seeded())
    with pytest.raises(NothingFoundError, match="is spent"):
        discover_categories(pd.Series(["a"]), epsilon=1, delta=1e-6, noise=seeded(1, 1e-6))
    with pytest.raises(NothingFoundError):
        discover_categories(pd.Series([None], dtype=object), epsilon=1, delta=1e-6, noise=seeded(1, 1e-6))


def test_spellings_of_one_number_are_counted_as_one_label() -> None:
    values = pd.Series([*["3"] * 40, *["3.0"] * 40, *["none"] * 80], name="grade")
    # Neither spelling has enough rows by itself.
    threshold = discovery_threshold(Fraction(1, 2), Fraction(1, 10**6))
    assert 40 < threshold < 80
    found = discover_categories(values, epsilon="0.5", delta="1e-6", noise=SeededNoise(Budget.of("0.5", "1e-6"), 3))
    assert found.categories == ("3", "none")


# What to expect beforehand


@pytest.mark.parametrize(("epsilon", "n"), [("0.5", 768), ("0.1", 5_000), ("2", 200)])
def test_a_part_of_the_range_with_the_rows_it_needs_is_found(epsilon: str, n: int) -> None:
    needed = estimate_prospect(n, Budget.of(epsilon), labels=False).rows_needed
    values = pd.Series([15.0] * (n - needed) + [1500.0] * needed, name="x")
    runs = 200
    found = sum(
        estimate_bounds(values, epsilon=epsilon, noise=SeededNoise(Budget.of(epsilon), seed)).upper >= 2000
        for seed in range(runs)
    )
    # Five standard deviations below 95%.
    assert found >= runs * (0.95 - 5 * math.sqrt(0.95 * 0.05 / runs))


@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "1e-7"), ("3", "1e-6")])
def test_a_label_with_the_rows_it_needs_is_named(epsilon: str, delta: str) -> None:
    budget = Budget.of(epsilon, delta)
    needed = estimate_prospect(768, budget, labels=True).rows_needed
    values = pd.Series(["common"] * (768 - needed) + ["rarer"] * needed, name="x")
    runs = 200
    found = sum(
        "rarer" in discover_categories(values, epsilon=epsilon, delta=delta, noise=SeededNoise(budget, seed)).categories
        for seed in range(runs)
    )
    assert found >= runs * (0.95 - 5 * math.sqrt(0.95 * 0.05 / runs))


def test_the_default_epsilon_on_a_small_table_is_hopeless_and_says_what_is_needed() -> None:
    for labels, delta in ((False, "0"), (True, "1e-7")):
        budget = Budget.of("0.1", delta)
        prospect = estimate_prospect(768, budget, labels=labels)
        assert prospect.hopeless
        with pytest.raises(ParameterError, match=f"Spend at least epsilon {prospect.epsilon_needed}"):
            check_worthwhile(768, budget, labels=labels)
        check_worthwhile(768, Budget.of(prospect.epsilon_needed or 0, delta), labels=labels)
        check_worthwhile(100_000, budget, labels=labels)
    with pytest.raises(ParameterError, match="Declare the facts from public knowledge"):
        check_worthwhile(10, Budget.of(10), labels=False)


def test_several_rows_per_person_need_more() -> None:
    one, four = (estimate_prospect(768, Budget.of(1), labels=False, rows_per_person=k) for k in (1, 4))
    assert four.rows_needed > 3 * one.rows_needed


def test_a_skewed_column_with_many_zeros_is_not_cut_off_at_the_epsilon_that_is_asked_for() -> None:
    rng = np.random.default_rng(1)
    insulin = np.where(rng.random(768) < 0.5, 0.0, np.round(rng.gamma(2.0, 75.0, 768)))
    epsilon = estimate_prospect(768, Budget.of("0.1"), labels=False).epsilon_needed
    assert epsilon is not None
    cut = []
    for seed in range(20):
        noise = SeededNoise(Budget.of(epsilon), seed)
        found = estimate_bounds(pd.Series(insulin, name="insulin"), epsilon=epsilon, noise=noise)
        cut.append(float(np.mean((insulin < found.lower) | (insulin > found.upper))))
    assert np.mean(cut) < 0.05
