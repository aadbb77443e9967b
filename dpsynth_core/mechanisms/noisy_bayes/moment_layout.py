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
from dpsynth_core.mechanisms.numbers_and_labels import is_number, level_count, to_levels
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_rows import RowsAtHand
from dpsynth_core.table.schema import Schema

MomentKind: TypeAlias = Literal["middle", "central"]
"""Second moments about the middle of the declared range, or about the mean, as in Bowen and Liu."""

MAX_RELATED_LEVELS = 30
"""A column with more labels than this is drawn by its own shares, without relations to the others."""
MAX_STEPS = 2**12
"""Steps from the middle of a range to its end."""
MAX_SUM = 2**52
"""Sums stay below this, where a float holds every integer."""
MAX_NOISE_SCALE = 2**54
"""The noise's scale stays below this, so that sum and noise fit into 64 bits."""

MEANS, VARIANCES, COVARIANCES = "means of numbers", "variances of numbers", "covariances of numbers"
COUNTS, GROUP_MEANS, PAIR_COUNTS = "counts of labels", "means of numbers by label", "counts of pairs of labels"
SINGLE = (MEANS, VARIANCES, COUNTS)
RELATIONS = (COVARIANCES, GROUP_MEANS, PAIR_COUNTS)


@dataclass(frozen=True, kw_only=True)
class CategoricalVariable:
    """Something that takes one of a few values: a column of labels, or whether a number is missing."""

    column: Column
    missing_flag: bool
    """Whether it only says that a number is missing: level 0 is present, level 1 missing."""

    @property
    def levels(self) -> int:
        return 2 if self.missing_flag else level_count(self.column)

    @property
    def related(self) -> bool:
        return 2 <= self.levels <= MAX_RELATED_LEVELS

    def codes(self, rows: RowsAtHand) -> IntArray:
        """Each row's level; a missing label or value is the last."""
        positions = rows.positions(self.column.name)
        return np.asarray(positions.missing, np.int64) if self.missing_flag else to_levels(self.column, positions)


@dataclass(frozen=True, kw_only=True)
class MomentLayout:
    """Numbers and categorical variables of a schema, in its order, and the sums that describe them."""

    numbers: tuple[Column, ...]
    categorical: tuple[CategoricalVariable, ...]
    """Columns of labels, numbers with few values, and whether a number is missing."""

    @classmethod
    def of(cls, schema: Schema) -> MomentLayout:
        numbers, categorical = [], []
        for column in schema:
            number = is_number(column)
            if number:
                numbers.append(column)
            if not number or column.nullable:
                categorical.append(CategoricalVariable(column=column, missing_flag=number))
        return cls(numbers=tuple(numbers), categorical=tuple(categorical))

    @cached_property
    def levels(self) -> list[int]:
        return [variable.levels for variable in self.categorical]

    @cached_property
    def related(self) -> tuple[int, ...]:
        """Indices of categorical variables whose relations are measured."""
        return tuple(i for i, variable in enumerate(self.categorical) if variable.related)

    @cached_property
    def number_pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.numbers)), 2))

    @cached_property
    def number_by_label(self) -> list[tuple[int, int]]:
        """Pairs of a number and a categorical variable; that a number is missing says nothing about its value."""
        return [
            (j, f)
            for j, number in enumerate(self.numbers)
            for f in self.related
            if not (self.categorical[f].missing_flag and self.categorical[f].column.name == number.name)
        ]

    @cached_property
    def label_pairs(self) -> list[tuple[int, int]]:
        return list(combinations(self.related, 2))

    def sizes(self) -> dict[str, int]:
        """How many sums each stage measures; stages without any are left out."""
        every = {
            MEANS: len(self.numbers),
            VARIANCES: len(self.numbers),
            COUNTS: sum(self.levels),
            COVARIANCES: len(self.number_pairs),
            GROUP_MEANS: sum(self.levels[f] for _, f in self.number_by_label),
            PAIR_COUNTS: sum(self.levels[f] * self.levels[g] for f, g in self.label_pairs),
        }
        return {label: size for label, size in every.items() if size}

    def sensitivities(self, kind: MomentKind) -> dict[str, int]:
        """The most by which one replaced row changes each stage's sums in L1, with numbers scaled to [-1, 1].

        For central moments it is that of the covariance matrix times the number of rows, R_x R_y with R = 2.
        """
        d, central = len(self.numbers), kind == "central"
        every = {
            MEANS: 2 * d,
            VARIANCES: 4 * d if central else d,
            COUNTS: 2 * len(self.categorical),
            # Products of signs differ where the signs' own product does: the largest cut of a complete graph.
            COVARIANCES: 4 * len(self.number_pairs) if central else 2 * (d * d // 4),
            GROUP_MEANS: 2 * len(self.number_by_label),
            PAIR_COUNTS: 2 * len(self.label_pairs),
        }
        return {label: every[label] for label in self.sizes()}

    def shares(self, epsilon: Fraction, relations: Fraction, kind: MomentKind) -> dict[str, Fraction]:
        """Each stage's epsilon: one share for single columns, one for relations, each divided by sensitivity.

        So within either share every sum gets the same noise.
        """
        costs = self.sensitivities(kind)
        if not any(label in RELATIONS for label in costs):
            relations = Fraction(0)
        shares: dict[str, Fraction] = {}
        for stages, share in ((SINGLE, 1 - relations), (RELATIONS, relations)):
            total = sum(costs.get(label, 0) for label in stages)
            shares |= {label: epsilon * share * costs[label] / total for label in stages if label in costs}
        return shares

    def steps(self, n: int, shares: dict[str, Fraction], kind: MomentKind) -> int:
        """Steps from the middle of a range to its end (M): as fine as integers of 64 bits allow."""
        costs = self.sensitivities(kind)
        max_scale = max((costs[label] / share for label, share in shares.items()), default=Fraction(1))
        # Central moments are n times as large, as integers: n sum(xy) - sum(x) sum(y).
        factor = 4 * n if kind == "central" else 1
        squared = min(Fraction(MAX_SUM, n * factor), MAX_NOISE_SCALE / (max_scale * factor), Fraction(MAX_STEPS**2))
        return max(1, math.isqrt(math.floor(squared)))
