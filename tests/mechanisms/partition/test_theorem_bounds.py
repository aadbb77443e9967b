"""The theorems' bounds: their formulas by hand, their conditions, and whether they hold."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dpsynth_core.diagnostics.mmd.distance import sup_density_distance
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.partition.theorem_bounds import filtering_threshold, largest_noise, theorem_bound
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema


def exceeds(epsilon: float, bound: float) -> float:
    """P(|X| > bound) for whole-number noise of scale 2/epsilon."""
    a = math.exp(-epsilon / 2)
    return 2 * a ** (math.floor(bound) + 1) / (1 + a)


# ------------------------------------------------------------------------------------------- formulas by hand


def test_theorem_3_by_hand() -> None:
    # delta = 1/e^2: ln(1/delta) = 2; epsilon n / (4 J ln(1/delta)) = 1000 / 40 = 25; w/2 sqrt(d/e) = 0.1 sqrt(2/e).
    facts = {"n": 1000, "epsilon": 1.0, "delta": math.exp(-2), "dimensions": 2, "width": 0.2, "cells": 5}
    expected = 2 / 24 + 0.1 * math.sqrt(2 / math.e)
    assert theorem_bound(3, noise="laplace", **facts) == pytest.approx(expected)  # type: ignore[arg-type]
    # b = 8 is whole already, so the whole-number noise has the same bound.
    assert theorem_bound(3, **facts) == pytest.approx(expected)  # type: ignore[arg-type]


def test_theorem_3_rounds_the_noise_up() -> None:
    facts = {"n": 1000, "epsilon": 1.0, "delta": 0.1, "dimensions": 1, "width": 0.2, "cells": 5}
    # 4 ln 10 = 9.21, so b = 10 and 2 J b / (n - J b) = 100 / 950.
    assert theorem_bound(3, **facts) == pytest.approx(100 / 950 + 0.1 / math.sqrt(math.e))  # type: ignore[arg-type]


def test_theorem_5_by_hand() -> None:
    facts = {"n": 1000, "epsilon": 0.5, "delta": math.exp(-2), "dimensions": 1, "width": 0.1, "cells": 7}
    # (0.5 * 40 + 8 * 3 * 2) / (0.5 * 1000 - 0.5 * 40 - 4 * 3 * 2) + 40 / 1000 + 0.05 / sqrt(e).
    expected = (20 + 48) / (500 - 20 - 24) + 0.04 + 0.05 / math.sqrt(math.e)
    assert theorem_bound(5, heavy=3, light=40, noise="laplace", **facts) == pytest.approx(expected)  # type: ignore[arg-type]
    assert filtering_threshold(epsilon=0.5, delta=math.exp(-2)) == 32  # 8/0.5 * 2


def test_theorem_6_by_hand() -> None:
    facts = {
        "n": 10**6,
        "epsilon": 1.0,
        "delta": math.exp(-4),
        "dimensions": 1,
        "width": 1.0,
        "cells": 12,
        "sigma": 1.0,
    }
    first = 8 * 4 ** (1 / 3) * math.exp(-1 / 3 * (math.log(1 / math.sqrt(2 * math.pi)) - 2)) / 10**2
    second = 16 * 4 * 12 * math.sqrt(math.log(10**6)) / 10**6
    expected = first + second + 0.5 / math.sqrt(math.e)
    assert theorem_bound(6, noise="laplace", **facts) == pytest.approx(expected)  # type: ignore[arg-type]
    assert theorem_bound(6, **facts) == pytest.approx(expected)  # type: ignore[arg-type]  # b = 16 is whole


def test_rounding_never_costs_more_than_one() -> None:
    facts = {"n": 10**6, "epsilon": 1.0, "delta": 0.1, "dimensions": 3, "width": 50.0, "cells": 2}
    assert 1 < theorem_bound(3, **facts) < 1.001  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ conditions


@pytest.mark.parametrize(
    ("theorem", "parameter", "words", "change"),
    [
        (3, "cells", "Lemma 17", {"cells": 11}),
        (5, "cells", "Lemma 17", {"cells": 11}),
        (6, "cells", "Lemma 17", {"cells": 11}),
        (3, "cells", "epsilon n", {"n": 90}),
        (5, "light", "Lemma 22", {"light": 5000}),
        (5, "heavy", "whole number", {"heavy": None}),
        (6, "n", r"12 sigma/w", {"width": 0.01}),
        (6, "n", "sqrt", {"width": 1e6}),
        (6, "epsilon", "Equation 18", {"epsilon": 0.01, "width": 6.0}),
        (6, "sigma", "greater than 0", {"sigma": None}),
        (3, "delta", "less than 1", {"delta": 1.0}),
        (3, "epsilon", "greater than 0", {"epsilon": 0.0}),
        (4, "theorem", "3, 5 or 6", {}),
    ],
)
def test_a_violated_condition_is_named(theorem: int, parameter: str, words: str, change: dict[str, object]) -> None:
    facts: dict[str, object] = {
        "n": 5000,
        "epsilon": 1.0,
        "delta": 0.1,
        "dimensions": 1,
        "width": 1.0,
        "cells": 9,
        "heavy": 4,
        "light": 100,
        "sigma": 1.0,
        **change,
    }
    with pytest.raises(ParameterError, match=words) as caught:
        theorem_bound(theorem, **facts)  # type: ignore[arg-type]
    assert caught.value.parameter == parameter


# ------------------------------------------------------------------------------------- what the integers change


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.37, 1.0, 3.0, 12.0])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-3, 1e-6])
def test_whole_number_noise_keeps_to_the_rounded_bound(epsilon: float, delta: float) -> None:
    bound = largest_noise(epsilon=epsilon, delta=delta)
    assert exceeds(epsilon, bound) <= delta**2 * (1 + 1e-12)


def test_whole_number_noise_does_not_keep_to_the_paper_s_bound() -> None:
    """Just below a whole number the discrete law is heavier than the continuous one: hence the rounding."""
    epsilon = 1.0
    delta = math.exp(-9.999 / 4)  # (4/epsilon) ln(1/delta) = 9.999
    paper = largest_noise(epsilon=epsilon, delta=delta, noise="laplace")
    assert exceeds(epsilon, paper) > delta**2


# ---------------------------------------------------------------------------------------------- do they hold?


def gaussian_table(n: int, dimensions: int, bins: int, seed: int) -> tuple[PrivateTable, np.ndarray]:
    rows = pd.DataFrame(np.random.default_rng(seed).normal(size=(n, dimensions))).rename(columns=lambda i: f"x{i}")
    columns = [{"name": c, "kind": "continuous", "lower": -5, "upper": 5, "bins": bins, "public": True} for c in rows]
    table = PrivateTable(rows, Schema.from_dict({"columns": columns}))
    return table, table.rows().to_numpy()


@pytest.mark.parametrize(("theorem", "dimensions", "bins"), [(3, 1, 20), (5, 1, 20), (5, 2, 4)])
def test_the_bound_holds_as_often_as_promised(theorem: int, dimensions: int, bins: int) -> None:
    """The kernel's bandwidth is ten standard deviations, so that rounding to centres does not hide the noise."""
    n, epsilon, delta, bandwidth, runs = 3000, 1.0, 0.05, 10.0, 200
    table, P = gaussian_table(n, dimensions, bins, seed=theorem)
    counts = table.counts().counts
    b = largest_noise(epsilon=epsilon, delta=delta)
    bound = theorem_bound(
        theorem,
        n=n,
        epsilon=epsilon,
        delta=delta,
        dimensions=dimensions,
        width=10 / bins / bandwidth,
        cells=bins**dimensions,
        heavy=int((counts >= b).sum()),
        light=int(counts[counts < 3 * b].sum()),
    )
    assert bound < 0.75, "a bound that says nothing would hold trivially"
    threshold = 1 if theorem == 3 else filtering_threshold(epsilon=epsilon, delta=delta)
    grid = KDGrid(bins=bins, threshold=threshold, placement="centre")
    at = np.concatenate([P[:100], np.stack([np.linspace(-8, 8, 33)] * dimensions, axis=1)])
    held = 0
    for seed in range(runs):
        model = synthesize(table, grid, epsilon=epsilon, seed=seed).model
        assert isinstance(model, PartitionModel)
        gap = sup_density_distance(P, model.centres(), 1 / (2 * bandwidth**2), at, wy=model.weights)
        held += gap <= bound
    # At a true share of 1 - delta, fewer successes than this have a probability below 1e-6.
    assert held >= stats.binom(runs, 1 - delta).ppf(1e-6)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_noise_event_behind_the_bounds_has_its_probability(epsilon: float) -> None:
    """The bounds themselves are generous; the event that they rest on is less so, and is checked by itself."""
    delta, runs = 0.25, 20_000
    cells = int(1 / delta)
    b = largest_noise(epsilon=epsilon, delta=delta)
    exact = 1 - (1 - exceeds(epsilon, b)) ** cells
    assert exact <= delta
    noise = SeededNoise(Budget.of(epsilon), seed=3).laplace(
        np.zeros((runs, cells), dtype=np.int64), sensitivity=2, epsilon=epsilon, label="empty cells"
    )
    failed = int((np.abs(noise) > b).any(axis=1).sum())
    low, high = stats.binom(runs, exact).ppf([1e-6, 1 - 1e-6])
    assert low <= failed <= high
