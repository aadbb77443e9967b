"""How a budget is shared between bins, single columns, selections and pairs: from public facts only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.mechanisms.private_pgm.bins import passes_needed
from dpsynth_core.mechanisms.private_pgm.measuring import DrawKey, Measurer, PlannedDraw, expected_std, measurer_for
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.column import Column
from dpsynth_core.table.schema import Schema

FIND_BINS, COUNT_COLUMNS = "bins of numeric columns", "counts of single columns"
SELECT_TREE, COUNT_PAIRS = "which pairs belong together", "counts of pairs"
SELECT_MORE, COUNT_MORE = "which pairs the model still misses", "counts of the pairs it missed"

ERROR_PER_CELL = 0.4
"""Half the mean absolute error of a Gaussian in units of its standard deviation: the cost of noise on a pair's cell."""
ROWS_PER_STD = 3.0
"""Rows of a bin per standard deviation of the noise on it."""
PAIR_ROWS_PER_STD = 2.5
"""The same for a cell of a pair: pairs are shrunk towards independence where noise dominates."""
MIN_BINS, MAX_BINS, MIN_GROUPS, MAX_GROUPS = 4, 24, 2, 10
TYPICAL_GROUPS = 4
"""Groups of a column for which the value of pairs is judged; a column with fewer bins counts with those."""
MAX_TREE_ERROR = 0.06
"""Error (total variation) that Laplace noise may bring to each pair of a tree with that many groups: on simulated
tables of 6, 12 and 24 mixed columns and of 12 binary ones, a tree and no pairs come out even about there."""
MAX_PAIR_ERROR = 0.12
"""The same where some pairs are counted in any case: there are fewer of them, down to one, if noise brings more."""
EXTRA_PAIRS = 0.5
"""Pairs that an adaptive run adds, for each pair of its tree."""
EXTRA_SHARE = Fraction(2, 5)
"""Part of the pairs' and selections' budget that an adaptive run keeps for what the first model misses."""


@dataclass(frozen=True, kw_only=True)
class StageShares:
    bins: int
    columns: int
    selection: int
    pairs: int


LAPLACE_SHARES = StageShares(bins=8, columns=57, selection=7, pairs=28)
GAUSSIAN_SHARES = StageShares(bins=4, columns=54, selection=4, pairs=38)


@dataclass(frozen=True, kw_only=True)
class Allocation:
    bins: int
    """Bins of a numeric column, about."""
    groups: int
    """Groups of a column in a pair, at most."""
    pairs: int
    """Pairs in the tree."""
    extra: int
    """Pairs added after the first estimate."""
    draws: tuple[PlannedDraw, ...]
    gaussian: bool

    def measurer(self, noise: Noise) -> Measurer:
        """Ready to draw; Gaussian draws are calibrated and paid for here."""
        return measurer_for(self.draws, noise, gaussian=self.gaussian)

    def std(self, stage: str, budget: Budget) -> float:
        """Standard deviation to expect of the noise on a stage's first histogram."""
        return expected_std(next(draw.share for draw in self.draws if draw.key == (stage, 0)), budget)


def allocate(
    schema: Schema,
    n: int,
    budget: Budget,
    *,
    gaussian: bool,
    adaptive: bool,
    bins: int | None = None,
    groups: int | None = None,
    pairs: int | None = None,
) -> Allocation:
    """An allocation that spends the budget exactly, with sizes chosen where none are given."""
    granted = budget if gaussian else Budget(epsilon=budget.epsilon)
    shares = GAUSSIAN_SHARES if gaussian else LAPLACE_SHARES
    max_pairs = len(schema.columns) - 1
    edges = min(max_pairs, pairs) if pairs else _affordable_pairs(schema, n, granted, shares, always=adaptive)
    extra = 0
    if adaptive and max_pairs > 1:
        extra = min(math.comb(max_pairs + 1, 2) - edges, math.ceil(edges * EXTRA_PAIRS))
    bins = bins or _affordable_bins(schema, n, granted, shares, edges)
    draws = _draws(schema, granted, shares, bins=bins, edges=edges, extra=extra)
    if groups is None:
        share = next((draw.share for draw in draws if draw.key == (COUNT_PAIRS, 0)), None)
        cells = n / (PAIR_ROWS_PER_STD * expected_std(share, granted)) if share else 1.0
        groups = max(MIN_GROUPS, min(MAX_GROUPS, math.floor(math.sqrt(cells))))
    return Allocation(bins=bins, groups=groups, pairs=edges, extra=extra, draws=tuple(draws), gaussian=gaussian)


