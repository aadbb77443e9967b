"""The distribution of greatest entropy that fits noisy marginals best (McKenna, Sheldon & Miklau 2019).

Small domains, and pairs that form a forest, are fitted at once with NumPy. Everything else goes to ``mbi``, whose
inference is exact on a junction tree of any cliques; it compiles each new collection of cliques, which takes up to a
minute, and is imported only then.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.private_pgm.graphical_model import ConditionalTable
from dpsynth_core.mechanisms.private_pgm.marginal_oracles import (
    Clique,
    CliqueTables,
    DenseOracle,
    ForestOracle,
    MarginalOracle,
)

SMALL_DOMAIN = 2**14
"""Joint cells up to which fitting them all is quicker than compiling a model."""
MAX_CLIQUE_CELLS = 5_000_000
"""Cells of a junction tree's largest table that memory and patience allow."""
MAX_ITERATIONS = 600
TOLERANCE, PATIENCE = 1e-4, 5
"""Relative gain of a step below which it counts as none, and how many such steps in a row end the fitting."""
MIN_STEP = 1e-9
MIN_STD = 1e-3
"""Noise is never taken for smaller than this, so that weights stay finite."""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Noisy counts over a clique: the only way from the private rows to the public model."""

    clique: Clique
    values: FloatArray
    """Noisy counts, one axis for each variable."""
    std: float
    """Of their noise."""

    @property
    def sigma(self) -> float:
        return max(self.std, MIN_STD)


def estimate(
    sizes: Sequence[int], measurements: Sequence[Measurement], rows: int, report: Callable[[str], None] = lambda _: None
) -> tuple[ConditionalTable, ...]:
    cliques = [measurement.clique for measurement in measurements]
    check_clique_size(sizes, cliques)
    oracle: MarginalOracle | None
    oracle = DenseOracle(sizes=tuple(sizes)) if math.prod(sizes) <= SMALL_DOMAIN else ForestOracle.of(sizes, cliques)
    if oracle is None:
        return estimate_junction_tree(sizes, measurements, rows, report)
    report("Fitting the model")
    return oracle.conditionals(mirror_descent(oracle, measurements, rows))


def max_clique_cells(cliques: Iterable[Sequence[int]], sizes: Sequence[int]) -> int:
    """Cells of the largest table that exact inference needs, by eliminating the cheapest variable first."""
    neighbours: dict[int, set[int]] = {node: set() for node in range(len(sizes))}
    for clique in cliques:
        for node in clique:
            neighbours[node] |= set(clique) - {node}
    largest = 0
    while neighbours:
        cost = {node: math.prod(sizes[other] for other in (*near, node)) for node, near in neighbours.items()}
        node = min(cost, key=lambda name: (cost[name], name))
        largest = max(largest, cost[node])
        near = neighbours.pop(node)
        for other in near:
            neighbours[other] = (neighbours[other] | near) - {other, node}
    return largest


def check_clique_size(sizes: Sequence[int], cliques: Sequence[Sequence[int]]) -> None:
    """Refuse cliques whose exact inference needs more than memory holds, before anything is spent."""
    cells = max_clique_cells(cliques, sizes)
    if cells > MAX_CLIQUE_CELLS:
        raise ParameterError(
            "cells",
            cells,
            allowed=f"at most {MAX_CLIQUE_CELLS:,} in the largest table of the model",
            remedy="Use fewer bins, smaller or fewer sets of columns, or the strategy 'tree'.",
        )


def mirror_descent(oracle: MarginalOracle, measurements: Sequence[Measurement], rows: int) -> dict[Clique, FloatArray]:
    """Potentials of the best fit, by a step that grows while it helps (McKenna et al. 2019, Algorithm 1)."""
    potentials = {m.clique: np.zeros(m.values.shape) for m in measurements}
    marginals = oracle.marginals(potentials)
    loss, gradient = _loss_and_gradient(marginals, measurements, rows)
    # Squared error over standard deviations is smooth in L1 with this constant; entropy is the matching distance.
    step = 1.0 / (rows * sum(m.sigma**-2 for m in measurements))
    stalled = 0
    for _ in range(MAX_ITERATIONS):
        trial = {clique: table - step * gradient[clique] for clique, table in potentials.items()}
        moved = oracle.marginals(trial)
        trial_loss, trial_gradient = _loss_and_gradient(moved, measurements, rows)
        gain = sum(float((gradient[c] * (marginals[c] - moved[c])).sum()) for c in gradient) * rows
        if loss - trial_loss < 0.5 * gain:
            step *= 0.5
            if max(step * float(np.abs(table).max()) for table in gradient.values()) < MIN_STEP:
                break
            continue
        stalled = stalled + 1 if loss - trial_loss <= TOLERANCE * max(trial_loss, 1e-6) else 0
        potentials, marginals, loss, gradient, step = trial, moved, trial_loss, trial_gradient, 1.5 * step
        if stalled >= PATIENCE:
            break
    return potentials


def _loss_and_gradient(
    marginals: CliqueTables, measurements: Sequence[Measurement], rows: int
) -> tuple[float, dict[Clique, FloatArray]]:
    """Half the squared errors in units of the noise, and their gradient in the expected counts."""
    loss, gradient = 0.0, {clique: np.zeros(table.shape) for clique, table in marginals.items()}
    for m in measurements:
        error = (marginals[m.clique] * rows - m.values) / m.sigma
        loss += 0.5 * float((error**2).sum())
        gradient[m.clique] += error / m.sigma
    return loss, gradient


def estimate_junction_tree(
    sizes: Sequence[int], measurements: Sequence[Measurement], rows: int, report: Callable[[str], None] = lambda _: None
) -> tuple[ConditionalTable, ...]:
    """By ``mbi``, for any cliques whose junction tree fits into memory."""
    report("Loading the library for graphical models")
    jax, mbi = _import_jax_and_mbi()
    with jax.enable_x64(True):
        domain = mbi.Domain(tuple(range(len(sizes))), tuple(sizes))
        given = [mbi.LinearMeasurement(m.values.ravel(), m.clique, float(m.sigma)) for m in measurements]
        cliques = len({m.clique for m in measurements if len(m.clique) > 1})
        report(f"Compiling the model of {len(sizes)} columns and {cliques} sets of them")
        model = mbi.estimation.MirrorDescent().estimate(
            domain,
            given,
            known_total=float(rows),
            iters=MAX_ITERATIONS,
            tol=TOLERANCE,
            callback_fn=lambda _: report("Fitting the model"),
        )
        report("Reading the fitted model")
        tree, order = mbi.junction_tree.make_junction_tree(domain, [tuple(clique) for clique in model.cliques])
        tables = mbi.marginal_oracles.message_passing_stable(model.potentials.expand(list(tree.nodes)), float(rows))
        return _conditionals(tables, [set(clique) for clique in tree.nodes], order[::-1])


def _conditionals(tables: Any, cliques: Sequence[set[int]], order: Sequence[int]) -> tuple[ConditionalTable, ...]:
    """Each variable given the earlier ones of its cliques; against the order of elimination these lie in one clique."""
    out, before = [], set[int]()
    for variable in order:
        near = set[int]().union(*(clique for clique in cliques if variable in clique))
        parents = sorted(near & before)
        joint = tables.project((*parents, variable)).datavector(flatten=False)
        out.append(ConditionalTable.of(parents, (variable,), np.maximum(np.asarray(joint, dtype=np.float64), 0.0)))
        before.add(variable)
    return tuple(out)


def _import_jax_and_mbi() -> tuple[Any, Any]:
    import jax  # noqa: PLC0415  takes seconds to import, and only large models need it

    with warnings.catch_warnings(), jax.enable_x64(True):
        warnings.simplefilter("ignore")  # it warns of settings that are made around every call
        import mbi  # noqa: PLC0415

    return jax, mbi
