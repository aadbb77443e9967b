"""Simulated analysts: how often an ordinary test on a mechanism's releases is wrong, with as many as time allows.

They compare two groups with the sizes and the distribution of the values that the original has: in the one study the
groups do not differ, in the other one is moved by a standard deviation.
Where a release is array arithmetic (histograms) there are hundreds of them. Any other mechanism makes a table for each,
so there are fewer, and none if even a few would take too long. Their number follows from public facts and estimated
times, never from a clock: the same config gives the same numbers on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.diagnostics.mann_whitney import default_pair
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.experiments import error_rates
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.histograms import is_histogram
from dpsynth_core.inference.populations import populations
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.teaching.sweep.results import Band

MAX_QUICK, MIN_QUICK, ANALYSED_ROWS = 400, 50, 2_000_000
"""Analysts of each kind where a release is array arithmetic: fewer if each has many rows to look at."""
MIN_ANALYSTS = 20
"""With fewer, a rate says nothing: 20 analysts without an error still allow a rate of 16%."""
PATIENCE = 20.0
"""Estimated seconds at most for one mechanism at one epsilon; most take a third of the estimate."""
VALUE_CELLS = 100
MIN_ROWS = 4


@dataclass(frozen=True, kw_only=True)
class TestedGroups:
    """The two groups that analysts compare, with the sizes and the values that they have in the original: private."""

    value: str
    group: str
    ratio: float
    """Share of the rows in the first group."""
    shape: tuple[float, ...]
    """How the values of both groups together are distributed over equal cells of the declared range."""

    @classmethod
    def of(cls, private: PrivateTable) -> TestedGroups:
        """The first column with two levels, and the first other one with an order."""
        pair = default_pair(private.schema)
        if pair is None:
            raise DPSynthError("The table has no column with two levels beside another one with an order.")
        value, group = pair
        comparison = GroupComparison.of(private.schema, value=value, group=group)
        first, second = comparison.split(private.rows())
        if not len(first) or not len(second):
            raise DPSynthError("One of the two groups to be compared is empty.")
        low, high = comparison.value.position_range
        # Points lie in the middle of their cells, so the first and the last one get as much room as the others.
        step = 0.0 if comparison.value.is_numeric and comparison.value.lattice is None else 0.5
        counts, _ = np.histogram(np.concatenate([first, second]), VALUE_CELLS, (low - step, high + step))
        ratio = len(first) / (len(first) + len(second))
        return cls(value=value, group=group, ratio=ratio, shape=tuple((counts / counts.sum()).tolist()))


@dataclass(frozen=True, kw_only=True)
class AnalystPanel:
    """Analysts of two kinds, equally many of each: those with nothing to find, and those with a difference to find."""

    mechanism: Mechanism
    """Makes the tables they look at, with the parameters that it suggests for two groups and a number."""
    budget: Budget
    n: int
    """Rows of each table."""
    each: int
    """Analysts of each kind."""
    seconds: float
    problem: str = ""
    """Why there are no analysts although they were asked for."""

    @classmethod
    def of(cls, key: str, n: int, budget: Budget, max_analysts: int) -> AnalystPanel:
        """As many analysts as time allows.

        Args:
            key: The mechanism's key in the registry.
            n: Rows of each table.
            budget: Granted to each table.
            max_analysts: Of each kind, where every one of them needs a table of its own; 0 means none there.

        Raises:
            DPSynthError: The mechanism does not fit such a table.
        """
        if n < MIN_ROWS:
            raise DPSynthError(f"{n} rows are too few for two groups.")
        groups, _ = populations(n1=n // 2, n2=n - n // 2, effect=1.0)
        schema = groups.schema(VALUE_CELLS)
        mechanism = MECHANISMS[key].suggest(schema, n, budget.epsilon)
        if is_histogram(mechanism):
            each = min(max(ANALYSED_ROWS // n, MIN_QUICK), MAX_QUICK)
            return cls(mechanism=mechanism, budget=budget, n=n, each=each, seconds=0.0)
        pair_seconds = 2 * mechanism.plan(schema, n, budget).seconds_again
        each, problem = min(max_analysts, int(PATIENCE / pair_seconds)), ""
        if max_analysts and PATIENCE / pair_seconds < MIN_ANALYSTS:
            duration = _duration(MIN_ANALYSTS * pair_seconds)
            each, problem = 0, f"{MIN_ANALYSTS} simulated analysts of each kind would take about {duration}."
        return cls(mechanism=mechanism, budget=budget, n=n, each=each, seconds=each * pair_seconds, problem=problem)

    def rates(self, groups: TestedGroups, seed: int, progress: Progress = no_progress) -> dict[str, Band]:
        """Shares of analysts who report a difference that does not exist, and who miss one of a standard deviation."""
        if not self.each:
            return {}
        rates = error_rates(
            self.mechanism,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta or None,
            n=self.n,
            ratio=groups.ratio,
            shape=groups.shape,
            bins=VALUE_CELLS,
            reps=self.each,
            seed=seed,
            progress=progress,
        )
        return {"type_one": Band.of_rate(rates.type_one), "type_two": Band.of_rate(rates.type_two)}


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
