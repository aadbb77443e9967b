"""What Theorems 3, 5 and 6 of Kreačić et al. (2023) promise of a thresholded grid, beside what happens.

For teaching: the rows are simulated, so Theorem 5 may look at them and the error can be measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.mmd.distance import kernel_density
from dpsynth_core.errors import ParameterError, check_int
from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.mechanisms.partition.theorem_bounds import filtering_threshold, largest_noise, theorem_bound
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

HALF_RANGE = 5.0
"""The declared range ends this many standard deviations from the mean."""
MAX_ROWS, MAX_COLUMNS, MAX_CELLS = 100_000, 4, 200_000
"""Beyond these a picture would take long: without a threshold, every cell is part of the density."""
MAX_FAILURE = 1e-4
"""Probability with which a bound may fail; less where there are so many cells that a theorem asks for it."""
POINTS = 400
"""Where densities are compared."""
SEED = 1


@dataclass(frozen=True, kw_only=True)
class GridPromise:
    """One theorem beside one run."""

    theorem: int
    threshold: int
    """Smallest noisy count that is kept, as the theorem asks."""
    bound: float | None
    """Largest difference of kernel densities that is promised; None where a condition fails."""
    why_not: str
    """The condition that fails."""
    measured: float
    """The largest difference found in a run with that threshold."""

    @property
    def says_something(self) -> bool:
        """Two densities never differ by more than one."""
        return self.bound is not None and self.bound < 1


def grid_promises(
    *, columns: int, bins: int, n: int, epsilon: Fraction, bandwidth: float = 1.0
) -> tuple[GridPromise, ...]:
    """For that many standard normal columns, cut into equal bins over five standard deviations on each side.

    Args:
        columns: Numeric columns, up to four.
        bins: Along every column.
        n: Rows, up to 100,000.
        epsilon: For the counts.
        bandwidth: Of the kernel, in standard deviations.

    Example:
        >>> for promise in grid_promises(columns=1, bins=50, n=10_000, epsilon=Fraction(5)):
        ...     print(promise.theorem, promise.bound is None or promise.measured < promise.bound)
        3 True
        5 True
        6 True
    """
    check_int("columns", columns, 1, MAX_COLUMNS)
    check_int("n", n, 1, MAX_ROWS)
    granted, cells = float(epsilon), bins**columns
    if cells > MAX_CELLS:
        raise ParameterError("cells", cells, allowed=f"at most {MAX_CELLS:,} here", remedy="Use fewer bins.")
    delta = min(MAX_FAILURE, 1 / cells)
    rng = np.random.default_rng(SEED)
    table = _simulated(columns, bins, n, rng)
    points = table.rows().to_numpy(dtype=np.float64)
    at = points[rng.integers(0, n, POINTS)]
    gamma = 1 / (2 * bandwidth**2)
    density = kernel_density(points, gamma, at)
    filtering = filtering_threshold(epsilon=granted, delta=delta)

    def measured(threshold: int) -> float:
        model = KDGrid(bins=bins, threshold=threshold, placement="centre").fit(
            table, SeededNoise(Budget(epsilon=epsilon), SEED)
        )
        return float(np.abs(density - kernel_density(model.centres(), gamma, at, model.weights)).max())

    without, filtered = measured(1), measured(filtering)
    facts = {
        "n": n,
        "epsilon": granted,
        "delta": delta,
        "dimensions": columns,
        "width": 2 * HALF_RANGE / bins / bandwidth,
        "cells": cells,
    }
    b, counts = largest_noise(epsilon=granted, delta=delta), table.counts().counts
    heavy, light = int((counts >= b).sum()), int(counts[counts < 3 * b].sum())
    return (
        _promise(3, 1, without, lambda: theorem_bound(3, **facts)),
        _promise(5, filtering, filtered, lambda: theorem_bound(5, heavy=heavy, light=light, **facts)),
        _promise(6, filtering, filtered, lambda: theorem_bound(6, sigma=1 / bandwidth, **facts)),
    )


def _promise(theorem: int, threshold: int, measured: float, bound: Callable[[], float]) -> GridPromise:
    try:
        promised, why_not = bound(), ""
    except ParameterError as problem:
        promised, why_not = None, str(problem)
    return GridPromise(theorem=theorem, threshold=threshold, bound=promised, why_not=why_not, measured=measured)


def _simulated(columns: int, bins: int, n: int, rng: np.random.Generator) -> PrivateTable:
    names = [f"x{i + 1}" for i in range(columns)]
    rows: FloatArray = rng.normal(size=(n, columns)).clip(-HALF_RANGE, HALF_RANGE)
    fact = {"kind": "continuous", "lower": -HALF_RANGE, "upper": HALF_RANGE, "bins": bins, "public": True}
    schema = Schema.from_dict({"columns": [{"name": name, **fact} for name in names]})
    return PrivateTable(pd.DataFrame(rows, columns=names), schema)