def _affordable_pairs(schema: Schema, n: int, budget: Budget, shares: StageShares, *, always: bool) -> int:
    """Pairs to count: a whole tree, or none where noise would drown it, and single columns get its budget.

    A few pairs with less noise each do not pay under Laplace noise: they explain few of the others, and what they cost
    is missing in every column. Some are counted all the same if that was asked for, under Gaussian noise, where squares
    are shared and single columns would gain less, and of two columns, which have but one pair.
    """
    edges = len(schema.columns) - 1
    side = sum(min(TYPICAL_GROUPS, _expected_bins(column, TYPICAL_GROUPS)) for column in schema) / (edges + 1)

    def error(number: int) -> float:
        std = expected_std(Fraction(shares.pairs, 100 * number), budget)
        return ERROR_PER_CELL * side**2 * std / n

    if not (always or budget.delta) and edges > 1:
        return edges if error(edges) <= MAX_TREE_ERROR else 0
    while edges > 1 and error(edges) > MAX_PAIR_ERROR:
        edges -= 1
    return edges


def _affordable_bins(schema: Schema, n: int, budget: Budget, shares: StageShares, edges: int) -> int:
    draws = {draw.key: draw.share for draw in _draws(schema, budget, shares, bins=MIN_BINS * 4, edges=edges)}
    numeric = [draws[COUNT_COLUMNS, column.name] for column in schema if column.is_numeric]
    if not numeric:
        return MIN_BINS
    rows = n / (ROWS_PER_STD * expected_std(max(numeric), budget))
    return max(MIN_BINS, min(MAX_BINS, math.floor(rows)))


def _draws(
    schema: Schema, budget: Budget, shares: StageShares, *, bins: int, edges: int, extra: int = 0
) -> list[PlannedDraw]:
    # The error of a column is its cells times the noise on each. With Laplace noise of scale 1/e_j the sum over columns
    # of k_j / e_j is smallest for e_j ~ k_j^(1/2); with Gaussian noise, where squares are shared, for k_j^(2/3).
    gaussian = bool(budget.delta)
    power = 2 / 3 if gaussian else 1 / 2
    later = EXTRA_SHARE if extra else Fraction(0)
    finding: dict[DrawKey, float] = {
        (FIND_BINS, column.name, turn): 1.0 for column in schema for turn in range(passes_needed(column, bins))
    }
    columns: dict[DrawKey, float] = {
        (COUNT_COLUMNS, column.name): _expected_bins(column, bins) ** power for column in schema
    }
    # Gaussian noise is added once to all scores; with Laplace noise every selection is a draw of its own.
    candidates = math.comb(len(schema.columns), 2)
    first = (min(1, edges) if gaussian else edges) if candidates > 1 else 0
    again = (1 if gaussian else extra) if extra else 0
    return _shared_out(
        [
            (FIND_BINS, shares.bins, finding),
            (COUNT_COLUMNS, shares.columns, columns),
            (SELECT_TREE, shares.selection * (1 - later), _numbered(SELECT_TREE, first)),
            (COUNT_PAIRS, shares.pairs * (1 - later), _numbered(COUNT_PAIRS, edges)),
            (SELECT_MORE, shares.selection * later, _numbered(SELECT_MORE, again)),
            (COUNT_MORE, shares.pairs * later, _numbered(COUNT_MORE, extra)),
        ],
        scores=candidates if gaussian else 0,
    )


def _numbered(stage: str, number: int) -> dict[DrawKey, float]:
    return {(stage, turn): 1.0 for turn in range(number)}


def _shared_out(
    stages: Sequence[tuple[str, Fraction | int, Mapping[DrawKey, float]]], *, scores: int
) -> list[PlannedDraw]:
    """Draws from stages, each with its share and the weights of its draws; shares are rescaled to add up to one."""
    present = [(label, share, weights) for label, share, weights in stages if weights]
    all_shares = sum(share for _, share, _ in present)
    draws = []
    for label, share, weights in present:
        exact = {key: Fraction(max(1, round(weight * 1000))) for key, weight in weights.items()}
        total = sum(exact.values())
        size = scores if label in (SELECT_TREE, SELECT_MORE) else 0
        for key, weight in exact.items():
            part = Fraction(share) / all_shares * weight / total
            draws.append(PlannedDraw(key=key, label=label, share=part, scores=size))
    return draws


def _expected_bins(column: Column, bins: int) -> int:
    """Bins that a column will have, about; public."""
    if not column.is_numeric:
        return column.size
    return min(Axis.fine(column).slots, bins) + column.nullable
