"""Drawn rows that are brought nearer to their model."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.private_pgm import balancing
from dpsynth_core.mechanisms.private_pgm.balancing import ColumnPair, PairTargets
from dpsynth_core.mechanisms.private_pgm.graphical_model import ConditionalTable, draw_rows, marginal
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise

SIZES = (3, 4, 4, 4, 4)


def star() -> tuple[ConditionalTable, ...]:
    """Four children of one parent."""
    rng = np.random.default_rng(7)
    parent = ConditionalTable.of((), (0,), rng.dirichlet(np.ones(3)))
    given = [rng.dirichlet(np.full(4, 0.7), size=3) for _ in range(4)]
    return (
        parent,
        *(
            ConditionalTable(parents=(0,), children=(child,), probabilities=table)
            for child, table in enumerate(given, start=1)
        ),
    )


def targets(tables: tuple[ConditionalTable, ...], sizes: tuple[int, ...]) -> PairTargets:
    pairs: dict[ColumnPair, FloatArray] = {pair: marginal(tables, pair) for pair in combinations(range(len(sizes)), 2)}
    return PairTargets(strata=tuple(np.arange(size) for size in sizes), pairs=pairs)


def distance(rows: list[IntArray], tables: tuple[ConditionalTable, ...], columns: tuple[int, ...]) -> float:
    """Total variation between the rows and the model."""
    expected = marginal(tables, columns)
    cells = np.ravel_multi_index(tuple(rows[column] for column in columns), expected.shape)
    seen: FloatArray = np.bincount(cells, minlength=expected.size) / len(rows[0])
    return float(np.abs(seen - expected.ravel()).sum() / 2)


def test_pairs_and_triples_come_nearer_to_the_model_and_columns_stay_where_they_are() -> None:
    tables, rows = star(), 2_000
    noise = SeededNoise(Budget.of(1), 3)
    drawn = draw_rows(tables, rows, noise)
    before = [drawn[column] for column in range(5)]
    after = [column.copy() for column in before]
    targets(tables, SIZES).balance(after, noise)
    gaps = [
        [
            np.mean([distance(each, tables, columns) for columns in combinations(range(5), order)])
            for each in (before, after)
        ]
        for order in (1, 2, 3)
    ]
    assert gaps[0][1] <= 1 / rows * 4
    assert gaps[1][1] <= gaps[1][0] / 4
    assert gaps[2][1] <= gaps[2][0]


def test_no_combination_comes_about_that_the_model_rules_out() -> None:
    same = np.eye(4) / 4
    rng = np.random.default_rng(0)
    free = [ConditionalTable.of((), (column,), rng.dirichlet(np.ones(5))) for column in (2, 3, 4)]
    tables = (ConditionalTable.of((), (0,), np.full(4, 0.25)), ConditionalTable.of((0,), (1,), same), *free)
    noise = SeededNoise(Budget.of(1), 1)
    drawn = draw_rows(tables, 997, noise)
    targets(tables, (4, 4, 5, 5, 5)).balance([drawn[column] for column in range(5)], noise)
    assert (drawn[0] == drawn[1]).all()


def test_bins_travel_with_their_strata() -> None:
    """Two bins share a stratum: how often each occurs in it is left alone but for what is copied."""
    pairs: dict[ColumnPair, FloatArray] = {(0, 1): np.full((2, 2), 0.25)}
    both = PairTargets(strata=(np.array([0, 0, 1]), np.array([0, 1])), pairs=pairs)
    first = np.repeat([0, 1, 2], [100, 100, 200])
    second = np.repeat([0, 1], [200, 200])  # tied to the first column, where the model has them independent
    both.balance([first, second], SeededNoise(Budget.of(1), 2))
    assert set(first.tolist()) == {0, 1, 2}
    table = np.histogram2d(both.strata[0][first], second, bins=2)[0]
    assert np.abs(table - 100).max() <= 2


def test_one_column_or_one_row_has_no_pairs_to_mend() -> None:
    noise = SeededNoise(Budget.of(1), 2)
    alone, column = PairTargets(strata=(np.arange(3),), pairs={}), np.array([2, 0, 1])
    alone.balance([column], noise)
    assert column.tolist() == [2, 0, 1]
    row = [np.array([1]), np.array([0])]
    PairTargets(strata=(np.arange(2), np.arange(2)), pairs={(0, 1): np.full((2, 2), 0.25)}).balance(row, noise)
    assert [column.tolist() for column in row] == [[1], [0]]


def test_of_many_rows_the_first_make_up_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(balancing, "MAX_MOVABLE", 1_000)
    tables, rows = star(), 3_000
    noise = SeededNoise(Budget.of(1), 5)
    drawn = draw_rows(tables, rows, noise)
    columns = [drawn[column] for column in range(5)]
    before = [column.copy() for column in columns]
    targets(tables, SIZES).balance(columns, noise)
    assert all((a[1_000:] == b[1_000:]).all() for a, b in zip(before, columns, strict=True))
    gaps = [np.mean([distance(each, tables, pair) for pair in combinations(range(5), 2)]) for each in (before, columns)]
    assert gaps[1] <= gaps[0] / 4
