"""An attacker who knows every row but one: how well can the release tell whether that row is there?

For each mechanism and a neighbour that hurts, one half of the runs chooses the best event, the other half measures it.
The lower bound on epsilon from exact binomial intervals must not exceed the claim. It would for a mechanism that treats
occupied and empty boxes differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpsynth_core as dp
from dpsynth_core.budget import Budget
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.noise import SeededNoise
from dpsynth_core.schema import Schema

RUNS = 1_000
ALPHA = 1e-6
THREE = Schema.from_dict(
    {"columns": [{"name": "x", "kind": "categorical", "categories": ["a", "b", "c"], "public": True}]}
)
TWO_AXES = Schema.from_dict(
    {
        "columns": [
            {"name": "x", "kind": "categorical", "categories": ["a", "b", "c"], "public": True},
            {"name": "y", "kind": "integer", "lower": 0, "upper": 4, "nullable": True, "public": True},
        ]
    }
)


def trees() -> dict[str, Mechanism]:
    kind: Any = MECHANISMS["kd_tree"]
    return {
        f"{rule}, {free} free": kind(rule=rule, free_levels=free, inner_levels=1, split_threshold=0)
        for rule in ("privtree", "levels")
        for free in (1,)  # with three labels one of them cannot be halved further, and is passed on
    }


COSTLY = ("pmse", "private_pgm")
"""Mechanisms whose attack takes minutes."""
CASES: dict[str, Mechanism] = {key: kind() for key, kind in MECHANISMS.items() if kind.status == "proven"} | trees()
CASES["smoothed_histogram"] = MECHANISMS["smoothed_histogram"](rows=2)


def weight_of_c(mechanism: Mechanism, table: dp.PrivateTable, epsilon: float) -> Callable[[int], float]:
    """What the attacker looks at: how much weight the release gives to the rare label alone."""

    def run(seed: int) -> float:
        model: Any = mechanism.fit(table, SeededNoise(Budget.of(epsilon), seed))
        if mechanism.key == "pmse":
            return float(model.models[0].natural[0][1])  # the label's logit
        if hasattr(model, "shares"):
            return float(model.shares[0][2])
        if not hasattr(model, "low"):  # not a partition: its own probability of the label
            return float(model.marginal(["x"])[2])
        inside = (model.low[:, 0] == 2) & (model.high[:, 0] == 3)
        return float(model.weights[inside].sum())

    return run


def lower_bound(with_row: np.ndarray[Any, Any], without: np.ndarray[Any, Any]) -> float:
    """The largest epsilon that the runs prove, over thresholds chosen on the first half, both directions."""
    half = RUNS // 2
    best = 0.0
    for first, second in ((with_row, without), (without, with_row)):
        cuts = np.unique(np.append(first[:half], second[:half]))
        for above in (True, False):
            shares = [
                [np.mean(sample[:half] > cut if above else sample[:half] <= cut) for sample in (first, second)]
                for cut in cuts
            ]
            cut = cuts[int(np.argmax([p - 3 * q - (p == 0) for p, q in shares]))]
            hits = [int(np.sum(sample[half:] > cut if above else sample[half:] <= cut)) for sample in (first, second)]
            low = stats.binomtest(hits[0], RUNS - half).proportion_ci(1 - ALPHA, "exact").low
            high = stats.binomtest(hits[1], RUNS - half).proportion_ci(1 - ALPHA, "exact").high
            best = max(best, math.log(low / high) if low > 0 else 0.0)
    return best


def tables(schema: Schema) -> tuple[dp.PrivateTable, dp.PrivateTable]:
    """Twenty rows that are all alike, and the same with one of them replaced by the only row of a label."""
    frame = pd.DataFrame({"x": ["a"] * 20, "y": [1] * 20})
    other = frame.copy()
    other.loc[0, "x"] = "c"
    return dp.PrivateTable(other, schema), dp.PrivateTable(frame, schema)


@pytest.mark.parametrize(
    "schema", [pytest.param(THREE, marks=pytest.mark.slow), TWO_AXES], ids=["one axis", "two axes"]
)
@pytest.mark.parametrize("name", [pytest.param(key, marks=pytest.mark.slow) if key in COSTLY else key for key in CASES])
def test_the_only_row_of_a_label_stays_hidden(name: str, schema: Schema) -> None:
    epsilon, (with_row, without) = 1.0, tables(schema)
    seen = [
        np.array([weight_of_c(CASES[name], table, epsilon)(seed + offset) for seed in range(RUNS)])
        for table, offset in ((with_row, 0), (without, RUNS))
    ]
    assert lower_bound(seen[0], seen[1]) <= epsilon


def test_the_attack_finds_a_mechanism_that_lists_only_occupied_cells() -> None:
    """The test above can fail: here empty cells are skipped."""
    rng = np.random.default_rng(1)
    noise = rng.geometric(1 - math.exp(-0.5), (2, RUNS)) - rng.geometric(1 - math.exp(-0.5), (2, RUNS))
    with_row = np.maximum(1 + noise[0], 0).astype(float)
    assert lower_bound(with_row, np.zeros(RUNS)) > 1.0
