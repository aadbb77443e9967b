"""Simulated analysts: how often an ordinary test on a mechanism's releases is wrong, with as many as time allows.

Where a release is array arithmetic (histograms) there are hundreds of them. Any other mechanism makes a table for each,
so there are fewer, and none where even a few would take too long. How many is decided from public facts and estimated
times, never from a clock: the same config gives the same numbers on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference import error_rates
from dpsynth_core.inference.histograms import HISTOGRAMS
from dpsynth_core.inference.populations import populations
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Point, Progress, no_progress
from dpsynth_core.teaching.sweep.results import Band

QUICK_MOST, QUICK_FEWEST, ANALYSED_ROWS = 400, 50, 2_000_000
"""Analysts of each kind where a release is array arithmetic: fewer where each has many rows to look at."""
FEWEST = 20
"""Below this a rate says nothing: with 20 analysts a rate of zero may still be one of 16%."""
PATIENCE = 20.0
"""Estimated seconds at most for one mechanism at one epsilon; most take a third of the estimate."""
VALUE_CELLS = 100
FEWEST_ROWS = 4
"""Two groups of two."""


@dataclass(frozen=True, kw_only=True)
class AnalystPanel:
    """Analysts of two kinds, as many of each: those with nothing to find, and those with a difference to find."""

    mechanism: Mechanism
    """What makes the tables that they look at, as it suggests itself for two groups and a number."""
    budget: Budget
    """The loss granted to each table."""
    n: int
    """Rows of each table, half of them in either group."""
    each: int
    """Analysts of each kind; 0: none."""
    seconds: float
    """That it should take, roughly."""
    problem: str = ""
    """Why there are none although they were asked for."""

    @classmethod
    def of(cls, key: str, n: int, budget: Budget, most: int) -> AnalystPanel:
        """As many analysts as time allows.

        Args:
            key: The mechanism's name in the registry.
            n: Rows of each table.
            budget: The loss granted to each table.
            most: Analysts of each kind at most, where every one of them needs a table of its own; 0: none there.

        Raises:
            DPSynthError: The mechanism does not fit such a table.
        """
        if n < FEWEST_ROWS:
            raise DPSynthError(f"{n} rows are too few for two groups.")
        groups, _ = populations(n1=n // 2, n2=n - n // 2, effect=1.0)
        schema = groups.schema(VALUE_CELLS)
        mechanism = MECHANISMS[key].suggest(schema, n, budget.epsilon)
        if isinstance(mechanism, HISTOGRAMS):
            each = min(max(ANALYSED_ROWS // n, QUICK_FEWEST), QUICK_MOST)
            return cls(mechanism=mechanism, budget=budget, n=n, each=each, seconds=0.0)
        pair = 2 * mechanism.plan(schema, n, budget).seconds_again
        allowed, problem = int(PATIENCE / pair), ""
        if most and allowed < FEWEST:
            allowed, problem = 0, f"{FEWEST} simulated analysts of each kind would take about {_said(FEWEST * pair)}."
        each = min(most, allowed)
        return cls(mechanism=mechanism, budget=budget, n=n, each=each, seconds=each * pair, problem=problem)

    def rates(self, seed: int, progress: Progress = no_progress) -> dict[str, Band]:
        """Shares of analysts who report what is not there, and who miss what is."""
        if not self.each:
            return {}
        found = error_rates(
            self.mechanism, epsilon=self.budget.epsilon, delta=self.budget.delta or None, n=self.n, bins=VALUE_CELLS,
            reps=self.each, seed=seed, progress=progress,
        )  # fmt: skip
        return {"type_one": Band.of_rate(found.type_one), "type_two": Band.of_rate(found.type_two)}


def told_as(progress: Progress, stage: str, start: float, end: float) -> Progress:
    """Progress of a part under one name, as a share of the whole."""

    def tell(_: str, done: float, /, *points: Point) -> None:
        progress(stage, start + done * (end - start), *points)

    return tell


def _said(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
