"""Table 2 of Snoke & Slavković (2018): the pMSE of synthetic tables, by method and epsilon.

The paper's mechanism and its noisy Bayes release l = 10 tables, each at a tenth of epsilon; its smooth histogram is one
table. Every method is shown both ways, l = 10 and l = 1: with ten tables, the pMSE is the mean over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pandas as pd

from benchmarks.papers.base import CellValue, Estimate, ResultTable, RunOptions
from benchmarks.papers.published_walks import STEPS, Start, published_draws, simulated_table, synthetic_tables
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.mechanisms.noisy_bayes.mechanism import NoisyBayes
from dpsynth_core.mechanisms.pmse.mechanism import PMSE
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.trees.cart import MAX_DEPTH, cart_pmse

ROWS = 5_000
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
CP = 0.001
COPIES = 10
"""Tables of the paper, each at an equal share of epsilon (l)."""
PUBLISHED: dict[tuple[str, int], tuple[tuple[float, ...], tuple[float, ...]]] = {
    ("no privacy: the model fitted", 1): (
        (0.00660, 0.00663, 0.00661, 0.00660, 0.00660),
        (8.681e-07, 8.929e-07, 8.342e-07, 8.342e-07, 8.671e-07),
    ),
    ("the paper's mechanism, walks begun at the truth", COPIES): (
        (0.09281, 0.03610, 0.02107, 0.01459, 0.01161),
        (1.347e-03, 8.020e-05, 1.648e-05, 1.648e-05, 3.329e-06),
    ),
    ("noisy_bayes, the paper's moments", COPIES): (
        (0.20509, 0.17876, 0.14372, 0.11177, 0.07919),
        (3.079e-03, 5.914e-03, 8.579e-03, 8.579e-03, 9.087e-03),
    ),
    ("the paper's smooth histogram, re-run", 1): (
        (0.08206, 0.05398, 0.03278, 0.01892, 0.01129),
        (2.826e-05, 1.809e-05, 1.069e-05, 1.069e-05, 5.964e-06),
    ),
}
"""Means and variances over 2,500 simulations; the paper prints the same variances for epsilon 1 and 2."""
GUARANTEES = {
    "no privacy: the model fitted": "none",
    "pmse, random walks": "asymptotic",
    "the paper's smooth histogram, re-run": "epsilon for one row",
}
WALKED: dict[str, tuple[Start, tuple[int, ...]]] = {
    "the paper's mechanism, walks begun at the truth": ("truth", (COPIES, 1)),
    "the paper's mechanism, walks begun within the bounds": ("bounds", (COPIES,)),
}
"""The mechanism as published, by where its walks begin, with ten tables at a tenth of epsilon and with all of it."""
WALKS_ONE_IN = 4
"""Repetitions are divided by this for walks, which take half a minute for each epsilon."""
SMOOTH_CELLS = 50
"""Cells along each axis with which the paper's smooth histogram comes out as printed."""
_SCHEMA = Schema.from_dict(
    {
        # Four standard deviations around the means, as the paper assumes for the methods that need bounds.
        "columns": [
            {"name": "x1", "kind": "continuous", "lower": -38.0, "upper": 42.0, "public": True},
            {"name": "x2", "kind": "continuous", "lower": -24.8, "upper": 21.8, "public": True},
        ]
    }
)


Maker: TypeAlias = Callable[[PrivateTable, float, int | None], pd.DataFrame]
"""One synthetic table from a private one, at an epsilon, with a seed or with release noise."""


