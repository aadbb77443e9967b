"""Sequential models: what parameters mean, what rows come out, and what a score says of them."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

import dpsynth_core as dp
from dpsynth_core.mechanisms.pmse.column_models import NOMINAL, ORDERED, ColumnModel, column_models
from dpsynth_core.mechanisms.pmse.fit_steps import block_prior, blocks_of_columns, small_groups
from dpsynth_core.mechanisms.pmse.objective import DISTANCE, SQUARES, TREE, PMSEObjective, Randomness, sensitivity_of
from dpsynth_core.mechanisms.pmse.sequential import SequentialModel
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.table.encoding import codec_for, moved_cells
from dpsynth_core.table.schema import Schema
from dpsynth_core.trees.search import best_root
from tests.tables.strategies import schemas

COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "kind": "continuous", "lower": -10, "upper": 30, "public": True},
    {"name": "sex", "kind": "boolean", "public": True},
    {"name": "colour", "kind": "categorical", "categories": ["r", "g", "b"], "public": True, "nullable": True},
    {"name": "pain", "kind": "ordinal", "categories": ["no", "some", "much"], "public": True},
    {"name": "age", "kind": "integer", "lower": 0, "upper": 100, "public": True},
]
SCHEMA = Schema.from_dict({"columns": COLUMNS})


def noise(seed: int = 0) -> SeededNoise:
    return SeededNoise(Budget.of(1), seed)


def any_table(schema: Schema, rows: int, seed: int = 0) -> dp.PrivateTable:
    rng = np.random.default_rng(seed)
    columns = {c.name: codec_for(c).decode(rng.integers(0, c.size, rows)) for c in schema}
    return dp.PrivateTable(pd.DataFrame(columns), schema)


def settled(models: tuple[ColumnModel, ...], theta: list[list[float]], rows: int = 50_000) -> SequentialModel:
    """A model with given parameters; the table that a score would compare it with does not matter."""
    schema = Schema(columns=tuple(model.column for model in models))
    score = PMSEObjective(any_table(schema, 5), models, Randomness.draw(models, rows, noise(), even=True))
    for j, own in enumerate(theta):
        score.settle(np.array(own), j)
    return SequentialModel.of(score)


def test_two_normal_columns_are_a_linear_regression() -> None:
    """The five parameters of the paper's section 5 in other words."""
    schema = Schema.from_dict({"columns": [{**COLUMNS[0], "name": name} for name in ("x1", "x2")]})
    theta = [[0.3, math.log(0.1)], [0.5, math.log(0.05), math.atanh(0.8)]]
    model = settled(column_models(schema, "normal"), theta)
    rows = model.sample(200_000, noise(1))
    # Range 40 from -10: X1 ~ N(2, 4), X2 has mean 10, sd 2 and correlation 0.8 with X1.
    slope, intercept = np.polyfit(rows["x1"], rows["x2"], 1)
    assert slope == pytest.approx(0.8 * 2 / 4, abs=0.005)
    assert intercept == pytest.approx(10 - 0.4 * 2, abs=0.03)
    residual = rows["x2"] - intercept - slope * rows["x1"]
    assert residual.std() == pytest.approx(2 * 0.6, abs=0.01)
    assert (rows["x1"].mean(), rows["x1"].std()) == pytest.approx((2, 4), abs=0.04)


def test_correlations_with_several_columns_are_what_they_say() -> None:
    schema = Schema.from_dict({"columns": [{**COLUMNS[0], "name": name} for name in "abc"]})
    own = [0.5, math.log(0.1)]
    r = {"ab": 0.6, "ac": 0.5, "bc": -0.2}
    theta = [own, [*own, math.atanh(r["ab"])], [*own, math.atanh(r["ac"]), math.atanh(r["bc"])]]
    found = settled(column_models(schema, "normal"), theta).sample(100_000, noise(1)).corr()
    for pair, value in r.items():
        assert found.loc[pair[0], pair[1]] == pytest.approx(value, abs=0.015)


def test_correlations_that_cannot_be_are_scaled_down() -> None:
    schema = Schema.from_dict({"columns": [{**COLUMNS[0], "name": name} for name in "abc"]})
    own = [0.5, math.log(0.1)]
    theta = [own, [*own, math.atanh(0.95)], [*own, math.atanh(0.95), math.atanh(-0.95)]]
    rows = settled(column_models(schema, "normal"), theta).sample(20_000, noise(1))
    assert rows["c"].std() == pytest.approx(4, rel=0.05)
    assert np.isfinite(rows).all(axis=None)


