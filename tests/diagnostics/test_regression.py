"""Regressions on both tables, their private comparators, and what several synthetic tables say together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import dpsynth_core as dp
from dpsynth_core.charts.coefficients import coefficient_chart
from dpsynth_core.charts.palette import ORIGINAL, SYNTHETIC
from dpsynth_core.charts.theme import FONT_SIZE
from dpsynth_core.diagnostics import Result, TablePair
from dpsynth_core.diagnostics.regression import FUNCTIONAL, K_NORM, RegressionDiagnostic, overlap
from dpsynth_core.errors import ParameterError
from dpsynth_core.inference.regression.design import Design, build, choose, estimable
from dpsynth_core.inference.regression.fitting import CombiningRule, Fit, combined, fit
from dpsynth_core.inference.regression.private import functional_mechanism, functional_sensitivity, k_norm_mechanism
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from tests.tables.schemas import mixed_schema, mixed_table

mechanisms = pytest.mark.parametrize("mechanism", [functional_mechanism, k_norm_mechanism])


def mixed(rows: int = 500, seed: int = 0) -> dp.PrivateTable:
    return dp.PrivateTable(mixed_table(rows, seed), mixed_schema())


def examined(synthetic: pd.DataFrame, diagnostic: RegressionDiagnostic | None = None, rows: int = 500) -> Result:
    pair = TablePair.of(mixed(rows), synthetic)
    return (diagnostic or RegressionDiagnostic()).examine(pair, np.random.default_rng(0))


def test_least_squares_in_the_columns_own_units() -> None:
    table = mixed()
    found = fit(build(table, "income", ["age", "sex", "since"]), logistic=False)
    rows = table.rows()
    days = (rows["since"] - pd.Timestamp("2020-01-01")).dt.days
    X = np.column_stack([np.ones(500), rows["age"], rows["sex"] == "m", days]).astype(float)
    y = rows["income"].to_numpy()
    slopes = np.linalg.lstsq(X, y, rcond=None)[0]
    residual = ((y - X @ slopes) ** 2).sum() / (500 - 4)
    np.testing.assert_allclose(found.estimate, slopes, rtol=1e-8)
    np.testing.assert_allclose(found.variance, residual * np.diag(np.linalg.inv(X.T @ X)), rtol=1e-6)
    assert found.freedom == 496


def test_logistic_regression_agrees_with_another_implementation() -> None:
    rng = np.random.default_rng(1)
    frame = mixed_table(800)
    frame["smokes"] = rng.random(800) < 1 / (1 + np.exp(-(frame["age"] - 45) / 10))
    found = fit(build(dp.PrivateTable(frame, mixed_schema()), "smokes", ["age", "sex"]), logistic=True)
    X = np.column_stack([frame["age"], frame["sex"] == "m"]).astype(float)
    other = LogisticRegression(C=1e8, tol=1e-10, max_iter=1000, solver="newton-cholesky").fit(X, frame["smokes"])
    np.testing.assert_allclose(found.estimate, [other.intercept_[0], *other.coef_[0]], rtol=1e-3, atol=1e-4)
    chance = other.predict_proba(X)[:, 1]
    Z = np.column_stack([np.ones(800), X])
    information = (Z * (chance * (1 - chance))[:, None]).T @ Z
    np.testing.assert_allclose(found.error, np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-2)


def test_separated_labels_give_finite_coefficients() -> None:
    frame = mixed_table(100).assign(smokes=mixed_table(100)["age"] > 45)
    found = fit(build(dp.PrivateTable(frame, mixed_schema()), "smokes", ["age"]), logistic=True)
    assert np.isfinite(found.estimate).all()
    assert np.isfinite(found.error).all()


def test_columns_that_say_the_same_are_counted_once() -> None:
    x = np.random.default_rng(0).normal(size=50)
    assert estimable(np.column_stack([x, 2 * x + 1, np.ones(50), x**2])) == [0, 3]


@mechanisms
def test_private_regressions_tend_to_the_exact_one(mechanism: Any) -> None:
    design = build(mixed(), "income", ["age", "sex"])
    exact = fit(design, logistic=False)
    errors = []
    for epsilon in (1, 100, 10_000, 10**6):
        drawn = [mechanism(design, SeededNoise(Budget.of(epsilon), seed)) for seed in range(5)]
        errors.append(np.mean([np.abs((found - exact.estimate) / exact.error).max() for found in drawn]))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.05


@mechanisms
def test_private_logistic_regressions_tend_to_the_expansion_at_zero(mechanism: Any) -> None:
    design = build(mixed(), "smokes", ["age", "sex"])
    X = np.column_stack([np.ones(design.n), design.X])
    unit = 2 * np.linalg.solve(X.T @ X, X.T @ design.y)
    slopes = unit[1:] / [term.half for term in design.terms]
    found = mechanism(design, SeededNoise(Budget.of(10**6), 0), logistic=True)
    np.testing.assert_allclose(found[1:], slopes, atol=1e-3)
    assert np.abs(found[1:] - fit(design, logistic=True).estimate[1:]).max() < 0.1, "slopes near zero: a good expansion"


@mechanisms
def test_private_regressions_spend_exactly_their_budget(mechanism: Any) -> None:
    noise = SeededNoise(Budget.of("1/3"), 0)
    mechanism(build(mixed(), "income", ["age"]), noise)
    assert noise.spent == noise.budget


def test_the_functional_sensitivity_holds_for_every_pair_of_rows() -> None:
    rng = np.random.default_rng(0)
    for d in (2, 3, 5):
        corners = rng.choice([-1.0, 1.0], (400, 2, d + 1))
        anywhere = rng.uniform(-1, 1, (400, 2, d + 1))
        for first, second in np.concatenate([corners, anywhere]):
            change = 0.0
            moments = [np.append(1.0, row[:-1]) for row in (first, second)]
            change += np.abs(np.outer(moments[0], moments[0]) - np.outer(moments[1], moments[1])).sum()
            change += 2 * np.abs(moments[0] * first[-1] - moments[1] * second[-1]).sum()
            assert change <= functional_sensitivity(d + 1)


def test_interval_overlap() -> None:
    assert overlap((0, 1), (0, 1)) == 1
    assert overlap((0, 1), (1, 2)) == 0
    assert overlap((0, 1), (2, 3)) == -1
    assert overlap((0, 4), (1, 2)) == pytest.approx((1 / 4 + 1) / 2)


def variances(
    rule: CombiningRule, *, proper: bool, noise: float = 0.0, reps: int = 1_500
) -> tuple[float, float, float]:
    """The variance of the combined estimate of a mean, what the rule says of it, and the intervals' coverage."""
    rng = np.random.default_rng(7)
    n, k, count, v = 100, 150, 5, 1.0
    drawn, said, covered = [], [], 0
    for _ in range(reps):
        observed = rng.normal(0, math.sqrt(v / n))
        centres = observed + rng.normal(0, math.sqrt(v / n), count) * proper + rng.normal(0, noise, count)
        fits = [
            Fit(
                estimate=np.array([rng.normal(centre, math.sqrt(v / k))]),
                variance=np.array([v / k * rng.chisquare(k - 1) / (k - 1)]),
                freedom=k - 1.0,
                rows=k,
            )
            for centre in centres
        ]
        found = combined(fits, n, rule)
        drawn.append(found.estimate[0])
        said.append(found.variance[0])
        covered += bool(found.interval[0][0] <= 0 <= found.interval[1][0])
    return float(np.var(drawn)), float(np.mean(said)), covered / reps


