"""Greedy trees: against rpart itself, against plain loops, and for tables that are hardly tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpsynth_core.errors import ParameterError
from dpsynth_core.trees.cart import CartNode, CartSplit, CartTree, cart_pmse, fit_tree
from tests.tables.rpart import read_cases, tables
from tests.tables.strategies import anything

CASES = read_cases(Path(__file__).parent / "rpart_reference.json")
LOOSE = {"cp": 0.0, "minsplit": 2, "minbucket": 1}
MICROSECONDS = 24 * 60 * 60 * 10**6


def sides(split: CartSplit, levels: int) -> tuple[set[str], set[str]]:
    """Levels on the left and on the right; of ordered ones rpart also lists those that the node does not hold."""
    if split.threshold is None:
        return {str(name) for name in split.left}, {str(name) for name in split.right}
    below = {str(level) for level in range(1, levels + 1) if level <= split.threshold}
    above = {str(level) for level in range(1, levels + 1)} - below
    return (below, above) if split.below_left else (above, below)


def check_split(split: CartSplit, column: int, improvement: float, *how: Any) -> None:
    assert split.column == f"x{column}"
    assert split.improvement == pytest.approx(improvement, rel=1e-12)
    if isinstance(how[0], list):
        named = ({str(i + 1) for i, side in enumerate(how[0]) if side == way} for way in (-1, 1))
        assert sides(split, len(how[0])) == tuple(named)
    else:
        assert split.threshold is not None
        scale = MICROSECONDS if split.kind == "date" else 1
        assert (split.below_left, split.threshold / scale) == (how[0] == -1, how[1])


@pytest.mark.parametrize("case", CASES, ids=[f"seed{case['seed']}" for case in CASES])
def test_trees_are_those_of_rpart(case: dict[str, Any]) -> None:
    original, synthetic = tables(case)
    limits = {name: case[name] for name in ("cp", "minsplit", "minbucket", "maxdepth")}
    tree = fit_tree(original, synthetic, **limits)
    found = [(node.number, node.original, node.synthetic) for node in tree.nodes]
    assert found == [tuple(row[:3]) for row in case["nodes"]]
    for node, row in zip(tree.nodes, case["nodes"], strict=True):
        assert node.leaf == (len(row) == 4)
        if node.split:
            assert node.complexity == pytest.approx(row[3], rel=1e-12)
            check_split(node.split, *row[4:])
    assert tree.pmse == pytest.approx(case["pmse"], rel=1e-10, abs=1e-15)
    assert tree.pmse == cart_pmse(original, synthetic, **limits)
    assert {name: value for name, value in tree.importance.items() if value} == pytest.approx(case["importance"])


def test_the_reference_holds_what_it_should() -> None:
    """Otherwise agreement with it would say little."""
    kinds = {kind for case in CASES for kind in case["kinds"]}
    assert len(kinds) == 13
    assert sum(len(case["nodes"]) > 1 for case in CASES) > 40
    assert any(case["original"] != case["synthetic"] for case in CASES if len(case["nodes"]) > 1)
    assert max(len(case["nodes"]) for case in CASES) > 50


# Against plain loops


def gini(rows: NDArray[np.bool_]) -> float:
    """Rows times Gini impurity."""
    return 2 * len(rows) * rows.mean() * (1 - rows.mean()) if len(rows) else 0.0


def every_division(column: pd.Series[Any]) -> Iterator[NDArray[np.bool_]]:
    """Every cut between two values, or every subset of categories."""
    if column.dtype.kind == "f":
        for value in np.unique(column)[1:]:
            yield (column < value).to_numpy()
        return
    names = sorted(set(column))
    for subset in range(1, 2 ** (len(names) - 1)):
        yield column.isin([name for k, name in enumerate(names) if subset >> k & 1]).to_numpy()


def best_improvement(table: pd.DataFrame, synthetic: NDArray[np.bool_], minbucket: int) -> float:
    gains = [0.0]
    for name in table:
        for inside in every_division(table[name]):
            if min(inside.sum(), (~inside).sum()) >= minbucket:
                gains.append(gini(synthetic) - gini(synthetic[inside]) - gini(synthetic[~inside]))
    return max(gains)


def reached(table: pd.DataFrame, split: CartSplit) -> NDArray[np.bool_]:
    """The rows of the left child."""
    if split.threshold is None:
        return table[split.column].isin(split.left).to_numpy()
    return (table[split.column] < split.threshold).to_numpy() == split.below_left


@st.composite
def two_tables(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A column of numbers with ties, one without, and one of up to seven categories."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.integers(1, 7))

    def table(rows: int, shift: float) -> pd.DataFrame:
        z = rng.normal(shift, 1, (rows, 3))
        place = np.clip(np.floor(z[:, 2] * 2 + levels / 2), 0, levels - 1).astype(int)
        return pd.DataFrame({"ties": np.floor(2 * z[:, 0]), "free": z[:, 1], "group": np.array(list("gcafbed"))[place]})

    sizes = st.integers(1, 60)
    return table(draw(sizes), 0.0), table(draw(sizes), draw(st.sampled_from([0.0, 0.5, 3.0])))


@given(two_tables(), st.sampled_from([1, 3, 7]))
def test_every_split_is_the_best_of_all_divisions(pair: tuple[pd.DataFrame, pd.DataFrame], minbucket: int) -> None:
    """Categories are searched in order of their share only; the loop here tries every subset of them."""
    tree = fit_tree(*pair, cp=0.0, minsplit=2, minbucket=minbucket)
    both = pd.concat(pair, ignore_index=True)
    synthetic = np.arange(len(both)) >= len(pair[0])
    rows = {1: np.ones(len(both), dtype=np.bool_)}
    for node in tree.nodes:
        inside = rows[node.number]
        assert (node.original, node.synthetic) == ((inside & ~synthetic).sum(), (inside & synthetic).sum())
        if node.split:
            best = best_improvement(both[inside], synthetic[inside], minbucket)
            assert node.split.improvement == pytest.approx(best, rel=1e-9, abs=1e-12)
            left = reached(both, node.split)
            rows[2 * node.number], rows[2 * node.number + 1] = inside & left, inside & ~left


def by_number(tree: CartTree) -> dict[int, CartNode]:
    return {node.number: node for node in tree.nodes}


@given(two_tables(), st.sampled_from([0.0, 0.01, 0.1]), st.integers(1, 5))
def test_what_a_tree_promises(pair: tuple[pd.DataFrame, pd.DataFrame], cp: float, maxdepth: int) -> None:
    tree = fit_tree(*pair, cp=cp, minsplit=6, minbucket=2, maxdepth=maxdepth)
    nodes = by_number(tree)
    for node in tree.nodes:
        assert node.depth <= maxdepth
        if node.split:
            left, right = nodes[2 * node.number], nodes[2 * node.number + 1]
            assert (left.original + right.original, left.synthetic + right.synthetic) == (node.original, node.synthetic)
            assert left.share < right.share
            assert min(left.rows, right.rows) >= 2
            assert node.rows >= 6
            assert node.complexity > cp
    assert tree.leaves == len(tree.nodes) // 2 + 1
    c = len(pair[1]) / (len(pair[0]) + len(pair[1]))
    assert 0 <= tree.pmse <= c * (1 - c)


@given(two_tables(), st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(pair: tuple[pd.DataFrame, pd.DataFrame], seed: int) -> None:
    mixed = [table.sample(frac=1, random_state=seed) for table in pair]
    assert fit_tree(*mixed, **LOOSE) == fit_tree(*pair, **LOOSE)


@given(two_tables())
def test_exchanged_tables_are_as_far_apart(pair: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    """Up to ties between splits, which rounding decides: a column without ties of its own has none."""
    first, second = (table[["free"]] for table in pair)
    there, back = fit_tree(first, second, maxdepth=1), fit_tree(second, first, maxdepth=1)
    there_gain, back_gain = sum(there.importance.values()), sum(back.importance.values())
    assert there_gain == pytest.approx(back_gain, rel=1e-9, abs=1e-12)


@given(two_tables())
def test_a_table_and_its_copy_cannot_be_told_apart(pair: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    assert cart_pmse(pair[0], pair[0].copy(), **LOOSE) == 0


# The known figures


def normal_pair(rng: np.random.Generator, n: int) -> list[NDArray[np.float64]]:
    """Two samples of X1 ~ N(2, 10^2), X2 ~ N(-2.5 + 0.5 X1, 3^2)."""
    first = rng.normal(2, 10, (2, n))
    return [np.column_stack([x, rng.normal(-2.5 + 0.5 * x, 3)]) for x in first]


def test_two_samples_of_one_law_give_what_rpart_gives() -> None:
    """R 4.2.2 with rpart 4.1.19: pMSE 0.00689 (sd 0.0027) and 49 leaves (sd 19) in 200 repetitions at cp 0.001; pMSE
    0.00015 (sd 0.00018) in 100 at cp 0.01.

    The tolerance is five standard errors of the difference of two means.
    """
    rng, repeats = np.random.default_rng(11), 60
    error = 5 * math.sqrt(1 / repeats + 1 / 200)
    trees = [fit_tree(*normal_pair(rng, 5000)) for _ in range(repeats)]
    assert np.mean([tree.pmse for tree in trees]) == pytest.approx(0.00689, abs=error * 0.0027)
    assert np.mean([tree.leaves for tree in trees]) == pytest.approx(49, abs=error * 19)
    coarse = np.mean([cart_pmse(*normal_pair(rng, 5000), cp=0.01) for _ in range(repeats)])
    assert coarse == pytest.approx(0.00015, abs=5 * math.sqrt(1 / repeats + 1 / 100) * 0.00018)


def test_tables_without_a_common_row_are_told_apart_perfectly() -> None:
    original, synthetic = np.arange(30.0), np.arange(30.0, 90.0)
    assert cart_pmse(original, synthetic) == pytest.approx(2 / 3 * 1 / 3)


def test_a_tree_of_many_nodes() -> None:
    """Noise separated as far as thirty splits in a row can: each of the tree's many nodes is accounted for."""
    rng = np.random.default_rng(9)
    tree = fit_tree(rng.normal(size=(1500, 2)), rng.normal(size=(1500, 2)), **LOOSE)
    assert tree.leaves > 500
    leaves = [node for node in tree.nodes if node.leaf]
    assert sum(node.original for node in leaves) == sum(node.synthetic for node in leaves) == 1500
    assert 0.2 < tree.pmse <= 0.25


