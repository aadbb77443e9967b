"""Noisy Bayes: what one row can do to its sums, the posterior's law, and what the rows drawn from it keep."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.mechanisms.noisy_bayes.mechanism import Bayes, NoisyBayes
from dpsynth_core.mechanisms.noisy_bayes.moment_layout import (
    COUNTS,
    COVARIANCES,
    GROUP_MEANS,
    MEANS,
    PAIR_COUNTS,
    VARIANCES,
    MomentKind,
    MomentLayout,
)
from dpsynth_core.mechanisms.noisy_bayes.moment_sums import exact_sums, integer_sensitivities, integer_sums, noisy_sums
from dpsynth_core.mechanisms.noisy_bayes.moments import valid_covariance, valid_moments
from dpsynth_core.mechanisms.noisy_bayes.posterior import NormalInverseWishart, chi_square, dirichlet, normal
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.progress import no_progress
from dpsynth_core.table.schema import Schema
from tests.tables.strategies import schema_and_table


def schema_of(numbers: int, labels: int = 0, *, nullable: bool = False) -> Schema:
    facts: list[dict[str, Any]] = [
        {"name": f"x{j}", "kind": "continuous", "lower": -1, "upper": 1, "nullable": nullable, "public": True}
        for j in range(numbers)
    ]
    facts += [
        {"name": f"l{f}", "kind": "categorical", "categories": ["a", "b", "c"], "public": True} for f in range(labels)
    ]
    return Schema.from_dict({"columns": facts})


def sums_of(schema: Schema, rows: list[tuple[Any, ...]], kind: MomentKind) -> dict[str, np.ndarray]:
    frame = pd.DataFrame(rows, columns=list(schema.names))
    return integer_sums(MomentLayout.of(schema), dp.PrivateTable(frame, schema), 2, kind)


def largest_change(
    schema: Schema, values: list[tuple[Any, ...]], others: list[Any], kind: MomentKind
) -> dict[str, int]:
    """By brute force: the first row takes any of the values, in a table whose other rows are given."""
    every = [sums_of(schema, [row, *others], kind) for row in values]
    return {label: max(int(np.abs(a[label] - b[label]).sum()) for a in every for b in every) for label in every[0]}


@pytest.mark.parametrize("d", [1, 2, 3])
def test_sensitivities_of_moments_about_the_middle_are_right_and_tight(d: int) -> None:
    schema = schema_of(d)
    values = list(product([-1.0, -0.5, 0.0, 0.5, 1.0], repeat=d))
    if d == 3:
        values = [row for row in values if all(abs(x) != 0.5 for x in row)]
    found = largest_change(schema, values, [(0.5,) * d], "middle")
    assert found == integer_sensitivities(MomentLayout.of(schema), 2, 2, "middle")


def test_products_of_four_numbers_change_by_the_largest_cut() -> None:
    """Between corners only, where the maximum of a function convex in every coordinate lies."""
    schema = schema_of(4)
    found = largest_change(schema, list(product([-1.0, 1.0], repeat=4)), [(0.0,) * 4], "middle")
    assert found[COVARIANCES] == 2 * 4 * 4  # 2 floor(d^2 / 4), in squared grid steps
    assert found[COVARIANCES] < 6 * 2 * 4, "less than pair by pair"


@pytest.mark.parametrize("n", [2, 3])
def test_central_moments_are_bounded_by_the_product_of_ranges_and_reach_it(n: int) -> None:
    schema = schema_of(2)
    corners = list(product([-1.0, 0.0, 1.0], repeat=2))
    bound = integer_sensitivities(MomentLayout.of(schema), n, 2, "central")
    worst = dict.fromkeys(bound, 0)
    for others in product(corners, repeat=n - 1):
        for label, change in largest_change(schema, corners, list(others), "central").items():
            worst[label] = max(worst[label], change)
    assert worst == bound
    # The design's figures: variance R^2 / n and covariance Rx Ry / n, with R = 2 and divisor n - 1.
    assert bound[COVARIANCES] / (n * (n - 1) * 2**2) == pytest.approx(2 * 2 / n)


def test_labels_and_groups_by_brute_force() -> None:
    schema = schema_of(2, 2)
    values = [(x, y, a, b) for x, y in product([-1.0, 0.0, 1.0], repeat=2) for a, b in product("abc", repeat=2)]
    found = largest_change(schema, values, [(0.0, 0.0, "a", "a")], "middle")
    assert found == integer_sensitivities(MomentLayout.of(schema), 2, 2, "middle")
    assert (found[COUNTS], found[PAIR_COUNTS], found[GROUP_MEANS]) == (4, 2, 2 * 4 * 2)


@given(drawn=schema_and_table(), at=st.integers(0, 11), kind=st.sampled_from(["middle", "central"]))
@settings(max_examples=25)
def test_no_replaced_row_exceeds_the_sensitivity(drawn: tuple[Schema, pd.DataFrame], at: int, kind: MomentKind) -> None:
    schema, frame = drawn
    layout, n = MomentLayout.of(schema), len(frame)
    other = frame.iloc[[0 if row == at % n else row for row in range(n)]].reset_index(drop=True)
    shares = layout.shares(Fraction(1), Fraction(1, 2), kind)
    steps = layout.steps(n, shares, kind)
    first, second = (integer_sums(layout, dp.PrivateTable(rows, schema), steps, kind) for rows in (frame, other))
    for label, bound in integer_sensitivities(layout, n, steps, kind).items():
        assert int(np.abs(first[label] - second[label]).sum()) <= bound


@given(epsilon=st.fractions("1/1000000", 1000), relations=st.fractions("1/100", "99/100"), d=st.integers(0, 3))
def test_shares_add_up_and_whole_numbers_do_not_overflow(epsilon: Fraction, relations: Fraction, d: int) -> None:
    for kind in ("middle", "central"):
        layout = MomentLayout.of(schema_of(d, 3 - d))
        shares = layout.shares(epsilon, relations, kind)
        assert sum(shares.values()) == epsilon
        assert list(shares) == list(layout.sizes())
        for n in (1, 5_000, 10**8):
            costs = integer_sensitivities(layout, n, layout.steps(n, shares, kind), kind)
            assert max(costs[label] / share for label, share in shares.items()) < 2**58


def correlated(rows: int = 4_000, seed: int = 0) -> tuple[Schema, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    x0 = rng.normal(0.1, 0.2, rows)
    x1 = 0.5 * x0 + rng.normal(-0.2, 0.1, rows)
    l0 = np.where(rng.random(rows) < 0.5 + x0, "a", rng.choice(["b", "c"], rows))
    l1 = np.where(rng.random(rows) < 0.7, l0, rng.choice(["a", "b", "c"], rows))
    return schema_of(2, 2), pd.DataFrame({"x0": x0, "x1": x1, "l0": l0, "l1": l1}).assign(
        x0=x0.clip(-1, 1), x1=x1.clip(-1, 1)
    )


def test_noise_vanishes_as_epsilon_grows() -> None:
    schema, frame = correlated(500)
    table, layout = dp.PrivateTable(frame, schema), MomentLayout.of(schema)
    plain = exact_sums(layout, table)
    for kind in ("middle", "central"):
        shares = layout.shares(Fraction(10**6), Fraction(1, 2), kind)
        noise = SeededNoise(Budget.of(10**6), seed=1)
        noisy = noisy_sums(layout, table, noise, shares=shares, kind=kind, progress=no_progress)
        np.testing.assert_allclose(noisy.first, plain.first, atol=0.2)
        np.testing.assert_allclose(noisy.second, plain.second, atol=0.2)
        for pair, cells in plain.pairs.items():
            np.testing.assert_allclose(noisy.pairs[pair], cells, atol=1)
        assert noise.spent == noise.budget


def test_moments_without_noise_are_those_of_the_rows() -> None:
    schema, frame = correlated(2_000)
    layout = MomentLayout.of(schema)
    found = valid_moments(layout, exact_sums(layout, dp.PrivateTable(frame, schema)), len(frame))
    numbers = frame[["x0", "x1"]].to_numpy()
    indicators = np.column_stack([frame[name] == level for name in ("l0", "l1") for level in "abc"])
    every = np.column_stack([numbers, indicators])
    np.testing.assert_allclose(found.mean, every.mean(axis=0), atol=1e-6)
    # Indicators of one column add up to one, so their matrix is singular and lifted by a hair.
    np.testing.assert_allclose(found.covariance, np.cov(every.T, ddof=0), atol=1e-6)


def test_numbers_that_are_missing_together_keep_their_covariance() -> None:
    schema, frame = schema_of(2, nullable=True), correlated(2_000)[1][["x0", "x1"]]
    frame.loc[np.random.default_rng(1).random(len(frame)) < 0.6] = np.nan
    layout = MomentLayout.of(schema)
    found = valid_moments(layout, exact_sums(layout, dp.PrivateTable(frame, schema)), len(frame))
    np.testing.assert_allclose(found.covariance[:2, :2], np.cov(frame.dropna().T, ddof=0), atol=1e-6)


def test_a_covariance_matrix_is_made_valid_and_a_valid_one_is_left_alone() -> None:
    good = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(valid_covariance(good), good, rtol=1e-12)
    bad = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    repaired = valid_covariance(bad)
    assert np.linalg.eigvalsh(repaired).min() > 0
    np.testing.assert_allclose(np.diag(repaired), 1)
    assert np.linalg.eigvalsh(valid_covariance(np.zeros((2, 2)))).min() > 0


def uniform(seed: int = 0) -> Any:
    return np.random.default_rng(seed).random


def test_the_posterior_does_not_depend_on_the_order_of_learning() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 2))

    def learn(law: NormalInverseWishart, part: np.ndarray) -> NormalInverseWishart:
        return law.updated(part.mean(axis=0), np.cov(part.T, ddof=0), len(part))

    at_once = learn(NormalInverseWishart.prior(2), rows)
    in_turn = learn(learn(NormalInverseWishart.prior(2), rows[:7]), rows[7:])
    np.testing.assert_allclose(at_once.centre, in_turn.centre)
    np.testing.assert_allclose(at_once.scale, in_turn.scale)
    assert (at_once.weight, at_once.freedom) == (pytest.approx(in_turn.weight), in_turn.freedom)


def test_posterior_draws_have_the_mean_and_spread_of_the_closed_form() -> None:
    """E S = Psi / (nu - d - 1), E mu = m, Cov mu = E S / kappa; Var S_ii from the inverse Wishart law."""
    scale, freedom, d, draws = np.array([[3.0, 1.0], [1.0, 2.0]]), 30.0, 2, 6_000
    law = NormalInverseWishart(centre=np.array([1.0, -1.0]), weight=4.0, scale=scale, freedom=freedom)
    source = uniform()
    drawn = [law.draw(source) for _ in range(draws)]
    covariances = np.array([root @ root.T for _, root in drawn])
    means = np.array([mean for mean, _ in drawn])
    expected = scale / (freedom - d - 1)
    k = freedom - d
    spread = ((k + 1) * scale**2 + (k - 1) * np.outer(np.diag(scale), np.diag(scale))) / (k * (k - 1) ** 2 * (k - 3))
    assert (np.abs(covariances.mean(axis=0) - expected) < 5 * np.sqrt(spread / draws)).all()
    np.testing.assert_allclose(covariances.var(axis=0), spread, rtol=0.15)
    assert (np.abs(means.mean(axis=0) - law.centre) < 5 * np.sqrt(np.diag(expected) / 4 / draws)).all()
    np.testing.assert_allclose(np.cov(means.T), expected / 4, atol=5 * 0.1 / 4 * math.sqrt(2 / draws))


def test_the_other_draws_have_their_laws_too() -> None:
    source, draws = uniform(1), 20_000
    numbers = normal(source, draws)
    assert abs(numbers.mean()) < 5 / math.sqrt(draws)
    assert abs(numbers.var() - 1) < 5 * math.sqrt(2 / draws)
    squares = np.array([chi_square(source, 7.0) for _ in range(4_000)])
    assert abs(squares.mean() - 7) < 5 * math.sqrt(14 / 4_000)
    shares = np.array([dirichlet(source, np.array([2.0, 3.0, 5.0])) for _ in range(4_000)])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (np.abs(shares.mean(axis=0) - [0.2, 0.3, 0.5]) < 5 * math.sqrt(0.25 / 11 / 4_000)).all()
    assert np.isfinite(normal(np.zeros, 3)).all()
    np.testing.assert_allclose(dirichlet(np.zeros, np.array([1e-9, 1e-9])), 0.5)


def test_without_noise_all_pairwise_moments_are_kept() -> None:
    schema, frame = correlated(20_000)
    made = dp.synthesize(dp.PrivateTable(frame, schema), Bayes(), epsilon=1, seed=2).sample()
    numbers = ["x0", "x1"]
    np.testing.assert_allclose(made[numbers].mean(), frame[numbers].mean(), atol=0.01)
    np.testing.assert_allclose(made[numbers].cov(), frame[numbers].cov(), atol=0.003)
    for name in ("l0", "l1"):
        shares = [table[name].value_counts(normalize=True).sort_index() for table in (made, frame)]
        np.testing.assert_allclose(shares[0], shares[1], atol=0.02)
        groups = [table.groupby(name)["x0"].mean() for table in (made, frame)]
        np.testing.assert_allclose(groups[0], groups[1], atol=0.03)
    tables = [pd.crosstab(table["l0"], table["l1"], normalize=True) for table in (made, frame)]
    np.testing.assert_allclose(tables[0], tables[1], atol=0.02)


def test_moments_about_the_middle_need_less_noise() -> None:
    layout = MomentLayout.of(schema_of(6))
    middle, central = (layout.sensitivities(kind) for kind in ("middle", "central"))
    assert (middle[VARIANCES], central[VARIANCES]) == (6, 24)
    assert (middle[COVARIANCES], central[COVARIANCES]) == (18, 60)
    assert middle[MEANS] == central[MEANS] == 12


def test_few_values_and_many_labels_are_treated_apart() -> None:
    schema = Schema.from_dict(
        {
            "columns": [
                {"name": "dice", "kind": "integer", "lower": 1, "upper": 6, "public": True},
                {"name": "age", "kind": "integer", "lower": 0, "upper": 120, "nullable": True, "public": True},
                {"name": "town", "kind": "categorical", "categories": [str(i) for i in range(200)], "public": True},
            ]
        }
    )
    layout = MomentLayout.of(schema)
    assert [column.name for column in layout.numbers] == ["age"]
    assert [(each.column.name, each.missing_flag, each.related) for each in layout.categorical] == [
        ("dice", False, True),
        ("age", True, True),
        ("town", False, False),
    ]
    assert layout.number_by_label == [(0, 0)], "a number's own gaps tell nothing about its value"


def test_a_plan_says_what_every_kind_of_sum_gets() -> None:
    plan = NoisyBayes(relations_share=0.25).plan(schema_of(2, 1), 100, Budget.of(1))
    shares = {stage.label: stage.epsilon for stage in plan.stages}
    assert sum(shares[label] for label in (MEANS, VARIANCES, COUNTS)) == Fraction(3, 4)
    assert sum(shares[label] for label in (COVARIANCES, GROUP_MEANS)) == Fraction(1, 4)
    assert plan.cells == plan.draws == 2 + 2 + 3 + 1 + 6
