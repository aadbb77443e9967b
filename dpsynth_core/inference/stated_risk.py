"""What is stated about a false-discovery risk, whatever was tested: a range, a verdict from its bad end, and words."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dpsynth_core.inference.count_simulator import count_cells_of
from dpsynth_core.inference.efforts import COUNT_EFFORTS, FEWEST, Effort, row_efforts
from dpsynth_core.inference.null_simulation import NullSimulator, NullTest
from dpsynth_core.inference.null_simulators import NotSimulatedError, stated_budget
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.row_simulator import RowSimulator
from dpsynth_core.inference.simulated_pvalues import ALPHA
from dpsynth_core.runs.synthesize import Release

RiskVerdict: TypeAlias = Literal["sound", "inflated", "unknown"]
SOUND = 0.08
"""Rate of false discoveries up to which an ordinary test is called sound: the level and a margin for simulation."""
MAX_SECONDS = 600.0
"""Expected computing time beyond which nothing is simulated, unless somebody asks for it."""
QUICK_SECONDS = 1.0
"""What a figure takes where a release is array arithmetic."""
SEED = 20_240
BORDERLINE = (
    f"they fall on either side of {ALPHA:g}, which is a borderline result. Go by the calibrated one, which allows for "
    "all that the release leaves open"
)
"""Where an ordinary test is sound and both disagree."""
CALIBRATED_FOLLOWS = "The calibrated one comes with the next figure."
TOO_FEW_TO_CALIBRATE = (
    "There is no calibrated p-value: releases of tables like this one seldom leave anything to test, so too few of "
    "them could be simulated. Ask for more epsilon, fewer cells, or another mechanism."
)
TOO_SLOW_TO_CALIBRATE = "There is no calibrated one: repeating this mechanism often enough takes too long."


@dataclass(frozen=True, kw_only=True)
class StatedRisk(ABC):
    """How far a low p-value on a release can be trusted."""

    low: float
    """Rate of false discoveries under the most favourable null that the release leaves plausible, among releases that
    leave something to test; 0 if not known."""
    high: float
    """The same under the least favourable one; 1 if not known."""
    verdict: RiskVerdict
    """From the bad end: "sound" only if even ``high`` is as it should be."""
    problem: str = ""
    """Why something is missing: the figure, or the calibrated test."""
    simulations: int = 0
    """Simulated releases of each null at the ends of the range."""
    stage: int = 0
    """How far the figure has been refined, from 0."""
    last: bool = True
    """Whether it will not be refined any further."""

    @property
    @abstractmethod
    def subject(self) -> str:
        """What analysts report falsely: "difference" or "relation"."""

    @property
    @abstractmethod
    def offers_calibrated(self) -> bool:
        """Whether there is a calibrated test to turn to, or one that follows."""

    @property
    @abstractmethod
    def nothing_to_test(self) -> bool:
        """Whether this release has a figure, but leaves no ordinary p-value to rely on."""

    @property
    def is_rough(self) -> bool:
        """Whether there are too few releases behind it to decide anything by."""
        return 0 < self.simulations < FEWEST

    @property
    def who(self) -> str:
        """Which analysts the figure is about."""
        return f"who test a {self.subject} that does not exist"

    @property
    def reported(self) -> str:
        """What they would report."""
        return "one"

    @property
    def sentences(self) -> tuple[str, str]:
        """The figure and what it means, for people who do not program."""
        return self._figure, self._meaning

    @property
    def _figure(self) -> str:
        if not self.simulations:
            return f"How many analysts would report a {self.subject} that does not exist is not known. {self.problem}"
        many = of_100(self.low, self.high)
        allowed = f"{100 * ALPHA:g} is what a sound test allows"
        return f"Of 100 analysts {self.who}, {many} would report {self.reported}; {allowed}."

    @property
    def _meaning(self) -> str:
        if self.nothing_to_test:
            return "There is nothing to test in this release; the figure is what others like it would give."
        if self.verdict == "sound":
            return "An ordinary p-value on this release means about what it says."
        if self.verdict == "unknown":
            wait = " More simulations may tell." if self.simulations and not self.last else ""
            return f"Do not rely on an ordinary p-value from this release until that is known.{wait}"
        instead = " Use the calibrated test." if self.offers_calibrated else ""
        if self.low > SOUND:
            return f"A low ordinary p-value on this release is no evidence of a {self.subject}.{instead}"
        if self.is_rough:
            few = f"Only {self.simulations} releases were simulated for each end of that range"
            return f"{few}, so it is rough: expect the higher figure until there are more.{instead}"
        return (
            f"The release says too little about the original to narrow this down, so expect the higher figure.{instead}"
        )


def of_100(low: float, high: float) -> str:
    """A range of shares as people of a hundred, rounded outwards.

    Example:
        >>> of_100(0.384, 0.466), of_100(0.998, 1.0), of_100(0.05, 0.05)
        ('between 38 and 47', 'between 99 and 100', 'about 5')
    """
    first, last = math.floor(100 * low + 1e-9), math.ceil(100 * high - 1e-9)
    return f"about {first}" if first == last else f"between {first} and {last}"


def shown_pvalue(pvalue: float) -> str:
    """As it is written in a sentence."""
    return f"{pvalue:.2g}" if pvalue >= 0.0001 else "below 0.0001"


def range_of(rates: Sequence[Proportion]) -> tuple[float, float]:
    """Of the rates under all nulls, each with its Monte-Carlo error."""
    return min(rate.low for rate in rates), max(rate.high for rate in rates)


def verdict_of(rates: Sequence[Proportion]) -> RiskVerdict:
    """From the bad end: sound if the intervals of all rates are, inflated if one is above the level for certain.

    For certain means three standard errors: it is the highest of several simulated rates.
    """
    if range_of(rates)[1] <= SOUND:
        return "sound"
    return "inflated" if any(map(_above_level, rates)) else "unknown"


def _above_level(rate: Proportion) -> bool:
    return rate.reps > 0 and rate.estimate > ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / rate.reps)


@dataclass(frozen=True, kw_only=True)
class RiskStage:
    """One refinement of a figure: how much is simulated, and whether that is all."""

    effort: Effort
    stage: int
    last: bool
    seed: int

    @classmethod
    def of(cls, simulator: NullSimulator, stage: int | None, *, max_seconds: float, seed: int) -> RiskStage:
        """The one asked for, or the last one there is; None asks for the last."""
        efforts = efforts_for(simulator, max_seconds)
        last = len(efforts) - 1
        chosen = last if stage is None else min(stage, last)
        return cls(effort=efforts[chosen], stage=chosen, last=chosen == last, seed=seed)

    def rng(self) -> np.random.Generator:
        """The same figure whenever it is asked for."""
        return np.random.default_rng([self.seed, self.stage])


def efforts_for(simulator: NullSimulator, max_seconds: float) -> tuple[Effort, ...]:
    """As many refinements as the expected time allows; raises where not even the first fits."""
    if simulator.quick:
        return COUNT_EFFORTS
    assert isinstance(simulator, RowSimulator)  # noqa: S101  there are two kinds
    efforts = row_efforts(simulator.seconds)
    allowed = [effort for effort in efforts if effort.runs * simulator.seconds <= max_seconds]
    if not allowed:
        raise NotSimulatedError(too_slow(efforts[0].runs * simulator.seconds))
    return tuple(allowed)


def nothing_simulated(subject: str) -> str:
    """The figure before any release has been simulated: as wide as can be, but true, and there at once."""
    return (
        f"Of 100 analysts who test a {subject} that does not exist, between 0 and 100 would report one, as far as "
        "is known: no release has been simulated. As long as that is so, do not rely on a low p-value."
    )


def too_slow(seconds: float) -> str:
    """Why there is no figure, where it would take so long."""
    return (
        f"One run of this mechanism takes too long to repeat it often enough: about {math.ceil(seconds / 60):,} "
        "minutes in all. Use a quicker mechanism, or allow more time."
    )


def expected_seconds(release: Release, test: NullTest, stage: int = 0) -> float:
    """Computing time of a figure, told from public facts before anything is simulated.

    Args:
        release: The release.
        test: What is asked about it.
        stage: How far the figure is refined, from 0.

    Raises:
        NotSimulatedError: The release cannot be simulated at all.
    """
    budget = stated_budget(release)
    per_row, mechanism, schema = budget.per_row(release.schema.rows_per_person), release.mechanism, release.schema
    if count_cells_of(mechanism, schema, test, release.n, per_row.epsilon) is not None:
        return QUICK_SECONDS
    plan = mechanism.plan(schema, release.n, per_row)
    efforts = row_efforts(plan.seconds_again)
    return plan.starting + efforts[min(stage, len(efforts) - 1)].runs * plan.seconds_again
