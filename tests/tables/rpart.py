"""The tables of rpart_reference.R, drawn again bit by bit, and what rpart made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

MODULUS = 2**31 - 1


class Lehmer:
    """The generator of the R script; every number is the quotient of two whole numbers."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def uniform(self, size: int) -> NDArray[np.float64]:
        out = np.empty(size)
        for i in range(size):
            self.state = 16807 * self.state % MODULUS
            out[i] = self.state / MODULUS
        return out

    def normal(self, size: int) -> NDArray[np.float64]:
        u = self.uniform(12 * size).reshape(size, 12)
        total = np.zeros(size)
        for k in range(12):
            total += u[:, k]
        return total - 6


def labels(codes: NDArray[np.float64], levels: int, *, ordered: bool = False) -> pd.Series[Any]:
    """Categories are named by number; a code that is not among them is not drawn."""
    names = [str(level) for level in range(1, levels + 1)]
    return pd.Series(pd.Categorical.from_codes(codes.astype(np.int64) - 1, names, ordered=ordered))


def draw(kind: str, rng: Lehmer, original: int, synthetic: int, shift: float) -> list[pd.Series[Any]]:
    y = np.repeat([0.0, 1.0], [original, synthetic])
    z = rng.normal(original + synthetic) + shift * y
    floor = np.floor
    columns: dict[str, Any] = {
        "normal": lambda: z,
        "ties": lambda: floor(2 * z),
        "few": lambda: (z > 1).astype(float) + (z > -0.5),
        "close": lambda: 1 + floor(1.5 * z + 8) * 2.0**-52,
        "huge": lambda: floor(z * 4) * 1e307,
        "constant": lambda: np.full(len(z), 3),
        "logical": lambda: z > 0.3,
        "date": lambda: np.datetime64("2020-02-27") + floor(10 * z).astype("timedelta64[D]"),
        "ordered5": lambda: labels(np.clip(floor(z + 3), 1, 5), 5, ordered=True),
        "factor3": lambda: labels(np.clip(floor(z + 2.5), 1, 3), 3),
        "factor12": lambda: labels(1 + (floor(3 * z) + 36) % 12, 12),
        "factor40": lambda: labels(1 + (floor(12 * z) + 400) % 40, 40),
    }
    return [pd.Series(-z), pd.Series(z)] if kind == "mirror" else [pd.Series(columns[kind]())]


def tables(case: dict[str, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The original and the synthetic table of a case of the reference."""
    rng = Lehmer(case["seed"])
    columns: list[pd.Series[Any]] = []
    for kind, shift in zip(case["kinds"], case["shifts"], strict=True):
        columns += draw(kind, rng, case["original"], case["synthetic"], shift)
    both = pd.DataFrame({f"x{j + 1}": column for j, column in enumerate(columns)})
    return both[: case["original"]], both[case["original"] :]


def read_cases(path: Path) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return cases
