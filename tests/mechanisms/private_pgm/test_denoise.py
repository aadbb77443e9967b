"""Noisy counts made into counts again; bins and groups that only noisy counts decide."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

import dpsynth_core as dp
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.mechanisms.private_pgm.binned_columns import group_bins
from dpsynth_core.mechanisms.private_pgm.bins import Bins, adaptive_bins, passes_needed
from dpsynth_core.mechanisms.private_pgm.denoise import (
    CoarseCounts,
    category_counts,
    nonnegative_solution,
    ordered_counts,
)
from dpsynth_core.mechanisms.private_pgm.pieces import averaged_pieces
from dpsynth_core.mechanisms.simplex import project_to_simplex

noisy_counts = st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=40).map(np.array)
COLUMN = {"name": "x", "public": True}


@given(values=noisy_counts, std=st.floats(0.1, 1e4), total=st.integers(1, 10**5))
def test_counts_of_categories_are_counts(values: np.ndarray[Any, Any], std: float, total: int) -> None:
    found = category_counts(values, std, total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total)


@given(values=noisy_counts, std=st.floats(0.1, 1e4), total=st.integers(1, 10**5), missing=st.booleans())
def test_counts_of_bins_are_counts(values: np.ndarray[Any, Any], std: float, total: int, missing: bool) -> None:
    widths = np.ones(max(1, len(values) - missing))
    found = ordered_counts(values, widths, std, total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total)


def mean_error(law: np.ndarray[Any, Any], std: float, method: Any) -> float:
    errors = []
    for seed in range(20):
        noisy = law + np.random.default_rng(seed).normal(0, std, len(law))
        errors.append(np.abs(method(noisy) - law).sum() / 2 / law.sum())
    return float(np.mean(errors))


def test_many_small_categories_come_out_better_than_by_projection_alone() -> None:
    counts = np.concatenate([[4_000.0, 900.0], np.random.default_rng(0).poisson(12, 150)])
    shrunk = mean_error(counts, 30, lambda noisy: category_counts(noisy, 30, counts.sum()))
    plain = mean_error(counts, 30, lambda noisy: project_to_simplex(noisy, counts.sum()))
    assert shrunk < 0.7 * plain


def test_a_flat_stretch_comes_out_better_than_by_projection_alone() -> None:
    counts = np.repeat([300.0, 50.0, 200.0], 12)
    joined = mean_error(counts, 40, lambda noisy: ordered_counts(noisy, np.ones(36), 40, counts.sum()))
    plain = mean_error(counts, 40, lambda noisy: project_to_simplex(noisy, counts.sum()))
    assert joined < 0.8 * plain


def mean_over_all_cuts(noisy: np.ndarray[Any, Any], widths: np.ndarray[Any, Any], std: float) -> np.ndarray[Any, Any]:
    """One cut after the other, each with its own fit and weight."""
    total, weighted = 0.0, np.zeros(len(noisy))
    for cuts in itertools.product([False, True], repeat=len(noisy) - 1):
        pieces = np.split(np.arange(len(noisy)), 1 + np.flatnonzero(cuts))
        fits = [widths[own] * (noisy[own] @ widths[own]) / (widths[own] @ widths[own]) for own in pieces]
        fit = np.concatenate(fits)
        weight = np.exp(-(np.square(noisy - fit).sum() / std**2 + 2 * len(pieces)) / 2)
        total, weighted = total + weight, weighted + weight * fit
    return np.asarray(weighted / total)


@given(seed=st.integers(0, 10**6), size=st.integers(1, 9), std=st.floats(0.5, 50))
def test_smoothing_is_the_weighted_mean_over_all_ways_to_cut(seed: int, size: int, std: float) -> None:
    rng = np.random.default_rng(seed)
    noisy, widths = rng.normal(20, 30, size), rng.integers(1, 6, size).astype(float)
    expected = mean_over_all_cuts(noisy, widths, std)
    assert averaged_pieces(noisy, widths, std) == pytest.approx(expected, abs=1e-9 * np.abs(noisy).max())


@pytest.mark.parametrize("noisy", [np.zeros(12), np.full(12, 1e12), np.array([0.0, 1e9] * 6), np.array([-5.0])])
def test_smoothing_bears_any_counts(noisy: np.ndarray[Any, Any]) -> None:
    assert averaged_pieces(noisy, np.ones(len(noisy)), 1e-2) == pytest.approx(noisy, rel=1e-6, abs=1e-6)


def test_a_smooth_law_comes_out_better_than_without_smoothing_and_a_jagged_one_no_worse() -> None:
    bell = 1_000 * np.exp(-(np.linspace(-3, 3, 32) ** 2) / 2)
    jagged = np.where(np.arange(32) % 2, 2_000.0, 10.0)

    def smoothed(noisy: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return averaged_pieces(noisy, np.ones(32), 100)

    assert mean_error(bell, 100, smoothed) < 0.8 * mean_error(bell, 100, lambda noisy: noisy)
    assert mean_error(jagged, 100, smoothed) < 1.02 * mean_error(jagged, 100, lambda noisy: noisy)


def in_sixteenths(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.repeat(np.eye(16), len(counts) // 16, axis=1)


def test_counts_of_coarser_parts_make_sums_of_bins_better() -> None:
    counts = np.random.default_rng(0).poisson(1_000 * np.exp(-(np.linspace(-3, 3, 256) ** 2))).astype(float)
    parts, errors = in_sixteenths(counts), []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        noisy = counts + rng.normal(0, 60, 256)
        coarser = CoarseCounts(parts=parts, values=parts @ counts + rng.normal(0, 60, 16), std=60)
        both = [ordered_counts(noisy, np.ones(256), 60, counts.sum(), looks) for looks in ([], [coarser])]
        errors.append([np.abs(parts @ (found - counts)).sum() for found in both])
    without, with_looks = np.mean(errors, axis=0)
    assert with_looks < 0.7 * without


def test_noise_in_empty_parts_takes_few_rows_from_a_crowded_one() -> None:
    """Least squares without negative counts, beside correcting first and cutting off afterwards."""
    counts = np.zeros(256)
    counts[:16] = 200.0
    parts, taken = in_sixteenths(counts), []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        looks = CoarseCounts(parts=parts, values=parts @ counts + rng.normal(0, 100, 16), std=100)
        found = ordered_counts(counts + rng.normal(0, 100, 256), np.ones(256), 100, 3_200, [looks])
        assert found.min() >= 0
        assert found.sum() == pytest.approx(3_200)
        taken.append(found[16:].sum())
    assert np.mean(taken) < 300  # fifteen parts with 40 rows each, on average, if all that is negative were cut off


def crowded() -> tuple[dp.PrivateTable, Any]:
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(2_000, 40, 900), np.full(600, 7_777.0), rng.uniform(0, 1e6, 20)])
    schema = dp.Schema.from_dict({"columns": [{**COLUMN, "kind": "continuous", "lower": 0, "upper": 1e6}]})
    return dp.PrivateTable(pd.DataFrame({"x": values}), schema), schema["x"]


def slots_of(table: dp.PrivateTable, name: str) -> np.ndarray[Any, Any]:
    axis = Axis.fine(table.schema[name])
    return np.bincount(axis.locate(table), minlength=axis.size)


def test_looking_closer_finds_where_rows_crowd() -> None:
    table, column = crowded()
    passes = passes_needed(column, 20)
    bins = adaptive_bins(
        slots_of(table, "x"), table.n, column, lambda counts: (counts, 1.0), bins=20, passes=passes
    ).bins
    counts = np.bincount(bins.codes(table), minlength=bins.size)
    width = 1e6 / bins.axis.slots
    spike = np.searchsorted(bins.edges, 7_777 / width, side="right") - 1
    assert counts[spike] >= 600
    assert bins.widths[spike] * width < 500
    assert bins.size <= 3 * 20


def test_bins_keep_to_cells_and_parts_of_looks_hold_them_wholly() -> None:
    table, column = crowded()
    slots = slots_of(table, "x")
    found = adaptive_bins(slots, table.n, column, lambda counts: (counts, 1.0), bins=6, passes=2, keep_cells=True)
    bins, looks = found.bins, found.looks
    assert set((np.arange(16) * bins.axis.slots // 16).tolist()) <= set(bins.edges.tolist())
    assert [len(look.counts) for look in looks] == [16, 31]
    for look in looks:
        np.testing.assert_allclose(bins.overlap(look.edges).sum(axis=0), 1)
    first = bins.overlap(looks[0].edges)
    np.testing.assert_array_equal(first @ bins.gather(slots), looks[0].counts)


@given(data=st.data())
def test_bins_cover_the_range_whatever_the_noise(data: st.DataObject) -> None:
    table, column = crowded()

    def measure(counts: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], float]:
        size = len(counts)
        return np.array(data.draw(st.lists(st.integers(-(10**6), 10**6), min_size=size, max_size=size))), 10.0

    bins = adaptive_bins(slots_of(table, "x"), table.n, column, measure, bins=8, passes=2).bins
    assert bins.edges[0] == 0
    assert bins.edges[-1] == bins.axis.slots
    assert (np.diff(bins.edges) > 0).all()
    assert bins.codes(table).min() >= 0
    assert bins.codes(table).max() < bins.size


@pytest.mark.parametrize("kind", ["integer", "categorical"])
@given(counts=st.lists(st.floats(0, 1e4), min_size=3, max_size=30).map(np.array), max_groups=st.integers(2, 12))
def test_groups_are_few_and_dense(kind: str, counts: np.ndarray[Any, Any], max_groups: int) -> None:
    size = len(counts) - 1
    facts: dict[str, Any] = {"categories": [f"k{i}" for i in range(size)]}
    if kind == "integer":
        facts = {"lower": 0, "upper": size - 1}
    column = dp.Schema.from_dict({"columns": [{**COLUMN, "kind": kind, "nullable": True, **facts}]})["x"]
    bins = Bins.equal(column, None)
    groups = group_bins(bins, counts, max_groups)
    assert set(groups.tolist()) == set(range(groups.max() + 1))
    assert groups.max() < max(max_groups, 2)
    if kind == "integer" and len(counts) > max_groups:
        assert (np.diff(groups[:size]) >= 0).all()
        assert (groups[:size] != groups[size]).all()


def test_groups_begin_where_declared_cells_do_and_a_heavy_cell_is_split() -> None:
    column = dp.Schema.from_dict({"columns": [{**COLUMN, "kind": "integer", "lower": 0, "upper": 63, "bins": 8}]})["x"]
    bins = Bins(axis=Axis.fine(column), edges=np.arange(65))
    counts = np.zeros(64)
    counts[8:16], counts[16:24], counts[40:48] = 100.0, 10.0, 20.0
    groups = group_bins(bins, counts, 8)
    starts = set(np.flatnonzero(np.diff(groups, prepend=-1)).tolist())
    assert {16, 40} <= starts, "cells that hold rows begin a group"
    assert len({*groups[8:16].tolist()}) > 2, "the heavy cell is split"
    assert len({*groups[48:].tolist()}) == 1, "empty cells are not told apart"


@pytest.mark.parametrize("max_groups", range(2, 17))
def test_groups_fewer_than_cells_are_whole_cells_joined(max_groups: int) -> None:
    column = dp.Schema.from_dict({"columns": [{**COLUMN, "kind": "integer", "lower": 0, "upper": 63, "bins": 16}]})["x"]
    counts = 50.0 + np.random.default_rng(7).integers(0, 50, 64)
    groups = group_bins(Bins(axis=Axis.fine(column), edges=np.arange(65)), counts, max_groups)
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    assert (starts % 4 == 0).all(), "no group begins within a cell"
    assert len(starts) == max_groups


@pytest.mark.parametrize("std", [1.0, 30.0])
def test_a_spike_has_a_bin_to_itself_and_an_empty_stretch_few(std: float) -> None:
    rng = np.random.default_rng(2)
    values = np.concatenate([np.full(4_000, 120), rng.normal(120, 10, 6_000).round().clip(0, 300)])
    schema = dp.Schema.from_dict({"columns": [{**COLUMN, "kind": "integer", "lower": 0, "upper": 300}]})
    table = dp.PrivateTable(pd.DataFrame({"x": values.astype(int)}), schema)

    def measure(counts: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], float]:
        return counts + np.rint(rng.normal(0, std, len(counts))).astype(np.int64), std

    bins = adaptive_bins(slots_of(table, "x"), table.n, schema["x"], measure, bins=100, passes=1).bins
    at = int(np.searchsorted(bins.edges, 120, side="right")) - 1
    assert bins.edges[at : at + 2].tolist() == [120, 121]
    assert np.count_nonzero(bins.edges > 180) <= 8


@pytest.mark.parametrize("seed", range(40))
def test_least_squares_without_negative_counts_agrees_with_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 60))
    parts = rng.random((int(rng.integers(1, 90)), size)) * rng.uniform(0, 3)
    weights = np.concatenate([np.eye(size) * rng.uniform(0.1, 3), parts, np.full((1, size), rng.uniform(0, 100))])
    wanted = rng.normal(rng.normal(), rng.uniform(0.1, 30), len(weights))
    found = nonnegative_solution(weights.T @ weights, weights.T @ wanted)
    np.testing.assert_allclose(found, nnls(weights, wanted, maxiter=50 * size)[0], rtol=1e-8, atol=1e-8)
