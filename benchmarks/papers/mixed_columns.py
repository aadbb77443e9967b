"""Six columns of different kinds: the pMSE mechanism beside noisy Bayes (not in the papers)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.papers.base import CellValue, Estimate, ResultTable, RunOptions
from dpsynth_core.diagnostics import TablePair
from dpsynth_core.diagnostics.pairs import correlation_differences
from dpsynth_core.diagnostics.total_variation import total_variation
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.noisy_bayes.mechanism import NoisyBayes
from dpsynth_core.mechanisms.pmse.mechanism import PMSE
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.trees.cart import cart_pmse

ROWS = 10_000
EPSILONS = (0.25, 0.5, 1.0)
BINS = 20
CP = 0.001
METHODS: dict[str, Mechanism] = {
    "pmse, finite lists": PMSE(numbers="skewed"),
    "pmse, random walks": PMSE(numbers="skewed", sampler="metropolis"),
    "noisy_bayes": NoisyBayes(),
    "noisy_bayes, the paper's moments": NoisyBayes(second="central"),
}
DEGREES = ("school", "college", "university")
REGIONS = ("north", "east", "south", "west")
SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"name": "age", "kind": "integer", "lower": 18, "upper": 90, "public": True},
            {"name": "degree", "kind": "ordinal", "categories": list(DEGREES), "public": True},
            {"name": "income", "kind": "continuous", "lower": 0, "upper": 200_000, "public": True},
            {"name": "pressure", "kind": "continuous", "lower": 60, "upper": 200, "public": True},
            {"name": "insured", "kind": "boolean", "public": True},
            {"name": "region", "kind": "categorical", "categories": list(REGIONS), "public": True},
        ]
    }
)


class MixedErrors(NamedTuple):
    """How far a release is from its original; 0 is best."""

    marginal: float
    correlation: float
    tree: float
    seconds: float


MEASURES = {
    "marginal": f"mean total variation of single columns ({BINS} ranges)",
    "correlation": "mean absolute error of correlations",
    "tree": f"pMSE by CART, cp = {CP}",
    "seconds": "seconds for a release",
}


def mixed_columns(options: RunOptions) -> Iterator[ResultTable]:
    """Six mixed columns: errors of single columns, of correlations, and of the whole table, over epsilon."""
    n = options.rows(ROWS)
    found: dict[tuple[str, float], list[MixedErrors]] = {}
    refused = 0
    floor = []
    for rep, seed in enumerate(options.seeds):
        rng = np.random.default_rng(rep)
        original = PrivateTable(six_columns(n, rng), SCHEMA)
        floor.append(_errors(original, six_columns(n, rng), 0.0))
        for name, mechanism in METHODS.items():
            for epsilon in EPSILONS:
                options.report(f"Repetition {rep + 1} of {options.reps}: {name}, epsilon {epsilon:g}")
                start = perf_counter()
                try:
                    table = synthesize(original, mechanism, epsilon=epsilon, seed=seed).sample()
                except DPSynthError:
                    refused += 1  # random walks that did not agree
                    continue
                found.setdefault((name, epsilon), []).append(_errors(original, table, perf_counter() - start))
    for field, title in MEASURES.items():
        rows: list[tuple[CellValue, ...]] = []
        for name in METHODS:
            cells = [[getattr(errors, field) for errors in found.get((name, e), ())] for e in EPSILONS]
            rows.append((name, *(Estimate.of(values) if values else None for values in cells)))
        fresh = Estimate.of([getattr(score, field) for score in floor])
        if field != "seconds":
            rows.insert(0, ("a fresh sample of the same distribution", fresh, *[None] * (len(EPSILONS) - 1)))
        yield ResultTable(
            title=f"Six mixed columns: {title}",
            notes=(f"{options.reps} repetitions, n = {n:,}; {refused} release(s) refused: the walks did not agree.",),
            columns=("method", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
            rows=tuple(rows),
        )


def six_columns(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """People: an age, then columns that depend on it and on those before them."""
    age = np.clip(np.rint(rng.gamma(6.0, 7.5, n) + 10), 18, 90).astype(np.int64)
    taught = rng.normal(0.6 - 0.015 * (age - 45), 1.0, n)
    degree = np.digitize(taught, [0.2, 1.2])
    income = np.clip(np.exp(rng.normal(9.9 + 0.35 * degree + 0.006 * (age - 45), 0.55, n)), 0, 200_000)
    pressure = np.clip(rng.normal(112 + 0.45 * (age - 45) - 2.0 * degree, 12.0, n), 60, 200)
    insured = rng.random(n) < 1 / (1 + np.exp(-(np.log(income) - 9.6) * 1.5))
    tilt = np.array([0.0, 0.2, 0.5, -0.2])
    weights = np.exp(tilt + np.outer(degree - 1, [0.5, -0.3, 0.0, 0.2]))
    region = (rng.random(n)[:, None] > np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)).sum(axis=1)
    return pd.DataFrame(
        {
            "age": age,
            "degree": np.array(DEGREES)[degree],
            "income": income,
            "pressure": pressure,
            "insured": insured,
            "region": np.array(REGIONS)[np.minimum(region, len(REGIONS) - 1)],
        }
    )


def _errors(original: PrivateTable, table: pd.DataFrame, seconds: float) -> MixedErrors:
    pair = TablePair.of(original, table)
    columns = [[replace(column, bins=BINS) if column.is_numeric else column] for column in SCHEMA]
    single = [total_variation(*both) for both in pair.counts(columns)]
    moved = correlation_differences(pair)["difference"].abs()
    return MixedErrors(
        marginal=float(np.mean(single)),
        correlation=math.nan if moved.isna().any() else float(moved.mean()),
        tree=cart_pmse(original.rows(), table, cp=CP),
        seconds=seconds,
    )
