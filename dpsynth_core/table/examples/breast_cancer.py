"""Breast cancer Wisconsin (diagnostic), as scikit-learn carries it."""

from __future__ import annotations

import pandas as pd

from dpsynth_core.table.examples.base import Example, labelled, numeric

# Ranges from the summary table in the data set's published description, rounded outwards; the description is
# public independently of this table's rows.
_MEASUREMENTS = {
    "mean radius": (6.0, 30.0),
    "mean texture": (9.0, 40.0),
    "mean perimeter": (40.0, 190.0),
    "mean area": (100.0, 2600.0),
    "mean smoothness": (0.05, 0.17),
    "mean compactness": (0.0, 0.35),
    "mean concavity": (0.0, 0.45),
    "mean concave points": (0.0, 0.21),
    "mean symmetry": (0.1, 0.31),
    "mean fractal dimension": (0.04, 0.1),
}


def read_breast_cancer() -> pd.DataFrame:
    """569 tumours: diagnosis and the ten mean measurements of their cell nuclei."""
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415  a second of start-up that only this example needs

    bunch = load_breast_cancer(as_frame=True)
    table: pd.DataFrame = bunch.frame[list(_MEASUREMENTS)].copy()
    table.insert(0, "diagnosis", pd.Series(bunch.target_names[bunch.target], dtype="str"))
    return table


BREAST_CANCER = Example(
    key="breast_cancer",
    title="Breast cancer (real, 569 tumours)",
    summary="Ten measurements of cell nuclei and the diagnosis. A small real table with two clear groups.",
    source="Breast Cancer Wisconsin (Diagnostic), Wolberg, Street & Mangasarian (1995), from scikit-learn.",
    facts={
        "columns": [
            labelled("diagnosis", ["benign", "malignant"], origin="codebook"),
            *(numeric(name, low, high, bins=16, origin="codebook") for name, (low, high) in _MEASUREMENTS.items()),
        ]
    },
    default_rows=569,
    read=read_breast_cancer,
)
