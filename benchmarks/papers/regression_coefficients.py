"""Regression coefficients from private methods: Snoke & Slavković (2018), section 6, Figures 2 and 4."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from benchmarks.papers.base import CellValue, Estimate, MechanismFactory, ResultTable, RunOptions
from benchmarks.papers.published_walks import DEPTHS, published_draws, simulated_table, synthetic_tables
from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.regression.design import build
from dpsynth_core.inference.regression.fitting import fit
from dpsynth_core.inference.regression.private import functional_mechanism, k_norm_mechanism
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.noisy_bayes.mechanism import Bayes, NoisyBayes
from dpsynth_core.mechanisms.smoothed_histogram import SmoothedHistogram
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise, SecureNoise, SeededNoise
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.examples.base import numeric
from dpsynth_core.table.examples.bivariate import simulate_bivariate
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

ROWS = 5_000
EPSILONS = (0.25, 0.5, 1.0)
BOUNDS = (2, 4, 5, 10)
"""Declared bounds in standard deviations around the mean; values beyond them are moved to them."""
CENTRES, STDS = (2.0, -1.5), (10.0, 34.0**0.5)
"""Of x1 and x2 under the simulation: known, not read from the rows."""
COPIES = 10
"""Synthetic tables of the paper's noisy Bayes, each at a tenth of epsilon, whose estimates are averaged."""

WALKS_ONE_IN = 8
"""Repetitions are divided by this for the paper's own mechanism, which walks half a minute for each epsilon."""
ErrorsByBound: TypeAlias = dict[str, dict[float, list[FloatArray]]]
"""By bounds and epsilon, the absolute errors of intercept and slope in every repetition."""
Method: TypeAlias = Callable[[PrivateTable, float, int | None], FloatArray]
"""Intercept and slope from a private table at an epsilon, with a seed or with release noise."""


def synthetic_method(choose: MechanismFactory, copies: int = 1) -> Method:
    """Least squares on synthetic tables, each at its share of epsilon, averaged."""

    def run(table: PrivateTable, epsilon: float, seed: int | None) -> FloatArray:
        each, estimates = Budget.of(epsilon).epsilon / copies, []
        mechanism = choose(table.schema, table.n, each)
        for copy in range(copies):
            drawn = None if seed is None else seed * copies + copy
            release = synthesize(table, mechanism, epsilon=each, seed=drawn)
            estimates.append(_least_squares(PrivateTable(release.sample(), table.schema)))
        return np.asarray(np.mean(estimates, axis=0))

    return run


def direct_method(mechanism: Callable[..., FloatArray]) -> Method:
    """Coefficients that are private by themselves."""

    def run(table: PrivateTable, epsilon: float, seed: int | None) -> FloatArray:
        budget = Budget.of(epsilon)
        noise: Noise = SecureNoise(budget) if seed is None else SeededNoise(budget, seed)
        return mechanism(build(table, "x2", ["x1"]), noise)

    return run


def paper_moments(schema: Schema, n: int, epsilon: Amount) -> Mechanism:
    """Variances and covariances about the mean, as Bowen and Liu perturb them."""
    return replace(NoisyBayes.suggest(schema, n, epsilon), second="central")


METHODS: dict[str, Method] = {
    "noisy_bayes": synthetic_method(NoisyBayes.suggest),
    "noisy_bayes, paper's moments, l = 10": synthetic_method(paper_moments, COPIES),
    "smoothed_histogram, suggested": synthetic_method(SmoothedHistogram.suggest),
    "functional mechanism (l1)": direct_method(functional_mechanism),
    "K-norm mechanism (l-infinity)": direct_method(k_norm_mechanism),
}
"""What is compared under declared bounds."""


