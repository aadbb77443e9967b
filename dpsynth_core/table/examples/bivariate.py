"""Two correlated normal variables: the simulation of Snoke & Slavković, section 5."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth_core.table.examples.base import Example, numeric


def simulate_bivariate(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """X1 ~ N(2, sd 10) and X2 ~ N(-2.5 + 0.5 X1, sd 3)."""
    x1 = rng.normal(2.0, 10.0, rows)
    x2 = rng.normal(-2.5 + 0.5 * x1, 3.0)
    return pd.DataFrame({"x1": x1, "x2": x2})


# Five standard deviations around the known means: sd 10 for x1, sqrt(0.5^2 * 10^2 + 3^2) = 5.83 for x2.
BIVARIATE_NORMAL = Example(
    key="bivariate_normal",
    title="Two correlated variables",
    summary="Two normal variables with a known linear relation. Shows whether a regression survives.",
    source="Simulated as in Snoke & Slavković (2018), section 5.",
    facts={
        "columns": [
            numeric("x1", -48.0, 52.0, bins=32, origin="public knowledge"),
            numeric("x2", -31.0, 28.0, bins=32, origin="public knowledge"),
        ]
    },
    default_rows=5_000,
    simulate=simulate_bivariate,
)
