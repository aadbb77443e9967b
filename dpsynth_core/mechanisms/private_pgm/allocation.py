"""How a budget is shared between bins, single columns and rounds: from public facts only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from statistics import fmean

from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.mechanisms.private_pgm.bins import passes_needed
from dpsynth_core.mechanisms.private_pgm.measuring import expected_std
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.column import Column
from dpsynth_core.table.schema import Schema

FIND_BINS, COUNT_COLUMNS = "bins of numeric columns", "counts of single columns"
SELECT_SETS, COUNT_SETS = "which columns belong together", "counts of columns together"

ERROR_PER_CELL = 0.4
"""Half the mean absolute error of a Gaussian in units of its standard deviation: the cost of noise on a pair's cell."""
ROWS_PER_STD = 8.0
"""Rows of a bin per standard deviation of the noise on it."""
PAIR_ROWS_PER_STD, NOISY_PAIR_ROWS_PER_STD = 2.5, 1.2
"""The same for a cell of a pair; and where pairs are noisy, so that rows in few cells can be told from many empty ones:
a round takes coarser groups where finer ones would drown."""
MIN_BINS, MAX_BINS, MIN_GROUPS, MAX_GROUPS = 4, 256, 2, 16
MIN_BINS_WITH_CELLS = 1
"""Bins that must be affordable for cells to be told apart; with fewer, joining them by noise alone loses less."""
LARGE_COLUMN = 32
"""Bins beyond which a column gets no more of the budget: it is mostly asked about in coarser terms."""
LABEL_PART = 0.43
"""Of a numeric column's weight, what a column of labels gets for being counted alone where pairs are worth counting:
they count its labels too. What that frees goes to the rounds."""
MAX_PAIR_ERROR = 0.1
"""Error (total variation) that noise may bring to a round's pair for that."""
CLEAR_PAIR_ERROR, NOISY_PAIR_ERROR, DROWNED_PAIR_ERROR = 0.01, 0.3, 1.0
"""The same where pairs have next to no noise, where they are mostly noise, and where counting them does harm."""
LABEL_GROUPS, MAX_LABEL_GROUPS = 16, 128
"""Labels of a column that keep a group of their own in a pair, however noisy: labels have no neighbours to be joined
with, and the rounds count only the largest sixteen apart where more would drown. Fewer where there are many columns."""
MAX_GROUPS_OF_ALL = 2_800
"""Groups of all columns together for that, so that the tables of all pairs stay below four million cells."""
TYPICAL_GROUPS = 4
"""Groups of a column for which the value of pairs is judged; a column with fewer bins counts with those."""
MAX_TREE_ERROR = 0.06
"""Error (total variation) that Laplace noise may bring to each of as many pairs as a tree has: on simulated tables, a
tree and no pairs come out even about there."""
ROUNDS_PER_NUMBER, ROUNDS_PER_LABEL = 4, 2
"""Rounds that the budget is laid out for at the start, for each column of numbers or of labels. Labels are not joined
where noise is large, so their pairs are counted less often and with less noise; so are all where pairs are noisy."""
MAX_FIRST = 60
"""The same for tables of many columns."""
SELECTION_SHARE, FEW_ROUNDS_SELECTION_SHARE = Fraction(1, 10), Fraction(1, 4)
"""Of a round's budget: what selecting gets; the counts get the rest. A wrong pair costs more where rounds are few."""
MAX_FEW_ROUNDS = 3
"""Rounds for each column up to which they are few."""
AGAIN_SHARE, EVERY_PAIR_SHARE = Fraction(3, 20), Fraction(3, 5)
"""Of what counting in rounds gets under Gaussian noise: kept for counting what was selected once more, all of it at
once; and for counting every pair instead."""
PAIR_CELLS = 16
"""Cells of a column in a pair, at most, for which it is judged whether every pair is counted."""
MAX_NOISE_OVER_CHANCE = 1.0
"""Variance of the noise on a cell of a pair, over that which chance gives to such a count, up to which every pair is
counted: then even unrelated columns have more to count than noise."""
MAX_COLUMNS_IN_PAIRS = 40
"""Columns up to which every pair may be counted, so that it takes seconds."""

FIRST_LOOK = Fraction(1, 2)
"""Of what a column's looks get, where there are several: the first one, which counts equal parts of the range."""


@dataclass(frozen=True, kw_only=True)
class StageShares:
    columns: int
    rounds: int
    look: Fraction
    """Of a numeric column's share, what finding its bins gets; these counts tell of the column as well."""


LAPLACE_SHARES = StageShares(columns=65, rounds=35, look=Fraction(1, 8))
GAUSSIAN_SHARES = StageShares(columns=52, rounds=48, look=Fraction(2, 5))
CLEAR_PAIR_SHARES = StageShares(columns=42, rounds=58, look=Fraction(2, 5))
"""Under Gaussian noise where pairs have next to none: what is left to find is in them."""
NOISY_PAIR_SHARES = StageShares(columns=62, rounds=38, look=Fraction(2, 5))
"""Under Gaussian noise where pairs would mostly be noise: better single columns then help more."""