def test_labels_have_the_shares_and_leanings_that_parameters_say() -> None:
    models = column_models(SCHEMA, "normal")
    colour, pain, age = models[2:]
    assert [p.form for p in models[1:4]] == [NOMINAL, NOMINAL, ORDERED]
    theta = [
        [0.5, math.log(0.1)],
        [0.4, 1.0],
        [0.5, -1.0, -1.5, *np.zeros(colour.size - 3)],
        [0.0, -0.5, *np.zeros(pain.size - 2)],
        [0.5, math.log(0.1), *np.zeros(age.size - 2)],
    ]
    rows = settled(models, theta).sample(200_000, noise(1))
    weights = np.exp([0.0, 0.5, -1.0])
    shares = rows["colour"].value_counts(normalize=True)[["r", "g", "b"]]
    assert np.allclose(shares, weights / weights.sum(), atol=0.006)
    assert rows["colour"].isna().mean() == pytest.approx(1 / (1 + math.exp(1.5)), abs=0.005)
    first, second = 0.5, 0.5 / (1 + math.exp(0.5))
    assert (rows["pain"] == "no").mean() == pytest.approx(first, abs=0.005)
    assert (rows["pain"] == "some").mean() == pytest.approx(second, abs=0.005)
    z = (rows["x"] - 10) / 4
    expected = 1 / (1 + np.exp(-0.4 * math.sqrt(1.35) - z))
    assert rows["sex"].mean() == pytest.approx(expected.mean(), abs=0.006)
    assert np.corrcoef(rows["sex"], z)[0, 1] == pytest.approx(
        np.corrcoef(expected, z)[0, 1] * expected.std() / rows["sex"].std(), abs=0.01
    )
    assert rows["age"].dtype == np.int64


def test_a_skew_is_a_shifted_log_normal() -> None:
    schema = Schema.from_dict({"columns": [COLUMNS[0]]})
    rows = settled(column_models(schema, "skewed"), [[0.3, math.log(0.05), 0.6]]).sample(100_000, noise(1))["x"]
    latent = np.log1p((rows - 2) / 2 * 0.6) / 0.6
    assert (latent.mean(), latent.std()) == pytest.approx((0, 1), abs=0.02)