# Kinds of columns


def fit_one(original: Any, synthetic: Any) -> CartTree:
    return fit_tree(pd.DataFrame({"x": original}), pd.DataFrame({"x": synthetic}), **LOOSE)


DAYS = pd.to_datetime(["2024-02-27", "2024-03-02"])


@pytest.mark.parametrize(
    ("original", "synthetic", "words"),
    [
        ([1, 2], [9, 9], "x 6 or more"),
        ([12_000, 11_000], [12_345, 13_000], "x 12200 or more"),
        ([0.1 + 0.2], [0.3], "x below 0.30000000000000004"),
        ([1e-9], [3e-9], "x 2e-09 or more"),
        ([1.0, math.inf], [-math.inf, -5.0], "x below -2"),
        ([1.0, 2.0], [math.inf], "x inf or more"),
        (pd.array([1, None], dtype="Int64"), pd.array([5, 6], dtype="Int64"), "x 3 or more"),
        ([1.0, 2.0], [math.nan, math.nan], "x is missing"),
        ([math.nan], [1.0, 2.0], "x is not missing"),
        ([True, True], [False, False], "x is false"),
        (pd.array([False], dtype="boolean"), pd.array([True, True], dtype="boolean"), "x is true"),
        ([DAYS[0]] * 2, [DAYS[1]] * 2, "x from 2024-03-02 on"),
        ([DAYS[1].date()], [DAYS[0].date()], "x before 2024-03-02"),
        ([DAYS[0]], [DAYS[0] + pd.Timedelta(hours=1)], "x from 2024-02-27 01:00:00 on"),
        (DAYS[:1].tz_localize("Asia/Tokyo"), DAYS[1:].tz_localize("Asia/Tokyo"), "x from 2024-03-01 on"),
        (pd.period_range("2024-01", periods=1, freq="M"), pd.period_range("2024-05", periods=1, freq="M"), None),
        (["a", "b"], ["c", "c"], "x is c"),
        (["a"], ["c", None], "x is not a"),
        (["a", "a"], [None, None], "x is missing"),
        (list("abcdefgh"), list("ijklmnop"), "x is i, j, k, l, m or one of 3 others"),
        ([1, 2, 2], ["3", "4", "4"], "x is 3 or 4"),
        (
            pd.Categorical(["low", "mid"], ["low", "mid", "high"], ordered=True),
            pd.Categorical(["high"], ["low", "mid", "high"], ordered=True),
            "x is high",
        ),
        (pd.Categorical(["c", "c"], ["c", "b", "a"], ordered=True), ["a", "b"], "x from b on"),
    ],
)
def test_every_kind_of_column_is_split_and_put_in_words(original: Any, synthetic: Any, words: str | None) -> None:
    tree = fit_one(original, synthetic)
    assert tree.leaves == 2
    synthetic_rows = next(node for node in tree.nodes if node.number == 3)
    assert synthetic_rows.original == 0
    if words:
        assert tree.in_words()[0] == f"{words}: all of the rows are synthetic."


