"""Outcomes are exhaustive and their probabilities right."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.audit.outcomes import log_interval, options, output_of, permute_and_flip_law
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.primitives import (
    Charge,
    Decisions,
    Exponential,
    Laplace,
    PaidCall,
    PermuteAndFlip,
    ScoredCall,
    Smoothed,
    SparseLaplace,
    ThresholdedCounts,
)

CHARGE = Charge(label="t", primitive="t", sensitivity=Fraction(2), budget=Budget.of(1))


def laplace(values: list[int]) -> Laplace:
    return Laplace(values=np.array(values), scale=2.0, charge=CHARGE)


def sparse(kind: type[ThresholdedCounts], keys: list[int], values: list[int]) -> ThresholdedCounts:
    """Over a domain of four cells."""
    hidden = [k for k in range(4) if k not in keys]
    return kind(
        keys=np.array(keys),
        values=np.array(values),
        zeros=len(hidden),
        threshold=2,
        pick=lambda size: np.array(hidden[:size], dtype=np.int64),
        scale=2.0,
        charge=CHARGE,
    )


def scored(kind: type[ScoredCall[int]], scores: list[float]) -> ScoredCall[int]:
    return kind(scores=np.array(scores), scale=1.5, charge=CHARGE)


def smoothed(cells: list[list[int]], counts: list[int]) -> Smoothed:
    alpha, charge = Fraction(3, 2), CHARGE
    return Smoothed(keys=np.array(cells), values=np.array(counts), shape=(3,), draws=2, alpha=alpha, charge=charge)


def probability(k: int, scale: float) -> float:
    a = math.exp(-1 / scale)
    return (1 - a) / (1 + a) * a ** abs(k)


@given(low=st.integers(-40, 40), width=st.integers(0, 30), scale=st.floats(0.2, 30))
def test_intervals_of_the_two_sided_geometric_law(low: int, width: int, scale: float) -> None:
    plain = sum(probability(k, scale) for k in range(low, low + width + 1))
    assert math.isclose(math.exp(log_interval(scale, low, low + width)), plain, rel_tol=1e-9, abs_tol=1e-300)
    below = sum(probability(k, scale) for k in range(low - 2000, low + 1))
    assert math.isclose(math.exp(log_interval(scale, -math.inf, low)), below, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (laplace([0, 3]), laplace([1, 2])),
        (sparse(SparseLaplace, [1], [2]), sparse(SparseLaplace, [1, 3], [1, 1])),
        (sparse(Decisions, [1], [2]), sparse(Decisions, [1, 3], [1, 1])),
        (scored(Exponential, [0.0, 1, 2]), scored(Exponential, [1.0, 0, 2])),
        (scored(PermuteAndFlip, [0.0, 1, 2]), scored(PermuteAndFlip, [1.0, 0, 2])),
        (smoothed([[0], [2]], [2, 1]), smoothed([[0]], [3])),
    ],
    ids=lambda value: value.name,
)
def test_probabilities_add_up_to_one_on_both_tables(first: PaidCall[Any], second: PaidCall[Any]) -> None:
    listed = list(options(first, second))
    assert math.isclose(sum(math.exp(option.first) for option in listed), 1.0, rel_tol=1e-9)
    assert math.isclose(sum(math.exp(option.second) for option in listed), 1.0, rel_tol=1e-9)


def test_the_worst_outcome_of_counts_costs_what_the_scale_says() -> None:
    listed = list(options(laplace([0, 3]), laplace([1, 2])))
    assert math.isclose(max(option.loss for option in listed), 1.0)
    tables = sparse(SparseLaplace, [1], [2]), sparse(SparseLaplace, [1, 3], [1, 1])
    assert math.isclose(max(option.loss for option in options(*tables)), 1.0)


def test_outcomes_are_returned_for_the_cells_that_a_table_lists() -> None:
    output = output_of(sparse(SparseLaplace, [1], [2]), {0: 1, 1: -3, 2: 4, 3: 2})
    assert output.values.tolist() == [-3]
    assert dict(zip(output.extra_keys.tolist(), output.extra_values.tolist(), strict=True)) == {2: 4, 3: 2}


@given(scores=st.lists(st.floats(-3, 3), min_size=1, max_size=5), scale=st.floats(0.3, 5))
def test_permute_and_flip_by_every_order(scores: list[float], scale: float) -> None:
    given_scores = np.array(scores)
    heads = np.exp((given_scores - given_scores.max()) / scale)
    law = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for candidate in order:
            law[candidate] += reached * heads[candidate] / len(orders)
            reached *= 1 - heads[candidate]
    assert np.allclose(permute_and_flip_law(given_scores, scale), law)
