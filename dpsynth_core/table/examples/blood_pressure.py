"""A simulated health survey: large enough for a good synthetic table at epsilon 1, and small enough to be quick."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth_core.table.examples.base import Example, labelled, numeric


def simulate_survey(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Blood pressure rises by 5 mm Hg for every ten years of age and is 6 mm Hg higher in men."""
    age = np.clip(np.round(rng.normal(50.0, 16.0, rows)), 18, 90)
    male = rng.random(rows) < 0.5
    pressure = np.round(rng.normal(98.0 + 0.5 * age + 6.0 * male, 10.0))
    return pd.DataFrame(
        {"age": age.astype(np.int64), "sex": np.where(male, "male", "female"), "blood pressure": pressure}
    ).astype({"sex": "str"})


BLOOD_PRESSURE = Example(
    key="blood_pressure",
    title="Blood pressure of adults (simulated)",
    summary="Age, sex and blood pressure. With 20,000 rows a private stand-in works well; with 500 it does not.",
    source="Simulated for this app, with round figures like those that health surveys report.",
    facts={
        "columns": [
            numeric("age", 18, 90, kind="integer", bins=24, unit="years", origin="public knowledge"),
            labelled("sex", ["female", "male"], origin="codebook"),
            numeric("blood pressure", 60.0, 200.0, bins=28, decimals=0, unit="mm Hg", origin="public knowledge"),
        ]
    },
    default_rows=20_000,
    few_rows=500,
    simulate=simulate_survey,
)
