"""The distribution of greatest entropy that fits noisy marginals best (McKenna, Sheldon & Miklau 2019).

Few cells, and pairs that form a forest, are fitted at once with NumPy. Everything else goes to ``mbi``, whose inference
is exact on a junction tree of any sets; it compiles each new collection of sets, which takes up to a minute, and is
imported only then.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.private_pgm.cliques import largest_clique
from dpsynth_core.mechanisms.private_pgm.graphical import Step
from dpsynth_core.mechanisms.private_pgm.oracles import DenseOracle, ForestOracle, Oracle, Tables, Variables

SMALL_DOMAIN = 2**14
"""Joint cells up to which fitting them all is quicker than compiling a model."""
MOST_CLIQUE_CELLS = 5_000_000
"""Cells of a junction tree's largest table that memory and patience allow."""
ITERATIONS = 600
TOLERANCE, PATIENCE = 1e-4, 5
"""Relative gain of a step below which it counts as none, and how many such steps in a row end the fitting."""
SMALLEST_STEP = 1e-9
LEAST_DEVIATION = 1e-3
"""Noise is never taken for smaller than this, so that weights stay finite."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Noisy counts over some variables."""

    variables: tuple[int, ...]
    """In ascending order."""
    values: FloatArray
    """Noisy counts, one axis for each variable."""
    deviation: float
    """Standard deviation of their noise."""


Told = Callable[[str], None]


def fitted_steps(
    sizes: Sequence[int], measurements: Sequence[Measurement], rows: int, tell: Told = lambda _: None
) -> tuple[Step, ...]:
    """Conditional tables of the fitted distribution over variables of these sizes."""
    sets = [measurement.variables for measurement in measurements]
    check_size(sizes, sets)
    oracle = plain_oracle(sizes, sets)
    if oracle is None:
        return fit_junction_tree(sizes, measurements, rows, tell)
    tell("Fitting the model")
    return oracle.steps(mirror_descent(oracle, measurements, rows))


def plain_oracle(sizes: Sequence[int], sets: Sequence[Variables]) -> Oracle | None:
    """A way to infer without compiling: all cells where they are few, branches where sets are a forest."""
    if math.prod(sizes) <= SMALL_DOMAIN:
        return DenseOracle(sizes=tuple(sizes))
    return ForestOracle.of(sizes, sets)


def check_size(sizes: Sequence[int], sets: Sequence[Sequence[int]]) -> None:
    """Refuse sets of columns whose exact inference needs more than memory holds, before anything is spent."""
    cells = largest_clique(sets, sizes)
    if cells > MOST_CLIQUE_CELLS:
        raise ParameterError(
            "cells", cells, allowed=f"at most {MOST_CLIQUE_CELLS:,} in the largest table of the model",
            remedy="Use fewer bins, smaller or fewer sets of columns, or the strategy 'tree'.",
        )  # fmt: skip


def mirror_descent(oracle: Oracle, measurements: Sequence[Measurement], rows: int) -> dict[Variables, FloatArray]:
    """Potentials of the best fit, by a step that grows while it helps (McKenna et al. 2019, Algorithm 1)."""
    potentials = {m.variables: np.zeros(m.values.shape) for m in measurements}
    found = oracle.marginals(potentials)
    loss, slope = _loss_and_slope(found, measurements, rows)
    # Squared error over deviations is smooth in L1 with this constant; entropy is the matching distance.
    step = 1.0 / (rows * sum(_deviation(m) ** -2 for m in measurements))
    stalled = 0
    for _ in range(ITERATIONS):
        trial = {variables: table - step * slope[variables] for variables, table in potentials.items()}
        moved = oracle.marginals(trial)
        lower, direction = _loss_and_slope(moved, measurements, rows)
        gain = sum(float((slope[v] * (found[v] - moved[v])).sum()) for v in slope) * rows
        if loss - lower < 0.5 * gain:
            step *= 0.5
            if max(step * float(np.abs(table).max()) for table in slope.values()) < SMALLEST_STEP:
                break
            continue
        stalled = stalled + 1 if loss - lower <= TOLERANCE * max(lower, 1e-6) else 0
        potentials, found, loss, slope, step = trial, moved, lower, direction, 1.5 * step
        if stalled >= PATIENCE:
            break
    return potentials


def _deviation(measurement: Measurement) -> float:
    return max(measurement.deviation, LEAST_DEVIATION)


def _loss_and_slope(
    found: Tables, measurements: Sequence[Measurement], rows: int
) -> tuple[float, dict[Variables, FloatArray]]:
    """Half the squared errors in units of the noise, and their slope in the expected counts."""
    loss, slope = 0.0, {variables: np.zeros(table.shape) for variables, table in found.items()}
    for m in measurements:
        error = (found[m.variables] * rows - m.values) / _deviation(m)
        loss += 0.5 * float((error**2).sum())
        slope[m.variables] += error / _deviation(m)
    return loss, slope


def fit_junction_tree(
    sizes: Sequence[int], measurements: Sequence[Measurement], rows: int, tell: Told = lambda _: None
) -> tuple[Step, ...]:
    """By ``mbi``, for any sets of columns whose junction tree fits into memory."""
    tell("Loading the library for graphical models")
    jax, mbi = _libraries()
    with jax.enable_x64(True):
        domain = mbi.Domain(tuple(range(len(sizes))), tuple(sizes))
        given = [mbi.LinearMeasurement(m.values.ravel(), m.variables, float(_deviation(m))) for m in measurements]
        sets = len({m.variables for m in measurements if len(m.variables) > 1})
        tell(f"Compiling the model of {len(sizes)} columns and {sets} sets of them")
        model = mbi.estimation.MirrorDescent().estimate(
            domain, given, known_total=float(rows), iters=ITERATIONS, tol=TOLERANCE,
            callback_fn=lambda _: tell("Fitting the model"),
        )  # fmt: skip
        tell("Reading off the model")
        tree, order = mbi.junction_tree.make_junction_tree(domain, [tuple(clique) for clique in model.cliques])
        tables = mbi.marginal_oracles.message_passing_stable(model.potentials.expand(list(tree.nodes)), float(rows))
        return _conditionals(tables, [set(clique) for clique in tree.nodes], order[::-1])


def _conditionals(tables: Any, cliques: Sequence[set[int]], order: Sequence[int]) -> tuple[Step, ...]:
    """Each variable given the earlier ones of its cliques; against the order of elimination these lie in one clique."""
    steps, before = [], set[int]()
    for variable in order:
        near = set[int]().union(*(clique for clique in cliques if variable in clique))
        parents = sorted(near & before)
        joint = tables.project((*parents, variable)).datavector(flatten=False)
        steps.append(Step.of(parents, (variable,), np.maximum(np.asarray(joint, dtype=np.float64), 0.0)))
        before.add(variable)
    return tuple(steps)


def _libraries() -> tuple[Any, Any]:
    import jax  # noqa: PLC0415  takes seconds to import, and only large models need it

    with warnings.catch_warnings(), jax.enable_x64(True):
        warnings.simplefilter("ignore")  # it warns of settings that are made around every call
        import mbi  # noqa: PLC0415

    return jax, mbi
