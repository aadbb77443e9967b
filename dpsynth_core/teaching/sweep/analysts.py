"""Simulated analysts: how often an ordinary test on a mechanism's releases is wrong, with as many as time allows.

Where a release is array arithmetic (histograms) there are hundreds of them. Any other mechanism makes a table for each,
so there are fewer, and none if even a few would take too long. Their number follows from public facts and estimated
times, never from a clock: the same config gives the same numbers on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.experiments import error_rates
from dpsynth_core.inference.histograms import HISTOGRAMS
from dpsynth_core.inference.populations import populations
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Progress, no_progress
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
class AnalystPanel:
    """Analysts of two kinds, equally many of each: those with nothing to find, and those with a difference to find."""

    mechanism: Mechanism
    """Makes the tables they look at, with the parameters that it suggests for two groups and a number."""
    budget: Budget
    n: int
    """Rows of each table, half of them in either group."""
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
        if isinstance(mechanism, HISTOGRAMS):
            each = min(max(ANALYSED_ROWS // n, MIN_QUICK), MAX_QUICK)
            return cls(mechanism=mechanism, budget=budget, n=n, each=each, seconds=0.0)
        pair_seconds = 2 * mechanism.plan(schema, n, budget).seconds_again
        each, problem = min(max_analysts, int(PATIENCE / pair_seconds)), ""
        if max_analysts and PATIENCE / pair_seconds < MIN_ANALYSTS:
            duration = _duration(MIN_ANALYSTS * pair_seconds)
            each, problem = 0, f"{MIN_ANALYSTS} simulated analysts of each kind would take about {duration}."
        return cls(mechanism=mechanism, budget=budget, n=n, each=each, seconds=each * pair_seconds, problem=problem)

    def rates(self, seed: int, progress: Progress = no_progress) -> dict[str, Band]:
        """Shares of analysts who report a difference that does not exist, and who miss one that does."""
        if not self.each:
            return {}
        rates = error_rates(
            self.mechanism,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta or None,
            n=self.n,
            bins=VALUE_CELLS,
            reps=self.each,
            seed=seed,
            progress=progress,
        )
        return {"type_one": Band.of_rate(rates.type_one), "type_two": Band.of_rate(rates.type_two)}


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
