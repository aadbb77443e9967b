"""By how much a private test of two groups beats a test on a synthetic table, at the same epsilon.

Both are run on simulated tables in which the groups differ by as much as matters. The tables are made from rows that
are public (released, or simulated from the declared facts): every row stays as it is, and only the two labels are dealt
out anew, more often the first one to rows with a large value. So the other columns, which take their share of a
release's epsilon, are as in a real table.

The test on the release is the calibrated one, whose null is simulated in the same way without a difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import rankdata

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.errors import DPSynthError, ParameterError, check_between
from dpsynth_core.inference.dp_mann_whitney import release_test
from dpsynth_core.inference.efforts import FEWEST
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.mann_whitney import effect_size
from dpsynth_core.inference.null_simulators import count_simulator
from dpsynth_core.inference.private_comparison import ComparisonRequest, group_rows
from dpsynth_core.inference.proportions import UPPER_TAIL, Proportion
from dpsynth_core.inference.simulated_pvalues import ALPHA, simulated_pvalues
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.progress import Progress, no_progress, share_of
from dpsynth_core.runs.synthesize import run_mechanism
from dpsynth_core.runs.workers import run_all
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MIN_EFFECT, MAX_EFFECT = 0.51, 0.99
PRIVATE_REPS, FEWER_REPS = 400, 200
MIN_REPS, MAX_REPS = 39, 199
"""Simulated releases without and with the difference."""
SECONDS, MAX_SECONDS = 15.0, 240.0
"""What the simulated releases should take, and may take at most."""
ROWS_TO_AIM = 100_000
"""Rows among which labels are dealt to find how strongly they must depend on the value."""
_STEPS, _SHRINK = 12, 2**-0.5
"""In which a smaller epsilon is looked for: down to 1/64."""
_RESAMPLES = 400
_RUNS_PER_TASK = 4


@dataclass(frozen=True, kw_only=True)
class PowerEstimate:
    """The chance that a test finds a difference, with a 95% interval for the simulation's own error."""

    estimate: float
    low: float
    high: float
    reps: int

    @classmethod
    def of(cls, share: Proportion) -> PowerEstimate:
        return cls(estimate=share.estimate, low=share.low, high=share.high, reps=share.reps)

    def __str__(self) -> str:
        return f"{100 * self.estimate:.0f} (between {100 * self.low:.0f} and {100 * self.high:.0f})"