def release_pmse(options: RunOptions) -> Iterator[ResultTable]:
    """The pMSE of synthetic tables by method and epsilon, beside the paper's."""
    n = options.rows(ROWS)
    found: dict[tuple[str, int, float], list[float]] = {}
    refused: Counter[tuple[str, int, float]] = Counter()
    for rep, seed in enumerate(options.seeds):
        table = PrivateTable(_simulated(n, np.random.default_rng(rep)), _SCHEMA)
        for name, (make, numbers) in _methods(n).items():
            for copies in numbers:
                for epsilon in EPSILONS if GUARANTEES.get(name) != "none" else EPSILONS[:1]:
                    options.report(f"Repetition {rep + 1} of {options.reps}: {name}, l = {copies}, epsilon {epsilon:g}")
                    work = partial(_mean_pmse, table, make, epsilon, copies=copies, seed=seed)
                    pmse = options.once(f"{name}, l = {copies}, epsilon {epsilon:g}, repetition {rep}", work)
                    if pmse is None:
                        refused[name, copies, epsilon] += 1
                    else:
                        found.setdefault((name, copies, epsilon), []).append(pmse)
    yield ResultTable(
        title="pMSE of the synthetic table",
        notes=(
            f"{options.reps} repetitions, n = {n}; CART with rpart's rules, cp = {CP}. 0 is best. l tables share "
            "epsilon; the value is their mean.",
            "The paper's figures are means of 2,500 simulations. A count in brackets is of releases that were refused, "
            "because random walks did not agree or had left for the flat tail of the paper's prior.",
        ),
        columns=("method", "l", "guarantee", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
        rows=tuple(
            row
            for name, (_, many) in _methods(n).items()
            for copies in many
            for row in _rows(name, copies, found, refused)
        ),
    )
    yield _walked(n, options)


def _walked(n: int, options: RunOptions) -> ResultTable:
    """The paper's own mechanism, whether or not its walks agree: where they end, and how well they had met."""
    rows: list[tuple[CellValue, ...]] = []
    reps = max(1, options.reps // WALKS_ONE_IN)
    for name, (start, many) in WALKED.items():
        for copies in many:
            cells: dict[str, list[CellValue]] = {
                "pMSE": [],
                "  variance": [],
                "  R-hat, largest": [],
                "  in the tail": [],
            }
            for epsilon in EPSILONS:
                found, rhats, left = [], [], 0
                for rep in range(reps):
                    table = simulated_table(n, rep)
                    draws = published_draws(
                        table, rep, depth=MAX_DEPTH, epsilon=epsilon / copies, start=start, options=options
                    )
                    made = synthetic_tables(draws, n, rep)
                    found.append(float(np.mean([cart_pmse(_points(table), each, cp=CP) for each in made])))
                    rhats.append(draws.rhat)
                    left += draws.left
                cells["pMSE"].append(Estimate.of(found))
                cells["  variance"].append(float(np.var(found, ddof=1)) if reps > 1 else None)
                cells["  R-hat, largest"].append(max(rhats))
                cells["  in the tail"].append(f"{left} of {reps * COPIES}")
            rows += [(name if label == "pMSE" else label, str(copies), *line) for label, line in cells.items()]
            if (name, copies) in PUBLISHED:
                mean, variance = PUBLISHED[name, copies]
                rows += [("  paper", "", *mean), ("  paper's variance", "", *variance)]
    return ResultTable(
        title="pMSE of the paper's own mechanism, by where its walks begin",
        notes=(
            f"{reps} repetitions, n = {n}; greedy trees of any depth with cp = 0.01 score the parameters, CART with "
            f"cp = {CP} judges the tables. Ten walks of {STEPS:,} steps each, half of them to warm up, end in the ten "
            "tables. Nothing is refused: a largest R-hat above 1.1 says that walks had not met, so the value is that "
            "of where they were.",
            "The parameters of the simulation, at which the first kind of walk begins, are known to nobody who has "
            "rows of their own. The paper does not say where and how long it walked.",
        ),
        columns=("method", "l", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
        rows=tuple(rows),
    )


def _methods(n: int) -> dict[str, tuple[Maker, tuple[int, ...]]]:
    """What is compared, and with how many tables."""
    both = (COPIES, 1)
    return {
        "no privacy: the model fitted": (_posterior_draw, (1,)),
        "pmse, finite lists": (_releasing(lambda _: PMSE()), both),
        "pmse, random walks": (_releasing(lambda _: PMSE(sampler="metropolis")), (1,)),
        "noisy_bayes": (_releasing(partial(_suggested, "noisy_bayes", n)), both),
        "noisy_bayes, the paper's moments": (_releasing(lambda _: NoisyBayes(second="central")), both),
        "smoothed_histogram": (_releasing(partial(_suggested, "smoothed_histogram", n)), both),
        "the paper's smooth histogram, re-run": (_smooth_histogram, (1,)),
    }


def _simulated(n: int, rng: np.random.Generator) -> pd.DataFrame:
    x1 = rng.normal(2.0, 10.0, n)
    return pd.DataFrame({"x1": x1, "x2": rng.normal(-2.5 + 0.5 * x1, 3.0)})


def _mean_pmse(table: PrivateTable, make: Maker, epsilon: float, *, copies: int, seed: int | None) -> float | None:
    """Mean over the tables, each made at its share of epsilon; None where one was refused."""
    seeds = [None if seed is None else seed * copies + copy for copy in range(copies)]
    try:
        made = [make(table, epsilon / copies, each) for each in seeds]
    except DPSynthError:
        return None
    return float(np.mean([cart_pmse(_points(table), synthetic, cp=CP) for synthetic in made]))


def _points(table: PrivateTable) -> pd.DataFrame:
    return pd.DataFrame(
        {column.name: table.positions(column.name).values.astype(np.float64) for column in table.schema}
    )


def _rows(
    name: str,
    copies: int,
    found: dict[tuple[str, int, float], list[float]],
    refused: Counter[tuple[str, int, float]],
) -> Iterator[tuple[CellValue, ...]]:
    values = [found.get((name, copies, epsilon)) for epsilon in EPSILONS]
    means: list[CellValue] = [None if v is None else Estimate.of(v) for v in values]
    for i, epsilon in enumerate(EPSILONS):
        if count := refused[name, copies, epsilon]:
            means[i] = f"{means[i] or '-'} ({count} refused)"
    yield (name, str(copies), GUARANTEES.get(name, "proven"), *means)
    yield ("  variance", "", "", *(None if v is None or len(v) < 2 else float(np.var(v, ddof=1)) for v in values))
    if (name, copies) in PUBLISHED:
        mean, variance = PUBLISHED[name, copies]
        yield ("  paper", "", "", *mean)
        yield ("  paper's variance", "", "", *variance)


def _suggested(key: str, n: int, epsilon: float) -> Mechanism:
    """As suggested, but with as many rows as the original: fewer would make any table look alike."""
    return replace(MECHANISMS[key].suggest(_SCHEMA, n, epsilon), rows=n)


def _releasing(choose: Callable[[float], Mechanism]) -> Maker:
    """A table from a mechanism that is chosen by epsilon."""

    def make(table: PrivateTable, epsilon: float, seed: int | None) -> pd.DataFrame:
        return synthesize(table, choose(epsilon), epsilon=epsilon, seed=seed).sample()

    return make


def _own_generator(seed: int | None) -> np.random.Generator:
    """Not the one that a table of the same number was simulated with."""
    return np.random.default_rng(None if seed is None else [2018, seed])


def _smooth_histogram(table: PrivateTable, epsilon: float, seed: int | None) -> pd.DataFrame:
    """Wasserman and Zhou's smooth histogram with the weight that gives the paper's figures: K / (K + n epsilon).

    That weight keeps epsilon for one drawn row. All n rows together cost n times as much.
    """
    rng = _own_generator(seed)
    names = [column.name for column in table.schema]
    low, high = (np.array([float(getattr(c, end)) for c in table.schema]) for end in ("lower", "upper"))
    points = _points(table).to_numpy()
    cells = np.minimum((points - low) / (high - low) * SMOOTH_CELLS, SMOOTH_CELLS - 1).astype(np.int64)
    weight = SMOOTH_CELLS ** len(names) / (SMOOTH_CELLS ** len(names) + table.n * epsilon)
    drawn = cells[rng.integers(0, table.n, table.n)]
    uniform = rng.integers(0, SMOOTH_CELLS, drawn.shape)
    drawn = np.where(rng.random((table.n, 1)) < weight, uniform, drawn)
    return pd.DataFrame(low + (drawn + rng.random(drawn.shape)) / SMOOTH_CELLS * (high - low), columns=names)


def _posterior_draw(table: PrivateTable, epsilon: float, seed: int | None) -> pd.DataFrame:  # noqa: ARG001
    """A table from the posterior predictive law of the two regressions, flat prior: nothing private about it."""
    rng = _own_generator(seed)
    n = table.n
    x1, x2 = _points(table).to_numpy().T
    std = np.sqrt(x1.var() * n / rng.chisquare(n - 1))
    s1 = rng.normal(rng.normal(x1.mean(), std / np.sqrt(n)), std, n)
    design = np.column_stack([np.ones(n), x1])
    solution, residual, *_ = np.linalg.lstsq(design, x2, rcond=None)
    scale = np.sqrt(float(residual[0]) / rng.chisquare(n - 2))
    beta = rng.multivariate_normal(solution, scale**2 * np.linalg.inv(design.T @ design))
    return pd.DataFrame({"x1": s1, "x2": rng.normal(beta[0] + beta[1] * s1, scale)})