@pytest.mark.parametrize(
    ("rule", "proper", "noise"),
    [("simple", False, 0.0), ("proper", True, 0.0), ("between", False, 0.0), ("between", True, 0.3)],
)
def test_combining_rules_say_how_far_the_mean_of_several_tables_scatters(
    rule: CombiningRule, proper: bool, noise: float
) -> None:
    found, said, coverage = variances(rule, proper=proper, noise=noise)
    # A variance over 1500 repetitions has a relative standard error of sqrt(2 / 1500) = 3.7%.
    assert said == pytest.approx(found, rel=0.15)
    assert 0.925 <= coverage <= 0.99


def test_without_looking_between_tables_privacy_noise_goes_unseen() -> None:
    found, said, coverage = variances("proper", proper=True, noise=0.3, reps=300)
    assert said < 0.7 * found
    assert coverage < 0.9


def test_the_default_regression_is_the_strongest_one() -> None:
    chosen = choose(mixed(), None, None, 500)
    assert chosen[0] in ("age", "income")
    assert {"age", "income"} <= set(chosen)
    few = choose(mixed(40), None, None, 40)
    assert len(build(mixed(40), few[0], few[1:]).terms) <= 4


def test_outcome_and_predictors_can_be_chosen() -> None:
    result = examined(mixed_table(500, seed=3), RegressionDiagnostic(outcome="height", predictors=("age", "pain")))
    assert {item.name for item in result.items} == {"age", "pain = some", "pain = much", "pain is missing"}
    assert "'height'" in result.notes[0]
    assert set(result.tables["coefficients"]["source"]) == {"original", "synthetic"}
    logistic = examined(mixed_table(500, seed=3), RegressionDiagnostic(outcome="smokes"))
    assert logistic.notes[0].startswith("A logistic")
    assert logistic.verdict in ("excellent", "good")


@pytest.mark.parametrize(
    "wrong", [{"outcome": "pain"}, {"outcome": "age", "predictors": ("age",)}, {"outcome": "age", "predictors": ("?",)}]
)
def test_what_cannot_be_regressed_is_explained(wrong: dict[str, Any]) -> None:
    found = dp.evaluate(mixed(), mixed_table(100), [RegressionDiagnostic(**wrong)])["regression"]
    assert found.headline.value is None
    assert found.headline.reading
    for parameters in ({"repeats": 1}, {"rule": "luck"}, {"epsilon": -1.0}):
        with pytest.raises(ParameterError):
            RegressionDiagnostic(**parameters)  # type: ignore[arg-type]


