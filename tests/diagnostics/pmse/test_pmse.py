from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import dpsynth_core as dp
from dpsynth_core.diagnostics import TablePair
from dpsynth_core.diagnostics.features import Features, features
from dpsynth_core.diagnostics.pmse.diagnostic import PMSEDiagnostic, best_guess
from dpsynth_core.diagnostics.pmse.logistic import affordable_order, logistic_pmse, term_count


def points(values: np.ndarray, owner: tuple[str, ...] | None = None) -> Features:
    names = owner or tuple(f"x{i}" for i in range(values.shape[1]))
    return Features(values=values, owner=names)


def plain_pmse(original: np.ndarray, synthetic: np.ndarray) -> float:
    """Logistic regression by general-purpose minimisation of the likelihood, without any clever coordinates."""
    rows = np.concatenate([original, synthetic])
    design = np.column_stack([np.ones(len(rows)), rows])
    label = np.repeat([0, 1], [len(original), len(synthetic)])

    def loss(beta: np.ndarray) -> float:
        eta = design @ beta
        return float(np.logaddexp(0, eta).sum() - eta[label == 1].sum())

    beta = optimize.minimize(loss, np.zeros(design.shape[1]), method="BFGS", options={"gtol": 1e-8}).x
    scores = 1 / (1 + np.exp(-design @ beta))
    return float(np.mean((scores - label.mean()) ** 2))


def test_scores_are_those_of_plain_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    original, synthetic = rng.normal(size=(150, 3)), rng.normal(0.4, 1, size=(220, 3))
    score = logistic_pmse(points(original), points(synthetic))
    assert score is not None
    assert score.pmse == pytest.approx(plain_pmse(original, synthetic), rel=1e-4)
    assert score.terms == 3


def test_repeated_and_constant_columns_do_not_count_as_terms() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(200, 2))
    more = np.column_stack([values, values[:, 0] * 3 - 1, np.full(200, 7.0)])
    first = logistic_pmse(points(values[:100]), points(values[100:]))
    second = logistic_pmse(points(more[:100]), points(more[100:]))
    assert first is not None
    assert second is not None
    assert second.terms == first.terms == 2
    assert second.pmse == pytest.approx(first.pmse, rel=1e-6)


@pytest.mark.parametrize(("n", "m"), [(400, 400), (600, 200)])
def test_the_closed_form_null_holds_when_synthetic_rows_are_drawn_from_the_original(n: int, m: int) -> None:
    """Mean and law over 300 repetitions: a chi-square with k - 1 degrees of freedom, Kolmogorov-Smirnov at 1e-4."""
    rng = np.random.default_rng(2)
    original = rng.normal(size=(n, 3))
    found = []
    for _ in range(300):
        score = logistic_pmse(points(original), points(original[rng.integers(0, n, m)]))
        assert score is not None
        found.append(score.ratio * score.terms)
    assert stats.kstest(found, stats.chi2(3).cdf).pvalue > 1e-4


def test_tables_that_can_be_told_apart_perfectly_reach_the_largest_score() -> None:
    score = logistic_pmse(points(np.zeros((50, 1))), points(np.ones((50, 1))))
    assert score is not None
    assert score.pmse == pytest.approx(0.25, abs=1e-3)


@pytest.mark.parametrize("c", [0.5, 0.2])
def test_no_guess_is_right_more_often_than_is_said(c: float) -> None:
    """By enumeration: the best guess between two random laws on six cells, beside the bound from their pMSE."""
    rng = np.random.default_rng(3)
    tight = 0.0
    for _ in range(200):
        p, q = rng.dirichlet(np.full(6, 0.7)), rng.dirichlet(np.full(6, 0.7))
        mixture = (1 - c) * p + c * q
        pmse = float(mixture @ (c * q / mixture - c) ** 2)
        right = (1 + np.abs(p - q).sum() / 2) / 2
        bound = best_guess(pmse / (c * (1 - c)), c)
        assert right <= bound + 1e-12
        tight = max(tight, (right - 0.5) / (bound - 0.5))
    assert tight > 0.9


def test_the_same_difference_has_the_same_score_and_verdict_at_any_number_of_rows() -> None:
    """The ratio to the null grows with the rows; what is judged does not. The tolerance is the interval's own."""
    rng = np.random.default_rng(4)
    scores = {}
    for n in (400, 70_000):
        scores[n] = logistic_pmse(points(rng.normal(size=(n, 1))), points(rng.normal(0.5, 1, size=(n, 1))))
    few, many = scores[400], scores[70_000]
    assert few is not None
    assert many is not None
    assert many.ratio > 50 * few.ratio
    assert abs(many.beyond_chance - few.beyond_chance) < few.error_beyond_chance + many.error_beyond_chance


