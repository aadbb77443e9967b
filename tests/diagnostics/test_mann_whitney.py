from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpsynth_core as dp
from dpsynth_core.diagnostics import TablePair
from dpsynth_core.diagnostics.mann_whitney import MannWhitneyDiagnostic, default_group
from dpsynth_core.errors import SchemaError
from dpsynth_core.inference.mann_whitney import effect_size

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
    tests = found(original, synthetic)["mann_whitney"].tables["tests"].set_index("column")
    for label, rows in (("original", original), ("synthetic", synthetic)):
        first, second = (rows.loc[rows["treated"] == side, "value"] for side in (False, True))
        expected = stats.mannwhitneyu(first, second, method="asymptotic")
        assert tests.loc["value", f"U, {label}"] == expected.statistic
        assert tests.loc["value", f"p, {label}"] == pytest.approx(expected.pvalue, rel=1e-9)
        assert tests.loc["value", f"effect, {label}"] == pytest.approx(effect_size(first.to_numpy(), second.to_numpy()))
    assert list(tests.index) == ["value", "rank"]


def test_a_lost_difference_is_the_headline_and_said_in_words() -> None:
    result = found(table(500, 1), table(500, 2, shift=0.0))["mann_whitney"]
    assert result.headline.name == "value"
    assert result.verdict in ("fair", "poor")
    assert "is lost" in result.headline.reading


def test_an_invented_difference_is_said_in_words() -> None:
    result = found(table(500, 1, shift=0.0), table(500, 2))["mann_whitney"]
    assert "not there" in result.headline.reading


def test_an_opposite_difference_is_said_in_words() -> None:
    result = found(table(500, 1), table(500, 2, shift=-1.0))["mann_whitney"]
    assert "opposite" in result.headline.reading
    assert result.verdict == "poor"


def test_fresh_samples_are_within_the_reference() -> None:
    """Ninety-five in a hundred columns are called excellent; 33 of 40 is six standard errors below."""
    good = 0
    for seed in range(20):
        result = found(table(300, seed), table(300, 100 + seed))["mann_whitney"]
        good += sum(item.verdict == "excellent" for item in result.items)
    assert good >= 33


def test_the_group_is_the_first_column_with_two_levels_unless_told() -> None:
    assert default_group(SCHEMA) == "treated"
    assert default_group(SCHEMA.select(["value", "town"])) is None
    with pytest.raises(SchemaError, match="two levels"):
        MannWhitneyDiagnostic(group="town").examine(
            TablePair.of(dp.PrivateTable(table(50, 1), SCHEMA), table(50, 2)), np.random.default_rng(0)
        )


def test_one_empty_group_is_told_and_the_rest_is_shown() -> None:
    lonely = table(60, 1)
    lonely["treated"] = False
    result = found(table(60, 2), lonely)["mann_whitney"]
    assert result.headline.value is None
    assert "nothing to compare" in result.headline.reading
