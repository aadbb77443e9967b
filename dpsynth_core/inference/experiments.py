"""How often a test on a release is wrong: Type I and Type II errors by simulation (Montoya Perez et al. 2024).

For histogram mechanisms a whole experiment is array arithmetic; any other mechanism is run repetition by repetition,
over processes. Everything is simulated, so nothing is private and everything can be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import ParameterError, check_between, check_choice, check_int
from dpsynth_core.inference.calibrated import calibrate, count_pvalues
from dpsynth_core.inference.count_simulator import CountSimulator
from dpsynth_core.inference.dp_mann_whitney import DELTA, dp_pvalues
from dpsynth_core.inference.efforts import FEWEST
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.histograms import GroupIndices, HistogramLaw, is_histogram, law_of
from dpsynth_core.inference.mann_whitney import GroupsError
from dpsynth_core.inference.populations import GROUP, LOWER, UPPER, VALUE, Population, populations
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.simulated_pvalues import ALPHA
from dpsynth_core.inference.u_statistics import MAX_SORTED, ordinary_pvalues, u_of_rows
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.runs.workers import part_of, run_all
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

TestKind: TypeAlias = Literal["ordinary", "calibrated", "dp"]
TESTS: tuple[TestKind, ...] = ("ordinary", "calibrated", "dp")
ROWS_AT_ONCE = 4_000_000
TABLES_AT_ONCE = 250
RUNS_PER_TASK = 10
FINE_CELLS = 4096


@dataclass(frozen=True, kw_only=True)
class ErrorRates:
    """How often a test is wrong, for one mechanism, one epsilon and one pair of group sizes."""

    test: TestKind
    """Which test: ordinary or calibrated on the release, or the private one on the original."""
    epsilon: float
    n1: int
    n2: int
    effect: float
    """The difference to be found, in standard deviations."""
    alpha: float
    """Significance level: a valid test has a Type I error of at most this."""
    type_one: Proportion
    """Differences reported where there is none."""
    type_two: Proportion
    """Differences missed."""
    undefined: int
    """Repetitions, of both kinds together, whose table left nothing to test; they count as no difference reported."""

    @classmethod
    def of(
        cls,
        pvalues: Sequence[FloatArray],
        *,
        test: TestKind,
        epsilon: float,
        groups: Population,
        effect: float,
        alpha: float,
    ) -> ErrorRates:
        """From p-values without and with a difference; not a number where there was nothing to test."""
        null, signal = pvalues
        return cls(
            test=test,
            epsilon=epsilon,
            n1=groups.n1,
            n2=groups.n2,
            effect=effect,
            alpha=alpha,
            type_one=Proportion(count=int((null <= alpha).sum()), reps=len(null)),
            type_two=Proportion(count=len(signal) - int((signal <= alpha).sum()), reps=len(signal)),
            undefined=int(np.isnan(null).sum() + np.isnan(signal).sum()),
        )

    @property
    def power(self) -> Proportion:
        return self.type_two.complement


def error_rates(
    mechanism: Mechanism | None,
    *,
    epsilon: Amount,
    n: int,
    ratio: float = 0.5,
    effect: float = 1.0,
    bins: int = 100,
    reps: int = 1000,
    test: TestKind = "ordinary",
    alpha: float = ALPHA,
    delta: Amount | None = None,
    shape: ArrayLike | None = None,
    lower: float = LOWER,
    upper: float = UPPER,
    simulations: int = 99,
    seed: int = 0,
    progress: Progress = no_progress,
    workers: int | None = None,
) -> ErrorRates:
    """Type I and Type II errors of a Mann-Whitney test, by simulation.

    Args:
        mechanism: What releases the table; not needed for ``test="dp"``.
        epsilon: The loss granted to each release.
        n: Rows of the original.
        ratio: Share of rows in the first group.
        effect: Difference between the groups, in standard deviations, where there is one.
        bins: Cells of the value column, where the mechanism has no number of its own.
        reps: Repetitions of each kind.
        test: ``ordinary`` or ``calibrated`` on the release, or ``dp`` on the original.
        alpha: Significance level.
        delta: For the private test (one in a million by default) or for a mechanism that needs one (likewise).
        shape: Shares of equal cells over the range; None: the paper's Gaussians.
        lower: Left end of the declared range.
        upper: Right end of the declared range.
        simulations: Null releases for each calibrated test.
        seed: Of the whole experiment.
        progress: Told the share that is done; raises to cancel.
        workers: Processes to use where the mechanism must run repetition by repetition.

    Example:
        >>> from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
        >>> rates = error_rates(PerturbedHistogram(placement="centre"), epsilon=0.1, n=500, reps=200)
        >>> rates.type_one.estimate > 0.3  # of 100 analysts testing a difference that does not exist
        True
    """
    check_int("n", n, 2, 10**7)
    check_int("reps", reps, 1, 10**6)
    check_int("bins", bins, 2, 65_536)
    check_int("simulations", simulations, FEWEST, 10**6)
    check_between("ratio", ratio, 0, 1)
    check_between("alpha", alpha, 0, 1)
    check_choice("test", test, TESTS)
    n1 = min(max(round(n * ratio), 1), n - 1)
    both = populations(n1=n1, n2=n - n1, effect=effect, shape=shape, lower=lower, upper=upper)
    if delta is None:
        needed = test == "dp" or (mechanism is not None and mechanism.needs_delta)
        delta = DELTA if needed else 0
    budget = Budget.of(epsilon, delta)
    experiment = Experiment(mechanism=mechanism, budget=budget, bins=bins, test=test, simulations=simulations)
    pvalues = experiment.pvalues(both, reps, np.random.SeedSequence(seed), progress, workers)
    spent = float(budget.epsilon)
    return ErrorRates.of(pvalues, test=test, epsilon=spent, groups=both[0], effect=effect, alpha=alpha)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A mechanism, a budget and a test: what is done to every simulated table."""

    mechanism: Mechanism | None
    budget: Budget
    bins: int
    test: TestKind
    simulations: int

    def pvalues(
        self,
        each: Sequence[Population],
        reps: int,
        stream: np.random.SeedSequence,
        progress: Progress = no_progress,
        workers: int | None = None,
    ) -> list[FloatArray]:
        """For each population, one per repetition; not a number where the released table left nothing to test, or the
        calibrated test has no answer."""
        if self.test != "dp" and self.mechanism is None:
            raise ParameterError("mechanism", None, allowed="a mechanism, for a test on its releases")
        law = self._law(each[0].n)
        if self.test != "dp" and law is None:
            return self._rows(each, reps, stream, progress, workers)
        out = []
        for i, (population, child) in enumerate(zip(each, stream.spawn(len(each)), strict=True)):
            rng, part = np.random.default_rng(child), part_of(progress, i, len(each))
            if self.test == "dp" or law is None:
                out.append(self._dp(population, reps, rng, part))
            else:
                out.append(self._counts(law, population, reps, rng, part))
        return out

    def _law(self, n: int) -> HistogramLaw | None:
        if not is_histogram(self.mechanism):
            return None
        return law_of(self.mechanism, (2, self.mechanism.bins or self.bins), n, Fraction(self.budget.epsilon))

    def _counts(
        self, law: HistogramLaw, population: Population, reps: int, rng: np.random.Generator, progress: Progress
    ) -> FloatArray:
        """Array arithmetic, a few hundred tables at a time so that progress can be told and a cancel heard."""
        parts = []
        step = TABLES_AT_ONCE
        if self.test == "ordinary":
            step = max(step, ROWS_AT_ONCE // max(law.rows, law.shape[1]))
        for start in range(0, reps, step):
            progress("Simulating releases", start / reps)
            tables = min(step, reps - start)
            released = law.run(population.counts(tables, law.shape[1], rng), rng)
            if self.test == "ordinary":
                parts.append(ordinary_pvalues(released, rng, centre=law.centre))
                continue
            parts.append(self._calibrated(law, released, population.schema(self.bins), rng))
        return np.concatenate(parts)

    def _calibrated(
        self, law: HistogramLaw, released: FloatArray, schema: Schema, rng: np.random.Generator
    ) -> FloatArray:
        assert self.mechanism is not None  # noqa: S101  there is a law, so there is one
        base = CountSimulator(
            test=GroupTest.of(schema, value=VALUE, group=GROUP),
            mechanism=self.mechanism,
            schema=schema,
            epsilon=Fraction(self.budget.epsilon),
            n=law.n,
            observed=released[0],
        )
        return count_pvalues(base, GroupIndices(values=law.shape[1]), released, self.simulations, rng)

    def _dp(self, population: Population, reps: int, rng: np.random.Generator, progress: Progress) -> FloatArray:
        doubled = doubled_us(population, reps, rng, progress)
        return dp_pvalues(
            doubled, population.n1, population.n, epsilon=self.budget.epsilon, delta=self.budget.delta, rng=rng
        )

    def _rows(
        self,
        each: Sequence[Population],
        reps: int,
        stream: np.random.SeedSequence,
        progress: Progress,
        workers: int | None,
    ) -> list[FloatArray]:
        """Repetition by repetition, all populations over the same processes."""
        tasks = []
        for population, child in zip(each, stream.spawn(len(each)), strict=True):
            streams = child.spawn(reps)
            tasks += [(population, streams[start : start + RUNS_PER_TASK]) for start in range(0, reps, RUNS_PER_TASK)]
        done = run_all(self._repeat, tasks, stage="Simulating releases", progress=progress, workers=workers)
        return np.split(np.concatenate(done), len(each))

    def _repeat(self, task: tuple[Population, Sequence[np.random.SeedSequence]]) -> FloatArray:
        population, streams = task
        return np.array([self._one(population, np.random.default_rng(stream)) for stream in streams])

    def _one(self, population: Population, rng: np.random.Generator) -> float:
        """One repetition by the mechanism itself."""
        schema, budget = population.schema(self.bins), self.budget
        table = pd.DataFrame({GROUP: np.arange(population.n) >= population.n1, VALUE: population.rows(1, rng)[0]})
        private, seed = PrivateTable(table, schema), int(rng.integers(2**62))
        assert self.mechanism is not None  # noqa: S101  checked before anything was sent here
        release = synthesize(private, self.mechanism, epsilon=budget.epsilon, delta=budget.delta, seed=seed)
        synthetic, comparison = release.sample(), GroupComparison.of(schema, value=VALUE, group=GROUP)
        try:
            if self.test == "ordinary":
                return comparison.test(synthetic).pvalue
            seed = int(rng.integers(2**62))
            (found,) = calibrate(release, [comparison], synthetic, simulations=self.simulations, seed=seed, workers=1)
        except GroupsError:
            return float("nan")
        return float("nan") if found is None else found.pvalue


def doubled_us(population: Population, reps: int, rng: np.random.Generator, progress: Progress) -> IntArray:
    """2 min(U1, U2) of that many simulated originals; of very large ones with values rounded to 1/4096 of the range."""
    parts = []
    rounded = population.n > MAX_SORTED
    step = max(1, ROWS_AT_ONCE // (2 * FINE_CELLS if rounded else population.n))
    for start in range(0, reps, step):
        progress("Simulating private tests", start / reps)
        tables = min(step, reps - start)
        if rounded:
            counts = population.counts(tables, FINE_CELLS, rng)
            below = 2 * np.cumsum(counts[:, 1], axis=1) - counts[:, 1]
            doubled = (counts[:, 0] * below).sum(axis=1)
        else:
            values = population.rows(tables, rng)
            doubled = u_of_rows(values, population.n1, lower=population.lower, upper=population.upper)
        parts.append(np.minimum(doubled, 2 * population.n1 * population.n2 - doubled))
    return np.concatenate(parts)
