"""Copies are found, fresh rows raise no alarm, and the fast search agrees with a plain one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.diagnostics.nearest_rows import MISSING, _closest, nearest_rows
from dpsynth_core.errors import DPSynthError
from dpsynth_core.table.simulate import simulate_table
from tests.tables.schemas import mixed_schema

SCHEMA = mixed_schema()


def tables(n: int, m: int, seed: int = 1) -> tuple[dp.PrivateTable, pd.DataFrame]:
    rows = simulate_table(SCHEMA, n + m, seed=seed)
    return dp.PrivateTable(rows.iloc[:n].reset_index(drop=True), SCHEMA), rows.iloc[n:].reset_index(drop=True)


def plain_closest(queries: np.ndarray, rows: np.ndarray, labels: np.ndarray, skipped: np.ndarray) -> list[float]:
    out = []
    for i, query in enumerate(queries):
        distances = []
        for j, row in enumerate(rows):
            if j == skipped[i]:
                continue
            parts = [
                float(a != b) if label or MISSING in (a, b) else abs(a - b)
                for a, b, label in zip(query, row, labels, strict=True)
            ]
            distances.append(sum(parts) / len(parts))
        out.append(min(distances))
    return out


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_the_fast_search_agrees_with_the_plain_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.array([False, True, False])
    rows, queries = (
        np.column_stack([rng.choice([MISSING, *rng.random(3)], k), rng.integers(0, 3, k), rng.random(k)])
        for k in (30, 8)
    )
    skipped = rng.integers(-1, 30, 8)
    np.testing.assert_allclose(_closest(queries, rows, labels, skipped), plain_closest(queries, rows, labels, skipped))


def test_more_rows_than_a_block_are_all_looked_at() -> None:
    rows = np.zeros((5_000, 1))
    rows[-1] = 1.0
    found = _closest(np.array([[1.0], [1.0]]), rows, np.array([False]), np.array([-1, 4_999]))
    assert found.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("seed", range(5))
def test_a_fresh_sample_raises_no_alarm(seed: int) -> None:
    private, fresh = tables(800, 800, seed)
    found = nearest_rows(private, fresh, np.random.default_rng(seed))
    # Two limits at 97.5%: five samples stay below both with room to spare at these seeds.
    assert not found.alarming
    assert abs(found.closer - 0.5) < 0.05
    assert found.distance < found.distance_random


def test_rows_passed_through_raise_an_alarm() -> None:
    private, fresh = tables(800, 800)
    mixed = pd.concat([fresh.iloc[:720], private.rows().iloc[:80]], ignore_index=True)
    found = nearest_rows(private, mixed, np.random.default_rng(0))
    assert found.copies >= 0.1
    assert found.alarming
    assert "more than chance" in found.reading
    assert nearest_rows(private, private.rows(), np.random.default_rng(0)).copies == 1.0


def test_in_a_small_domain_copies_are_no_alarm() -> None:
    schema = dp.Schema.from_dict(
        {"columns": [{"name": "a", "kind": "categorical", "categories": ["x", "y"], "public": True}]}
    )
    table = pd.DataFrame({"a": ["x", "y"] * 50})
    found = nearest_rows(dp.PrivateTable(table, schema), table, np.random.default_rng(0))
    assert (found.copies, found.copies_fresh, found.closer) == (1.0, 1.0, 0.5)
    assert not found.alarming


def test_a_single_row_cannot_be_compared() -> None:
    private, fresh = tables(1, 10)
    with pytest.raises(DPSynthError, match="single row"):
        nearest_rows(private, fresh, np.random.default_rng(0))


def test_it_is_not_for_release_and_names_no_value() -> None:
    private, fresh = tables(100, 100)
    found = nearest_rows(private, fresh, np.random.default_rng(0))
    assert found.releasable is False
    assert all(isinstance(value, bool | int | float) for value in vars(found).values())
