"""How far one replaced row moves the pMSE of a tree (Snoke & Slavković 2018, section 5, Table 1 and Figure 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.trees.cart import MAX_DEPTH, cart_pmse
from dpsynth_core.trees.optimal import optimal_tree_pmse

DEPTHS = {1: "greedy, depth 1", 2: "greedy, depth 2", 5: "greedy, depth 5", MAX_DEPTH: "greedy, any depth"}
BEST = "best tree, depth 2"
PAPER_BOUND, PROVEN_BOUND = 1.0, 0.5
"""Times 1/n: the paper's bound, and what is proven of the best tree (docs/proofs.md, section 12)."""

ROUNDING = 1e-9
"""Of the arithmetic, in the same unit."""


@dataclass(frozen=True, kw_only=True)
class RowMoves:
    """Simulated neighbours, and how far the pMSE of each kind of tree moved between them."""

    rows: int
    moves: dict[str, FloatArray]
    """By kind of tree, in units of 1/n."""

    def worst(self, tree: str) -> float:
        """The largest move."""
        return float(self.moves[tree].max())

    @property
    def violations(self) -> int:
        """Moves of greedy trees beyond the paper's bound."""
        return sum(int((moves > PAPER_BOUND + ROUNDING).sum()) for tree, moves in self.moves.items() if tree != BEST)


def simulated_neighbours(rows: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A table, the same with one row moved, and a synthetic table from random parameters: section 5."""
    x1 = rng.normal(2.0, 10.0, rows)
    original = np.column_stack([x1, rng.normal(-2.5 + 0.5 * x1, 3.0)])
    neighbour = original.copy()
    neighbour[rng.integers(rows)] += rng.normal(0.0, 25.0, 2)
    theta = rng.normal(0.0, 10.0, 5)
    s1 = rng.normal(theta[0], abs(theta[1]), rows)
    return original, neighbour, np.column_stack([s1, rng.normal(theta[2] + theta[3] * s1, abs(theta[4]))])


def one_row_moves(*, rows: int, simulations: int, seed: int, cp: float = 0.001) -> RowMoves:
    """The moves in that many simulations.

    Example:
        >>> one_row_moves(rows=100, simulations=5, seed=1).worst(BEST) <= PROVEN_BOUND + ROUNDING
        True
    """
    rng = np.random.default_rng(seed)
    moves: dict[str, list[float]] = {tree: [] for tree in (*DEPTHS.values(), BEST)}
    for _ in range(simulations):
        original, neighbour, synthetic = simulated_neighbours(rows, rng)
        for depth, tree in DEPTHS.items():
            before, after = (cart_pmse(each, synthetic, cp=cp, maxdepth=depth) for each in (original, neighbour))
            moves[tree].append(rows * abs(before - after))
        before, after = (optimal_tree_pmse(each, synthetic) for each in (original, neighbour))
        moves[BEST].append(rows * abs(before - after))
    return RowMoves(rows=rows, moves={tree: np.array(values) for tree, values in moves.items()})
