"""How many rows a target needs besides epsilon: the same sweep on tables of several sizes. Public tables only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.errors import ParameterError, check_int
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.progress import Progress, no_progress, share_of
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.config import EPSILONS, SweepConfig
from dpsynth_core.teaching.sweep.results import SweepResult, epsilon_needed
from dpsynth_core.teaching.sweep.run import sweep

MIN_ROWS, MAX_ROWS = 50, 20_000
"""Of a table in the comparison, unless the table itself has more."""
MULTIPLES = (0.25, 1.0, 4.0)


@dataclass(frozen=True, kw_only=True)
class SizeSweepConfig:
    """A sweep, and the numbers of rows to repeat it with."""

    sweep: SweepConfig
    rows: tuple[int, ...]
    """In increasing order."""

    def __post_init__(self) -> None:
        for count in self.rows:
            check_int("rows", count, 4, 10**7)
        if not self.rows or list(self.rows) != sorted(set(self.rows)):
            raise ParameterError("rows", list(self.rows), allowed="increasing integers")

    @classmethod
    def around(
        cls, n: int, mechanisms: Sequence[str], epsilons: Sequence[float] = EPSILONS, repetitions: int = 2
    ) -> SizeSweepConfig:
        """A quarter of n, n, and four times n, within a sensible range.

        Example:
            >>> SizeSweepConfig.around(1_000, ["kd_tree"]).rows, SizeSweepConfig.around(100, ["kd_tree"]).rows
            ((250, 1000, 4000), (50, 100, 400))
        """
        rows = {min(max(round(n * multiple), MIN_ROWS), max(MAX_ROWS, n)) for multiple in MULTIPLES if multiple != 1}
        # A few analysts cannot show that a rate is low enough, so mechanisms that need a table for each have none.
        config = SweepConfig(
            mechanisms=tuple(mechanisms), epsilons=tuple(epsilons), repetitions=repetitions, analysts=0
        )
        return cls(sweep=config, rows=tuple(sorted({n, *rows})))


@dataclass(frozen=True, kw_only=True)
class SizeSweepResult:
    """Sweeps of tables that differ only in their number of rows. For public and simulated tables."""

    config: SizeSweepConfig
    sweeps: tuple[SweepResult, ...]
    """By number of rows, in increasing order."""

    @property
    def aspects(self) -> tuple[str, ...]:
        """Those that are known for every size."""
        return tuple(key for key in ASPECTS if all(key in swept.aspects for swept in self.sweeps))

    def answers(self, mechanism: str, aspect: str, target: float) -> dict[int, float | None]:
        """By number of rows, the smallest epsilon that reaches the target; None if none on the grid does."""
        return {
            swept.rows: next(a.epsilon for a in epsilon_needed(swept, aspect, target) if a.mechanism == mechanism)
            for swept in self.sweeps
        }

    def sentence(self, mechanism: str, aspect: str, target: float) -> str:
        last = self.config.sweep.epsilons[-1]
        parts = [
            f"{rows:,} rows are too few at any ε up to {last:g}"
            if epsilon is None
            else f"{rows:,} rows need ε {epsilon:g}"
            for rows, epsilon in self.answers(mechanism, aspect, target).items()
        ]
        return f"{MECHANISMS[mechanism].title}: {'; '.join(parts)}."


def sweep_sizes(
    table: pd.DataFrame, schema: Schema, config: SizeSweepConfig, progress: Progress = no_progress
) -> SizeSweepResult:
    """Sweep the table at every size: fewer rows are a part of its own, more rows are drawn from it again.

    Args:
        table: A public or simulated table.
        schema: Its public facts.
        config: What to sweep, and the sizes.
        progress: Receives the stage of each run; raises to cancel.
    """
    steps = len(config.rows)
    sweeps = [
        sweep(
            _resized(table, rows, config.sweep.seed),
            schema,
            config.sweep,
            share_of(progress, step / steps, (step + 1) / steps, title=f"{rows:,} rows. {{stage}}"),
        )
        for step, rows in enumerate(config.rows)
    ]
    return SizeSweepResult(config=config, sweeps=tuple(sweeps))


def _resized(table: pd.DataFrame, rows: int, seed: int) -> pd.DataFrame:
    if rows == len(table):
        return table
    rng = np.random.default_rng([seed, 3, rows])
    return table.iloc[rng.choice(len(table), rows, replace=rows > len(table))].reset_index(drop=True)