@given(schema=schemas(), shape=st.sampled_from(["normal", "skewed"]), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_any_parameters_of_any_schema_give_rows_that_respect_it(schema: Schema, shape: Any, seed: int) -> None:
    models = column_models(schema, shape)
    rng = np.random.default_rng(seed)
    score = PMSEObjective(any_table(schema, 7, seed), models, Randomness.draw(models, 14, noise(seed), even=True))
    for j, model in enumerate(models):
        theta = rng.normal(0, 30, (3, model.size))
        values = score(theta, j, np.array([(i, j) for i in range(j + 1)]))
        assert ((values >= -1e-12) & (values <= 0.25)).all()
        score.settle(theta[0], j)
    rows = SequentialModel.of(score).sample(9, noise(1))
    assert all(moved.total == 0 for moved in moved_cells(rows, schema).values())


def test_the_score_is_the_best_trees() -> None:
    """Against the search over whole tables, with the cells that the score itself has settled on."""
    table = any_table(SCHEMA, 300)
    models = column_models(SCHEMA, "skewed")
    randomness = Randomness.draw(models, 600, noise(), even=True)
    score = PMSEObjective(table, models, randomness)
    rng = np.random.default_rng(5)
    for j, model in enumerate(models):
        theta = model.prior.mean + model.prior.std * rng.normal(size=model.size)
        found = {i: score(theta[None], j, np.array([[i, j]]))[0] for i in range(j + 1)}
        pairs = np.array([[i, j] for i in range(j + 1)])
        assert score(theta[None], j, pairs)[0] == pytest.approx(np.mean(list(found.values())))
        score.settle(theta, j)
        for i, value in found.items():
            chosen = sorted({i, j})
            gain = best_root(
                score._synthetic_cells[chosen],
                score._original_cells[chosen],
                score._layout[chosen, 7],
                score._layout[chosen, 8],
            )
            assert value == pytest.approx((gain - 600 * 600 / 900) / 900, abs=1e-12)


def test_all_cells_at_once_are_one_partition_that_sees_more_than_any_of_its_trees() -> None:
    table = any_table(SCHEMA, 300)
    models = column_models(SCHEMA, "normal")
    randomness = Randomness.draw(models, 600, noise(), even=True)
    cells, tree, distance = (
        PMSEObjective(table, models, randomness, judge=which) for which in (SQUARES, TREE, DISTANCE)
    )
    for j, model in enumerate(models):
        theta = model.prior.mean + 0.2
        found = {i: cells(theta[None], j, np.array([[i, j]]))[0] for i in range(j + 1)}
        best = {i: tree(theta[None], j, np.array([[i, j]]))[0] for i in range(j + 1)}
        apart = {i: distance(theta[None], j, np.array([[i, j]]))[0] for i in range(j + 1)}
        for score in (cells, tree, distance):
            score.settle(theta, j)
        for i, value in found.items():
            wide = [1 if models[k].levels else 2 for k in (i, j)]
            a, o = (
                Counter(zip(lines[i] // wide[0], lines[j] // wide[1], strict=True))
                for lines in (cells._synthetic_cells, cells._original_cells)
            )
            expected = sum((a[c] / 3 - 2 * o[c] / 3) ** 2 / (a[c] + o[c]) for c in a | o) / 900
            assert value == pytest.approx(expected, abs=1e-12)
            assert apart[i] == pytest.approx(sum(abs(a[c] / 600 - o[c] / 300) for c in a | o) / 2, abs=1e-12)
            if wide == [1, 1]:
                assert value >= best[i] - 1e-12


def test_the_bound_on_a_distance_is_attained() -> None:
    schema = Schema.from_dict({"columns": [{"name": "x", "kind": "boolean", "public": True}]})
    models = column_models(schema, "normal")
    randomness = Randomness.draw(models, 40, noise(), even=True)

    def score(true: int) -> float:
        table = dp.PrivateTable(pd.DataFrame({"x": [True] * true + [False] * (20 - true)}), schema)
        return float(
            PMSEObjective(table, models, randomness, judge=DISTANCE)(np.zeros((1, 1)), 0, np.array([[0, 0]]))[0]
        )

    sensitivity = sensitivity_of(DISTANCE, 20, 40)
    assert score(20) - score(19) == pytest.approx(1 / 20)
    assert abs(score(20) - score(19)) <= sensitivity <= 1 / 20 + 1e-12


def test_a_block_of_several_columns_scores_as_its_columns_do() -> None:
    table = any_table(SCHEMA, 200)
    models = column_models(SCHEMA, "normal")
    randomness = Randomness.draw(models, 400, noise(), even=True)
    theta = [model.prior.mean + 0.3 for model in models]
    together = PMSEObjective(table, models, randomness)
    alone = PMSEObjective(table, models, randomness)
    for j in range(4):
        alone.settle(theta[j], j)
    pair = np.array([[1, 4]])
    assert together(np.concatenate(theta)[None], 4, pair) == pytest.approx(alone(theta[4][None], 4, pair))


def test_even_randomness_covers_each_law_and_is_otherwise_random() -> None:
    models = column_models(SCHEMA, "normal")
    drawn = Randomness.draw(models, 1_000, noise(), even=True)
    for model, z in zip(models, drawn.z, strict=True):
        u = z if model.form == NOMINAL else ndtr(z)
        assert np.array_equal(np.sort((u * 1_000).astype(int)), np.arange(1_000))
    assert abs(np.corrcoef(drawn.z[0], drawn.z[4])[0, 1]) < 0.15
    assert ndtri(0.975) == pytest.approx(1.96, abs=0.001)


def test_every_parameter_is_found_exactly_once() -> None:
    models = column_models(SCHEMA, "skewed")
    for steps in (small_groups(models), blocks_of_columns(models, 8), blocks_of_columns(models, 10_000)):
        seen: dict[tuple[int, int], list[int]] = {}
        for step in steps:
            seen.setdefault((step.first, step.last), []).extend(step.indices.tolist())
            assert step.pairs.max() <= step.last
        for (first, last), indices in seen.items():
            assert sorted(indices) == list(range(sum(p.size for p in models[first : last + 1])))
            assert len(block_prior(models, first, last)[0]) == len(indices)
        assert [step.final for step in steps].count(True) == len(seen)
