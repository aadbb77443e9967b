"""Table 2 of Snoke & Slavković (2018): the pMSE of synthetic tables, by method and epsilon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.papers.base import CellValue, Estimate, ResultTable, RunOptions
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.mechanisms.noisy_bayes.mechanism import NoisyBayes
from dpsynth_core.mechanisms.pmse.mechanism import PMSE
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.trees.cart import cart_pmse

ROWS = 5_000
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
CP = 0.001
PUBLISHED = {
    "no privacy: the model fitted": (0.00660, 0.00663, 0.00661, 0.00660, 0.00660),
    "pmse, random walks": (0.09281, 0.03610, 0.02107, 0.01459, 0.01161),
    "noisy_bayes, the paper's moments": (0.20509, 0.17876, 0.14372, 0.11177, 0.07919),
    "smoothed_histogram": (0.08206, 0.05398, 0.03278, 0.01892, 0.01129),
}
"""Means over 2,500 simulations."""
GUARANTEES = {"pmse, finite lists": "proven", "pmse, random walks": "asymptotic"}
_SCHEMA = Schema.from_dict(
    {
        # Four standard deviations around the means, as the paper assumes for the methods that need bounds.
        "columns": [
            {"name": "x1", "kind": "continuous", "lower": -38.0, "upper": 42.0, "public": True},
            {"name": "x2", "kind": "continuous", "lower": -24.8, "upper": 21.8, "public": True},
        ]
    }
)


def release_pmse(options: RunOptions) -> Iterator[ResultTable]:
    """The pMSE of synthetic tables by method and epsilon, beside the paper's."""
    n = options.rows(ROWS)
    methods: dict[str, Callable[[float], Mechanism] | None] = {
        "no privacy: the model fitted": None,
        "pmse, finite lists": lambda _: PMSE(),
        "pmse, random walks": lambda _: PMSE(sampler="metropolis"),
    }
    for key in ("noisy_bayes", "smoothed_histogram"):
        methods[key] = partial(_suggested, key, n)
    methods["noisy_bayes, the paper's moments"] = lambda _: NoisyBayes(second="central")
    found: dict[tuple[str, float], list[float]] = {}
    refused = 0
    for rep, seed in enumerate(options.seeds):
        rng = np.random.default_rng(rep)
        x1 = rng.normal(2.0, 10.0, n)
        frame = pd.DataFrame({"x1": x1, "x2": rng.normal(-2.5 + 0.5 * x1, 3.0)})
        table = PrivateTable(frame, _SCHEMA)
        for name, method in methods.items():
            for epsilon in EPSILONS if method else EPSILONS[:1]:
                options.report(f"Repetition {rep + 1} of {options.reps}: {name}, epsilon {epsilon:g}")
                try:
                    synthetic = (
                        _posterior_draw(frame, rng)
                        if method is None
                        else _release(table, method(epsilon), epsilon, seed)
                    )
                except DPSynthError:
                    refused += 1  # random walks that did not agree
                    continue
                found.setdefault((name, epsilon), []).append(cart_pmse(frame, synthetic, cp=CP))
    yield ResultTable(
        title="pMSE of the synthetic table",
        notes=(
            f"{options.reps} repetitions, n = {n}, one synthetic table each; CART with rpart's rules, cp = {CP}. 0 is "
            "best.",
            "The paper's figures are means of 2,500 simulations. "
            f"{refused} release(s) refused because the random walks did not agree.",
        ),
        columns=("method", "guarantee", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
        rows=tuple(row for name in methods for row in _rows(name, found)),
    )


def _rows(name: str, found: dict[tuple[str, float], list[float]]) -> Iterator[tuple[CellValue, ...]]:
    guarantee = GUARANTEES.get(name, "none" if name.startswith("no privacy") else "proven")
    values = [found.get((name, epsilon)) for epsilon in EPSILONS]
    yield (name, guarantee, *(None if v is None else Estimate.of(v) for v in values))
    yield ("  variance", "", *(None if v is None or len(v) < 2 else float(np.var(v, ddof=1)) for v in values))
    if name in PUBLISHED:
        yield ("  paper", "", *PUBLISHED[name])


def _suggested(key: str, n: int, epsilon: float) -> Mechanism:
    """As suggested, but with as many rows as the original: fewer would make any table look alike."""
    return replace(MECHANISMS[key].suggest(_SCHEMA, n, epsilon), rows=n)


def _release(table: PrivateTable, mechanism: Mechanism, epsilon: float, seed: int | None) -> pd.DataFrame:
    return synthesize(table, mechanism, epsilon=epsilon, seed=seed).sample()


def _posterior_draw(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """A table from the posterior predictive law of the two regressions, flat prior: nothing private about it."""
    n = len(frame)
    x1, x2 = frame["x1"].to_numpy(), frame["x2"].to_numpy()
    std = np.sqrt(x1.var() * n / rng.chisquare(n - 1))
    s1 = rng.normal(rng.normal(x1.mean(), std / np.sqrt(n)), std, n)
    design = np.column_stack([np.ones(n), x1])
    solution, residual, *_ = np.linalg.lstsq(design, x2, rcond=None)
    scale = np.sqrt(float(residual[0]) / rng.chisquare(n - 2))
    beta = rng.multivariate_normal(solution, scale**2 * np.linalg.inv(design.T @ design))
    return pd.DataFrame({"x1": s1, "x2": rng.normal(beta[0] + beta[1] * s1, scale)})
