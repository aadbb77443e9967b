"""Counting every pair at the end: when it is done, and what it brings."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

import dpsynth_core as dp
from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.private_pgm import PrivatePGM
from dpsynth_core.mechanisms.private_pgm.allocation import allocate
from dpsynth_core.mechanisms.private_pgm.binned_columns import (
    BinnedColumn,
    count_slots,
    find_bins,
    measure_column,
)
from dpsynth_core.mechanisms.private_pgm.measuring import measurer_for
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise

DELTA = "1e-6"


def unrelated(rows: int, columns: int = 6, seed: int = 0) -> dp.PrivateTable:
    """Columns that have nothing to do with each other, but for what chance brings."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 5, (rows, columns)), columns=[f"c{i}" for i in range(columns)])
    facts = [{"name": name, "kind": "integer", "lower": 0, "upper": 4, "public": True} for name in frame]
    return dp.PrivateTable(frame, dp.Schema.from_dict({"columns": facts}))


def pair_error(first: dp.PrivateTable, second: dp.PrivateTable) -> float:
    gaps = [
        np.abs(first.counts(pair).dense() / first.n - second.counts(pair).dense() / second.n).sum() / 2
        for pair in combinations(first.schema.names, 2)
    ]
    return float(np.mean(gaps))


def mean_error(table: dp.PrivateTable, mechanism: PrivatePGM) -> float:
    releases = [dp.synthesize(table, mechanism, epsilon=10, delta=DELTA, seed=seed) for seed in range(3)]
    return float(np.mean([pair_error(table, dp.PrivateTable(each.sample(), table.schema)) for each in releases]))


def test_it_begins_where_noise_falls_below_chance_and_follows_from_public_facts() -> None:
    schema = unrelated(10).schema
    chosen = [allocate(schema, 5_000, Budget.of(e, DELTA)).every_pair for e in (0.1, 1, 3, 10, 100)]
    assert chosen == sorted(chosen)
    assert not chosen[0]
    assert chosen[-1]
    more_rows = [allocate(schema, n, Budget.of(3, DELTA)).every_pair for n in (100, 10_000, 10**7)]
    assert more_rows == sorted(more_rows)
    assert not allocate(schema, 5_000, Budget.of(100)).every_pair, "Laplace noise does not share squares"
    assert not allocate(unrelated(10, 41).schema, 10**6, Budget.of(100, DELTA)).every_pair, "too many pairs to wait for"
    assert not allocate(unrelated(10, 2).schema, 5_000, Budget.of(100, DELTA)).every_pair, "there is one pair only"


def test_even_unrelated_columns_come_nearer_to_the_rows_than_a_second_sample_would() -> None:
    table = unrelated(5_000)
    chance = pair_error(table, unrelated(5_000, seed=1))
    every, selected = (mean_error(table, kind) for kind in (PrivatePGM(), PrivatePGM(last_counts="selected")))
    assert every < 0.35 * chance
    assert every < selected


def test_the_whole_charge_is_used_and_no_more() -> None:
    table = unrelated(2_000)
    release = dp.synthesize(table, PrivatePGM(last_counts="every"), epsilon="7/2", delta=DELTA, seed=0)
    (charge,) = release.charges
    assert charge.budget == Budget.of("7/2", DELTA)


def measured_column(facts: dict[str, object], values: FloatArray) -> BinnedColumn:
    """A column of numbers, measured beside one of labels."""
    other = {"name": "y", "kind": "boolean", "public": True}
    schema = dp.Schema.from_dict({"columns": [{"name": "x", "lower": 0, "upper": 100, "public": True, **facts}, other]})
    table = dp.PrivateTable(pd.DataFrame({"x": values, "y": np.arange(len(values)) % 2 == 0}), schema)
    budget = Budget.of(5, DELTA)
    allocation = allocate(schema, table.n, budget)
    measurer = measurer_for(SeededNoise(budget, 0), budget)
    slots = count_slots(table, allocation.bins)
    found = find_bins(schema.columns[0], slots["x"], table.n, measurer, allocation)
    return measure_column(found, slots["x"], table.n, measurer, allocation)


def test_cells_put_together_again_what_groups_have_split() -> None:
    values = np.random.default_rng(4).normal(50, 8, 20_000).clip(0, 100)
    column = measured_column({"kind": "continuous", "bins": 16}, values)
    assert any(np.array_equal(column.cells, level) for level in column.levels)
    assert column.cells.max() + 1 < column.size, "heavy cells in the middle are split"
    assert (np.diff(column.cells) >= 0).all(), "only neighbours are gathered"
    cell_of_bin = np.searchsorted(column.bins.cell_edges(16), column.bins.edges[:-1], side="right")
    for cell in range(int(column.cells.max()) + 1):
        members = np.flatnonzero(column.cells == cell)
        if len(members) > 1:
            assert len(set(cell_of_bin[np.isin(column.groups, members)])) == 1


def test_missing_values_have_a_cell_to_themselves() -> None:
    rng = np.random.default_rng(4)
    values = np.where(rng.random(20_000) < 0.1, np.nan, rng.normal(50, 8, 20_000).clip(0, 100))
    column = measured_column({"kind": "continuous", "bins": 16, "nullable": True}, values)
    assert (column.cells == column.cells[-1]).sum() == 1
    assert column.groups[-1] == column.size - 1