def test_a_ratio_of_one_and_a_half_is_not_called_far_apart() -> None:
    """A tree on few rows scores much by chance; half as much again is not yet easy to tell."""
    original, synthetic = normal_pair(400, 1), normal_pair(400, 2) + np.array([0.0, 3.0])
    pair = TablePair.of(dp.PrivateTable(original, BOUNDS), synthetic)
    result = PMSEDiagnostic().examine(pair, np.random.default_rng(0))
    ratio = float(result.tables["scores"].set_index("model").loc["Tree, half of the rows", "ratio"])
    tree = next(item for item in result.items if item.name == "Tree")
    assert 1.2 < ratio < 2
    assert tree.verdict in ("good", "fair")


def test_nothing_varies() -> None:
    assert logistic_pmse(points(np.zeros((5, 1))), points(np.zeros((5, 1)))) is None


def test_products_are_left_out_where_rows_cannot_bear_them() -> None:
    owner = tuple(f"x{i}" for i in range(10))
    assert term_count(owner, 2) == 10 + 45
    assert term_count(("a", "a", "b"), 2) == 3 + 2
    assert affordable_order(owner, 1000, 2) == 2
    assert affordable_order(owner, 500, 2) == 1


def normal_pair(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(2, 10, rows)
    return pd.DataFrame({"x": x, "y": -2.5 + 0.5 * x + rng.normal(0, 3, rows)})


BOUNDS = dp.Schema.from_dict(
    {"columns": [{"name": n, "kind": "continuous", "lower": -50, "upper": 50, "public": True} for n in ("x", "y")]}
)


def tree_ratio(synthetic: pd.DataFrame, original: pd.DataFrame) -> float:
    pair = TablePair.of(dp.PrivateTable(original, BOUNDS), synthetic)
    result = PMSEDiagnostic().examine(pair, np.random.default_rng(0))
    return float(result.tables["scores"].set_index("model").loc["Tree, half of the rows", "ratio"])


def test_the_trees_ratio_is_one_for_a_fresh_sample() -> None:
    """Bootstrap samples share rows, which makes their null a third too small; halves do not."""
    ratios = [tree_ratio(normal_pair(1500, 100 + seed), normal_pair(1500, seed)) for seed in range(8)]
    error = np.std(ratios, ddof=1) / math.sqrt(8)
    assert abs(np.mean(ratios) - 1) < 5 * error


def test_the_trees_ratio_does_not_improve_as_epsilon_falls() -> None:
    original = normal_pair(2000, 1)
    private = dp.PrivateTable(original, BOUNDS)
    ratios = []
    for epsilon in (10, 1, 0.1, 0.01):
        mechanism = dp.MECHANISMS["perturbed_histogram"].suggest(BOUNDS, 2000, epsilon)
        ratios.append(
            np.mean(
                [
                    tree_ratio(dp.synthesize(private, mechanism, epsilon=epsilon, seed=seed).sample(), original)
                    for seed in range(2)
                ]
            )
        )
    assert all(later > earlier * 0.95 for earlier, later in itertools.pairwise(ratios))
    assert ratios[-1] > 3 * ratios[0]


def test_the_null_is_the_same_for_every_release() -> None:
    private = dp.PrivateTable(normal_pair(500, 1), BOUNDS)
    expected = []
    for epsilon in (10, 0.01):
        release = dp.synthesize(private, dp.MECHANISMS["kd_tree"](), epsilon=epsilon, seed=1)
        result = PMSEDiagnostic().examine(TablePair.of(private, release.sample()), np.random.default_rng(5))
        scores = result.tables["scores"].set_index("model")
        expected.append(scores.loc["Tree, half of the rows", "expected"])
    assert expected[0] == expected[1]


def test_what_gives_the_table_away_is_named() -> None:
    original, synthetic = normal_pair(800, 1), normal_pair(800, 2).assign(y=40.0)
    result = PMSEDiagnostic().examine(
        TablePair.of(dp.PrivateTable(original, BOUNDS), synthetic), np.random.default_rng(0)
    )
    assert result.tables["giveaways"]["column"].iloc[0] == "y"
    assert result.tables["splits"].iloc[0, 0].startswith("y ")
    assert result.verdict == "poor"


def test_features_are_scaled_by_declared_bounds_alone() -> None:
    schema = dp.Schema.from_dict(
        {
            "columns": [
                {"name": "a", "kind": "integer", "lower": 0, "upper": 10, "nullable": True, "public": True},
                {"name": "b", "kind": "categorical", "categories": ["u", "v"], "public": True},
            ]
        }
    )
    table = dp.PrivateTable(pd.DataFrame({"a": [0, 5, None], "b": ["u", "v", "v"]}), schema)
    found = features(table)
    half = math.sqrt(0.5)
    assert found.owner == ("a", "a", "b", "b")
    np.testing.assert_allclose(found.values, [[0, 0, half, 0], [0.5, 0, 0, half], [0.5, half, 0, half]])