@dataclass(frozen=True, kw_only=True)
class Allocation:
    bins: int
    """Bins of a numeric column, about, beside those that its cells call for."""
    keep_cells: bool
    """Whether bins are also cut where cells begin: not where their number was given, nor where they would drown."""
    groups: int
    """Groups of a numeric column in a round, at most."""
    label_groups: int
    """Groups of a column of labels in a round, at most."""
    looks: Mapping[str, tuple[Fraction, ...]]
    """Share of each look that finds a column's bins; none where every value has its own."""
    columns: Mapping[str, Fraction]
    """Share of each column's counts."""
    rounds: Fraction
    """Share of all rounds together; none where it would buy nothing but noise."""
    first: int
    """Rounds that this is laid out for."""
    again: Fraction
    """Share, of what counting in rounds gets, that is kept for counting again."""
    every_pair: bool
    """Whether that counts every pair, or what was selected."""
    stages: Mapping[str, Fraction]
    """Share of each stage, by its name, in order."""

    @property
    def step(self) -> Fraction:
        """Share of a round, at the start."""
        return self.rounds / max(1, self.first)


def allocate(
    schema: Schema,
    n: int,
    budget: Budget,
    *,
    bins: int | None = None,
    groups: int | None = None,
    rounds: int | None = None,
    every_pair: bool | None = None,
) -> Allocation:
    """An allocation that spends the budget exactly, with sizes chosen where none are given."""
    shares, noisy = _stage_shares(len(schema.columns), n, budget), _is_noisy(len(schema.columns), n, budget)
    first = _affordable_rounds(schema, n, budget, shares) if rounds is None else rounds
    if len(schema.columns) == 1:
        first = 0
    elif len(schema.columns) == 2:
        first = min(first, 1)
    affordable = _affordable_bins(schema, n, budget, shares, first)
    keep_cells = bins is None and affordable >= MIN_BINS_WITH_CELLS
    bins = bins or max(MIN_BINS, affordable)
    # Under Gaussian noise two counts of one thing add up to what one count of both shares would be.
    pairs_pay = bool(budget.delta and first) and _pair_error(n, budget, shares, first) <= MAX_PAIR_ERROR
    label_part = LABEL_PART if pairs_pay else 1.0
    weights = _column_weights(schema, bins, budget, label_part)
    freed = round(shares.columns * (1 - sum(weights.values()) / sum(_column_weights(schema, bins, budget).values())))
    for_columns, for_rounds = shares.columns - freed, shares.rounds + freed if first else 0
    in_rounds = Fraction(for_rounds, for_columns + for_rounds)
    few = first <= MAX_FEW_ROUNDS * len(schema.columns)
    selection_share = FEW_ROUNDS_SELECTION_SHARE if few else SELECTION_SHARE
    selecting = selection_share * in_rounds if len(schema.columns) > 2 else Fraction(0)
    of = _split(1 - in_rounds, weights)
    looks = {column.name: _looks(shares.look * of[column.name], passes_needed(column, bins)) for column in schema}
    counts = {name: share - sum(looks[name]) for name, share in of.items()}
    stages = {
        FIND_BINS: 1 - in_rounds - sum(counts.values()),
        COUNT_COLUMNS: sum(counts.values(), Fraction(0)),
        SELECT_SETS: selecting,
        COUNT_SETS: in_rounds - selecting,
    }
    most = max(LABEL_GROUPS, min(MAX_LABEL_GROUPS, MAX_GROUPS_OF_ALL // len(schema.columns)))
    label_groups = most if groups is None else groups
    if groups is None:
        share = stages[COUNT_SETS] / max(1, first)
        rows_per_std = NOISY_PAIR_ROWS_PER_STD if noisy else PAIR_ROWS_PER_STD
        cells = n / (rows_per_std * expected_std(share, budget)) if share else 1.0
        groups = max(MIN_GROUPS, min(MAX_GROUPS, math.floor(math.sqrt(cells))))
    if every_pair is None:
        every_pair = bool(first) and _every_pair_pays(schema, n, budget, EVERY_PAIR_SHARE * stages[COUNT_SETS])
    every_pair = every_pair and bool(budget.delta and first)
    again = EVERY_PAIR_SHARE if every_pair else AGAIN_SHARE
    return Allocation(
        bins=bins,
        keep_cells=keep_cells,
        groups=groups,
        label_groups=label_groups,
        looks=looks,
        columns=counts,
        rounds=in_rounds,
        first=first,
        again=again if budget.delta else Fraction(0),
        every_pair=every_pair,
        stages={label: share for label, share in stages.items() if share},
    )


def _looks(share: Fraction, passes: int) -> tuple[Fraction, ...]:
    """What each look at a column gets."""
    if passes < 2:
        return (share,) * passes
    return FIRST_LOOK * share, *((1 - FIRST_LOOK) * share / (passes - 1) for _ in range(passes - 1))


def _affordable_rounds(schema: Schema, n: int, budget: Budget, shares: StageShares) -> int:
    """How many rounds to lay the budget out for, or none where noise would drown them."""
    columns = len(schema.columns)
    if budget.delta:
        if _pair_error(n, budget, GAUSSIAN_SHARES, _most_rounds(columns)) > DROWNED_PAIR_ERROR:
            return 0
        numbers = 0 if _is_noisy(columns, n, budget) else sum(column.is_numeric for column in schema)
        return min(MAX_FIRST, ROUNDS_PER_LABEL * (columns - numbers) + ROUNDS_PER_NUMBER * numbers)
    side = sum(min(TYPICAL_GROUPS, _expected_bins(column, TYPICAL_GROUPS)) for column in schema) / columns
    edges = columns - 1
    std = expected_std(Fraction(shares.rounds, 100 * max(1, edges)), budget)
    return edges if edges == 1 or ERROR_PER_CELL * side**2 * std / n <= MAX_TREE_ERROR else 0


def _most_rounds(columns: int) -> int:
    return min(MAX_FIRST, ROUNDS_PER_NUMBER * columns)


def _is_noisy(columns: int, n: int, budget: Budget) -> bool:
    """Whether the pairs of so many rounds would have much noise, under Gaussian noise."""
    return bool(budget.delta) and _pair_error(n, budget, GAUSSIAN_SHARES, _most_rounds(columns)) > MAX_PAIR_ERROR


def _stage_shares(columns: int, n: int, budget: Budget) -> StageShares:
    if not budget.delta:
        return LAPLACE_SHARES
    error = _pair_error(n, budget, GAUSSIAN_SHARES, _most_rounds(columns))
    if error <= CLEAR_PAIR_ERROR:
        return CLEAR_PAIR_SHARES
    return GAUSSIAN_SHARES if error <= NOISY_PAIR_ERROR else NOISY_PAIR_SHARES


def _pair_error(n: int, budget: Budget, shares: StageShares, first: int) -> float:
    """Error (total variation) that noise brings to a round's pair, about."""
    std = expected_std(Fraction(shares.rounds, 100 * first), budget)
    return ERROR_PER_CELL * TYPICAL_GROUPS**2 * std / n


def _every_pair_pays(schema: Schema, n: int, budget: Budget, share: Fraction) -> bool:
    """Whether every pair can be counted with no more noise than chance puts into its counts anyway.

    A cell that holds n / k rows on average varies by that much from one sample to another.
    """
    if not budget.delta or not 2 < len(schema.columns) <= MAX_COLUMNS_IN_PAIRS:
        return False
    sizes = [min(PAIR_CELLS, _expected_bins(column, PAIR_CELLS)) for column in schema]
    cells = [a * b for a, b in combinations(sizes, 2)]
    whole = sum(k ** (2 / 3) for k in cells)
    variances = [expected_std(float(share) * k ** (2 / 3) / whole, budget) ** 2 for k in cells]
    over_chance = fmean(variance * k / n for variance, k in zip(variances, cells, strict=True))
    return over_chance <= MAX_NOISE_OVER_CHANCE


def _affordable_bins(schema: Schema, n: int, budget: Budget, shares: StageShares, first: int) -> int:
    """How many bins of a number have counts that are well above their noise; zero where there are no numbers."""
    numeric = [column.name for column in schema if column.is_numeric]
    if not numeric:
        return 0
    share = (1 - shares.look) * Fraction(shares.columns, 100 if first else 100 - shares.rounds)
    of = _split(share, _column_weights(schema, MIN_BINS * 4, budget))
    rows = n / (ROWS_PER_STD * expected_std(max(of[name] for name in numeric), budget))
    return min(MAX_BINS, math.floor(rows))


def _column_weights(schema: Schema, bins: int, budget: Budget, label_part: float = 1.0) -> dict[str, Fraction]:
    # The error of a column is its cells times the noise on each. With Laplace noise of scale 1/e_j the sum over columns
    # of k_j / e_j is smallest for e_j ~ k_j^(1/2); with Gaussian noise, where squares are shared, for k_j^(2/3).
    power = 2 / 3 if budget.delta else 1 / 2
    sizes = {column.name: min(_expected_bins(column, bins), LARGE_COLUMN) for column in schema}
    part = {column.name: 1.0 if column.is_numeric else label_part for column in schema}
    return {name: Fraction(round(part[name] * size**power * 1000)) for name, size in sizes.items()}


def _split(share: Fraction, weights: Mapping[str, Fraction]) -> dict[str, Fraction]:
    total = sum(weights.values())
    return {name: share * weight / total for name, weight in weights.items()}


def _expected_bins(column: Column, bins: int) -> int:
    """Bins that a column will have, about; public."""
    if not column.is_numeric:
        return column.size
    return min(Axis.fine(column).slots, bins) + column.nullable
