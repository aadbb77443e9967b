"""Which columns are numbers and which are labels, how fine the numbers are, and what one row can do to their sums.

Everything here follows from public facts: the schema, the number of rows and epsilon. The sensitivities are proven in
``docs/proofs.md``, section 16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

Kind: TypeAlias = Literal["about the middle", "central"]
"""Second moments about the middle of the declared range, or about the mean, as Bowen and Liu have them."""

FEW_VALUES = 10
"""A number that can take no more values than this is treated like labels: no normal curve fits it."""
MOST_TIED = 30
"""A column with more labels than this is drawn by its own shares, without ties to the others."""
FINEST = 2**12
"""Steps from the middle of a range to its end, at most."""
LARGEST_SUM = 2**52
"""Sums stay below this, where a float holds every whole number."""
LARGEST_NOISE = 2**54
"""The noise's scale stays below this, so that sum and noise fit into 64 bits."""

MEANS, SPREADS, PRODUCTS = "means of numbers", "spreads of numbers", "ties between numbers"
COUNTS, GROUPS, PAIRS = "counts of labels", "ties between numbers and labels", "ties between labels"
FIRST = (MEANS, SPREADS, COUNTS)
"""Each column by itself."""
TIES = (PRODUCTS, GROUPS, PAIRS)
"""Two columns at a time."""


@dataclass(frozen=True, kw_only=True)
class Factor:
    """Something that takes one of a few values: a column of labels, or whether a number is missing."""

    column: Column
    """Where it comes from."""
    flag: bool
    """Whether it only says that a number is missing: level 0 is present, level 1 missing."""

    @property
    def levels(self) -> int:
        """How many values it has."""
        if self.flag:
            return 2
        points = _points(self.column) if self.column.is_numeric else self.column.levels
        return (points or 0) + self.column.nullable

    @property
    def tied(self) -> bool:
        """Whether its ties to other columns are measured."""
        return 2 <= self.levels <= MOST_TIED

    def codes(self, table: PrivateTable) -> IntArray:
        """Each row's level; a missing label or value is the last."""
        positions = table.positions(self.column.name)
        missing = positions.missing
        if self.flag:
            return np.zeros(table.n, dtype=np.int64) if missing is None else missing.astype(np.int64)
        values = positions.values.astype(np.int64)
        return values if missing is None else np.where(missing, self.levels - 1, values)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Numbers and factors of a schema, in its order."""

    numbers: tuple[Column, ...]
    """Columns that a normal curve is fitted to."""
    factors: tuple[Factor, ...]
    """Columns of labels, numbers with few values, and the gaps of numbers."""

    @classmethod
    def of(cls, schema: Schema) -> Layout:
        """Sort the columns."""
        numbers, factors = [], []
        for column in schema:
            number = column.is_numeric and (_points(column) or math.inf) > FEW_VALUES
            if number:
                numbers.append(column)
            if not number or column.nullable:
                factors.append(Factor(column=column, flag=number))
        return cls(numbers=tuple(numbers), factors=tuple(factors))

    @cached_property
    def tied(self) -> tuple[int, ...]:
        """Factors whose ties are measured."""
        return tuple(i for i, factor in enumerate(self.factors) if factor.tied)

    @cached_property
    def products(self) -> list[tuple[int, int]]:
        """Pairs of numbers."""
        return list(combinations(range(len(self.numbers)), 2))

    @cached_property
    def groups(self) -> list[tuple[int, int]]:
        """Pairs of a number and a factor; a number's own gaps say nothing about its value."""
        return [
            (j, f)
            for j, number in enumerate(self.numbers)
            for f in self.tied
            if not (self.factors[f].flag and self.factors[f].column.name == number.name)
        ]

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of factors."""
        return list(combinations(self.tied, 2))

    def sizes(self) -> dict[str, int]:
        """How many sums each step measures; steps without any are left out."""
        levels = [factor.levels for factor in self.factors]
        every = {
            MEANS: len(self.numbers),
            SPREADS: len(self.numbers),
            COUNTS: sum(levels),
            PRODUCTS: len(self.products),
            GROUPS: sum(levels[f] for _, f in self.groups),
            PAIRS: sum(levels[f] * levels[g] for f, g in self.pairs),
        }
        return {label: size for label, size in every.items() if size}

    def sensitivities(self, kind: Kind) -> dict[str, int]:
        """The most by which one replaced row changes each step's sums in L1, with numbers scaled to [-1, 1].

        For central moments it is that of the covariance matrix times the number of rows, R_x R_y with R = 2.
        """
        d, central = len(self.numbers), kind == "central"
        every = {
            MEANS: 2 * d,
            SPREADS: 4 * d if central else d,
            COUNTS: 2 * len(self.factors),
            # Products of signs differ where the signs' own product does: the largest cut of a complete graph.
            PRODUCTS: 4 * len(self.products) if central else 2 * (d * d // 4),
            GROUPS: 2 * len(self.groups),
            PAIRS: 2 * len(self.pairs),
        }
        return {label: every[label] for label in self.sizes()}

    def shares(self, epsilon: Fraction, ties: Fraction, kind: Kind) -> dict[str, Fraction]:
        """Each step's epsilon: one share for the columns themselves, one for ties, each by sensitivity.

        So within either share every sum gets the same noise.
        """
        costs = self.sensitivities(kind)
        weights = {True: 1 - ties, False: ties}
        if not any(label in TIES for label in costs):
            weights = {True: Fraction(1), False: Fraction(0)}
        totals = {first: sum(cost for label, cost in costs.items() if (label in FIRST) == first) for first in weights}
        return {
            label: epsilon * weights[label in FIRST] * cost / totals[label in FIRST] for label, cost in costs.items()
        }

    def steps(self, n: int, shares: dict[str, Fraction], kind: Kind) -> int:
        """Steps from the middle of a range to its end (M): as fine as whole numbers of 64 bits allow."""
        costs = self.sensitivities(kind)
        noisiest = max((costs[label] / share for label, share in shares.items()), default=Fraction(1))
        # Central moments are n times as large, in whole numbers: n sum(xy) - sum(x) sum(y).
        factor = 4 * n if kind == "central" else 1
        most = min(Fraction(LARGEST_SUM, n * factor), LARGEST_NOISE / (noisiest * factor), Fraction(FINEST**2))
        return max(1, math.isqrt(math.floor(most)))


def _points(column: Column) -> int | None:
    """How many values a numeric column can take; None for a continuum."""
    if column.lattice is None:
        return None
    return column.lattice[1] - column.lattice[0] + 1


def scaled(column: Column, table: PrivateTable, steps: int) -> IntArray:
    """Each row's place on the whole-number grid from -steps to steps over the declared range; 0 where missing."""
    positions = table.positions(column.name)
    low, high = ends(column)
    unit = (positions.values.astype(np.float64) - low) / (high - low) * 2 - 1
    grid = np.clip(np.rint(unit * steps), -steps, steps).astype(np.int64)
    return grid if positions.missing is None else np.where(positions.missing, 0, grid)


def ends(column: Column) -> tuple[float, float]:
    """First and last position of a numeric column."""
    if column.lattice is not None:
        return 0.0, float(column.lattice[1] - column.lattice[0])
    return float(column.lower), float(column.upper)  # type: ignore[arg-type]
