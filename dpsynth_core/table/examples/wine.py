"""Chemical analyses of wines from three cultivars, as scikit-learn carries them."""

from __future__ import annotations

import pandas as pd

from dpsynth_core.table.examples.base import Example, labelled, numeric

# Ranges from the summary table in the data set's published description, rounded outwards.
_ANALYSES = {
    "alcohol": (11.0, 15.0, 2, "% vol"),
    "malic_acid": (0.5, 6.0, 2, "g/L"),
    "ash": (1.0, 3.5, 2, "g/L"),
    "alcalinity_of_ash": (10.0, 31.0, 1, ""),
    "magnesium": (60.0, 170.0, 0, "mg/L"),
    "total_phenols": (0.5, 4.0, 2, ""),
    "flavanoids": (0.0, 5.5, 2, ""),
    "nonflavanoid_phenols": (0.0, 0.8, 2, ""),
    "proanthocyanins": (0.0, 4.0, 2, ""),
    "color_intensity": (1.0, 14.0, 2, ""),
    "hue": (0.4, 1.8, 3, ""),
    "od280/od315_of_diluted_wines": (1.0, 4.5, 2, ""),
    "proline": (250.0, 1750.0, 0, "mg/L"),
}


def read_wine() -> pd.DataFrame:
    """178 wines: the cultivar and thirteen analyses."""
    from sklearn.datasets import load_wine  # noqa: PLC0415  a second of start-up that only this example needs

    bunch = load_wine(as_frame=True)
    table: pd.DataFrame = bunch.frame[list(_ANALYSES)].copy()
    table.insert(0, "cultivar", bunch.target.map({0: "A", 1: "B", 2: "C"}).astype("str"))
    return table


WINE = Example(
    key="wine",
    title="Wine (real, 178 wines)",
    summary="Thirteen chemical analyses of wines from three cultivars. So few rows that privacy is expensive.",
    source="Forina et al., PARVUS; UCI repository, from scikit-learn.",
    facts={
        "columns": [
            labelled("cultivar", ["A", "B", "C"], origin="codebook"),
            *(
                numeric(name, low, high, bins=12, decimals=decimals, unit=unit, origin="codebook")
                for name, (low, high, decimals, unit) in _ANALYSES.items()
            ),
        ]
    },
    default_rows=178,
    read=read_wine,
)
