"""A mixture of ten Gaussians: the simulation of Balog et al. (2018), used by Kreačić et al., section G.1."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth_core.table.examples.base import Example, numeric

CENTRE, SPREAD, COMPONENTS = 100.0, 200.0, 10


def simulate_mixture(rows: int, rng: np.random.Generator, *, dimensions: int = 2, std: float = 30.0) -> pd.DataFrame:
    """Ten spherical Gaussians with weights proportional to 1, 1/2, ..., 1/10 and random centres.

    The numbers 200 and 30 of section G.1 are standard deviations, as the published data set shows.
    """
    centres = rng.normal(CENTRE, SPREAD, (COMPONENTS, dimensions))
    weights = 1.0 / np.arange(1, COMPONENTS + 1)
    component = rng.choice(COMPONENTS, size=rows, p=weights / weights.sum())
    points = rng.normal(centres[component], std)
    return pd.DataFrame(points, columns=[f"x{i + 1}" for i in range(dimensions)])


MIXTURE = Example(
    key="mixture",
    title="Ten clusters in the plane",
    summary="A mixture of ten Gaussians of unequal weight. Shows how a partition finds clusters.",
    source="Simulated as in Kreačić et al. (2023), section G.1, after Balog et al. (2018).",
    facts={"columns": [numeric(name, -700.0, 900.0, bins=64, origin="public knowledge") for name in ("x1", "x2")]},
    default_rows=10_000,
    simulate=simulate_mixture,
)