def test_a_label_that_the_synthetic_rows_lost_is_not_averaged_away() -> None:
    synthetic = mixed_table(500, seed=3).assign(sex="f")
    result = examined(synthetic, RegressionDiagnostic(outcome="income", predictors=("age", "sex")))
    assert result.items[0].name == "sex = m"
    assert result.items[0].value is None
    assert result.verdict == "unknown"


def test_private_regressions_are_shown_beside_and_marked_as_simulated() -> None:
    question = RegressionDiagnostic(outcome="income", predictors=("age",), epsilon=2.0, repeats=20)
    result = examined(mixed_table(500, seed=3), question)
    table = result.tables["coefficients"].set_index(["source", "term"])
    assert {FUNCTIONAL, K_NORM} < set(table.index.get_level_values(0))
    assert (table["low"] <= table["high"]).all()
    assert "simulated with seeded noise" in " ".join(result.notes)
    assert table.loc[("original", "age"), "estimate"] == pytest.approx(500, rel=0.1)


def test_several_synthetic_tables_are_combined() -> None:
    tables = tuple(mixed_table(500, seed=seed) for seed in range(2, 7))
    question = RegressionDiagnostic(outcome="income", predictors=("age",), more=tables[1:])
    result = examined(tables[0], question)
    single = [
        examined(table, RegressionDiagnostic(outcome="income", predictors=("age",))).tables["coefficients"]
        for table in tables
    ]
    together = result.tables["coefficients"].query("source == 'synthetic' and term == 'age'")["estimate"].item()
    each = [frame.query("source == 'synthetic' and term == 'age'")["estimate"].item() for frame in single]
    assert together == pytest.approx(np.mean(each))
    assert "5 synthetic tables" in " ".join(result.notes)
    assert result.verdict == "excellent"


def test_a_person_with_several_rows_gets_noisier_private_regressions() -> None:
    spreads = []
    for rows_per_person in (1, 10):
        original = dp.PrivateTable(mixed_table(2_000), mixed_schema(rows_per_person=rows_per_person))
        question = RegressionDiagnostic(outcome="income", predictors=("age",), epsilon=5.0, repeats=30)
        found = question.examine(TablePair.of(original, mixed_table(2_000, 1)), np.random.default_rng(0))
        row = found.tables["coefficients"].query(f"source == '{K_NORM}' and term == 'age'")
        spreads.append((row["high"] - row["low"]).item())
    assert spreads[1] > 3 * spreads[0]


def test_the_forest_plot_tells_the_sources_apart_and_shows_text_literally() -> None:
    names = {"age": "<b>age</b>"}
    schema = Schema.from_dict(
        {"columns": [c | {"name": names.get(c["name"], c["name"])} for c in mixed_schema().to_dict()["columns"]]}
    )
    first, second = (mixed_table(300, seed).rename(columns=names) for seed in (0, 1))
    pair = TablePair.of(dp.PrivateTable(first, schema), second)
    result = RegressionDiagnostic(epsilon=1.0, repeats=10).examine(pair, np.random.default_rng(0))
    chart = coefficient_chart({"1: <b>one</b>": result})
    original, synthetic, *others = chart.figure.data
    assert (original.marker.color, synthetic.marker.color) == (ORIGINAL, SYNTHETIC)
    assert len({trace.marker.symbol for trace in chart.figure.data}) == len(chart.figure.data) == 4
    assert len(others) == 2
    assert "<b>" not in chart.figure.to_json().replace("\\u003c", "<")
    assert chart.alt.endswith(".")
    assert chart.figure.layout.font.size == FONT_SIZE
    assert chart.figure.layout.xaxis.title.text
    both = coefficient_chart({f"{place}: a": result for place in range(4)})
    assert len({trace.marker.symbol for trace in both.figure.data}) == 7
    assert len({trace.marker.color for trace in both.figure.data}) == 7


def test_a_design_can_lose_terms() -> None:
    design = build(mixed(), "income", ["age", "sex"])
    kept: Design = design.only([1])
    assert [term.name for term in kept.terms] == ["sex = m"]
    assert kept.X.shape == (500, 1)


def test_private_regressions_do_not_use_the_unpaid_number_of_outcomes() -> None:
    """Where an outcome may be missing, how many rows have one is private and comes from paid moments alone."""
    schema = Schema.from_dict(
        {
            "columns": [
                {"name": "y", "kind": "continuous", "lower": -1, "upper": 1, "nullable": True, "public": True},
                {"name": "x", "kind": "continuous", "lower": -1, "upper": 1, "public": True},
            ]
        }
    )
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    full = pd.DataFrame({"y": np.clip(0.5 * x, -1, 1), "x": x})
    holes = full.assign(y=full["y"].where(np.arange(400) >= 100))
    for mechanism in (functional_mechanism, k_norm_mechanism):
        designs = [build(PrivateTable(table, schema), "y", ["x"]) for table in (full, holes)]
        assert [design.rows for design in designs] == [400, 400]
        # At next to no noise both find the slope, so the number of outcomes is known through the moments alone.
        sharp = [mechanism(design, SeededNoise(Budget.of(10**6), 3)) for design in designs]
        assert sharp[0] == pytest.approx(sharp[1], abs=1e-2)
        assert sharp[0][1] == pytest.approx(0.5, abs=1e-2)
