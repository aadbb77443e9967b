"""One comparison of two groups, tested privately on the original rows and paid for.

If the question is a single comparison, this is a better use of epsilon than a synthetic table, which spends it on every
column. The rows are read by the declared facts, so no row can make the test fail and no label is learned from the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpsynth_core.arrays import BoolArray, FloatArray
from dpsynth_core.errors import ParameterError, SchemaError
from dpsynth_core.inference.dp_mann_whitney import GroupCounts, release_counts
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.privacy.budget import Budget, Cost, Guarantee
from dpsynth_core.privacy.noise import Noise, SecureNoise, SeededNoise
from dpsynth_core.privacy.primitives import Charge
from dpsynth_core.runs.synthesize import check_granted
from dpsynth_core.table.encoding import Positions, codec_for
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.private_rows import PrivateRows, RowsAtHand
from dpsynth_core.table.schema import Schema

PURPOSE = "Private test of two groups"
"""What the ledger calls such a charge."""
MAX_TEST_ROWS = 2_000_000
"""Rows that a test is made on; of a longer table so many are drawn by position, wherever its rows are. With so many, a
difference that the test misses is too small to matter."""


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """Which two groups to compare, and with how much privacy. Epsilon and delta are as they were typed."""

    value: str
    group: str
    levels: tuple[Any, Any] | None = None
    """The two groups; None: those of a group column that has two."""
    epsilon: str
    delta: str = "1e-6"

    def __post_init__(self) -> None:
        if not 0 < self.budget.delta < Fraction(1, 2):
            allowed, remedy = "greater than 0 and less than 0.5", "The test needs a delta. Try 1e-6."
            raise ParameterError("delta", self.delta, allowed=allowed, remedy=remedy)
        check_granted(self.budget)

    @property
    def budget(self) -> Budget:
        """What is charged."""
        return Budget.of(self.epsilon, self.delta)

    def comparison(self, schema: Schema, n: int) -> GroupComparison:
        """The comparison, or why there is none: refused from public facts alone, before anything is charged."""
        if n < 2:
            raise SchemaError(None, "rows", n, allowed="at least two rows", remedy="Choose a table with more rows.")
        self.budget.per_row(schema.rows_per_person)
        return GroupComparison.of(schema, value=self.value, group=self.group, levels=self.levels)

    def claim(self, schema: Schema) -> Guarantee:
        """What the test may claim, before anybody has looked at where the public facts come from."""
        cost = Cost(label=f"Private test of column {self.value!r} by {self.group!r}", budget=self.budget)
        return Guarantee(status="proven", parts=(cost,), rows_per_person=schema.rows_per_person)


def compare_privately(
    private: PrivateRows,
    request: ComparisonRequest,
    *,
    estimates: Iterable[PaidEstimate] = (),
    seed: int | None = None,
    watch: Callable[[Charge], None] | None = None,
) -> PaidComparison:
    """Test privately whether two groups of a table come from one distribution.

    Args:
        private: The table and its public facts; its rows may be anywhere.
        request: The question and what it may cost, for the unit of protection that the schema declares.
        estimates: Private estimates that were paid for on this table; the cost of those behind the two columns is part
            of the guarantee.
        seed: For simulation only: a test that can be repeated is not private.
        watch: Told of every charge before anything is drawn under it.

    Example:
        >>> import dpsynth_core as dp
        >>> example = dp.EXAMPLES["breast_cancer"]
        >>> private = dp.PrivateTable(example.load(), example.schema)
        >>> request = ComparisonRequest(value="mean radius", group="diagnosis", epsilon="1")
        >>> found = compare_privately(private, request)
        >>> found.guarantee.status, found.guarantee.epsilon, found.n == private.n
        ('proven', 1.0, True)
    """
    per_row = request.budget.per_row(private.schema.rows_per_person)
    noise: Noise = SecureNoise(per_row) if seed is None else SeededNoise(per_row, seed)
    noise.watch = watch
    counted = count_groups(private, request, noise)
    return release_comparison(private, request, counted, noise, estimates=estimates)


def count_groups(private: PrivateRows, request: ComparisonRequest, noise: Noise) -> GroupCounts:
    """What the test needs to know of the rows: of all, or of ``MAX_TEST_ROWS`` drawn by position. Costs nothing.

    A sample that is drawn whatever the rows hold keeps what is stated (docs/proofs.md, section 29).
    """
    comparison = request.comparison(private.schema, private.n)
    rows = private.select((request.value, request.group)).sample(MAX_TEST_ROWS, noise)
    return GroupCounts.of(*group_rows(rows, comparison))


def release_comparison(
    private: PrivateRows,
    request: ComparisonRequest,
    counted: GroupCounts,
    noise: Noise,
    *,
    estimates: Iterable[PaidEstimate] = (),
) -> PaidComparison:
    """The test on rows that were counted, with noise.

    Args:
        private: The public facts, and how the rows were read.
        request: The question and what it may cost.
        counted: Of the rows that were looked at.
        noise: With the request's budget for each row.
        estimates: Private estimates that were paid for on this table.
    """
    used = private.select((request.value, request.group))
    claim = used.judge(noise.judge(request.claim(private.schema)), estimates)
    found = release_counts(counted, noise, claim=claim)
    return PaidComparison(
        schema=used.schema.unsigned(),
        value=request.value,
        group=request.group,
        levels=request.comparison(private.schema, counted.n).levels,
        n=found.n,
        rows_in_all=private.rows_in_all,
        statistic=found.statistic,
        scale=found.scale,
        pvalue=found.pvalue,
        smaller=found.smaller,
        guarantee=claim,
    )


def group_rows(private: RowsAtHand, comparison: GroupComparison) -> tuple[FloatArray, BoolArray, BoolArray | None]:
    """Each row's value, whether it is in the first group, and whether it is in neither.

    The last is None where, by the declared facts, every row is in one of the two groups and has a value.
    """
    value, group = private.positions(comparison.value.name), private.positions(comparison.group.name)
    code = codec_for(comparison.group).codes(group)
    first, second = (code == c for c in comparison.codes)
    complete = not comparison.value.nullable and comparison.group.size == 2
    left_out = None if complete else ~(first | second) | _missing(value)
    return value.values.astype(np.float64), first, left_out


def _missing(positions: Positions) -> BoolArray:
    none = np.zeros(len(positions.values), dtype=np.bool_)
    return none if positions.missing is None else positions.missing
