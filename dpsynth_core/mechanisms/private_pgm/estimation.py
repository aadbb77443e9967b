"""The distribution that fits noisy marginals best, with some entropy (McKenna, Sheldon & Miklau 2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.private_pgm.junction_tree import (
    Clique,
    Coarsening,
    FittedTree,
    Inference,
    JunctionTree,
    table_cells,
)
from dpsynth_core.mechanisms.sweep_time import seconds_to_sweep

MAX_CLIQUE_CELLS = 5_000_000
"""Cells of a junction tree's largest table that memory and patience allow."""
MAX_ITERATIONS, MEMORY = 200, 20
ENTROPY_WEIGHT = 0.1
"""Weight of the entropy, as a share of one over the typical noise."""
TOLERANCE = 1e-7
"""Relative gain of a step below which the fit has converged."""
MIN_STD = 1e-2
"""Noise is never taken for smaller than this, so that weights stay finite."""
EVALUATIONS, EVALUATIONS_POWER = 60, 0.2
"""Of the model until the fit has converged, with one row for each cell of the marginals; and how their number grows
with the rows: between 40 and 200 for 0.7 to 190 rows a cell. A single marginal takes about 20."""
SECONDS_PER_EVALUATION, SECONDS_PER_CLIQUE, SECONDS_PER_MEASURED_CELL = 8.4e-5, 3e-5, 8.4e-8
"""What an evaluation and the step that follows from it take for any model, each marginal and each of their cells."""
SECONDS_PER_MODEL_CELL = 9.6e-9
"""Exponentials, and probabilities from them, for one cell of one table of the model."""


MeasuredTable: TypeAlias = tuple[Clique, tuple[int, ...]]
"""A clique and the shape that its cells were counted in: a shape stands for one way to gather them."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Noisy counts over a clique: the only way from the private rows to the public model."""

    clique: Clique
    values: FloatArray
    """Noisy counts, one axis for each variable."""
    std: float
    """Of their noise."""
    coarser: Coarsening | None = None
    """How the model's cells were gathered before they were counted, where they were."""

    @property
    def key(self) -> MeasuredTable:
        return self.clique, self.values.shape

    @property
    def sigma(self) -> float:
        return max(self.std, MIN_STD)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    fitted: FittedTree
    potentials: Mapping[MeasuredTable, FloatArray]
    """Where the next fit may start."""


def check_clique_size(sizes: Sequence[int], cliques: Sequence[Sequence[int]]) -> None:
    """Refuse cliques whose exact inference needs more than memory holds, before anything is spent."""
    cells = max(table_cells(sizes, cliques))
    if cells > MAX_CLIQUE_CELLS:
        raise ParameterError(
            "cells",
            cells,
            allowed=f"at most {MAX_CLIQUE_CELLS:,} in the largest table of the model",
            remedy="Use fewer bins, smaller or fewer sets of columns, or the strategy 'rounds'.",
        )


def seconds_to_estimate(sizes: Sequence[int], cliques: Sequence[Clique], rows: int) -> float:
    """What ``estimate`` takes for marginals that are not coarser than the model's variables, roughly."""
    tree = JunctionTree.of(sizes, cliques)
    measured = [math.prod(tree.shape(clique)) for clique in cliques]
    evaluation = SECONDS_PER_EVALUATION + SECONDS_PER_MODEL_CELL * tree.cells
    evaluation += SECONDS_PER_MEASURED_CELL * sum(measured)
    for clique in cliques:
        node = tree.nodes[tree.home(clique) or 0].clique
        evaluation += SECONDS_PER_CLIQUE
        evaluation += seconds_to_sweep(tree.shape(node), [node.index(variable) for variable in clique])
    evaluations = EVALUATIONS * (rows / fmean(measured)) ** EVALUATIONS_POWER
    return float(min(evaluations, MAX_ITERATIONS) * evaluation)


def combined(measurements: Sequence[Measurement]) -> list[Measurement]:
    """One measurement for each table, weighted by precision."""
    of: dict[MeasuredTable, list[Measurement]] = {}
    for measurement in measurements:
        of.setdefault(measurement.key, []).append(measurement)
    out = []
    for several in of.values():
        weights = np.array([each.sigma**-2 for each in several])
        mean = sum(w * each.values for w, each in zip(weights, several, strict=True)) / weights.sum()
        out.append(replace(several[0], values=np.asarray(mean), std=float(weights.sum() ** -0.5)))
    return out


def estimate(
    sizes: Sequence[int],
    measurements: Sequence[Measurement],
    rows: int,
    *,
    start: Mapping[MeasuredTable, FloatArray] | None = None,
    iterations: int = MAX_ITERATIONS,
) -> Estimate:
    """The model that minimises squared errors in units of the noise, less a little entropy.

    With p the model's probabilities, y the noisy counts, s their noise and w a small weight, that is the least of
    w n KL(p | uniform) + sum (n p - y)^2 / 2 s^2. Its dual is smooth and has no constraints: potentials t minimise
    n log Z(t) - sum t y + w sum s^2 t^2 / 2, with gradient n p(t) - y + w s^2 t; L-BFGS finds them. Its second
    derivatives on the diagonal are n p (1 - p) + w s^2, from the largest cells to empty ones a range of thousands, so
    it works on potentials that are scaled by their roots, with y for the unknown n p.
    """
    from scipy.optimize import fmin_l_bfgs_b  # noqa: PLC0415  takes long to import

    given = combined(measurements)
    cliques = [each.clique for each in given]
    inference = Inference(JunctionTree.of(sizes, cliques), cliques, [each.coarser for each in given])
    # All counts add up to the public number of rows; what noise added to their sum is taken off evenly.
    targets = [each.values + (rows - each.values.sum()) / each.values.size for each in given]
    typical = float(np.median([each.sigma for each in given]))
    ridge = [ENTROPY_WEIGHT * each.sigma**2 / typical for each in given]
    shapes = [target.shape for target in targets]
    ends = np.cumsum([0, *(target.size for target in targets)])
    goal = np.concatenate([target.ravel() for target in targets])
    weight = np.repeat(ridge, np.diff(ends))

    scale = 1 / np.sqrt(np.maximum(goal, weight) + weight)
    scale /= scale.max()

    def tables(flat: FloatArray) -> list[FloatArray]:
        return [flat[a:b].reshape(shape) for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)]

    def dual(scaled: FloatArray) -> tuple[float, FloatArray]:
        flat = scaled * scale
        total, conditionals = inference.conditionals(tables(flat))
        expected = np.concatenate([m.ravel() for m in inference.marginals(inference.beliefs(conditionals))])
        value = rows * total - float(flat @ goal) + 0.5 * float(weight @ flat**2)
        return value / rows, scale * (rows * expected - goal + weight * flat) / rows

    first = np.concatenate([(start or {}).get(each.key, np.zeros(each.values.shape)).ravel() for each in given])
    scaled, _, _ = fmin_l_bfgs_b(
        dual,
        first / scale,
        m=MEMORY,
        factr=TOLERANCE / np.finfo(float).eps,
        pgtol=1e-9,
        maxiter=iterations,
        maxfun=2 * iterations,
    )
    flat = scaled * scale
    _, conditionals = inference.conditionals(tables(flat))
    fitted = FittedTree(tree=inference.tree, given=tuple(conditionals), beliefs=tuple(inference.beliefs(conditionals)))
    return Estimate(fitted=fitted, potentials=dict(zip((each.key for each in given), tables(flat), strict=True)))
