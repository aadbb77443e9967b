"""Simulated analysts: how often an ordinary test on a mechanism's releases is wrong, with as many as time allows.

They compare two groups in releases of tables like the original, all its columns included: in the one study the groups
do not differ, in the other one is moved by a standard deviation. The first is what Diagnostics says of a release when
it looks at the original's own groups; both come from the same simulation.
Where a release is array arithmetic there are hundreds of them. Any other mechanism makes a table for each, so there are
fewer, and none if even a few would take too long. Their number follows from public facts and estimated times, never
from a clock: the same config gives the same numbers on any machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.diagnostics.mann_whitney import default_pair
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.count_simulator import CountSimulator, count_cells_of
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.nuisance import Nuisance
from dpsynth_core.inference.null_simulation import NullSimulator, shares_of
from dpsynth_core.inference.null_simulators import original_simulator
from dpsynth_core.inference.plausible_nulls import false_reports
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.row_simulator import RowSimulator
from dpsynth_core.inference.simulated_pvalues import ALPHA
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Progress, no_progress, share_of
from dpsynth_core.table.column import Column
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.sweep.results import Band

MAX_QUICK, MIN_QUICK, ANALYSED_ROWS = 400, 50, 2_000_000
"""Analysts of each kind where a release is array arithmetic: fewer if each has many rows to look at."""
MIN_ANALYSTS = 20
"""With fewer, a rate says nothing: 20 analysts without an error still allow a rate of 16%."""
PATIENCE = 20.0
"""Estimated seconds at most for one mechanism at one epsilon; most take a third of the estimate."""
MIN_ROWS = 4


def groups_to_compare(schema: Schema) -> GroupTest:
    """The first column with two levels, and the first other one with an order."""
    pair = default_pair(schema)
    if pair is None:
        raise DPSynthError("The table has no column with two levels beside another one with an order.")
    value, group = pair
    return GroupTest.of(schema, value=value, group=group)


@dataclass(frozen=True, kw_only=True)
class AnalystPanel:
    """Analysts of two kinds, equally many of each: those with nothing to find, and those with a difference to find."""

    mechanism: Mechanism
    """Makes the tables they look at."""
    budget: Budget
    test: GroupTest
    each: int
    """Analysts of each kind."""
    seconds: float
    problem: str = ""
    """Why there are no analysts although they were asked for."""

    @classmethod
    def of(cls, mechanism: Mechanism, schema: Schema, n: int, budget: Budget, max_analysts: int) -> AnalystPanel:
        """As many analysts as time allows.

        Args:
            mechanism: What makes the tables.
            schema: The declared columns, all of them.
            n: Rows of each table.
            budget: Granted to each table.
            max_analysts: Of each kind, where every one of them needs a table of its own; 0 means none there.

        Raises:
            DPSynthError: The mechanism does not fit such a table, or there are no two groups to compare.
        """
        if n < MIN_ROWS:
            raise DPSynthError(f"{n} rows are too few for two groups.")
        test, per_row = groups_to_compare(schema), budget.per_row(schema.rows_per_person)
        if count_cells_of(mechanism, schema, test, n, per_row.epsilon) is not None:
            each = min(max(ANALYSED_ROWS // n, MIN_QUICK), MAX_QUICK)
            return cls(mechanism=mechanism, budget=budget, test=test, each=each, seconds=0.0)
        plan = mechanism.plan(schema, n, per_row)
        pair_seconds, affordable = 2 * plan.seconds_again, int((PATIENCE - plan.starting) / (2 * plan.seconds_again))
        each, problem = min(max_analysts, affordable), ""
        if max_analysts and affordable < MIN_ANALYSTS:
            duration = _duration(plan.starting + MIN_ANALYSTS * pair_seconds)
            each, problem = 0, f"{MIN_ANALYSTS} simulated analysts of each kind would take about {duration}."
        seconds = plan.starting + each * pair_seconds if each else 0.0
        return cls(mechanism=mechanism, budget=budget, test=test, each=each, seconds=seconds, problem=problem)

    def rates(self, private: PrivateTable, seed: int, progress: Progress = no_progress) -> dict[str, Band]:
        """Shares of analysts who report a difference that does not exist, of those whose table leaves something to
        test, and of analysts who miss one of a standard deviation."""
        if not self.each:
            return {}
        comparison = self.test.comparisons[0]
        if not all(map(len, comparison.split(private.rows()))):
            raise DPSynthError("One of the two groups to be compared is empty.")
        simulator = original_simulator(private, self.mechanism, self.budget, self.test)
        null, rng = shares_of(simulator.counted(private)[None], private.n), np.random.default_rng(seed)
        false, tested = self._reported(simulator, null, rng, share_of(progress, 0.0, 0.5))
        found, _ = self._reported(moved(simulator), null, rng, share_of(progress, 0.5, 1.0))
        missed = Proportion(count=self.each - found, reps=self.each)
        rates = {"type_one": Proportion(count=false, reps=tested)} if tested else {}
        return {name: Band.of_rate(rate) for name, rate in (rates | {"type_two": missed}).items()}

    def _reported(
        self, simulator: NullSimulator, null: Nuisance, rng: np.random.Generator, progress: Progress
    ) -> tuple[int, int]:
        """How many report a difference, and how many have something to test."""
        (reported,), (tested,) = false_reports(simulator.run(null, self.each, rng, progress).found, ALPHA)
        return int(reported), int(tested)


class MovedCounts(CountSimulator):
    """The second group is moved by a standard deviation; what would leave the range stays at its end."""

    def _drawn(self, nulls: Nuisance, tables: int, rng: np.random.Generator) -> IntArray:
        counts = super()._drawn(nulls, tables, rng)
        cells, second = self.cells.value.slots, _second(self)
        shares, places = self.observed.sum(axis=0)[:cells], np.arange(cells)
        mean = shares @ places / shares.sum()
        whole, part = divmod(math.sqrt(float(shares @ (places - mean) ** 2 / shares.sum())), 1)
        before = counts[:, second, :cells]
        further = rng.binomial(before, part)  # a part of a cell is a cell for that part of the rows
        after = np.zeros_like(before)
        for step, rows in ((0, before - further), (1, further)):
            np.add.at(after.T, np.minimum(places + int(whole) + step, cells - 1), rows.T)
        counts[:, second, :cells] = after
        return counts


class MovedRows(RowSimulator):
    """The same, row by row."""

    def _null_table(self, null: Nuisance, rng: np.random.Generator) -> PrivateTable:
        table = super()._null_table(null, rng)
        column = self.test.value
        positions, groups = table.positions(column.name), self.group.locate(table)
        std = _std(self.base, column)
        shifted = np.where(groups == _second(self), positions.values + std, positions.values)
        low, high = column.position_range
        values = np.clip(shifted, low, high)
        if positions.values.dtype.kind == "i":
            values = np.rint(values).astype(positions.values.dtype)
        return table.resampled(np.arange(table.n), {column.name: Positions(values=values, missing=positions.missing)})


def moved(simulator: NullSimulator) -> NullSimulator:
    """The same releases of tables in which the second group is moved by a standard deviation."""
    kind = MovedCounts if isinstance(simulator, CountSimulator) else MovedRows
    given: dict[str, Any] = {one.name: getattr(simulator, one.name) for one in fields(simulator)}  # type: ignore[arg-type]
    return kind(**given)


def _second(simulator: CountSimulator | RowSimulator) -> int:
    assert isinstance(simulator.test, GroupTest)  # noqa: S101  asked for by the panel
    return simulator.test.comparisons[0].codes[1]


def _std(table: PrivateTable, column: Column) -> float:
    positions = table.positions(column.name)
    values = positions.values if positions.missing is None else positions.values[~positions.missing]
    return float(np.std(values)) if len(values) else 0.0


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
