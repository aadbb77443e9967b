"""How many rows a target needs, besides epsilon: the same sweep on tables of several sizes. Public tables only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.errors import ParameterError, check_int
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.progress import Point, Progress, no_progress
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.config import EPSILONS, SweepConfig
from dpsynth_core.teaching.sweep.epsilon_needed import epsilon_needed
from dpsynth_core.teaching.sweep.results import SweepResult
from dpsynth_core.teaching.sweep.run import sweep

FEWEST_ROWS, MOST_ROWS = 50, 20_000
"""Of a table in the comparison, unless the table itself has more."""
MULTIPLES = (0.25, 1.0, 4.0)


@dataclass(frozen=True, kw_only=True)
class SizeSweepConfig:
    """A sweep, and the numbers of rows to repeat it with."""

    sweep: SweepConfig
    """What is run on every table."""
    rows: tuple[int, ...]
    """Of the tables, rising."""

    def __post_init__(self) -> None:
        for count in self.rows:
            check_int("rows", count, 4, 10**7)
        if not self.rows or list(self.rows) != sorted(set(self.rows)):
            raise ParameterError("rows", list(self.rows), allowed="rising whole numbers")

    @classmethod
    def around(
        cls, n: int, mechanisms: Sequence[str], epsilons: Sequence[float] = EPSILONS, repetitions: int = 2
    ) -> SizeSweepConfig:
        """A quarter of n, n, and four times n, as far as that is neither too few nor too many rows.

        Example:
            >>> SizeSweepConfig.around(1_000, ["kd_tree"]).rows, SizeSweepConfig.around(100, ["kd_tree"]).rows
            ((250, 1000, 4000), (50, 100, 400))
        """
        wanted = {n if multiple == 1 else min(max(round(n * multiple), FEWEST_ROWS), max(MOST_ROWS, n))
                  for multiple in MULTIPLES}  # fmt: skip
        # A few analysts cannot show that a rate is low enough: without those who need a table each, no answer misleads.
        config = SweepConfig(
            mechanisms=tuple(mechanisms), epsilons=tuple(epsilons), repetitions=repetitions, analysts=0
        )
        return cls(sweep=config, rows=tuple(sorted(wanted)))


@dataclass(frozen=True, kw_only=True)
class SizeSweepResult:
    """Sweeps of tables that differ in their number of rows only. For public and simulated tables."""

    config: SizeSweepConfig
    """What was asked for."""
    sweeps: tuple[SweepResult, ...]
    """By number of rows, rising."""

    @property
    def aspects(self) -> tuple[str, ...]:
        """Those that every size shows."""
        return tuple(key for key in ASPECTS if all(key in found.aspects for found in self.sweeps))

    def answers(self, mechanism: str, aspect: str, target: float) -> dict[int, float | None]:
        """By number of rows, the smallest epsilon that reaches the target; None where none that was tried does."""
        return {
            found.rows: next(a.epsilon for a in epsilon_needed(found, aspect, target) if a.mechanism == mechanism)
            for found in self.sweeps
        }

    def sentence(self, mechanism: str, aspect: str, target: float) -> str:
        """The same in words."""
        most = self.config.sweep.epsilons[-1]
        parts = [
            f"{rows:,} rows need ε {epsilon:g}" if epsilon is not None
            else f"{rows:,} rows are too few at any ε up to {most:g}"
            for rows, epsilon in self.answers(mechanism, aspect, target).items()
        ]  # fmt: skip
        return f"{MECHANISMS[mechanism].title}: {'; '.join(parts)}."


def sweep_sizes(
    table: pd.DataFrame, schema: Schema, config: SizeSweepConfig, progress: Progress = no_progress
) -> SizeSweepResult:
    """The sweep on every size of the table: fewer rows are some of its own, more rows are drawn from it again.

    Args:
        table: A public or simulated table.
        schema: Its public facts.
        config: What to sweep, and the sizes.
        progress: Told about each run; raises to cancel.
    """
    found = []
    for place, count in enumerate(config.rows):
        rows = _resized(table, count, config.sweep.seed)
        found.append(sweep(rows, schema, config.sweep, _part(progress, count, place, len(config.rows))))
    return SizeSweepResult(config=config, sweeps=tuple(found))


def _resized(table: pd.DataFrame, count: int, seed: int) -> pd.DataFrame:
    if count == len(table):
        return table
    rng = np.random.default_rng([seed, 3, count])
    return table.iloc[rng.choice(len(table), count, replace=count > len(table))].reset_index(drop=True)


def _part(progress: Progress, count: int, place: int, parts: int) -> Progress:
    def tell(stage: str, done: float, /, *points: Point) -> None:
        progress(f"{count:,} rows. {stage}", (place + done) / parts, *points)

    return tell