def test_conditions_on_one_column_are_joined() -> None:
    original, synthetic = np.r_[np.zeros(20), np.full(20, 10.0)], np.full(30, 5.0)
    told = fit_tree(pd.DataFrame({"<b>age</b>": original}), pd.DataFrame({"<b>age</b>": synthetic})).in_words(2)
    assert "<b>age</b> from 2 to below 8: all of the rows are synthetic." in told
    assert told[1].endswith("none of the rows are synthetic.")
    assert len(told) == 4


def test_words_for_a_tree_without_splits() -> None:
    assert fit_one([1, 2], [1, 2]).in_words() == ["The tree finds no difference between original and synthetic rows."]


@pytest.mark.parametrize(
    "column",
    [
        [7, 7, 7],
        [None, None, None],
        [math.nan] * 3,
        pd.array([None] * 3, dtype="Int64"),
        pd.Series([None] * 3, dtype="str"),
        pd.Series([pd.NaT] * 3),
        pd.Categorical([None] * 3, ["a"]),
        ["same"] * 3,
    ],
    ids=["constant", "none", "nan", "Int64", "str", "date", "category", "text"],
)
def test_columns_without_a_difference_give_nothing_away(column: Any) -> None:
    assert cart_pmse(pd.DataFrame({"x": column}), pd.DataFrame({"x": column}), **LOOSE) == 0
    assert cart_pmse(pd.DataFrame({"x": column})[:1], pd.DataFrame({"x": column}), **LOOSE) == 0


