"""The private test: its sensitivities by enumeration, its privacy loss worked out, its law, its power."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.inference.dp_mann_whitney import (
    _release,
    discrete_laplace,
    doubled_u,
    dp_mann_whitney,
    dp_pvalues,
    laplace_cdf,
    lower_bound,
    size_margin,
)
from dpsynth_core.inference.mann_whitney import GroupsError
from dpsynth_core.inference.null_law import smaller_u
from dpsynth_core.inference.u_statistics import u_of_rows
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise


def laplace_chances(scale: float, reach: int) -> np.ndarray:
    a = math.exp(-1 / scale)
    k = np.arange(-reach, reach + 1)
    return (1 - a) / (1 + a) * a ** np.abs(k)


def tables(n: int, values: tuple[float, ...]) -> list[tuple[tuple[float, bool], ...]]:
    return list(itertools.product(itertools.product(values, (False, True)), repeat=n))


def summary(table: tuple[tuple[float, bool], ...]) -> tuple[int, int]:
    first = np.array([row[1] for row in table])
    return int(first.sum()), doubled_u(np.array([row[0] for row in table]), first)


def test_u_counts_pairs_and_a_missing_value_ties_with_all() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = rng.integers(0, 4, 9).astype(float)
        x[rng.random(9) < 0.2] = np.nan
        first = rng.random(9) < 0.5
        won = 0
        for i, j in itertools.product(np.flatnonzero(first), np.flatnonzero(~first)):
            won += 1 if math.isnan(x[i]) or math.isnan(x[j]) or x[i] == x[j] else 2 * (x[i] > x[j])
        assert doubled_u(x, first) == min(won, 2 * int(first.sum()) * int((~first).sum()) - won)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_no_neighbour_changes_u_by_more_than_the_larger_group(n: int) -> None:
    """Replace-one, where the row may change its value, its group or both; one value may be missing."""
    values = (0.0, 1.0, 2.0, math.nan)
    known = {table: summary(table) for table in tables(n, values)}
    worst: dict[int, int] = {}
    for table, (n1, u) in known.items():
        for row in itertools.product(values, (False, True)):
            other1, other = known[(*table[:-1], row)]
            assert abs(other1 - n1) <= 1
            assert abs(other - u) <= 2 * (n - min(n1, n - n1))
            worst[n1] = max(worst.get(n1, 0), abs(other - u))
    for n1, change in worst.items():
        assert min(n1, n - n1) < 2 or change == 2 * max(n1, n - n1), "the bound is reached from two rows on"


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (3.0, 0.01)])
def test_the_privacy_loss_is_within_the_claim(epsilon: float, delta: float) -> None:
    """The exact chance of every outcome (m*, noisy U) for all pairs of neighbours of three rows."""
    n, reach = 3, 1200
    for_size, for_u = Fraction(str(epsilon)) * 13 / 20, Fraction(str(epsilon)) * 7 / 20

    def law(n1: int, u: int) -> np.ndarray:
        noisy = n1 + np.arange(-reach, reach + 1)
        bounds = lower_bound(noisy, n, for_size, Fraction(str(delta)))
        chance = np.bincount(bounds, weights=laplace_chances(float(1 / for_size), reach), minlength=2)[:2]
        out = np.zeros((2, 2 * reach + 1))
        for m, c in enumerate(chance):
            out[m] = c * np.roll(laplace_chances(float(2 * (n - m) / for_u), reach), u)
        return out

    summaries = {table: summary(table) for table in tables(n, (0.0, 1.0))}
    pairs = {(s, summaries[(*t[:-1], r)]) for t, s in summaries.items() for r in itertools.product((0.0, 1.0), (0, 1))}
    excess = [np.maximum(law(*s) - math.exp(epsilon) * law(*t), 0).sum() for s, t in pairs]
    assert max(excess) <= delta + 1e-9


@pytest.mark.parametrize("epsilon", ["0.0065", "0.065", "0.65", "6.5", "65"])
@pytest.mark.parametrize("delta", ["1e-6", "1e-3", "0.2"])
def test_the_margin_is_the_least_that_keeps_delta(epsilon: str, delta: str) -> None:
    rate, bound = Fraction(epsilon), Fraction(delta)
    c, a = size_margin(rate, bound), math.exp(-float(rate))
    assert a ** (c + 1) / (1 + a) <= float(bound)
    if c > 0:
        assert a ** (c - 1 + 1) / (1 + a) > float(bound) * (1 - 1e-6)


def test_the_null_grows_with_the_smaller_group() -> None:
    """m* is at most m, so the null is taken at a smaller U than the truth: small p-values stay rare."""
    for n in (6, 15, 30):
        for m in range(1, n // 2):
            points, chances = smaller_u(m, n - m)
            more, later = smaller_u(m + 1, n - m - 1)
            for at in np.arange(0, m * (n - m) / 2 + 1):
                assert later[more <= at].sum() <= chances[points <= at].sum() + 1e-12


def test_the_pvalue_is_the_chance_of_a_smaller_noisy_statistic() -> None:
    rng = np.random.default_rng(3)
    reps, n = 40_000, 30
    found = dp_mann_whitney(rng.normal(size=n), np.arange(n) < 12, epsilon=30, seed=5)
    assert found.smaller > 0
    u = u_of_rows(rng.random((reps, n)), found.smaller, lower=0, upper=1)
    noisy = np.minimum(u, 2 * found.smaller * (n - found.smaller) - u) + discrete_laplace(rng, 2 * found.scale, reps)
    share = (noisy <= 2 * found.statistic).mean()
    assert abs(share - found.pvalue) <= 4 * math.sqrt(found.pvalue * (1 - found.pvalue) / reps) + 1e-4


def test_noise_distribution_function() -> None:
    chances = laplace_chances(3.0, 200)
    np.testing.assert_allclose(laplace_cdf(np.arange(-200.0, 201), 3.0), np.cumsum(chances), atol=1e-12)


def test_many_tables_at_once_have_the_law_of_single_releases() -> None:
    n, n1, doubled, epsilon = 40, 15, 180, 2
    budget = Budget.of(epsilon, "1e-2")
    single = np.array([_release(doubled, n1, n, SeededNoise(budget, seed)) for seed in range(3000)])
    rng = np.random.default_rng(1)
    together = dp_pvalues(np.full(3000, doubled), n1, n, epsilon=epsilon, delta="1e-2", rng=rng)
    one_by_one = []
    for smaller, noisy in single:
        points, chances = smaller_u(int(smaller), n - int(smaller))
        scale = 2 * (n - smaller) / (epsilon * 0.35)
        one_by_one.append(float(laplace_cdf(noisy - 2 * points, scale) @ chances))
    assert stats.ks_2samp(together, one_by_one).pvalue > 1e-4


@pytest.mark.parametrize(("n", "power"), [(160, 0.87), (248, 0.997)])
def test_power_is_that_of_the_published_code(n: int, power: float) -> None:
    rng = np.random.default_rng(n)
    reps = 3000
    values = rng.normal(size=(reps, n))
    values[:, : n // 2] += 1
    doubled = u_of_rows(values, n // 2, lower=-10, upper=10)
    doubled = np.minimum(doubled, n * n // 2 - doubled)
    share = (dp_pvalues(doubled, n // 2, n, epsilon=1, rng=rng) <= 0.05).mean()
    # Four standard errors of each of the two estimates (the published one was from some thousand runs).
    assert abs(share - power) <= 4 * math.sqrt(power * (1 - power) * (1 / reps + 1 / 1000))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("first", [10, 100])
def test_type_one_error_is_at_most_alpha(epsilon: float, first: int) -> None:
    rng = np.random.default_rng(first)
    reps, n = 4000, 200
    doubled = u_of_rows(rng.normal(size=(reps, n)), first, lower=-10, upper=10)
    doubled = np.minimum(doubled, 2 * first * (n - first) - doubled)
    share = (dp_pvalues(doubled, first, n, epsilon=epsilon, rng=rng) <= 0.05).mean()
    assert share <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / reps)


def test_a_release_spends_what_it_says() -> None:
    seen: list[str] = []
    values, groups = np.arange(50.0), np.arange(50) < 20
    found = dp_mann_whitney(values, groups, epsilon=1, watch=lambda charge: seen.append(charge.label))
    assert seen == ["size of the smaller group", "U"]
    spent = found.charges[0].budget + found.charges[1].budget
    assert (spent.epsilon, spent.delta) == (1, Fraction(1, 10**6))
    assert found.charges[0].budget.epsilon == Fraction(65, 100)
    assert found.guarantee.status == "proven"
    assert (found.guarantee.kind, found.guarantee.epsilon, found.guarantee.delta) == ("approximate", 1.0, 1e-6)
    assert 0 <= found.pvalue <= 1


def test_seeds_repeat_and_are_not_private() -> None:
    values, groups = np.arange(50.0), np.arange(50) < 20
    one, two = (dp_mann_whitney(values, groups, epsilon=1, seed=3) for _ in range(2))
    assert (one.statistic, one.pvalue) == (two.statistic, two.pvalue)
    assert one.guarantee.status == "none"


def test_groups_read_from_the_rows_void_the_guarantee() -> None:
    values = np.arange(6.0)
    assert dp_mann_whitney(values, [0, 1, 0, 1, 0, 1], 1).guarantee.status == "void"
    assert dp_mann_whitney(values, [0, 1, 0, 1, 0, 1], 1, levels=(0, 1)).guarantee.status == "proven"
    category = pd.Series(pd.Categorical(list("ababab"), categories=["a", "b"]))
    assert dp_mann_whitney(values, category, 1).guarantee.status == "proven"


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ([1.0, 1.0, 1.0], ["a", "a", "a"]),
        ([1.0, 1.0, 1.0], ["b", "b", "b"]),
        ([math.nan] * 3, ["a", "b", "a"]),
        ([1.0, "x", None], ["a", None, "z"]),
        ([math.inf, -math.inf, 0.0], [None, None, None]),
    ],
)
def test_no_row_can_make_it_fail(values: list[object], groups: list[object]) -> None:
    found = dp_mann_whitney(values, groups, epsilon=1, levels=("a", "b"))  # type: ignore[arg-type]
    assert 0 <= found.pvalue <= 1
    assert math.isfinite(found.statistic)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"epsilon": 0}, ParameterError),
        ({"epsilon": 1, "delta": 0}, ParameterError),
        ({"epsilon": 1, "delta": 0.5}, ParameterError),
        ({"epsilon": 1, "groups": [True]}, ParameterError),
        ({"epsilon": 1, "levels": (True, True)}, ParameterError),
        ({"epsilon": 1, "groups": ["a", "b", "c"]}, GroupsError),
    ],
)
def test_what_cannot_be_run_is_explained(arguments: dict[str, object], error: type[DPSynthError]) -> None:
    with pytest.raises(error):
        dp_mann_whitney(**{"values": [1.0, 2.0, 3.0], "groups": [True, False, True], **arguments})  # type: ignore[arg-type]
