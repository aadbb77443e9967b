"""The diabetes progression study of Efron et al. (2004), as scikit-learn carries it."""

from __future__ import annotations

import pandas as pd

from dpsynth_core.table.examples.base import Example, labelled, numeric

_NAMES = {
    "age": "age",
    "sex": "sex",
    "bmi": "bmi",
    "bp": "blood pressure",
    "s1": "total cholesterol",
    "s2": "ldl",
    "s3": "hdl",
    "s4": "cholesterol ratio",
    "s5": "log triglycerides",
    "s6": "glucose",
    "target": "progression",
}


def read_diabetes() -> pd.DataFrame:
    """442 patients: ten baseline variables in their own units and progression after a year."""
    from sklearn.datasets import load_diabetes  # noqa: PLC0415  a second of start-up that only this example needs

    table: pd.DataFrame = load_diabetes(as_frame=True, scaled=False).frame.rename(columns=_NAMES)
    table["sex"] = table["sex"].map({1.0: "group 1", 2.0: "group 2"}).astype("str")
    return table.astype({"age": "int64", "progression": "int64"})


# Ranges that clinical plausibility gives, chosen without the rows.
DIABETES = Example(
    key="diabetes",
    title="Diabetes (real, 442 patients)",
    summary="Age, sex, blood values and how the disease progressed within a year. Good for regressions.",
    source="Efron, Hastie, Johnstone & Tibshirani (2004), from scikit-learn.",
    facts={
        "columns": [
            numeric("age", 18, 90, kind="integer", unit="years", origin="public knowledge"),
            labelled("sex", ["group 1", "group 2"], origin="codebook"),
            numeric("bmi", 12.0, 60.0, bins=24, decimals=1, unit="kg/m²", origin="public knowledge"),
            numeric("blood pressure", 50.0, 150.0, bins=20, decimals=2, unit="mm Hg", origin="public knowledge"),
            numeric("total cholesterol", 80.0, 360.0, bins=20, unit="mg/dL", origin="public knowledge"),
            numeric("ldl", 20.0, 280.0, bins=20, decimals=1, unit="mg/dL", origin="public knowledge"),
            numeric("hdl", 15.0, 120.0, bins=20, unit="mg/dL", origin="public knowledge"),
            numeric("cholesterol ratio", 1.0, 12.0, bins=20, decimals=2, origin="public knowledge"),
            numeric("log triglycerides", 3.0, 7.0, bins=20, decimals=4, origin="public knowledge"),
            numeric("glucose", 50.0, 150.0, bins=20, unit="mg/dL", origin="public knowledge"),
            numeric("progression", 0, 400, kind="integer", bins=20, origin="public knowledge"),
        ]
    },
    default_rows=442,
    read=read_diabetes,
)