def test_one_row_against_one_row() -> None:
    assert cart_pmse([[1.0, 2.0]], [[3.0, 4.0]]) == 0
    assert cart_pmse([[1.0, 2.0]], [[3.0, 4.0]], **LOOSE) == 0.25


@settings(max_examples=60)
@given(st.lists(anything, min_size=1, max_size=8), st.lists(anything, min_size=1, max_size=8))
def test_no_cell_makes_it_fail(original: list[object], synthetic: list[object]) -> None:
    """Whatever a cell holds, its column is compared somehow and put in words."""
    pair = [pd.DataFrame({"x": pd.Series(cells, dtype=object)}) for cells in (original, synthetic)]
    tree = fit_tree(*pair, **LOOSE)
    assert all(isinstance(sentence, str) for sentence in tree.in_words())
    assert 0 <= tree.pmse <= 0.25


def test_arrays_and_frames_agree() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(80, 2)), rng.normal(0.5, 1, size=(50, 2))
    frames = [pd.DataFrame(array, columns=["a", "b"]) for array in (first, second)]
    expected = cart_pmse(*frames)
    assert expected > 0
    assert cart_pmse(first, second) == cart_pmse(first, frames[1]) == cart_pmse(frames[0], second) == expected
    assert cart_pmse(frames[0], frames[1][["b", "a"]]) == expected
    first.setflags(write=False)
    assert cart_pmse(first.astype(np.float32), second.astype(np.float32)) == pytest.approx(expected)


def test_importance_tells_the_column_that_differs() -> None:
    rng = np.random.default_rng(5)
    original = pd.DataFrame({"same": rng.normal(size=500), "moved": rng.normal(size=500), "constant": 1})
    synthetic = pd.DataFrame({"same": rng.normal(size=500), "moved": rng.normal(2, 1, size=500), "constant": 1})
    importance = fit_tree(original, synthetic).importance
    assert list(importance) == ["moved", "same", "constant"]
    assert importance["constant"] == 0


@pytest.mark.parametrize(
    ("parameter", "arguments"),
    [
        ("cp", {"cp": -0.1}),
        ("cp", {"cp": math.nan}),
        ("cp", {"cp": "0.1"}),
        ("minsplit", {"minsplit": 0}),
        ("minbucket", {"minbucket": 1.5}),
        ("maxdepth", {"maxdepth": 31}),
        ("maxdepth", {"maxdepth": True}),
        ("original", {"original": np.zeros((0, 1))}),
        ("original", {"original": np.zeros((2, 1, 1))}),
        ("original", {"original": pd.DataFrame([[1, 2]], columns=["a", "a"])}),
        ("synthetic", {"synthetic": np.zeros((3, 2))}),
        ("synthetic", {"synthetic": np.zeros((3, 0))}),
    ],
)
def test_bad_input_is_named(parameter: str, arguments: dict[str, Any]) -> None:
    good: dict[str, Any] = {"original": [[0.0]], "synthetic": [[1.0]]}
    with pytest.raises(ParameterError) as caught:
        cart_pmse(**{**good, **arguments})
    assert caught.value.parameter == parameter
