"""The best small tree, against brute force, an independent solver, and what one replaced row may do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth_core.errors import ParameterError
from dpsynth_core.trees.cuts import CutTable
from dpsynth_core.trees.optimal import optimal_tree_pmse

Question = Callable[[Any], bool]


def is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def questions(synthetic: list[Any], bins: int) -> list[Question]:
    """Every cut that the synthetic column allows, as plain functions of a value."""
    present = [value for value in synthetic if not is_missing(value)]
    if any(isinstance(value, str) for value in present):
        labels = sorted(set(present), key=lambda label: -present.count(label))[:bins]
        own: list[Question] = [lambda value, label=label: value == label for label in labels]
        return [*own, is_missing, lambda value: not is_missing(value) and value not in labels]
    ordered = sorted(present)
    distinct = sorted(set(ordered))
    if len(distinct) > bins:
        distinct = sorted({ordered[math.ceil(k * len(ordered) / bins) - 1] for k in range(1, bins + 1)})
    asked: list[Question] = [lambda value: not is_missing(value)]
    if ordered:
        asked.append(lambda value: not is_missing(value) and value < ordered[0])
    asked += [lambda value, cut=cut: not is_missing(value) and value <= cut for cut in distinct]
    return asked


def pmse_of_leaves(leaves: list[tuple[int, int]], made: int, rows: int) -> float:
    """The definition: the mean of (p_i - c)^2 over all rows."""
    share = made / rows
    return sum((a + o) * (a / (a + o) - share) ** 2 for a, o in leaves if a + o) / rows


def brute_force(original: pd.DataFrame, synthetic: pd.DataFrame, depth: int, bins: int) -> float:
    """Every tree: a question at the root, and any question on either side."""
    asked = [
        (name, question) for name in synthetic for question in questions(synthetic[name].astype(object).tolist(), bins)
    ]
    rows = [(row, label) for label, table in ((1, synthetic), (0, original)) for row in table.to_dict("records")]
    answers = np.array([[question(row[name]) for row, _ in rows] for name, question in asked])
    label = np.array([label for _, label in rows], dtype=bool)

    def term(which: Any) -> float:
        return pmse_of_leaves([(int((which & label).sum()), int((which & ~label).sum()))], len(synthetic), len(rows))

    def best(which: Any) -> float:
        return max(term(which & cut) + term(which & ~cut) for cut in answers)

    every = np.ones(len(rows), dtype=bool)
    if depth == 2:  # the two sides of the root do not depend on each other
        return max(best(root) + best(~root) for root in answers)
    return best(every) if depth else term(every)


cells = {
    "number": st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0, -4.0, 1e300, math.inf, -math.inf, math.nan]),
    "whole": st.integers(-2, 3),
    "text": st.sampled_from(["a", "b", "c", "d"]),
}


@st.composite
def two_tables(draw: st.DrawFn, least: int = 1, most: int = 7) -> tuple[pd.DataFrame, pd.DataFrame]:
    kinds = draw(st.lists(st.sampled_from(sorted(cells)), min_size=1, max_size=3))
    sizes = [draw(st.integers(least, most)) for _ in range(2)]

    def table(size: int) -> pd.DataFrame:
        columns = {
            f"{kind}{i}": draw(st.lists(cells[kind], min_size=size, max_size=size)) for i, kind in enumerate(kinds)
        }
        return pd.DataFrame(columns)

    return table(sizes[0]), table(sizes[1])


@given(tables=two_tables(), depth=st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_no_tree_is_better(tables: tuple[pd.DataFrame, pd.DataFrame], depth: int) -> None:
    original, synthetic = tables
    expected = brute_force(original, synthetic, depth, bins=32)
    assert optimal_tree_pmse(original, synthetic, depth=depth) == pytest.approx(expected, abs=1e-12)


@given(tables=two_tables(most=9), bins=st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_no_tree_is_better_where_thresholds_are_few(tables: tuple[pd.DataFrame, pd.DataFrame], bins: int) -> None:
    original, synthetic = tables
    synthetic = synthetic.select_dtypes("number")
    if synthetic.empty:
        return
    original = original[list(synthetic)]
    expected = brute_force(original, synthetic, 2, bins)
    assert optimal_tree_pmse(original, synthetic, bins=bins) == pytest.approx(expected, abs=1e-12)


@given(tables=two_tables(least=9, most=9), data=st.data(), depth=st.integers(1, 2))
@settings(max_examples=100, deadline=None)
def test_one_replaced_row_moves_the_score_by_less_than_its_share(
    tables: tuple[pd.DataFrame, pd.DataFrame], data: st.DataObject, depth: int
) -> None:
    original, synthetic = tables
    n = len(original)
    neighbour = original.copy()
    for name in neighbour:
        neighbour.loc[0, name] = data.draw(cells[str(name)[:-1]])
    moved = optimal_tree_pmse(original, synthetic, depth) - optimal_tree_pmse(neighbour, synthetic, depth)
    assert abs(moved) <= 1 / (2 * (n + 1)) + 1e-12


def test_the_bound_on_one_row_is_reached() -> None:
    # All synthetic rows in one place, all original ones in another; one of those moves over.
    for n in (1, 5, 200):
        synthetic, original = np.zeros((n, 1)), np.ones((n, 1))
        neighbour = original.copy()
        neighbour[0] = 0
        moved = optimal_tree_pmse(original, synthetic) - optimal_tree_pmse(neighbour, synthetic)
        assert moved == pytest.approx(1 / (2 * (n + 1)))
        assert moved < 1 / (2 * n)


@pytest.mark.parametrize("seed", range(5))
def test_an_independent_solver_finds_no_better_tree(seed: int) -> None:
    streed = pytest.importorskip("pystreed")
    rng = np.random.default_rng(seed)
    synthetic = rng.normal(size=(150, 3))
    original = synthetic[rng.permutation(150)] * [1, 1, -0.6] + rng.normal(0, 0.3, size=(150, 3))
    table = CutTable.of(original, synthetic, bins=8)
    rows = np.hstack([table.synthetic, table.original])
    binary = np.array([rows[i] <= cut for i, c in enumerate(table.cells) for cut in range(c.cuts)]).T.astype(int)
    label = np.repeat([1.0, 0.0], 150)
    # A regression tree on the label has squared error sum a o / (a + o), which is N (c (1 - c) - pMSE).
    solver = streed.STreeDRegressor(max_depth=2, max_num_nodes=3, min_leaf_node_size=1, cost_complexity=0.0)
    solver.fit(binary, label)
    error = float(((solver.predict(binary) - label) ** 2).sum())
    assert optimal_tree_pmse(original, synthetic, bins=8) == pytest.approx(0.25 - error / 300, abs=1e-9)


def test_deeper_trees_tell_more_and_finer_cuts_no_less() -> None:
    rng = np.random.default_rng(0)
    original = rng.normal(size=(400, 2))
    synthetic = np.column_stack([original[:, 0], -original[:, 1]])[rng.permutation(400)]
    scores = [optimal_tree_pmse(original, synthetic, depth=depth, bins=400) for depth in (0, 1, 2)]
    assert scores[0] == 0
    assert scores == sorted(scores)
    assert optimal_tree_pmse(original, synthetic, bins=8) <= optimal_tree_pmse(original, synthetic, bins=16)


def test_a_difference_that_no_single_cut_shows_is_found() -> None:
    # Exclusive or: greedy trees see nothing at the root.
    corners = pd.DataFrame({"x": [0, 0, 1, 1], "y": [0, 1, 0, 1]})
    original, synthetic = corners.iloc[[0, 3]], corners.iloc[[1, 2]]
    assert optimal_tree_pmse(original, synthetic, depth=1) == 0
    assert optimal_tree_pmse(original, synthetic) == pytest.approx(0.25)


def test_the_cut_that_separates_best_is_found_among_numbers_and_labels() -> None:
    original = pd.DataFrame({"size": [1.0, 1.0, 5.0, np.nan], "colour": ["red", "red", "blue", "blue"]})
    synthetic = pd.DataFrame({"size": [1.0, 2.0, 2.0, 2.0], "colour": ["red", "green", "green", "green"]})
    # "Is green" holds three synthetic rows and no original one.
    assert optimal_tree_pmse(original, synthetic, depth=1) == pytest.approx(pmse_of_leaves([(3, 0), (1, 4)], 4, 8))
    assert optimal_tree_pmse(original, original) == 0
    # "Up to 3", the largest synthetic value, keeps the 9 apart.
    beyond = optimal_tree_pmse(pd.DataFrame({"x": [1, 2, 9]}), pd.DataFrame({"x": [1, 2, 3]}), depth=1)
    assert beyond == pytest.approx(pmse_of_leaves([(3, 2), (0, 1)], 3, 6))


def test_ordered_categories_dates_and_booleans_are_cut_in_their_order() -> None:
    levels = pd.CategoricalDtype(["no", "some", "much"], ordered=True)
    frame = pd.DataFrame(
        {
            "pain": pd.Series(["no", "some", "much", None], dtype=levels),
            "since": pd.to_datetime(["2020-01-01", "2020-06-01", None, "2021-01-01"]),
            "smokes": pd.array([True, False, None, True], dtype="boolean"),
            "told": pd.to_datetime(["2020-01-01", "2020-06-01", None, "2021-01-01"], utc=True),
        }
    )
    table = CutTable.of(frame, frame, bins=32)
    assert [c.nominal for c in table.cells] == [False] * 4
    assert table.synthetic.tolist() == [[1, 2, 3, 5], [1, 2, 5, 3], [2, 1, 4, 2], [1, 2, 5, 3]]
    assert optimal_tree_pmse(frame, frame) == 0
    # "Below some" keeps two original rows apart from the rest.
    below = optimal_tree_pmse(frame[["pain"]].iloc[[0, 0, 1]], frame[["pain"]].iloc[[2, 2, 1]], depth=1)
    assert below == pytest.approx(pmse_of_leaves([(0, 2), (3, 1)], 3, 6))


def test_declared_categories_have_a_cut_even_where_no_synthetic_row_has_them() -> None:
    declared = pd.CategoricalDtype(["a", "b", "c"])
    original = pd.DataFrame({"x": pd.Series(["a", "b", "b", "c"], dtype=declared)})
    synthetic = pd.DataFrame({"x": pd.Series(["a", "a", "a", "a"], dtype=declared)})
    assert CutTable.of(original, synthetic, bins=32).cells[0].size == 5
    assert optimal_tree_pmse(original, synthetic) == pytest.approx(brute_force(original, synthetic, 2, 32))


@pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf, 1e300, -1e300])
def test_strange_cells_on_either_side_are_only_rows_in_a_cell(strange: float) -> None:
    rng = np.random.default_rng(1)
    original, synthetic = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    before = optimal_tree_pmse(original, synthetic)
    original[7, 0] = strange
    assert abs(optimal_tree_pmse(original, synthetic) - before) <= 1 / 102 + 1e-12
    synthetic[3] = strange
    assert 0 <= optimal_tree_pmse(original, synthetic) <= 0.25
    assert optimal_tree_pmse(synthetic, synthetic) == 0
    assert 0 < optimal_tree_pmse(original, np.full((50, 2), strange)) <= 0.25


def test_more_thresholds_than_are_compared_one_by_one_give_the_same_cells() -> None:
    rng = np.random.default_rng(2)
    original, synthetic = rng.normal(size=(900, 1)), rng.normal(size=(900, 1))
    original[:3, 0] = [np.nan, np.inf, -np.inf]
    table = CutTable.of(original, synthetic, bins=500)
    thresholds = table.cells[0].thresholds  # type: ignore[attr-defined]
    assert len(thresholds) == 500
    expected = [
        502 if math.isnan(x) else 0 if x < synthetic.min() else 1 + int((thresholds < x).sum()) for x in original[:, 0]
    ]
    assert table.original[0].tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({"depth": 3}, "depth"),
        ({"depth": True}, "depth"),
        ({"bins": 0}, "bins"),
        ({"bins": 2.5}, "bins"),
        ({"bins": 10**6}, "bins"),
        ({"original": np.zeros((0, 2))}, "original"),
        ({"synthetic": np.zeros((5, 0))}, "synthetic"),
        ({"synthetic": np.zeros((5, 2, 2))}, "synthetic"),
        ({"original": np.zeros((5, 3))}, "original"),
        ({"original": pd.DataFrame([[1, 2]], columns=["a", "a"])}, "original"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(arguments: dict[str, Any], parameter: str) -> None:
    with pytest.raises(ParameterError, match=parameter):
        optimal_tree_pmse(**{"original": np.zeros((5, 2)), "synthetic": np.zeros((5, 2)), **arguments})