def regression_coefficients(options: RunOptions) -> Iterator[ResultTable]:
    """Absolute error of private regression coefficients by method, bounds and epsilon: Figures 2 and 4."""
    rows = options.rows(ROWS)
    errors = {name: _errors(name, method, options, rows) for name, method in _every_method().items()}
    errors |= {f"the paper's mechanism, {name}": _walked(depth, options, rows) for depth, name in DEPTHS.items()}
    for index, coefficient in enumerate(("intercept", "slope")):
        cells: list[tuple[CellValue, ...]] = []
        for name, by_bound in errors.items():
            for bound, found in by_bound.items():
                line = [Estimate.of([float(error[index]) for error in found[epsilon]]) for epsilon in EPSILONS]
                cells.append((name, bound, *line))
        yield ResultTable(
            title=f"Absolute error of the {coefficient} of x2 on x1: Figures 2 and 4",
            notes=(
                f"Against least squares on the same {rows:,} simulated rows before bounds; {options.reps} repetitions, "
                f"each with rows of its own. {'Release' if options.secure else 'Simulation'} noise.",
                "The paper gives pictures, not numbers. Bounds are in standard deviations around the known means.",
            ),
            columns=("method", "bounds", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
            rows=tuple(cells),
        )
    for index, coefficient in enumerate(("intercept", "slope")):
        yield _boxes(index, coefficient, errors)


def _boxes(index: int, coefficient: str, errors: dict[str, ErrorsByBound]) -> ResultTable:
    """What a box plot shows, for Figure 4."""
    rows: list[tuple[CellValue, ...]] = []
    for name, by_bound in errors.items():
        for bound, found in by_bound.items():
            for epsilon in EPSILONS:
                values = np.array([error[index] for error in found[epsilon]])
                rows.append((name, bound, epsilon, *map(float, np.quantile(values, (0, 0.25, 0.5, 0.75, 1)))))
    return ResultTable(
        title=f"Absolute error of the {coefficient}, five numbers of each box: Figure 4",
        notes=("Least, quartiles and largest over the repetitions.",),
        columns=("method", "bounds", "eps", "least", "first quartile", "median", "third quartile", "largest"),
        rows=tuple(rows),
    )


def _walked(depth: int, options: RunOptions, rows: int) -> ErrorsByBound:
    """The paper's own mechanism, l = 10 tables at a tenth of epsilon each; it needs no bounds."""
    by_epsilon: dict[float, list[FloatArray]] = {epsilon: [] for epsilon in EPSILONS}
    for rep in range(max(1, options.reps // WALKS_ONE_IN)):
        table = simulated_table(rows, rep)
        points = table.rows()
        truth = np.polyfit(points["x1"], points["x2"], 1)[::-1]
        for epsilon in EPSILONS:
            draws = published_draws(table, rep, depth=depth, epsilon=epsilon / COPIES, start="truth", options=options)
            made = synthetic_tables(draws, rows, rep)
            estimate = np.mean([np.polyfit(each["x1"], each["x2"], 1)[::-1] for each in made], axis=0)
            by_epsilon[epsilon].append(np.abs(estimate - truth))
    return {"none": by_epsilon}


def _every_method() -> dict[str, Method]:
    """With the pMSE mechanism where it is registered; it needs no bounds, so the loosest serve."""
    every = {"bayes (not private)": synthetic_method(Bayes.suggest), **METHODS}
    if "pmse" in MECHANISMS:
        every["pmse"] = synthetic_method(MECHANISMS["pmse"].suggest)
    return every


def _errors(name: str, method: Method, options: RunOptions, rows: int) -> ErrorsByBound:
    """By bounds and epsilon, the absolute errors of intercept and slope in every repetition."""
    bounds = (10,) if name.startswith(("bayes", "pmse")) else BOUNDS
    found: ErrorsByBound = {}
    for bound in bounds:
        options.report(f"Running {name} with bounds of {bound} standard deviations")
        schema = _schema(bound)
        by_epsilon: dict[float, list[FloatArray]] = {epsilon: [] for epsilon in EPSILONS}
        for index, seed in enumerate(options.seeds):
            frame = simulate_bivariate(rows, np.random.default_rng([2018, index]))
            truth, table = np.polyfit(frame["x1"], frame["x2"], 1)[::-1], PrivateTable(frame, schema)
            for epsilon in EPSILONS:
                work = partial(_absolute_error, method, table, epsilon, seed, truth)
                key = f"{name}, bounds {bound}, epsilon {epsilon:g}, repetition {index}"
                by_epsilon[epsilon].append(np.array(options.once(key, work)))
        found[f"{bound} sd"] = by_epsilon
    return found


def _absolute_error(
    method: Method, table: PrivateTable, epsilon: float, seed: int | None, truth: FloatArray
) -> list[float]:
    return [float(error) for error in np.abs(method(table, epsilon, seed) - truth)]


def _schema(bound: int) -> Schema:
    facts = [
        numeric(name, centre - bound * std, centre + bound * std, bins=32, origin="public knowledge")
        for name, centre, std in zip(("x1", "x2"), CENTRES, STDS, strict=True)
    ]
    return Schema.from_dict({"columns": facts})


def _least_squares(table: PrivateTable) -> FloatArray:
    return fit(build(table, "x2", ["x1"]), logistic=False).estimate
