"""Type I and Type II errors on two groups of a real table: Figures 7 and 8 of Montoya Perez et al. (2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from benchmarks.papers.base import CellValue, ResultTable, RunOptions
from benchmarks.papers.false_discoveries import EPSILONS, PAPER_MWEM, PERTURBED, PGM, rate_cell, stored_rates
from dpsynth_core.inference.experiments import ALPHA, ErrorRates, Experiment, TestKind
from dpsynth_core.inference.populations import Population
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Budget

SLOW = 20
"""Repetitions are divided by this for mechanisms that run table by table."""
REAL_CURVES: tuple[tuple[str, Mechanism | None, TestKind, int], ...] = (
    ("DP-MW on the original", None, "dp", 1),
    ("perturbed histogram", PERTURBED, "ordinary", 1),
    ("perturbed histogram, calibrated", PERTURBED, "calibrated", 5),
    ("MWEM, the paper's settings", PAPER_MWEM, "ordinary", SLOW),
    ("Private-PGM, given marginals as in the paper", replace(PGM, strategy="given"), "ordinary", SLOW),
)
"""Figure 7: title, what releases the table, the test, and by what the repetitions are divided."""
ErrorLine: TypeAlias = tuple[str, str, Sequence[ErrorRates]]
"""Test, number of rows, and a result for each epsilon."""


@dataclass(frozen=True, kw_only=True)
class TestedGroups:
    """Two groups without and with a difference, and how they are binned."""

    __test__ = False  # pytest: the name begins with Test

    name: str
    """Part of the key that results are stored under."""
    both: tuple[Population, Population]
    bins: int

    def by_epsilon(
        self, mechanism: Mechanism | None, test: TestKind, one_in: int, options: RunOptions
    ) -> list[ErrorRates]:
        """The error rates at each epsilon of the paper."""
        return [self._rates(mechanism, test, epsilon, one_in, options) for epsilon in EPSILONS]

    def _rates(
        self, mechanism: Mechanism | None, test: TestKind, epsilon: float, one_in: int, options: RunOptions
    ) -> ErrorRates:
        reps, groups = max(1, options.reps // one_in), self.both[0]

        def compute() -> list[ErrorRates]:
            options.report(f"Running {type(mechanism).__name__ if mechanism else 'DP-MW'} ({test}), {groups.n:,} rows")
            budget = Budget.of(str(epsilon), "1e-6" if test == "dp" else 0)
            experiment = Experiment(mechanism=mechanism, budget=budget, bins=self.bins, test=test, simulations=99)
            seeds = np.random.SeedSequence([7, groups.n, round(100 * epsilon)])
            found = experiment.pvalues(self.both, reps, seeds, workers=1)
            return [ErrorRates.of(found, test=test, epsilon=epsilon, groups=groups, effect=1.0, alpha=ALPHA)]

        (rates,) = stored_rates(options, f"{self.name}: {mechanism}, {test}, epsilon {epsilon:g}", compute)
        return rates


def errors_table(title: str, lines: Sequence[ErrorLine], about: str, *, bins: int) -> ResultTable:
    """Both kinds of error, line by line."""
    rows: list[tuple[CellValue, ...]] = []
    for name, size, rates in lines:
        for label, error in (("Type I", "type_one"), ("Type II", "type_two")):
            rows.append((name, size, label, *(rate_cell(getattr(each, error)) for each in rates)))
    reps = sorted({rates.type_one.reps for _, _, line in lines for rates in line}, reverse=True)
    return ResultTable(
        title=title,
        notes=(
            f"{about}; {bins} bins; level {ALPHA}; {' or '.join(map(str, reps))} repetitions. Without a difference "
            "(Type I), both groups are drawn from everybody; the paper shows Type II only.",
        ),
        columns=("test", "rows", "error", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
        rows=tuple(rows),
    )
