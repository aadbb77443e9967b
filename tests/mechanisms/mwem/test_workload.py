"""Workloads against plain loops over boolean masks, and their sensitivities against replaced rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.mechanisms.column_sets import every_set, read_sets
from dpsynth_core.mechanisms.mwem.workload import (
    MAX_QUERIES,
    IntervalWorkload,
    MarginalWorkload,
    RangeWorkload,
    Workload,
)
from dpsynth_core.mechanisms.partition.grid import Grid
from dpsynth_core.table.schema import Schema
from tests.tables.schemas import SMALL_SCHEMA

GRID = Grid.of(SMALL_SCHEMA, None)
PAIRS = ((0, 1), (0, 2), (1, 2))
WORKLOADS: dict[str, Workload] = {
    "marginals": MarginalWorkload(shape=GRID.shape, sets=(*PAIRS, (1,), (0, 1, 2))),
    "ranges": RangeWorkload.of(GRID.axes, PAIRS),
    "intervals": IntervalWorkload(shape=GRID.shape),
}
each = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS.keys())


def masks(workload: Workload, query: int) -> list[np.ndarray[Any, Any]]:
    """For each count of an answer, which cells it adds up: read off one cell at a time."""
    columns = []
    for cell in range(GRID.cells):
        unit = np.zeros(GRID.shape, dtype=np.int64)
        unit.flat[cell] = 1
        columns.append(workload.answer(unit, query))
    return list(np.array(columns).T.astype(bool))


@each
def test_answers_are_sums_over_disjoint_sets_of_cells(workload: Workload) -> None:
    histogram = np.random.default_rng(0).integers(0, 9, GRID.shape)
    for query in range(0, len(workload), max(1, len(workload) // 40)):
        parts = masks(workload, query)
        assert len(parts) == workload.sizes[query]
        assert np.sum(parts, axis=0).max() <= 1
        assert workload.answer(histogram, query).tolist() == [histogram.ravel()[part].sum() for part in parts]


def test_marginals_of_small_and_large_histograms_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones are read off a list of cells, large ones are added up along their axes."""
    rng = np.random.default_rng(3)
    counts, weights = rng.integers(0, 9, GRID.shape), rng.random(GRID.shape)
    listed = MarginalWorkload(shape=GRID.shape, sets=(*PAIRS, (1,), (0, 1, 2)))
    small = [listed.answer(counts, query) for query in range(len(listed))]
    monkeypatch.setattr("dpsynth_core.mechanisms.mwem.workload.MAX_LISTED_CELLS", 0)
    summed = MarginalWorkload(shape=GRID.shape, sets=listed.sets)
    for query, counted in enumerate(small):
        np.testing.assert_array_equal(counted, summed.answer(counts, query))
        assert counted.dtype == counts.dtype
        np.testing.assert_allclose(listed.answer(weights, query), summed.answer(weights, query))
        factors, one, other = rng.random(len(counted)), weights.copy(), weights.copy()
        listed.scale(one, query, factors)
        summed.scale(other, query, factors)
        np.testing.assert_array_equal(one, other)
    multiples = np.rint(rng.normal(size=GRID.shape) * 2**16) / 2**16
    np.testing.assert_array_equal(listed.norms(multiples), summed.norms(multiples))  # exact: scores rest on it


@each
def test_norms_are_those_of_the_answers(workload: Workload) -> None:
    difference = np.random.default_rng(1).normal(size=GRID.shape)
    slow = [np.abs(workload.answer(difference, query)).sum() for query in range(len(workload))]
    np.testing.assert_allclose(workload.norms(difference), slow, atol=1e-12)


@each
def test_scaling_touches_the_cells_behind_each_count(workload: Workload) -> None:
    rng = np.random.default_rng(2)
    for query in range(0, len(workload), max(1, len(workload) // 20)):
        factors = rng.uniform(0.5, 2, workload.sizes[query])
        scaled, slow = np.ones(GRID.shape), np.ones(GRID.cells)
        workload.scale(scaled, query, factors)
        for part, factor in zip(masks(workload, query), factors, strict=True):
            slow[part] *= factor
        np.testing.assert_allclose(scaled.ravel(), slow)


@each
def test_the_declared_sensitivity_is_reached_and_never_exceeded(workload: Workload) -> None:
    moved = [
        np.abs(workload.answer(unit(a) - unit(b), query)).sum()
        for a, b in product(range(0, GRID.cells, 5), range(1, GRID.cells, 7))
        for query in range(0, len(workload), max(1, len(workload) // 30))
    ]
    assert max(moved) == workload.sensitivity


def unit(cell: int) -> np.ndarray[Any, Any]:
    one = np.zeros(GRID.shape, dtype=np.int64)
    one.flat[cell] = 1
    return one


def test_ranges_hold_every_half_every_value_every_label_and_missing() -> None:
    boxes = RangeWorkload.of(GRID.axes, ((0, 1),)).boxes
    assert {(0, 2), (2, 5), (5, 6), (4, 5)} <= {box[0] for box in boxes if 0 in box}
    assert {(0, 1), (1, 2)} == {box[1] for box in boxes if 1 in box}
    assert {} not in boxes
    assert len(boxes) == len({tuple(sorted(box.items())) for box in boxes})


def test_too_many_queries_are_refused_before_they_are_listed() -> None:
    with pytest.raises(dp.ParameterError, match="at most 2,000,000 queries"):
        IntervalWorkload(shape=(MAX_QUERIES,))
    wide = Schema.from_dict({"columns": [{"name": f"c{i}", "kind": "boolean"} for i in range(60)]})
    with pytest.raises(dp.ParameterError, match="order is 5"):
        every_set(wide, 5)


@given(names=st.lists(st.text(st.characters(codec="ascii", exclude_categories=("Cc",)), min_size=1), max_size=4))
def test_column_sets_survive_any_name_in_quotes(names: list[str]) -> None:
    kept = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    schema = Schema.from_dict({"columns": [{"name": name, "kind": "boolean"} for name in (*kept, "last")]})
    quoted = ['"' + name.replace('"', '""') + '"' for name in kept]
    text = "; ".join(f"{name}, last" for name in quoted) or "last"
    expected = tuple((name, "last") if name != "last" else ("last",) for name in kept) or (("last",),)
    if '"' not in "".join(kept):
        assert read_sets(text, schema, parameter="columns") == expected


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(dp.ParameterError, match="columns is 'weight'"):
        read_sets("x, weight", SMALL_SCHEMA, parameter="columns")
