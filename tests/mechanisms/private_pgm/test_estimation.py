"""Fitted models against brute force, and rows drawn from them against their own tables."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.mechanisms.private_pgm.estimation import (
    MAX_CLIQUE_CELLS,
    Measurement,
    check_clique_size,
    combined,
    estimate,
)
from dpsynth_core.mechanisms.private_pgm.graphical_model import ConditionalTable, draw_rows, marginal
from dpsynth_core.mechanisms.private_pgm.junction_tree import (
    Coarsening,
    FittedTree,
    Inference,
    JunctionTree,
    table_cells,
)
from dpsynth_core.mechanisms.private_pgm.rounds import FINAL_ITERATIONS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise


def random_measurements(sizes: tuple[int, ...], cliques: list[tuple[int, ...]], seed: int = 0) -> list[Measurement]:
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(int(np.prod(sizes)), 0.3)).reshape(sizes) * 1_000
    return [
        Measurement(
            clique=clique,
            values=joint.sum(axis=tuple(i for i in range(len(sizes)) if i not in clique))
            + rng.normal(0, 5, [sizes[i] for i in clique]),
            std=5.0,
        )
        for clique in cliques
    ]


def random_cliques(rng: np.random.Generator, size: int) -> list[tuple[int, ...]]:
    cliques = {(v,) for v in range(size)}
    for _ in range(size + 1):
        chosen = rng.choice(size, min(size, int(rng.integers(2, 4))), replace=False)
        cliques.add(tuple(sorted(int(v) for v in chosen)))
    return sorted(cliques)


def joint_of(sizes: tuple[int, ...], potentials: dict[tuple[int, ...], Any]) -> np.ndarray[Any, Any]:
    """All cells: slow and plain."""
    total = np.zeros(sizes)
    for clique, table in potentials.items():
        total += np.expand_dims(table, tuple(v for v in range(len(sizes)) if v not in clique))
    weights = np.exp(total - total.max())
    return np.asarray(weights / weights.sum())


def summed(joint: np.ndarray[Any, Any], clique: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.asarray(joint.sum(axis=tuple(v for v in range(joint.ndim) if v not in clique)))


@given(size=st.integers(2, 6), seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_messages_along_a_junction_tree_give_what_summing_all_cells_gives(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = tuple(int(k) for k in rng.integers(1, 4, size))
    cliques = random_cliques(rng, size)
    potentials = {clique: rng.normal(0, 3, [sizes[v] for v in clique]) for clique in cliques}
    inference = Inference(JunctionTree.of(sizes, cliques), cliques)
    total, given_separator = inference.conditionals(list(potentials.values()))
    beliefs = inference.beliefs(given_separator)
    joint = joint_of(sizes, potentials)
    for clique, table in zip(cliques, inference.marginals(beliefs), strict=True):
        np.testing.assert_allclose(table, summed(joint, clique), atol=1e-12)
    logs = sum(np.expand_dims(t, tuple(v for v in range(size) if v not in c)) for c, t in potentials.items())
    assert total == pytest.approx(np.log(np.exp(logs).sum()))
    fitted = FittedTree(tree=inference.tree, given=tuple(given_separator), beliefs=tuple(beliefs))
    pairs = fitted.pairs()
    assert set(pairs) == set(combinations(range(size), 2))
    for pair, table in pairs.items():
        np.testing.assert_allclose(table, summed(joint, pair), atol=1e-12)
        np.testing.assert_allclose(marginal(fitted.tables(), pair), table, atol=1e-12)


@given(size=st.integers(3, 7), seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_a_tree_can_hold_one_more_pair_for_no_more_cells_than_are_said(size: int, seed: int) -> None:
    """There is a tree of that size; the one that is built may be smaller or, by a bad order, somewhat larger."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(k) for k in rng.integers(2, 5, size))
    tree = JunctionTree.of(sizes, [c for c in random_cliques(rng, size) if len(c) < 3])
    for pair in combinations(range(size), 2):
        added = tree.added_cells(pair)
        assert (added == 0) == (tree.home(pair) is not None)
        assert JunctionTree.of(sizes, [*(node.clique for node in tree.nodes), pair]).cells <= 2 * (tree.cells + added)


def test_consistent_measurements_are_met() -> None:
    sizes = (3, 4, 2)
    joint = np.random.default_rng(1).dirichlet(np.ones(24)).reshape(sizes) * 1_000
    measurements = [
        Measurement(clique=(0, 1), values=joint.sum(axis=2), std=0.5),
        Measurement(clique=(1, 2), values=joint.sum(axis=0), std=0.5),
    ]
    tables = estimate(sizes, measurements, 1_000).fitted.tables()
    np.testing.assert_allclose(marginal(tables, (0, 1)) * 1_000, joint.sum(axis=2), atol=0.5)
    # What was not measured is independent given what was.
    middle = joint.sum(axis=(0, 2))
    expected = np.einsum("ij,jk,j->ik", joint.sum(axis=2), joint.sum(axis=0), 1 / middle)
    np.testing.assert_allclose(marginal(tables, (0, 2)) * 1_000, expected, atol=1.0)


