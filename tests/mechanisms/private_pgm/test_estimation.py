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
    estimate,
    estimate_junction_tree,
    max_clique_cells,
    mirror_descent,
)
from dpsynth_core.mechanisms.private_pgm.graphical_model import ConditionalTable, draw_rows, marginal
from dpsynth_core.mechanisms.private_pgm.marginal_oracles import DenseOracle, ForestOracle
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


@given(size=st.integers(2, 5), seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_messages_along_a_forest_give_what_summing_all_cells_gives(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = tuple(int(k) for k in rng.integers(1, 4, size))
    parents = [None if rng.random() < 0.3 else int(rng.integers(0, v)) for v in range(1, size)]
    cliques = [*((v,) for v in range(size)), *((p, v) for v, p in enumerate(parents, 1) if p is not None)]
    potentials = {clique: rng.normal(0, 3, [sizes[i] for i in clique]) for clique in cliques}
    forest, dense = ForestOracle.of(sizes, cliques), DenseOracle(sizes=sizes)
    assert forest is not None
    for clique, table in dense.marginals(potentials).items():
        np.testing.assert_allclose(forest.marginals(potentials)[clique], table, atol=1e-12)
    for pair in combinations(range(size), 2):
        np.testing.assert_allclose(
            marginal(forest.conditionals(potentials), pair), marginal(dense.conditionals(potentials), pair), atol=1e-12
        )


def test_a_cycle_or_a_triple_is_no_forest() -> None:
    assert ForestOracle.of((2, 2, 2), [(0, 1), (1, 2), (0, 2)]) is None
    assert ForestOracle.of((2, 2, 2), [(0, 1, 2)]) is None
    assert ForestOracle.of((2, 2, 2), [(0, 1)]) is not None


def test_consistent_measurements_are_met() -> None:
    sizes = (3, 4, 2)
    joint = np.random.default_rng(1).dirichlet(np.ones(24)).reshape(sizes) * 1_000
    measurements = [
        Measurement(clique=(0, 1), values=joint.sum(axis=2), std=1.0),
        Measurement(clique=(1, 2), values=joint.sum(axis=0), std=1.0),
    ]
    tables = estimate(sizes, measurements, 1_000)
    np.testing.assert_allclose(marginal(tables, (0, 1)) * 1_000, joint.sum(axis=2), atol=0.5)
    # What was not measurements is independent given what was.
    middle = joint.sum(axis=(0, 2))
    expected = np.einsum("ij,jk,j->ik", joint.sum(axis=2), joint.sum(axis=0), 1 / middle)
    np.testing.assert_allclose(marginal(tables, (0, 2)) * 1_000, expected, atol=1.0)


def loss(tables: Any, measurements: list[Measurement]) -> float:
    return sum(float((((marginal(tables, m.clique) * 1_000 - m.values) / m.std) ** 2).sum()) / 2 for m in measurements)


@pytest.mark.parametrize(
    "cliques",
    [
        pytest.param([(0,), (1,), (2,), (3,), (0, 1), (1, 2), (1, 3)], id="tree"),
        pytest.param([(0, 1), (1, 2), (0, 2), (2, 3)], id="cycle"),
    ],
)
def test_mbi_and_numpy_find_the_same_distribution(cliques: list[tuple[int, ...]]) -> None:
    sizes = (3, 4, 2, 3)
    measurements = random_measurements(sizes, cliques)
    compiled = estimate_junction_tree(sizes, measurements, 1_000)
    dense = DenseOracle(sizes=sizes)
    plain = dense.conditionals(mirror_descent(dense, measurements, 1_000))
    assert loss(compiled, measurements) == pytest.approx(loss(plain, measurements), rel=0.02)
    for pair in combinations(range(4), 2):
        assert np.abs(marginal(compiled, pair) - marginal(plain, pair)).sum() / 2 < 0.01


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
    assert max_clique_cells([(0, 1), (1, 2), (2, 3)], sizes) == 30
    assert max_clique_cells([(0, 1), (1, 2), (2, 3), (0, 3)], sizes) in (3 * 4 * 5, 3 * 4 * 6, 3 * 5 * 6, 4 * 5 * 6)


def test_a_model_that_would_not_fit_is_refused() -> None:
    sizes = (200, 200, 200, 200)
    measurements = [Measurement(clique=(0, 1, 2), values=np.zeros((1, 1, 1)), std=1.0)]
    with pytest.raises(dp.ParameterError, match=f"{MAX_CLIQUE_CELLS:,}"):
        estimate(sizes, measurements, 10)


def test_neither_jax_nor_the_accountant_is_loaded_for_a_tree() -> None:
    """Workers and pages start often; these imports take seconds."""
    code = (
        "import sys, dpsynth_core as dp; e = dp.EXAMPLES['breast_cancer']; "
        "t = dp.PrivateTable(e.load(), e.schema); "
        "dp.synthesize(t, dp.MECHANISMS['private_pgm'](), epsilon=1).sample(); "
        "print(sorted({'jax', 'mbi', 'dp_accounting', 'optax'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
