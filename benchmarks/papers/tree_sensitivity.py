"""Table 1 of Snoke & Slavković (2018): how often one row moves a greedy tree's pMSE further than the bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.papers.base import CellValue, Estimate, ResultTable, RunOptions
from dpsynth_core.arrays import FloatArray
from dpsynth_core.teaching.one_row import simulated_neighbours
from dpsynth_core.trees.cart import cart_pmse
from dpsynth_core.trees.optimal import optimal_tree_pmse

ROWS = 5_000
DRAWS_PER_REP = 10
PUBLISHED = {
    (0.01, 1): 0.0,
    (0.01, 2): 0.3,
    (0.01, 5): 0.6,
    (0.01, 30): 0.7,
    (0.001, 1): 0.0,
    (0.001, 2): 0.5,
    (0.001, 5): 2.0,
    (0.001, 30): 2.5,
}
"""Percentage of 1,000,000 simulations that violate 1/n, by cp and depth (30 is rpart's own limit)."""


def tree_sensitivity(options: RunOptions) -> Iterator[ResultTable]:
    """How often one row moves a greedy tree's pMSE further than the bound, by depth and complexity."""
    n, draws = options.rows(ROWS), DRAWS_PER_REP * options.reps
    scores: dict[tuple[str, str], Callable[[FloatArray, FloatArray], float]] = {
        (_depth(depth), str(cp)): _greedy(depth, cp) for cp, depth in PUBLISHED
    }
    scores["best tree, depth 2", "-"] = optimal_tree_pmse
    moved: dict[tuple[str, str], list[float]] = {key: [] for key in scores}
    for number in range(draws):
        if number % 10 == 0:
            options.report(f"Simulation {number + 1} of {draws}")
        original, neighbour, synthetic = simulated_neighbours(n, np.random.default_rng(number))
        for key, score in scores.items():
            moved[key].append(n * abs(score(original, synthetic) - score(neighbour, synthetic)))
    published: list[CellValue] = [*PUBLISHED.values(), None]
    yield ResultTable(
        title="One replaced row: simulations in which the pMSE moves by more than a bound (%)",
        notes=(
            f"{draws} simulations, n = {n}: X1 ~ N(2, 10), X2 ~ N(-2.5 + 0.5 X1, 3); N(0, 25) added to one row; "
            "synthetic rows from the same model with parameters from N(0, 10).",
            "The paper's figures are of 1,000,000 simulations and the bound 1/n. The best tree never exceeds 1/(2n).",
        ),
        columns=("tree", "cp", "above 1/n (%)", "paper (%)", "above 1/(2n) (%)", "largest move x n"),
        rows=tuple(
            (*key, _share(moves, 1.0), paper, _share(moves, 0.5), max(moves))
            for (key, moves), paper in zip(moved.items(), published, strict=True)
        ),
    )


def _depth(depth: int) -> str:
    return "greedy, any depth" if depth == 30 else f"greedy, depth {depth}"


def _greedy(depth: int, cp: float) -> Callable[[FloatArray, FloatArray], float]:
    def score(original: FloatArray, synthetic: FloatArray) -> float:
        return cart_pmse(original, synthetic, cp=cp, maxdepth=depth)

    return score


def _share(moves: list[float], bound: float) -> Estimate:
    return Estimate.of([100.0 * (move > bound) for move in moves])
