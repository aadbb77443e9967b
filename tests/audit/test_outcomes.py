"""Outcomes are exhaustive and their probabilities right."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.audit.outcomes import log_interval, options, permute_and_flip_law, tell
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.primitives import Call, Charge, Primitive


def call(primitive: Primitive, private: object, parameters: tuple[float, ...], keys: object = None) -> Call:
    charge = Charge(label="t", primitive=primitive, sensitivity=Fraction(2), budget=Budget.of(1))
    cells = None if keys is None else np.array(keys)
    hidden = [k for k in range(4) if keys is not None and k not in keys]
    return Call(
        primitive=primitive, private=np.array(private), parameters=parameters, charge=charge, keys=cells,
        pick=lambda size: np.array(hidden[:size], dtype=np.int64),
    )  # fmt: skip


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
        (call("laplace", [0, 3], (2.0,)), call("laplace", [1, 2], (2.0,))),
        (call("sparse_laplace", [2], (2.0, 3, 2), [1]), call("sparse_laplace", [1, 1], (2.0, 2, 2), [1, 3])),
        (call("decisions", [2], (2.0, 3, 2), [1]), call("decisions", [1, 1], (2.0, 2, 2), [1, 3])),
        (call("exponential", [0.0, 1, 2], (1.5,)), call("exponential", [1.0, 0, 2], (1.5,))),
        (call("permute_and_flip", [0.0, 1, 2], (1.5,)), call("permute_and_flip", [1.0, 0, 2], (1.5,))),
        (call("smoothed", [2, 1], (2, 3, 2, 3), [[0], [2]]), call("smoothed", [3], (2, 3, 2, 3), [[0]])),
    ],
    ids=lambda value: value.primitive,
)
def test_probabilities_add_up_to_one_on_both_tables(first: Call, second: Call) -> None:
    listed = list(options(first, second))
    assert math.isclose(sum(math.exp(option.first) for option in listed), 1.0, rel_tol=1e-9)
    assert math.isclose(sum(math.exp(option.second) for option in listed), 1.0, rel_tol=1e-9)


def test_the_worst_outcome_of_counts_costs_what_the_scale_says() -> None:
    listed = list(options(call("laplace", [0, 3], (2.0,)), call("laplace", [1, 2], (2.0,))))
    assert math.isclose(max(option.loss for option in listed), 1.0)
    sparse = call("sparse_laplace", [2], (2.0, 3, 2), [1]), call("sparse_laplace", [1, 1], (2.0, 2, 2), [1, 3])
    assert math.isclose(max(option.loss for option in options(*sparse)), 1.0)


def test_outcomes_are_told_for_the_cells_that_a_table_lists() -> None:
    first = call("sparse_laplace", [2], (2.0, 3, 2), [1])
    told = tell(first, {0: 1, 1: -3, 2: 4, 3: 2})
    assert told.values.tolist() == [-3]
    assert dict(zip(told.extra_keys.tolist(), told.extra_values.tolist(), strict=True)) == {2: 4, 3: 2}


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
