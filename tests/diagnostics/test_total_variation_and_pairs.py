from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

import dpsynth_core as dp
from dpsynth_core.diagnostics import TablePair
from dpsynth_core.diagnostics.marginals import MarginalsDiagnostic
from dpsynth_core.diagnostics.pairs import PairsDiagnostic, correlation_differences
from dpsynth_core.diagnostics.total_variation import total_variation, variation_measure

counts = arrays(np.int64, 6, elements=st.integers(0, 50)).filter(lambda c: c.sum() > 0)


@given(counts, counts)
def test_total_variation_is_the_largest_difference_over_all_events(first: np.ndarray, second: np.ndarray) -> None:
    p, q = first / first.sum(), second / second.sum()
    events = [[(mask >> i) & 1 for i in range(6)] for mask in range(64)]
    largest = max(abs(float(np.dot(event, p - q))) for event in events)
    assert float(total_variation(first, second)) == pytest.approx(largest, abs=1e-12)


def test_intervals_cover_and_references_hold_for_samples_of_one_law() -> None:
    """95% intervals of 200 pairs of samples whose laws differ by 0.1, and the verdict where they do not differ."""
    rng = np.random.default_rng(0)
    p, q = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.3, 0.3, 0.3, 0.1])
    covered = within = 0
    for _ in range(200):
        first, second = rng.multinomial(400, p), rng.multinomial(600, q)
        measure = variation_measure("x", (), first, second, rng, draws=200)
        assert measure.low is not None
        assert measure.high is not None
        covered += measure.low <= 0.1 <= measure.high
        same = variation_measure("x", (), rng.multinomial(400, p), rng.multinomial(600, p), rng, draws=200)
        within += same.verdict == "excellent"
    assert covered >= 174  # P(Bin(200, 0.95) < 174) < 1e-5
    assert within >= 174


def frame(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    return pd.DataFrame(
        {
            "x": x,
            "y": 0.8 * x + 0.6 * rng.normal(size=rows),
            "level": pd.cut(x, [-9, 0, 1, 9], labels=["low", "mid", "high"]).astype(str),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta((x * 10 + 100).round().clip(0, 300), unit="D"),
            "note": rng.choice(["a", "b"], rows),
        }
    )


SCHEMA = dp.Schema.from_dict(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "lower": -5, "upper": 5, "nullable": True, "public": True},
            {"name": "y", "kind": "continuous", "lower": -5, "upper": 5, "public": True},
            {"name": "level", "kind": "ordinal", "categories": ["low", "mid", "high"], "public": True},
            {"name": "day", "kind": "date", "lower": date(2024, 1, 1), "upper": date(2024, 12, 31), "public": True},
            {"name": "note", "kind": "categorical", "categories": ["a", "b"], "public": True},
        ]
    }
)


def test_correlations_are_pearsons_with_missing_rows_left_out() -> None:
    original, synthetic = frame(500, 1), frame(400, 2)
    original.loc[::7, "x"] = np.nan
    pair = TablePair.of(dp.PrivateTable(original, SCHEMA), synthetic)
    table = correlation_differences(pair).set_index(["first", "second"])
    present = original.dropna()
    row = table.loc[("x", "y")]
    assert row["original"] == pytest.approx(stats.pearsonr(present["x"], present["y"])[0], abs=1e-12)
    assert row["synthetic"] == pytest.approx(stats.pearsonr(synthetic["x"], synthetic["y"])[0], abs=1e-12)
    assert row["low"] < row["difference"] < row["high"]
    assert ("day", "x") not in table.index
    assert ("x", "day") in table.index
    assert "note" not in set(table.index.get_level_values(0))


def test_intervals_of_correlation_differences_cover_zero_for_samples_of_one_law() -> None:
    covered = 0
    for seed in range(100):
        pair = TablePair.of(dp.PrivateTable(frame(300, seed), SCHEMA), frame(300, 1000 + seed))
        row = correlation_differences(pair).iloc[0]
        covered += row["low"] <= 0 <= row["high"]
    assert covered >= 84  # P(Bin(100, 0.95) < 84) < 1e-4


def test_columns_that_do_not_vary_have_no_correlation() -> None:
    still = frame(50, 1).assign(x=1.0)
    pair = TablePair.of(dp.PrivateTable(still, SCHEMA), frame(50, 2))
    table = correlation_differences(pair).set_index(["first", "second"])
    assert np.isnan(table.loc[("x", "y"), "original"])


def test_the_worst_column_comes_first_and_missing_has_a_cell_of_its_own() -> None:
    original, synthetic = frame(600, 1), frame(600, 2)
    synthetic.loc[:299, "x"] = np.nan
    result = MarginalsDiagnostic().examine(
        TablePair.of(dp.PrivateTable(original, SCHEMA), synthetic), np.random.default_rng(0)
    )
    assert result.items[0].name == "x"
    assert result.headline.value == pytest.approx(0.5, abs=0.1)
    moments = result.tables["moments"].set_index("column")
    assert moments.loc["x", "missing, synthetic"] == 0.5
    assert moments.loc["y", "mean, original"] == pytest.approx(original["y"].mean())


def test_a_broken_pair_is_found_between_sound_columns() -> None:
    original, synthetic = frame(2000, 1), frame(2000, 2)
    synthetic["y"] = np.random.default_rng(3).permutation(synthetic["y"].to_numpy())
    result = PairsDiagnostic().examine(
        TablePair.of(dp.PrivateTable(original, SCHEMA), synthetic), np.random.default_rng(0)
    )
    assert "y" in result.headline.columns
    assert result.verdict == "poor"
    sound = next(item for item in result.items if item.columns == ("x", "level"))
    assert sound.verdict in ("excellent", "good")