@dataclass(frozen=True, kw_only=True)
class PowerQuestion:
    """Two ways to spend the same epsilon on one comparison. Everything in it is public."""

    request: ComparisonRequest
    schema: Schema
    rows: pd.DataFrame
    """Released, or simulated from the schema."""
    n: int
    """Rows of the original, which are public."""
    mechanism: Mechanism
    budget: Budget
    """Of the release; its epsilon is the test's."""
    effect: float = 0.7
    """The difference that matters: chance that a random member of the first group has a larger value than one of the
    second. One half is no difference; one standard deviation between bell curves is 0.76."""
    share: float | None = None
    """Of the first group among both; None: as in the rows."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_between("effect", self.effect, MIN_EFFECT, MAX_EFFECT)
        if self.share is not None:
            check_between("share", self.share, 0, 1)

    @cached_property
    def comparison(self) -> GroupComparison:
        return self.request.comparison(self.schema, self.n)


@dataclass(frozen=True, kw_only=True)
class ComparisonPower:
    """What each of the two would find. Not private: simulated from public things."""

    private: PowerEstimate
    """Of the private test on the original."""
    released: PowerEstimate | None
    """Of the calibrated test on a release; None where that was not simulated."""
    problem: str
    """Why it was not, otherwise empty."""
    mechanism: str
    """The title of the mechanism."""
    epsilon: float
    sizes: tuple[int, int]
    """Rows of the two groups in the simulated tables."""
    effect: float
    enough: float | None = None
    """About the least epsilon with which the private test finds as much as the release does; None where it finds less,
    or where the release was not simulated."""

    @property
    def sentence(self) -> str:
        """Both in words that need no statistics."""
        first, second = self.sizes
        setting = (
            f"Suppose the groups have {first:,} and {second:,} rows, and {100 * self.effect:.0f} of 100 random pairs "
            f"have the larger value in the first group. Of 100 analysts with epsilon {self.epsilon:g}, "
            f"{self.private} would find this difference by the private test"
        )
        if self.released is None:
            return f"{setting}. {self.problem}"
        beside = f"{self.released} by the calibrated test on a synthetic table ({self.mechanism})"
        return f"{setting}, and {beside}. {self._advice}"

    @property
    def _advice(self) -> str:
        assert self.released is not None  # noqa: S101  asked only then
        if self.released.low > self.private.high:
            return "Here the synthetic table finds more, and it answers other questions, too."
        less = ""
        if self.enough is not None and self.enough < self.epsilon:
            less = f" The private test would find as much as the synthetic table with epsilon {self.enough:.2g}."
        if self.private.low > self.released.high:
            return f"If this comparison is your question, the private test is the better use of epsilon.{less}"
        if less:
            return f"At this epsilon the simulation does not tell them apart.{less}"
        return "The simulation does not tell them apart, and a synthetic table answers other questions, too."


def comparison_power(question: PowerQuestion, progress: Progress = no_progress) -> ComparisonPower:
    """Simulate both tests; raises to cancel where ``progress`` does."""
    deal = LabelDeal.of(question)
    budget = question.request.budget
    private = PowerEstimate.of(_private_power(question, deal, budget, PRIVATE_REPS, share_of(progress, 0.0, 0.2)))
    released, enough, problem = None, None, ""
    try:
        released = _released_power(question, deal, share_of(progress, 0.2, 0.9))
    except DPSynthError as error:
        problem = str(error)
    if released is not None and private.estimate >= released.estimate:
        enough = _enough(question, deal, released.estimate, share_of(progress, 0.9, 1.0))
    return ComparisonPower(
        private=private,
        released=released,
        problem=problem,
        mechanism=question.mechanism.title,
        epsilon=float(budget.epsilon),
        sizes=deal.sizes,
        effect=question.effect,
        enough=enough,
    )


@dataclass(frozen=True, kw_only=True)
class LabelDeal:
    """How the two labels are dealt to rows, so that the groups differ by as much as is asked, or not at all."""

    table: pd.DataFrame
    """As many rows as the original has."""
    values: FloatArray
    """Of all rows."""
    kept: IntArray
    """Which rows are in one of the two groups and have a value."""
    left_out: BoolArray | None
    scores: FloatArray
    """Normal scores of the kept rows' values."""
    sizes: tuple[int, int]
    strength: float
    """Correlation between scores and labels that gives the effect."""

    @classmethod
    def of(cls, question: PowerQuestion) -> LabelDeal:
        rng, rows, n = np.random.default_rng([question.seed, 1]), question.rows, question.n
        if len(rows) != n:
            rows = rows.iloc[rng.integers(0, len(rows), n)]
        table = rows.reset_index(drop=True)
        private = PrivateTable(table, question.schema)
        values, first, left_out = group_rows(private, question.comparison)
        kept = np.arange(n) if left_out is None else np.flatnonzero(~left_out)
        n1 = int(first[kept].sum()) if question.share is None else round(question.share * len(kept))
        if not 0 < n1 < len(kept):
            raise ParameterError(
                "groups",
                f"{n1} and {len(kept) - n1} rows",
                allowed="at least one row in each",
                remedy="Choose other groups, or state the share of the first one.",
            )
        ranks = rankdata(values[kept])
        scores = np.asarray(ndtri((ranks - 0.5) / len(kept)))
        strength = _strength(values[kept], scores, n1 / len(kept), question.effect, rng)
        sizes = n1, len(kept) - n1
        return cls(
            table=table, values=values, kept=kept, left_out=left_out, scores=scores, sizes=sizes, strength=strength
        )

    def first(self, rng: np.random.Generator, *, differ: bool) -> BoolArray:
        """Who gets the first label, of all rows."""
        chosen = _chosen(
            self.scores, self.sizes[0], self.strength if differ else 0.0, rng.standard_normal(len(self.kept))
        )
        out = np.zeros(len(self.values), dtype=np.bool_)
        out[self.kept[chosen]] = True
        return out

    def dealt(self, comparison: GroupComparison, rng: np.random.Generator, *, differ: bool) -> pd.DataFrame:
        """The table with new labels; whoever is in neither group stays there."""
        first, second = comparison.levels
        labels = self.table[comparison.group.name].copy()
        labels.iloc[self.kept] = np.where(self.first(rng, differ=differ)[self.kept], first, second)
        return self.table.assign(**{comparison.group.name: labels})


def _chosen(scores: FloatArray, n1: int, strength: float, noise: FloatArray) -> BoolArray:
    key = strength * scores + math.sqrt(1 - strength * strength) * noise
    out = np.zeros(len(scores), dtype=np.bool_)
    out[np.argpartition(key, len(key) - n1)[len(key) - n1 :]] = True
    return out


