"""How a budget is laid out over looks, single columns, choices and pairs: from public facts only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.mechanisms.private_pgm.bins import looks_needed
from dpsynth_core.mechanisms.private_pgm.meter import (
    PRICE_OF_NOISE,
    GaussianMeter,
    Item,
    Key,
    LaplaceMeter,
    Meter,
    expected_deviation,
    shared_out,
)
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.column import Column
from dpsynth_core.table.schema import Schema

LOOKS, SINGLES = "bins of numeric columns", "counts of single columns"
TREE, PAIRS = "which pairs belong together", "counts of pairs"
REST, MORE_PAIRS = "which pairs the model still misses", "counts of the pairs it missed"

ROWS_PER_DEVIATION = 3.0
"""Rows of a bin per standard deviation of the noise on it."""
ROWS_PER_PAIR_DEVIATION = 2.5
"""The same for a cell of a pair: pairs are drawn towards independence where noise drowns them."""
FEWEST_BINS, MOST_BINS, FEWEST_GROUPS, MOST_GROUPS = 4, 24, 2, 10
FEW = 4
"""Groups of a column for which the worth of pairs is judged; a column with fewer bins counts with those."""
WORTHWHILE = 0.06
"""Error (total variation) that Laplace noise may bring to each pair of a tree with that many groups: on simulated
tables of 6, 12 and 24 mixed columns and of 12 binary ones, a tree and no pairs come out even about there."""
BEARABLE = 0.12
"""The same where some pairs are counted in any case: there are fewer of them, down to one, if noise brings more."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Parts of the budget for the stages."""

    looks: Fraction
    """For finding bins."""
    singles: Fraction
    """For the counts of single columns."""
    choices: Fraction
    """For choosing pairs."""
    pairs: Fraction
    """For the counts of pairs."""


PURE_SHARES = Shares(
    looks=Fraction(8, 100), singles=Fraction(57, 100), choices=Fraction(7, 100), pairs=Fraction(28, 100)
)
GAUSSIAN_SHARES = Shares(
    looks=Fraction(4, 100), singles=Fraction(54, 100), choices=Fraction(4, 100), pairs=Fraction(38, 100)
)
EXTRA = 0.5
"""Pairs that an adaptive run adds, for each pair of its tree."""
LATER = Fraction(2, 5)
"""Part of the pairs' and choices' budget that an adaptive run keeps for what the first model misses."""


@dataclass(frozen=True, kw_only=True)
class Outlay:
    """What will be drawn, and how finely."""

    bins: int
    """Bins of a numeric column, about."""
    groups: int
    """Groups of a column in a pair, at most."""
    pairs: int
    """Pairs in the tree."""
    extra: int
    """Pairs added after the first fit."""
    looks: dict[str, int]
    """Looks at each numeric column."""
    items: tuple[Item, ...]
    """Every draw with its part of the budget."""
    gaussian: bool
    """Whether noise is Gaussian."""

    def meter(self, noise: Noise) -> Meter:
        """Ready to draw; Gaussian draws are calibrated and paid for here."""
        return (GaussianMeter if self.gaussian else LaplaceMeter)(self.items, noise)

    def deviation(self, key: Key, budget: Budget) -> float:
        """Standard deviation to expect of the noise on a histogram."""
        part = next(item.part for item in self.items if item.key == key)
        return expected_deviation(part, budget)


def laid_out(
    schema: Schema, n: int, budget: Budget, *, gaussian: bool, adaptive: bool,
    bins: int | None = None, groups: int | None = None, pairs: int | None = None,
) -> Outlay:  # fmt: skip
    """An outlay that spends the budget exactly, with sizes chosen where none are given."""
    granted = budget if gaussian else Budget(epsilon=budget.epsilon)
    shares = GAUSSIAN_SHARES if gaussian else PURE_SHARES
    most = len(schema.columns) - 1
    edges = min(most, pairs) if pairs else _worthwhile(schema, n, granted, shares, some=adaptive)
    extra = min(math.comb(most + 1, 2) - edges, math.ceil(edges * EXTRA)) if adaptive and most > 1 else 0
    wanted = bins or _bins(schema, n, granted, shares, edges)
    items = _items(schema, granted, shares, bins=wanted, edges=edges, extra=extra)
    part = next((item.part for item in items if item.key == (PAIRS, 0)), None)
    if groups is None:
        cells = n / (ROWS_PER_PAIR_DEVIATION * expected_deviation(part, granted)) if part else 1.0
        groups = max(FEWEST_GROUPS, min(MOST_GROUPS, math.floor(math.sqrt(cells))))
    return Outlay(
        bins=wanted, groups=groups, pairs=edges, extra=extra, items=tuple(items), gaussian=gaussian,
        looks={column.name: looks_needed(column, wanted) for column in schema},
    )  # fmt: skip


