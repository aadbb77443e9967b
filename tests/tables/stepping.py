"""A mechanism for tests only: it takes as many steps as it is told to, and says how each of them went."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import pandas as pd

from dpsynth_core.mechanisms import Mechanism
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.plan import Plan, counting_plan
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Point, Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema
from dpsynth_core.table.simulate import simulate_table


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A model that has learned nothing."""

    schema: Schema
    """The public facts."""

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """Rows that only look like a table."""
        return simulate_table(self.schema, rows, seed=0)


@dataclass(frozen=True, kw_only=True)
class Stepping(Mechanism):
    """Take steps, each with a pause, and spend the budget before the first."""

    key: ClassVar[str] = "stepping"
    title: ClassVar[str] = "Stepping stones"
    summary: ClassVar[str] = "Takes one step after the other."
    good_for: ClassVar[str] = "Trying out what is shown while a mechanism runs."
    paper: ClassVar[str] = "None."

    steps: int = 20
    """How many steps."""
    pause: float = 0.05
    """Seconds for each."""
    releasable: bool = setting(True, advanced=True)
    """Whether what is shown may be published."""

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:
        """Whatever comes to mind."""
        return cls(reason="It hardly matters.")

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One count, and the steps."""
        plan = counting_plan(tuple(1 for _ in schema), n, budget.epsilon, sensitivity=2)
        # Said as it is: a forecast of something quick would begin by itself, and take a worker that a test counts on.
        return replace(plan, computing=self.steps * self.pause)

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> Rows:
        """Spend, then step."""
        noise.laplace([table.n], sensitivity=2, epsilon=noise.budget.epsilon, label="counts of all cells")
        for step in range(1, self.steps + 1):
            point = Point(series="distance", x=float(step), y=1 / step, along="step", releasable=self.releasable)
            progress(f"Step {step} of {self.steps} in process {os.getpid()}", step / self.steps * 0.9, point)
            time.sleep(self.pause)
        return Rows(schema=table.schema)