def _strength(values: FloatArray, scores: FloatArray, share: float, effect: float, rng: np.random.Generator) -> float:
    """By bisection, with the same noise throughout: the effect grows with the strength."""
    times = max(1, ROWS_TO_AIM // len(values))
    many_values, many_scores = np.tile(values, times), np.tile(scores, times)
    noise, n1 = rng.standard_normal(len(many_values)), max(1, round(share * len(many_values)))

    def found(strength: float) -> float:
        chosen = _chosen(many_scores, n1, strength, noise)
        return effect_size(many_values[chosen], many_values[~chosen])

    if found(1.0) < effect:
        allowed = f"at most {found(1.0):.2f} for values with so many ties"
        raise ParameterError("effect", effect, allowed=allowed, remedy="Choose a smaller difference.")
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if found(middle) < effect else (low, middle)
    return high


def _private_power(
    question: PowerQuestion, deal: LabelDeal, budget: Budget, reps: int, progress: Progress
) -> Proportion:
    per_row = budget.per_row(question.schema.rows_per_person)
    claim, rng = question.request.claim(question.schema), np.random.default_rng([question.seed, 2])
    found = 0
    for rep in range(reps):
        progress("Simulating private tests", rep / reps)
        noise = SeededNoise(per_row, int(rng.integers(2**62)))
        first = deal.first(rng, differ=True)
        test = release_test(deal.values, first, noise, claim=claim, left_out=deal.left_out)
        found += test.pvalue <= ALPHA
    return Proportion(count=found, reps=reps)


def _enough(question: PowerQuestion, deal: LabelDeal, target: float, progress: Progress) -> float:
    """About the least epsilon with which the private test finds the difference as often as ``target``."""
    budget, enough = question.request.budget, question.request.budget.epsilon
    for step in range(1, _STEPS + 1):
        less = budget.epsilon * Fraction(f"{_SHRINK**step:.2g}")
        part = share_of(progress, (step - 1) / _STEPS, step / _STEPS)
        power = _private_power(question, deal, Budget(epsilon=less, delta=budget.delta), FEWER_REPS, part)
        if power.estimate < target:
            break
        enough = less
    return float(enough)


def _released_power(question: PowerQuestion, deal: LabelDeal, progress: Progress) -> PowerEstimate:
    per_row = question.budget.per_row(question.schema.rows_per_person)
    each = question.mechanism.plan(question.schema, question.n, per_row).seconds
    reps = min(MAX_REPS, max(MIN_REPS, int(SECONDS / (2 * max(each, 1e-6)))))
    if 2 * reps * each > MAX_SECONDS:
        raise DPSynthError(
            f"One run of {question.mechanism.title} takes about {each:.0f} s on a table like this, so its side of the "
            "comparison was not simulated. Choose a faster mechanism to compare with."
        )
    runs = _Releases(question=question, deal=deal)
    seeds = [int(seed) for seed in np.random.default_rng([question.seed, 3]).integers(0, 2**62, 2 * reps)]
    orders = [(seed, i >= reps) for i, seed in enumerate(seeds)]
    tasks = [orders[start : start + _RUNS_PER_TASK] for start in range(0, len(orders), _RUNS_PER_TASK)]
    done = np.concatenate(run_all(runs.statistics, tasks, stage="Simulating releases", progress=progress))
    return _power(done[:reps], done[reps:], np.random.default_rng([question.seed, 4]))


@dataclass(frozen=True, kw_only=True)
class _Releases:
    """What is needed to release dealt tables in a worker."""

    question: PowerQuestion
    deal: LabelDeal

    def statistics(self, orders: Sequence[tuple[int, bool]]) -> FloatArray:
        return np.array([self._statistic(seed, differ=differ) for seed, differ in orders])

    def _statistic(self, seed: int, *, differ: bool) -> float:
        question, rng = self.question, np.random.default_rng(seed)
        table = self.deal.dealt(question.comparison, rng, differ=differ)
        private = PrivateTable(table, question.schema)
        release = run_mechanism(private, question.mechanism, question.budget, seed=seed)
        synthetic = release.sample()
        test = GroupTest(comparisons=(question.comparison,))
        counted = count_simulator(release, test, synthetic)
        found = None if counted is None else test.on_counts(counted.observed[None], counted.cells, rng)
        if found is None:
            found = test.on_rows(synthetic)
        return float(np.where(found.tested, found.statistics, np.nan).flat[0])


def _power(null: FloatArray, signal: FloatArray, rng: np.random.Generator) -> PowerEstimate:
    """How often a signal is unusual among the nulls. The interval resamples both, and is at least Wilson's."""
    share = Proportion(count=_rejected(null, signal), reps=len(signal))
    again = [
        _rejected(rng.choice(null, len(null)), rng.choice(signal, len(signal))) / len(signal) for _ in range(_RESAMPLES)
    ]
    low, high = np.quantile(again, [1 - UPPER_TAIL, UPPER_TAIL])
    return PowerEstimate(
        estimate=share.estimate, low=min(float(low), share.low), high=max(float(high), share.high), reps=len(signal)
    )


def _rejected(null: FloatArray, signal: FloatArray) -> int:
    assert len(null) >= FEWEST  # noqa: S101  fewer cannot give 0.05
    return int((simulated_pvalues(signal, np.broadcast_to(null, (len(signal), len(null)))) <= ALPHA).sum())