def loss(fitted: FittedTree, measurements: list[Measurement]) -> float:
    errors = [(marginal(fitted.tables(), m.clique) * 1_000 - m.values) / m.std for m in measurements]
    return sum(float((error**2).sum()) / 2 for error in errors)


def multiplicative_weights(sizes: tuple[int, ...], measurements: list[Measurement]) -> np.ndarray[Any, Any]:
    """A slow reference over all cells: entropic mirror descent with a small step, to the least squared error."""
    logs = np.zeros(sizes)
    step = 2.0 / (1_000 * sum(m.std**-2 for m in measurements))
    for _ in range(5_000):
        joint = np.exp(logs - logs.max())
        joint /= joint.sum()
        for m in measurements:
            others = tuple(v for v in range(len(sizes)) if v not in m.clique)
            logs = logs - step * np.expand_dims((joint.sum(axis=others) * 1_000 - m.values) / m.std**2, others)
    return np.asarray(joint)


@pytest.mark.parametrize(
    "cliques",
    [
        pytest.param([(0,), (1,), (2,), (3,), (0, 1), (1, 2), (1, 3)], id="tree"),
        pytest.param([(0, 1), (1, 2), (0, 2), (2, 3)], id="cycle"),
    ],
)
def test_the_fit_is_as_good_as_a_slow_one_over_all_cells(cliques: list[tuple[int, ...]]) -> None:
    sizes = (3, 4, 2, 3)
    measurements = random_measurements(sizes, cliques)
    fitted = estimate(sizes, measurements, 1_000).fitted
    joint = multiplicative_weights(sizes, measurements)
    best = sum(float((((summed(joint, m.clique) * 1_000 - m.values) / m.std) ** 2).sum()) / 2 for m in measurements)
    assert loss(fitted, measurements) <= 1.05 * best + 0.5
    for pair in combinations(range(4), 2):
        assert np.abs(marginal(fitted.tables(), pair) - summed(joint, pair)).sum() / 2 < 0.01


@pytest.mark.parametrize("std", [10.0, 1.0, 0.1, 0.001])
def test_less_noise_is_never_fitted_worse(std: float) -> None:
    """Exact counts of a chain, said to be noisy to any degree: the fit converges whatever the units."""
    sizes = (6, 6, 6, 6, 6)
    rng = np.random.default_rng(5)
    joint = rng.dirichlet(np.full(6**5, 0.02)).reshape(sizes) * 50_000
    cliques = [(0, 1), (1, 2), (2, 3), (3, 4)]
    measurements = [Measurement(clique=c, values=summed(joint, c), std=std) for c in cliques]
    tables = estimate(sizes, measurements, 50_000).fitted.tables()
    for clique in cliques:
        assert np.abs(marginal(tables, clique) - summed(joint, clique) / 50_000).sum() / 2 < 1e-4 * (1 + std)


def test_counts_of_gathered_cells_are_met_and_leave_the_rest_as_it_was() -> None:
    sizes = (4, 3)
    joint = np.random.default_rng(2).dirichlet(np.ones(12)).reshape(sizes) * 1_000
    coarser = Coarsening(maps=(np.array([0, 0, 1, 1]), np.array([0, 1, 0])))
    gathered = coarser.gather(joint)
    assert gathered[0, 0] == pytest.approx(joint[:2, [0, 2]].sum())
    np.testing.assert_array_equal(coarser.spread(np.array([[1.0, 2], [3, 4]]))[:, 0], [1, 1, 3, 3])
    measurements = [
        Measurement(clique=(0,), values=joint.sum(axis=1), std=0.1),
        Measurement(clique=(1,), values=joint.sum(axis=0), std=0.1),
        Measurement(clique=(0, 1), values=gathered, std=0.1, coarser=coarser),
    ]
    pair = estimate(sizes, measurements, 1_000).fitted.pairs()[0, 1] * 1_000
    np.testing.assert_allclose(coarser.gather(pair), gathered, atol=0.5)
    np.testing.assert_allclose(pair.sum(axis=1), joint.sum(axis=1), atol=0.5)
    # Within gathered cells nothing ties the columns together.
    block = pair[:2][:, [0, 2]]
    np.testing.assert_allclose(block, np.outer(block.sum(axis=1), block.sum(axis=0)) / block.sum(), atol=0.5)