def _worthwhile(schema: Schema, n: int, budget: Budget, shares: Shares, *, some: bool) -> int:
    """Pairs to count: a whole tree, or none where noise would drown it, and single columns get its budget.

    A few pairs with less noise each do not pay under Laplace noise: they explain few of the others, and what they cost
    is missing in every column. Some are counted all the same if that was asked for, under Gaussian noise, where squares
    are shared and single columns would gain less, and of two columns, which have but one pair.
    """
    most = len(schema.columns) - 1
    side = sum(min(FEW, _planned_size(column, FEW)) for column in schema) / (most + 1)

    def error(edges: int) -> float:
        # A part of the pairs' share: the deviation of one pair's counts grows with the number of pairs.
        return PRICE_OF_NOISE * side**2 * expected_deviation(shares.pairs / edges, budget) / n

    if not (some or budget.delta) and most > 1:
        return most if error(most) <= WORTHWHILE else 0
    edges = most
    while edges > 1 and error(edges) > BEARABLE:
        edges -= 1
    return edges


def _bins(schema: Schema, n: int, budget: Budget, shares: Shares, edges: int) -> int:
    items = _items(schema, budget, shares, bins=FEWEST_BINS * 4, edges=edges)
    numeric = [column.name for column in schema if column.is_numeric]
    parts = [item.part for item in items if item.label == SINGLES and item.key[1] in numeric]
    if not parts:
        return FEWEST_BINS
    rows = n / (ROWS_PER_DEVIATION * expected_deviation(max(parts), budget))
    return max(FEWEST_BINS, min(MOST_BINS, math.floor(rows)))


def _items(schema: Schema, budget: Budget, shares: Shares, *, bins: int, edges: int, extra: int = 0) -> list[Item]:
    # The error of a column is its cells times the noise on each. With Laplace noise of scale 1/e_j the sum over columns
    # of k_j / e_j is smallest for e_j ~ k_j^(1/2); with Gaussian noise, where squares are shared, for k_j^(2/3).
    later = LATER if extra else Fraction(0)
    power = 2 / 3 if budget.delta else 1 / 2
    looks: dict[Key, float] = {
        (LOOKS, column.name, look): 1.0 for column in schema for look in range(looks_needed(column, bins))
    }
    singles: dict[Key, float] = {(SINGLES, column.name): _planned_size(column, bins) ** power for column in schema}
    candidates = math.comb(len(schema.columns), 2)
    turns = min(1, edges) if budget.delta else edges
    choices: dict[Key, float] = {(TREE, turn): 1.0 for turn in range(turns)} if candidates > 1 else {}
    again: dict[Key, float] = {(REST, turn): 1.0 for turn in range(1 if budget.delta else extra)} if extra else {}
    scores = dict.fromkeys([*choices, *again], candidates if budget.delta else 0)
    return shared_out(
        [
            (LOOKS, shares.looks, looks),
            (SINGLES, shares.singles, singles),
            (TREE, shares.choices * (1 - later), choices),
            (PAIRS, shares.pairs * (1 - later), {(PAIRS, pair): 1.0 for pair in range(edges)}),
            (REST, shares.choices * later, again),
            (MORE_PAIRS, shares.pairs * later, {(MORE_PAIRS, pair): 1.0 for pair in range(extra)}),
        ],
        scores,
    )


def _planned_size(column: Column, bins: int) -> int:
    """Bins that a column will have, about; public."""
    if not column.is_numeric:
        return column.size
    return min(Axis.fine(column).slots, bins) + column.nullable
