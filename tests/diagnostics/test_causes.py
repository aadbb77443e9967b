"""A difference is put down to its cause where the cause is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth_core.diagnostics import TablePair
from dpsynth_core.diagnostics.causes import Causes, causes, scaled_to
from dpsynth_core.runs.expected_error import ExpectedError
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "x", "kind": "continuous", "lower": 0, "upper": 1, "bins": 32, "public": True},
            {"name": "y", "kind": "continuous", "lower": 0, "upper": 1, "bins": 32, "public": True},
        ]
    }
)
NAMES = ("x", "y")
QUIET = ExpectedError(columns=(("x", 0.0), ("y", 0.0)), pairs=(("x", "y", 0.0),), repetitions=1)


def rows(seed: int = 0, size: int = 20_000) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.beta(2, 5, size)
    return pd.DataFrame({"x": x, "y": np.clip(x + rng.normal(0, 0.08, size), 0, 1)})


def found(synthetic: pd.DataFrame, expected: ExpectedError | None = QUIET, names: tuple[str, ...] = NAMES) -> Causes:
    return causes(TablePair.of(PrivateTable(rows(), SCHEMA), synthetic), names, expected)


def test_shuffled_columns_have_lost_a_relation() -> None:
    table = rows()
    lost = found(table.assign(y=table["y"].to_numpy()[np.random.default_rng(1).permutation(len(table))]))
    assert lost.main == "relation"
    assert lost.relation > 0.9 * lost.total > 0.3


def test_columns_moved_alike_keep_their_relation() -> None:
    """Rows are drawn again with other shares of x; y given x stays."""
    table, rng = rows(), np.random.default_rng(2)
    weights = np.where(table["x"] < 0.25, 1.0, 3.0)
    moved = found(table.iloc[rng.choice(len(table), len(table), p=weights / weights.sum())].reset_index(drop=True))
    assert moved.main == "columns"
    assert moved.columns > 3 * moved.relation


def test_flat_bins_are_the_fault_of_the_column() -> None:
    table, rng = rows(), np.random.default_rng(3)
    flat = table.assign(x=(np.floor(table["x"] * 3) + rng.random(len(table))) / 3)
    assert found(flat, names=("x",)).main == "columns"
    assert found(flat, names=("x",)).relation == 0.0


def test_what_the_release_expects_of_itself_is_noise() -> None:
    table = rows(seed=9)
    noisy = ExpectedError(columns=(("x", 0.5), ("y", 0.5)), pairs=(("x", "y", 0.5),), repetitions=1)
    explained = found(table, noisy)
    assert explained.noise == explained.total, "never more than there is"
    assert explained.main == "noise"
    assert explained.columns == explained.relation == 0.0


@pytest.mark.parametrize("expected", [QUIET, None])
def test_parts_add_up(expected: ExpectedError | None) -> None:
    parts = found(rows(seed=5, size=500), expected)
    assert (parts.noise or 0.0) + parts.columns + parts.relation == pytest.approx(parts.total)
    assert parts.noise == (None if expected is None else 0.0)
    assert not parts.releasable


def test_names_in_either_order_find_the_same_expectation() -> None:
    half = ExpectedError(columns=(("x", 0.0), ("y", 0.0)), pairs=(("x", "y", 0.02),), repetitions=1)
    assert found(rows(seed=4, size=300), half, ("y", "x")).noise == pytest.approx(0.02)


def test_scaling_meets_the_margins_and_keeps_odds() -> None:
    table = np.array([[0.30, 0.10, 0.05], [0.05, 0.10, 0.40]])
    wanted = np.array([0.6, 0.4]), np.array([0.2, 0.3, 0.5])
    scaled = scaled_to(table, *wanted)
    np.testing.assert_allclose(scaled.sum(axis=1), wanted[0], atol=1e-6)
    np.testing.assert_allclose(scaled.sum(axis=0), wanted[1], atol=1e-6)
    odds = table[0, 0] * table[1, 2] / (table[0, 2] * table[1, 0])
    assert scaled[0, 0] * scaled[1, 2] / (scaled[0, 2] * scaled[1, 0]) == pytest.approx(odds, rel=0.05)


def test_a_label_that_the_release_never_has_is_no_obstacle() -> None:
    schema = Schema.from_dict(
        {
            "columns": [
                {"name": "a", "kind": "categorical", "categories": ["p", "q"], "public": True},
                {"name": "b", "kind": "categorical", "categories": ["r", "s"], "public": True},
            ]
        }
    )
    original = pd.DataFrame({"a": ["p", "q"] * 50, "b": ["r", "s"] * 50})
    synthetic = pd.DataFrame({"a": ["p"] * 100, "b": ["r"] * 100})
    parts = causes(TablePair.of(PrivateTable(original, schema), synthetic), ("a", "b"), None)
    assert parts.columns + parts.relation == pytest.approx(parts.total) == 0.5
    assert parts.columns > 0
