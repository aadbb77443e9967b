from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpsynth_core as dp
from dpsynth_core.diagnostics import TablePair
from dpsynth_core.diagnostics.mann_whitney import MannWhitneyDiagnostic, _Effect, default_group, group_columns
from dpsynth_core.errors import SchemaError
from dpsynth_core.inference.mann_whitney import effect_size
from pages.shared.diagnostics.pvalues import level_pairs, value_columns

SCHEMA = dp.Schema.from_dict(
    {
        "columns": [
            {"name": "value", "kind": "continuous", "lower": -6, "upper": 8, "public": True},
            {"name": "rank", "kind": "ordinal", "categories": ["a", "b", "c"], "public": True},
            {"name": "town", "kind": "categorical", "categories": ["x", "y", "z"], "public": True},
            {"name": "treated", "kind": "boolean", "public": True},
        ]
    }
)


def table(rows: int, seed: int, shift: float = 1.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    treated = rng.random(rows) < 0.4
    return pd.DataFrame(
        {
            "value": rng.normal(size=rows) + shift * treated,
            "rank": rng.choice(["a", "b", "c"], rows),
            "town": rng.choice(["x", "y", "z"], rows),
            "treated": treated,
        }
    )


def found(original: pd.DataFrame, synthetic: pd.DataFrame) -> dp.Evaluation:
    return dp.evaluate(dp.PrivateTable(original, SCHEMA), synthetic, ["mann_whitney"])


def test_effects_and_p_values_are_those_of_the_mann_whitney_test() -> None:
    original, synthetic = table(300, 1), table(200, 2)
    tests = found(original, synthetic)["mann_whitney"].tables["tests"].set_index("comparison")
    for label, rows in (("original", original), ("synthetic", synthetic)):
        first, second = (rows.loc[rows["treated"] == side, "value"] for side in (False, True))
        expected = stats.mannwhitneyu(first, second, method="asymptotic")
        row = tests.loc["value by treated"]
        assert row[f"U, {label}"] == expected.statistic
        assert row[f"p, {label}"] == pytest.approx(expected.pvalue, rel=1e-9)
        assert row[f"effect, {label}"] == pytest.approx(effect_size(first.to_numpy(), second.to_numpy()))


def test_every_pair_that_the_page_offers_is_looked_at() -> None:
    result = found(table(300, 1), table(200, 2))["mann_whitney"]
    offered = {
        (value, group, level)
        for group in group_columns(SCHEMA)
        for value in value_columns(SCHEMA, group)
        for level in level_pairs(SCHEMA, group)
        if level is not None
    }
    assert len(result.items) == len(offered)
    assert {item.columns for item in result.items} == {(value, group) for value, group, _ in offered}


def test_the_worst_pair_is_named_wherever_it_is() -> None:
    """The first group column keeps its effects; another one loses a large effect."""
    original = table(600, 1).assign(rank=lambda t: np.where(t["value"] > 0.4, "c", "a"))
    synthetic = table(600, 2).assign(
        rank=lambda t: np.random.default_rng(0).permutation(np.where(t["value"] > 0.4, "c", "a"))
    )
    result = found(original, synthetic)["mann_whitney"]
    assert result.headline.name == "value by rank: a and c"
    assert result.verdict == "poor"
    kept = next(item for item in result.items if item.name == "value by treated")
    assert kept.verdict in ("excellent", "good")


def test_the_standard_error_is_that_of_many_samples() -> None:
    """DeLong's variance beside the spread of 400 effects; their standard deviation is known to 3.5%."""
    effects, variances = [], []
    for seed in range(400):
        rows = table(120, seed)
        first, second = (np.round(rows.loc[rows["treated"] == side, "value"].to_numpy(), 1) for side in (False, True))
        values = np.unique(np.concatenate([first, second]))
        counts = [np.array([(side == v).sum() for v in values], dtype=float) for side in (first, second)]
        effect = _Effect.of(*counts)
        assert effect.effect == pytest.approx(effect_size(first, second))
        effects.append(effect.effect)
        variances.append(effect.variance())
    assert np.sqrt(np.mean(variances)) == pytest.approx(np.std(effects), rel=0.15)


def test_a_lost_difference_is_the_headline_and_said_in_words() -> None:
    result = found(table(500, 1), table(500, 2, shift=0.0))["mann_whitney"]
    assert result.headline.name == "value by treated"
    assert result.verdict in ("fair", "poor")
    assert "only the original table shows a difference" in result.headline.reading


def test_an_invented_difference_is_said_in_words() -> None:
    result = found(table(500, 1, shift=0.0), table(500, 2))["mann_whitney"]
    assert "only the synthetic table shows a difference" in result.headline.reading


def test_an_opposite_difference_is_said_in_words() -> None:
    result = found(table(500, 1), table(500, 2, shift=-1.0))["mann_whitney"]
    assert "opposite" in result.headline.reading
    assert result.verdict == "poor"


def test_fresh_samples_are_within_the_reference() -> None:
    """One fresh sample in forty has a comparison beyond the reference; six of 40 would be five standard errors more."""
    beyond = 0
    for seed in range(40):
        result = found(table(300, seed), table(300, 100 + seed))["mann_whitney"]
        beyond += any(item.verdict != "excellent" for item in result.items)
    assert beyond < 6


def test_groups_can_be_those_of_one_column() -> None:
    assert default_group(SCHEMA) == "treated"
    assert default_group(SCHEMA.select(["value", "town"])) is None
    pair = TablePair.of(dp.PrivateTable(table(50, 1), SCHEMA), table(50, 2))
    result = MannWhitneyDiagnostic(group="town").examine(pair, np.random.default_rng(0))
    assert {item.columns[1] for item in result.items} == {"town"}
    with pytest.raises(SchemaError, match="few whole numbers"):
        MannWhitneyDiagnostic(group="value").examine(pair, np.random.default_rng(0))


def test_one_empty_group_is_told_and_the_rest_is_shown() -> None:
    lonely = table(60, 1)
    lonely["treated"] = False
    result = found(table(60, 2), lonely)["mann_whitney"]
    assert result.headline.value is None
    assert "has no row" in result.headline.reading
