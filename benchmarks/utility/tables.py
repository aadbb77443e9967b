"""The tables that releases are measured on: real ones, and simulated ones whose structure is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.papers.nist_survey import nist_table
from benchmarks.utility.simulated import dense, high_order, small, spiky, survey
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.schema import Schema

TEST_SHARE = 0.2
"""Rows that are kept aside to test models on; releases never see them."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A yes-or-no question that models are trained to answer."""

    column: str
    positive: tuple[object, ...]
    """Labels that mean yes."""
    without: tuple[str, ...] = ()
    """Columns that would give the answer away."""

    def answers(self, frame: pd.DataFrame) -> pd.Series[bool]:
        return frame[self.column].astype(str).isin([str(label) for label in self.positive])

    def predictors(self, schema: Schema) -> Schema:
        hidden = {self.column, *self.without}
        return schema.select([name for name in schema.names if name not in hidden])


@dataclass(frozen=True, kw_only=True)
class BenchmarkTable:
    """A table with its public facts and its natural questions."""

    key: str
    frame: pd.DataFrame
    schema: Schema
    targets: tuple[Target, ...]

    def split(self, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows to release, and rows to test on."""
        order = np.random.default_rng(seed).permutation(len(self.frame))
        tested = round(TEST_SHARE * len(order))
        test, rest = order[:tested], order[tested:]
        return self.frame.iloc[rest].reset_index(drop=True), self.frame.iloc[test].reset_index(drop=True)


def _breast_cancer() -> BenchmarkTable:
    example = EXAMPLES["breast_cancer"]
    target = Target(column="diagnosis", positive=("malignant",))
    return BenchmarkTable(key="breast_cancer", frame=example.load(), schema=example.schema, targets=(target,))


def _nist_acs(folder: Path) -> BenchmarkTable:
    frame, schema = nist_table(folder)
    income = Target(column="PINCP_DECILE", positive=("5", "6", "7", "8", "9"), without=("PINCP", "POVPIP"))
    owner = Target(column="OWN_RENT", positive=("1",))
    return BenchmarkTable(key="nist_acs", frame=frame, schema=schema, targets=(income, owner))


def _cardio(folder: Path) -> BenchmarkTable:
    """Ranges are what such measurements can be, not what occurs: impossible blood pressures are clamped."""
    frame = pd.read_csv(folder / "cardio_train.csv.gz", sep=";").drop(columns="id")
    numbers = {"age": (7_300, 25_550), "height": (50, 250), "weight": (10, 210), "sbp": (0, 300), "dbp": (0, 250)}
    codes = {"gender": (1, 2), "cholesterol": (1, 2, 3), "gluc": (1, 2, 3)}
    columns: list[dict[str, Any]] = []
    for name in frame.columns:
        if name in numbers:
            low, high = numbers[name]
            columns.append({"name": name, "kind": "integer", "lower": low, "upper": high, "bins": 16, "public": True})
        else:
            labels = [str(code) for code in codes.get(name, (0, 1))]
            columns.append({"name": name, "kind": "categorical", "categories": labels, "public": True})
            frame[name] = frame[name].astype(str)
    schema = Schema.from_dict({"columns": columns})
    return BenchmarkTable(key="cardio", frame=frame, schema=schema, targets=(Target(column="cardio", positive=(1,)),))


def _simulated(
    key: str, draw: Callable[[], tuple[pd.DataFrame, list[dict[str, Any]]]], *targets: str
) -> BenchmarkTable:
    frame, facts = draw()
    schema = Schema.from_dict({"columns": facts})
    return BenchmarkTable(
        key=key, frame=frame, schema=schema, targets=tuple(Target(column=name, positive=("yes",)) for name in targets)
    )


IN_FOLDER: dict[str, Callable[[Path], BenchmarkTable]] = {"nist_acs": _nist_acs, "cardio": _cardio}
"""Published tables, read from a folder of this name."""
ALWAYS: dict[str, Callable[[], BenchmarkTable]] = {
    "breast_cancer": _breast_cancer,
    "dense": lambda: _simulated("dense", dense, "outcome"),
    "high_order": lambda: _simulated("high_order", high_order, "outcome", "parity"),
    "spiky": lambda: _simulated("spiky", spiky, "disease"),
    "survey": lambda: _simulated("survey", survey, "outcome"),
    "small": lambda: _simulated("small", small, "outcome"),
}
"""Tables that need no folder."""
KEYS = (*IN_FOLDER, *ALWAYS)


def load_table(key: str, data: Path | None) -> BenchmarkTable | None:
    """A table by its key; None for a published one that is not in the folder."""
    if key in ALWAYS:
        return ALWAYS[key]()
    folder = None if data is None else data / key
    return IN_FOLDER[key](folder) if folder is not None and folder.is_dir() else None
