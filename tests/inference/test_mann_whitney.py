"""The ordinary test against scipy and against counting pairs one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.inference.mann_whitney import GroupsError, mann_whitney, mann_whitney_counts, weighted_z
from dpsynth_core.inference.null_law import _edgeworth, lower_half, smaller_u
from dpsynth_core.inference.u_statistics import u_of_rows, u_within_cells

small_whole = st.lists(st.integers(-3, 3), min_size=1, max_size=30)
reals = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=30)


@given(x=small_whole | reals, y=small_whole | reals, continuity=st.booleans())
@settings(max_examples=200, deadline=None)
def test_it_agrees_with_scipy(x: list[float], y: list[float], continuity: bool) -> None:
    if len(set(x) | set(y)) == 1:
        with pytest.raises(GroupsError, match="equal"):
            mann_whitney(x, y)
        return
    for method in ("auto", "asymptotic"):
        own = mann_whitney(x, y, continuity=continuity, method=method)
        other = stats.mannwhitneyu(x, y, use_continuity=continuity, method=method)
        assert own.statistic == other.statistic
        assert own.pvalue == pytest.approx(other.pvalue, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("n1", "n2"), [(8, 9), (8, 300), (1, 5), (30, 40)])
def test_the_exact_law_agrees_with_scipy(n1: int, n2: int) -> None:
    rng = np.random.default_rng(n1)
    x, y = rng.normal(size=n1) + 0.5, rng.normal(size=n2)
    own, other = mann_whitney(x, y, method="exact"), stats.mannwhitneyu(x, y, method="exact")
    assert own.pvalue == pytest.approx(other.pvalue, rel=1e-12)
    assert own.method == "exact"
    automatic = mann_whitney(x, y)
    assert automatic.pvalue == pytest.approx(stats.mannwhitneyu(x, y).pvalue, rel=1e-12)


@pytest.mark.parametrize("n1", range(1, 6))
@pytest.mark.parametrize("n2", range(1, 6))
def test_the_exact_law_is_that_of_all_arrangements(n1: int, n2: int) -> None:
    found = np.zeros(n1 * n2 + 1)
    for ranks in itertools.combinations(range(n1 + n2), n1):
        found[sum(ranks) - n1 * (n1 - 1) // 2] += 1
    law = found / math.comb(n1 + n2, n1)
    np.testing.assert_allclose(lower_half(n1, n2), law[: n1 * n2 // 2 + 1], rtol=1e-12)
    points, chances = smaller_u(n1, n2)
    u = np.arange(n1 * n2 + 1)
    smallest = np.minimum(u, n1 * n2 - u)
    for point, chance in zip(points, chances, strict=True):
        assert chance == pytest.approx(law[smallest == point].sum(), rel=1e-12)


def test_the_corrected_normal_law_is_close_to_the_exact_one() -> None:
    for n1, n2 in ((25, 25), (25, 300), (60, 60)):
        exact = np.cumsum(2 * lower_half(n1, n2))
        points, weights = _edgeworth(n1, n2)
        order = np.argsort(points)
        smooth = np.cumsum(weights[order])
        at = np.linspace(points.min(), len(exact) - 2, 200)
        approximate = np.interp(at, points[order], smooth - weights[order] / 2)
        np.testing.assert_allclose(approximate, np.interp(at, np.arange(len(exact)) + 0.5, exact), atol=2e-3)
        # The law enters p-values only after smoothing by noise; moments are what matters there.
        mean = float(np.dot(2 * lower_half(n1, n2), np.arange(len(exact))) / exact[-1])
        assert float(points @ weights) == pytest.approx(mean, rel=1e-3)


def test_merging_points_keeps_mass_and_mean() -> None:
    points, chances = smaller_u(20, 500)
    fewer, merged = smaller_u(20, 500, 300)
    assert len(fewer) <= 301
    assert merged.sum() == pytest.approx(1)
    assert fewer @ merged == pytest.approx(points @ chances, rel=1e-9)


counts = st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=6)


@given(first=counts)
@settings(max_examples=100, deadline=None)
def test_counts_and_values_give_the_same(first: list[list[int]]) -> None:
    a = np.array(first)
    b = np.random.default_rng(a.sum()).integers(0, 9, a.shape)
    tests = mann_whitney_counts(a, b, degenerate="one")
    for i in range(len(a)):
        x, y = np.repeat(np.arange(4), a[i]), np.repeat(np.arange(4), b[i])
        if not len(x) or not len(y) or len(np.unique(np.concatenate([x, y]))) == 1:
            assert not tests.defined[i]
            assert (tests.pvalue[i], tests.z[i]) == (1.0, 0.0)
            continue
        one = mann_whitney(x, y, method="asymptotic")
        assert tests.statistic[i] == one.statistic
        assert tests.pvalue[i] == pytest.approx(one.pvalue, rel=1e-12)
        assert tests.effect[i] == pytest.approx(one.effect)
        n = len(x) + len(y)
        assert weighted_z(a[i] * 1.0, b[i] * 1.0) * math.sqrt((n - 1) / n) == pytest.approx(tests.z[i])


def test_thousands_of_tables_at_once_are_what_scipy_finds_one_by_one() -> None:
    rng = np.random.default_rng(0)
    tables = rng.poisson(1.5, (200, 2, 50))
    tests = mann_whitney_counts(tables[:, 0], tables[:, 1])
    place = np.arange(50)
    for i, (a, b) in enumerate(tables):
        other = stats.mannwhitneyu(np.repeat(place, a), np.repeat(place, b), method="asymptotic")
        assert tests.statistic[i] == other.statistic
        assert tests.pvalue[i] == pytest.approx(other.pvalue, rel=1e-12)


def test_groups_of_one_column_are_split_by_label() -> None:
    values, groups = [3, 1, 2, 5], ["b", "a", "a", "b"]
    assert mann_whitney(values, groups=groups) == mann_whitney([1, 2], [3, 5])
    assert mann_whitney(values, groups=groups, levels=("b", "a")).statistic == 4
    assert mann_whitney(values, groups=pd.Series(groups, index=[9, 8, 7, 6])).statistic == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": [1, 2], "y": []}, "empty"),
        ({"x": [], "y": [1]}, "empty"),
        ({"x": [2, 2, 2], "y": [2, 2]}, "equal"),
        ({"x": [1], "y": [1]}, "equal"),
        ({"x": [1, float("nan")], "y": [2]}, "missing"),
        ({"x": [1, None], "y": [2]}, "missing"),
        ({"x": [1, 2, 3], "groups": ["a", "b", "c"]}, "3 levels"),
        ({"x": [1, 2, 3], "groups": ["a", "a", "a"]}, "1 levels"),
        ({"x": [1, 2], "groups": ["a", None]}, "no group"),
        ({"x": [1, 2], "groups": ["a", "b"], "levels": ["a", "z"]}, "empty"),
        ({"x": [1, 2], "groups": ["a", "b"], "levels": ["a", "a"]}, "two different"),
        ({"x": [1, 2], "groups": ["a"]}, "one for each"),
        ({"x": [1, 2], "y": ["a", "b"]}, "groups="),
        ({"x": [[1, 2]], "y": [1]}, "list of numbers"),
        ({"x": [1]}, "one of them"),
        ({"x": [1, 3], "y": [2], "method": "permutation"}, "asymptotic"),
    ],
)
def test_what_cannot_be_compared_is_explained(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DPSynthError, match=message):
        mann_whitney(**arguments)  # type: ignore[arg-type]


def test_two_rows_are_enough_for_an_answer_and_never_significant() -> None:
    found = mann_whitney([1.0], [2.0])
    assert (found.n1, found.n2, found.pvalue, found.method) == (1, 1, 1.0, "exact")


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [([[1, 2]], [[1, 2, 3]], "shape"), ([[-1, 2]], [[1, 2]], "negative"), ([[math.inf, 2]], [[1, 2]], "finite")],
)
def test_impossible_counts_are_refused(a: list[list[float]], b: list[list[float]], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        mann_whitney_counts(a, b)


def test_one_degenerate_table_among_many_is_named() -> None:
    with pytest.raises(GroupsError, match="empty"):
        mann_whitney_counts([[1, 2], [0, 0]], [[2, 1], [1, 1]])
    with pytest.raises(GroupsError, match="equal"):
        mann_whitney_counts([[1, 2], [3, 0]], [[2, 1], [1, 0]])


def test_u_by_sorting_is_u_by_counting_pairs() -> None:
    rng = np.random.default_rng(1)
    values = rng.uniform(1, 100, (20, 9))
    found = u_of_rows(values, 4, lower=1, upper=100)
    pairs = (values[:, :4, None] > values[:, None, 4:]).sum(axis=(1, 2))
    assert found.tolist() == (2 * pairs).tolist()


def test_rows_scattered_in_their_cells_have_the_law_of_untied_values() -> None:
    """All in one cell: U must follow the exact law; over cells, only ties are broken."""
    rng = np.random.default_rng(2)
    reps = 20_000
    u = u_within_cells(np.full((reps, 1), 3.0), np.full((reps, 1), 4.0), rng) // 2
    law = np.concatenate([lower_half(3, 4), lower_half(3, 4)[:-1][::-1]])
    observed = np.bincount(u, minlength=13)
    assert stats.chisquare(observed, law * reps).pvalue > 1e-4
    a, b = np.array([[2.0, 0.0, 1.0]]), np.array([[0.0, 3.0, 0.0]])
    assert u_within_cells(a, b, rng).tolist() == [2 * 3]
    many = np.repeat(np.array([[2.0, 1.0]]), 500, axis=0)
    found = u_within_cells(many, many[:, ::-1], rng)
    assert found.min() >= 2 * 1 * 1
    assert found.max() <= 2 * (1 * 1 + 2 * 1 + 1 * 2)
