"""What makes rows: our mechanisms as suggested, references without privacy, and rivals from a file."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from benchmarks.utility.measures import CELLS
from dpsynth_core.diagnostics.total_variation import coarse
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.encoding import decode, encode
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

REAL, INDEPENDENT = "real", "independent"
REFERENCES = (REAL, INDEPENDENT)
"""Not private: a bootstrap sample of the rows, and every column shuffled by itself."""
RIVALS = ("mst", "aim")
"""Functions that a file of rivals may define."""

Made: TypeAlias = tuple[pd.DataFrame, str]
"""Synthetic rows, and what is worth noting about how they were made."""
Method: TypeAlias = Callable[[PrivateTable, Budget, int], Made]
Rival: TypeAlias = Callable[
    [np.ndarray[Any, Any], list[int], float, np.random.Generator], tuple[Any, Mapping[str, Any]]
]
"""``rival(codes, sizes, rho, rng)``: an (n, d) integer array of codes, the number of codes of each column, a budget of
zero-concentrated differential privacy for adding or removing a row, and a source of randomness. It returns an integer
array of synthetic codes with as many columns, and a mapping of remarks."""


def methods(rivals: Path | None) -> dict[str, Method]:
    """Everything that can be measured, by name."""
    found: dict[str, Method] = {REAL: _bootstrap, INDEPENDENT: _independent}
    found |= {key: _mechanism(key) for key in MECHANISMS}
    if rivals is not None:
        found |= {name: _rival(function) for name, function in load_rivals(rivals).items()}
    return found


def load_rivals(file: Path) -> dict[str, Rival]:
    """The functions ``mst`` and ``aim`` of a Python file, those of them that it has."""
    spec = importlib.util.spec_from_file_location("rivals", file) if file.is_file() else None
    if spec is None or spec.loader is None:
        raise ParameterError("rivals", str(file), allowed="a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {name: getattr(module, name) for name in RIVALS if callable(getattr(module, name, None))}
    if not found:
        raise ParameterError("rivals", str(file), allowed=f"a file that defines {' or '.join(RIVALS)}")
    return found


def _bootstrap(table: PrivateTable, budget: Budget, seed: int) -> Made:
    del budget
    return table.rows().sample(table.n, replace=True, random_state=seed, ignore_index=True), ""


def _independent(table: PrivateTable, budget: Budget, seed: int) -> Made:
    del budget
    rng = np.random.default_rng(seed)
    rows = table.rows()
    return pd.DataFrame({name: rows[name].to_numpy()[rng.permutation(table.n)] for name in rows}), ""


def _mechanism(key: str) -> Method:
    def run(table: PrivateTable, budget: Budget, seed: int) -> Made:
        mechanism = MECHANISMS[key].suggest(table.schema, table.n, budget.epsilon, budget.delta)
        return synthesize(table, mechanism, epsilon=budget.epsilon, delta=budget.delta, seed=seed).sample(), ""

    return run


def _rival(function: Rival) -> Method:
    """A rival sees numbers on the equal grid that errors are measured on, and gets the privacy of a replaced row."""

    def run(table: PrivateTable, budget: Budget, seed: int) -> Made:
        schema = replace(table.schema, columns=tuple(coarse(column, CELLS) for column in table.schema))
        codes = encode(table.rows(), schema)
        rng = np.random.default_rng(seed)
        rho = rho_for(float(budget.epsilon), float(budget.delta)) / 2
        made, remarks = function(
            np.column_stack([codes[name] for name in schema.names]), [c.size for c in schema], rho, rng
        )
        return _decoded(np.asarray(made, dtype=np.int64), schema, rng), "cut short" if remarks.get("cut") else ""

    return run


def _decoded(codes: np.ndarray[Any, Any], schema: Schema, rng: np.random.Generator) -> pd.DataFrame:
    return decode({name: codes[:, index] for index, name in enumerate(schema.names)}, schema, rng.random)


def rho_for(epsilon: float, delta: float) -> float:
    """The largest rho whose zero-concentrated privacy implies (epsilon, delta); bisection.

    Example:
        >>> round(rho_for(1.0, 1e-6), 4)
        0.0244
    """
    low, high = 0.0, epsilon + 1
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _delta_of(middle, epsilon) <= delta else (low, middle)
    return low


def _delta_of(rho: float, epsilon: float) -> float:
    """Canonne, Kamath & Steinke (2020), Corollary 13: the least over alpha > 1, which has one minimum."""
    low, high = 1.01, (epsilon + 1) / (2 * rho) + 2
    for _ in range(100):
        alpha = (low + high) / 2
        falling = (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha) < 0
        low, high = (alpha, high) if falling else (low, alpha)
    return min(1.0, math.exp((alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha)) / (alpha - 1))