def test_measurements_of_one_clique_count_by_their_precision() -> None:
    first = Measurement(clique=(0,), values=np.array([10.0, 20.0]), std=1.0)
    second = Measurement(clique=(0,), values=np.array([16.0, 14.0]), std=2.0)
    (both,) = combined([first, second])
    np.testing.assert_allclose(both.values, [11.2, 18.8])
    assert both.std == pytest.approx(np.sqrt(0.8))


def test_a_fit_with_little_noise_agrees_with_what_was_counted() -> None:
    """Columns and all pairs of 16,000 rows, counted with a deviation of two: cells differ a thousandfold in size."""
    rng = np.random.default_rng(8)
    sizes, rows = (2, 3, 3, 16, 2, 4), 16_000
    shares = [rng.dirichlet(np.full(size, 0.8)) for size in sizes]
    codes = [rng.choice(size, rows, p=share) for size, share in zip(sizes, shares, strict=True)]
    codes[4] = (codes[0] + (rng.random(rows) < 0.1)) % 2
    measured = []
    for clique in [*((v,) for v in range(6)), *combinations(range(6), 2)]:
        shape = tuple(sizes[v] for v in clique)
        counts = np.bincount(
            np.ravel_multi_index(tuple(codes[v] for v in clique), shape), minlength=int(np.prod(shape))
        )
        measured.append(Measurement(clique=clique, values=counts.reshape(shape) + rng.normal(0, 2, shape), std=2.0))
    fitted = estimate(sizes, measured, rows, iterations=FINAL_ITERATIONS).fitted
    gaps = [(rows * np.asarray(fitted.marginal(each.clique)) - each.values).ravel() / 2 for each in measured]
    assert float(np.mean(np.concatenate(gaps) ** 2)) <= 1.0


def star() -> tuple[ConditionalTable, ...]:
    """Five children of one parent, none of which knows of another but through it."""
    rng = np.random.default_rng(4)
    parent = ConditionalTable.of((), (0,), rng.dirichlet(np.ones(3)))
    children = [
        ConditionalTable(parents=(0,), children=(child,), probabilities=rng.dirichlet(np.full(4, 0.7), size=3))
        for child in range(1, 6)
    ]
    return (parent, *children)


def test_rows_meet_the_models_own_tables_and_columns_that_share_a_parent_are_not_tied() -> None:
    tables, rows = star(), 40_000
    drawn = draw_rows(tables, rows, SeededNoise(Budget.of(1), 3))
    for pair in combinations(range(6), 2):
        expected = marginal(tables, pair)
        seen = np.bincount(drawn[pair[0]] * expected.shape[1] + drawn[pair[1]], minlength=expected.size) / rows
        gap = np.abs(seen.reshape(expected.shape) - expected)
        # A pair with the parent is met up to rounding; siblings up to the deviation of random pairing.
        allowed = 3 * 3 / rows if pair[0] == 0 else 5 * np.sqrt(expected.max() / rows)
        assert gap.max() <= allowed


def test_a_value_of_probability_zero_is_never_drawn() -> None:
    tables = (
        ConditionalTable.of((), (0,), np.array([0.5, 0.5, 0.0])),
        ConditionalTable.of((0,), (1,), np.array([[0.2, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.0]])),
    )
    drawn = draw_rows(tables, 1_001, SeededNoise(Budget.of(1), 0))
    assert set(drawn[0].tolist()) == {0, 1}
    assert (drawn[1] == drawn[0]).all()


def test_the_largest_table_of_a_chain_is_a_pair_and_of_a_ring_a_triple() -> None:
    sizes = [3, 4, 5, 6]
    assert max(table_cells(sizes, [(0, 1), (1, 2), (2, 3)])) == 30
    ring = max(table_cells(sizes, [(0, 1), (1, 2), (2, 3), (0, 3)]))
    assert ring in (3 * 4 * 5, 3 * 4 * 6, 3 * 5 * 6, 4 * 5 * 6)


def test_a_model_that_would_not_fit_is_refused() -> None:
    sizes = (200, 200, 200, 200)
    with pytest.raises(dp.ParameterError, match=f"{MAX_CLIQUE_CELLS:,}"):
        check_clique_size(sizes, [(0, 1, 2)])


def test_neither_jax_nor_the_accountant_is_loaded() -> None:
    """Workers and pages start often; these imports take seconds."""
    code = (
        "import sys, dpsynth_core as dp; e = dp.EXAMPLES['breast_cancer']; "
        "t = dp.PrivateTable(e.load(), e.schema); "
        "dp.synthesize(t, dp.MECHANISMS['private_pgm'](), epsilon=1, delta='1e-6').sample(); "
        "print(sorted({'jax', 'dp_accounting', 'optax'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
