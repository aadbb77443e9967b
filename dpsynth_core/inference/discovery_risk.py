"""The false-discovery risk of one release: of those who test a difference that does not exist, how many report one.

Everything is computed from what is published (the rows, the mechanism, its epsilon, the declared columns), so the
figure may be shown to anybody. For internal review, :func:`private_discovery_risk` takes the groups' sizes and the
distribution of the values from the original instead, and is marked as private.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.calibrated import CalibratedMannWhitney
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.mann_whitney import MannWhitney
from dpsynth_core.inference.null_simulation import (
    NotSimulatedError,
    NullSimulator,
    RowSimulator,
    shares_of,
    simulator_of,
)
from dpsynth_core.inference.plausible_nulls import (
    COUNT_EFFORTS,
    FEWEST,
    ROW_EFFORTS,
    Effort,
    PlausibleNulls,
    false_reports,
    risk_range,
)
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.risk_advice import Advice, advise
from dpsynth_core.progress import Progress, no_progress, share_of
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.private_table import PrivateTable

RiskVerdict: TypeAlias = Literal["sound", "inflated", "unknown"]
ALPHA = 0.05
"""Significance level of the analysts."""
SOUND = 0.08
"""Rate of false discoveries up to which an ordinary test is called sound: the level and a margin for simulation."""
MAX_SECONDS = 600.0
"""Expected computing time beyond which nothing is simulated."""
SEED = 20_240
BORDERLINE = (
    f"they fall on either side of {ALPHA:g}, which is a borderline result. Go by the calibrated one, which allows for "
    "all that the release leaves open"
)
"""Where an ordinary test is sound and both disagree."""
CALIBRATED_FOLLOWS = "The calibrated one comes with the next figure."
TOO_SLOW_TO_CALIBRATE = "There is no calibrated one: repeating this mechanism often enough takes too long."


@dataclass(frozen=True, kw_only=True)
class DiscoveryRisk:
    """How far a low p-value on a release can be trusted."""

    value: str
    group: str
    levels: tuple[Any, ...]
    """The two groups, or all of them where every pair is tested and corrected for their number by Holm's method."""
    low: float
    """Rate of false discoveries under the most favourable null that the release leaves plausible; 0 if not known."""
    high: float
    """The same under the least favourable one; 1 if not known."""
    verdict: RiskVerdict
    """From the bad end: "sound" only if even ``high`` is as it should be."""
    ordinary: MannWhitney | None
    """The ordinary test on the release, for two groups."""
    calibrated: CalibratedMannWhitney | None
    """The test that knows of the mechanism, where it answers."""
    advice: tuple[Advice, ...] = ()
    """What would change the figure, and to what."""
    pairs: tuple[DiscoveryRisk, ...] = ()
    """Each pair by itself, where there are more than two groups."""
    problem: str = ""
    """Why there is no figure, or no calibrated test."""
    simulations: int = 0
    """Simulated releases behind either end."""
    stage: int = 0
    """How far the figure has been refined, from 0."""
    last: bool = True
    """Whether it will not be refined any further."""
    releasable: bool = True
    """False where the original was looked at."""

    @property
    def sentences(self) -> tuple[str, str]:
        """The figure and what it means, for people who do not program."""
        return self._figure, self._meaning

    @property
    def _figure(self) -> str:
        allowed = f"{100 * ALPHA:g} is what a sound test allows"
        if not self.simulations:
            return f"How many analysts would report a difference that does not exist is not known. {self.problem}"
        who = "who test a difference that does not exist"
        if len(self.levels) > 2:
            who = f"who compare all pairs of {len(self.levels)} groups that do not differ, with Holm's correction"
            return f"Of 100 analysts {who}, {of_100(self.low, self.high)} would report a difference; {allowed}."
        return f"Of 100 analysts {who}, {of_100(self.low, self.high)} would report one; {allowed}."

    @property
    def _meaning(self) -> str:
        if self.verdict == "sound":
            return "An ordinary p-value on this release means about what it says."
        if self.verdict == "unknown":
            wait = " More simulations may tell." if self.simulations else ""
            return f"Do not rely on an ordinary p-value from this release until that is known.{wait}"
        instead = "" if self.calibrated is None and self.last and not self.pairs else " Use the calibrated test."
        if self.low > SOUND:
            return f"A low ordinary p-value on this release is no evidence of a difference.{instead}"
        return (
            f"The release says too little about the original to narrow this down, so expect the higher figure.{instead}"
        )

    @property
    def tests_sentence(self) -> str:
        """The ordinary p-value and the calibrated one, side by side; empty where there is no test."""
        if self.ordinary is None:
            return ""
        ordinary = f"On this release the ordinary p-value is {_p(self.ordinary.pvalue)}"
        if self.calibrated is None:
            return f"{ordinary}. {self.problem}".rstrip()
        low, really = self.ordinary.pvalue <= ALPHA, self.calibrated.pvalue <= ALPHA
        reading = {
            (True, True): "the difference is more than what the mechanism does by itself",
            (True, False): "the mechanism alone makes such a difference often enough",
            (False, True): "the mechanism hides a difference that its noise does not explain",
            (False, False): "no sign of a difference",
        }[low, really]
        if self.verdict == "sound" and low != really:
            reading = BORDERLINE
        return f"{ordinary}; the calibrated one is {_p(self.calibrated.pvalue)}: {reading}."


def of_100(low: float, high: float) -> str:
    """A range of shares as people of a hundred, rounded outwards.

    Example:
        >>> of_100(0.384, 0.466), of_100(0.998, 1.0), of_100(0.05, 0.05)
        ('between 38 and 47', 'between 99 and 100', 'about 5')
    """
    first, last = math.floor(100 * low + 1e-9), math.ceil(100 * high - 1e-9)
    return f"about {first}" if first == last else f"between {first} and {last}"


def _p(pvalue: float) -> str:
    return f"{pvalue:.2g}" if pvalue >= 0.0001 else "below 0.0001"


def verdict_of(ends: tuple[Proportion, Proportion]) -> RiskVerdict:
    """From the bad end: sound if all of its interval is, inflated if it is above the level for certain.

    For certain means three standard errors: the bad end is the highest of several simulated rates.
    """
    _, high = ends
    if high.high <= SOUND:
        return "sound"
    certain = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / high.reps)
    return "inflated" if high.estimate > certain else "unknown"


def discovery_risk(
    release: Release,
    *,
    value: str,
    group: str,
    levels: Sequence[Any] | None = None,
    table: pd.DataFrame | None = None,
    stage: int | None = None,
    advice: bool = True,
    max_seconds: float = MAX_SECONDS,
    seed: int = SEED,
    progress: Progress = no_progress,
    workers: int | None = None,
) -> DiscoveryRisk:
    """How often an ordinary test between groups would report a difference that does not exist, on this release.

    Args:
        release: The release; its mechanism is run again, on simulated tables only.
        value: Column to compare.
        group: Column of the groups. With more than two levels every pair is compared, corrected by Holm's method.
        levels: The two groups to compare, if the column has more.
        table: The synthetic table that was published; None: a fresh sample of the release.
        stage: How far to refine the figure, from 0 (seconds); None: as far as it goes.
        advice: Whether to work out what would change the figure.
        max_seconds: Expected computing time beyond which the risk is left unknown.
        seed: Of the simulation, so that the figure can be repeated.
        progress: Told the share that is done; raises to cancel.
        workers: Processes to use where the mechanism itself must run. None: as many as pay.

    Example:
        >>> import dpsynth_core as dp
        >>> example = dp.EXAMPLES["breast_cancer"]
        >>> private = dp.PrivateTable(example.load(), example.schema).select(["diagnosis", "mean radius"])
        >>> release = dp.synthesize(private, dp.MECHANISMS["perturbed_histogram"](), epsilon=0.1, seed=1)
        >>> risk = dp.discovery_risk(release, value="mean radius", group="diagnosis", stage=0, advice=False)
        >>> risk.verdict
        'inflated'
    """
    synthetic = release.sample() if table is None else table
    test = GroupTest.of(release.schema, value=value, group=group, levels=levels)
    ordinary, problem = _ordinary(test, synthetic)
    blank = DiscoveryRisk(
        value=value,
        group=group,
        levels=test.levels,
        low=0.0,
        high=1.0,
        verdict="unknown",
        ordinary=ordinary[0] if len(ordinary) == 1 else None,
        calibrated=None,
        problem=problem,
    )
    try:
        simulator = simulator_of(release, test, synthetic, workers=workers)
        efforts = efforts_for(simulator, max_seconds)
    except DPSynthError as error:
        return replace(blank, problem=str(error))
    chosen = len(efforts) - 1 if stage is None else min(stage, len(efforts) - 1)
    rng = np.random.default_rng([seed, chosen])
    share = 0.6 if advice else 1.0
    found = risk_range(simulator, efforts[chosen], alpha=ALPHA, rng=rng, progress=share_of(progress, 0.0, share))
    risk = _filled(replace(blank, stage=chosen, last=chosen == len(efforts) - 1), found, simulator, ordinary)
    if advice and risk.verdict != "sound" and (simulator.quick or chosen):
        part = share_of(progress, share, 1.0)
        risk = replace(
            risk,
            advice=advise(
                simulator,
                release,
                synthetic,
                found,
                rng=rng,
                alpha=ALPHA,
                enough=SOUND,
                others=risk.last,
                progress=part,
            ),
        )
    return risk


def private_discovery_risk(
    private: PrivateTable,
    release: Release,
    *,
    value: str,
    group: str,
    levels: Sequence[Any] | None = None,
    table: pd.DataFrame | None = None,
    max_seconds: float = MAX_SECONDS,
    seed: int = SEED,
    progress: Progress = no_progress,
) -> DiscoveryRisk:
    """The same with the groups' sizes and the distribution of the values as they are in the original. Private.

    For internal review: the figure looks at the private rows, so it is marked and must not be published. Its range is
    the Monte-Carlo error alone.

    Args:
        private: The original.
        release: What was made of it.
        value: Column to compare.
        group: Column of the groups.
        levels: The two groups to compare, if the column has more.
        table: The synthetic table; None: a fresh sample of the release.
        max_seconds: Expected computing time beyond which it is refused.
        seed: Of the simulation.
        progress: Told the share that is done; raises to cancel.
    """
    synthetic = release.sample() if table is None else table
    test = GroupTest.of(release.schema, value=value, group=group, levels=levels)
    simulator = simulator_of(release, test, synthetic)
    releases = COUNT_EFFORTS[-1].releases
    if isinstance(simulator, RowSimulator):
        simulator = replace(simulator, base=private)
        releases = max(effort.releases for effort in efforts_for(simulator, max_seconds))
    null = shares_of(simulator.counted(private)[None], private.n)
    drawn = simulator.run(null, releases, np.random.default_rng(seed), progress)
    reported = false_reports(drawn, ALPHA)[:, -1]
    share = Proportion(count=int(reported.sum()), reps=releases)
    return DiscoveryRisk(
        value=value,
        group=group,
        levels=test.levels,
        low=share.low,
        high=share.high,
        verdict=verdict_of((share, share)),
        ordinary=None,
        calibrated=None,
        simulations=releases,
        releasable=False,
    )


def efforts_for(simulator: NullSimulator, max_seconds: float) -> tuple[Effort, ...]:
    """As many refinements as the expected time allows; raises where not even the first fits."""
    if simulator.quick:
        return COUNT_EFFORTS
    assert isinstance(simulator, RowSimulator)  # noqa: S101  there are two kinds
    allowed = [effort for effort in ROW_EFFORTS if effort.runs * simulator.seconds <= max_seconds]
    if not allowed:
        minutes = math.ceil(ROW_EFFORTS[0].runs * simulator.seconds / 60)
        raise NotSimulatedError(
            f"One run of this mechanism takes too long to repeat it {ROW_EFFORTS[0].runs} times: about {minutes:,} "
            "minutes. Allow more time, or use a quicker mechanism."
        )
    return tuple(allowed)


def _ordinary(test: GroupTest, synthetic: pd.DataFrame) -> tuple[list[MannWhitney | None], str]:
    found: list[MannWhitney | None] = []
    problem = ""
    for comparison in test.comparisons:
        try:
            found.append(comparison.test(synthetic))
        except DPSynthError as error:
            found.append(None)
            problem = problem or str(error)
    return found, problem


def _filled(
    blank: DiscoveryRisk, found: PlausibleNulls, simulator: NullSimulator, ordinary: list[MannWhitney | None]
) -> DiscoveryRisk:
    """With the figures; with several pairs, those of each, and of all together after Holm's correction."""
    test = simulator.test
    assert isinstance(test, GroupTest)  # noqa: S101  asked for by the caller

    def of(question: int, base: DiscoveryRisk) -> DiscoveryRisk:
        ends = found.ends(question)
        low, high = ends[0].low, ends[1].high
        calibrated, problem = None, base.problem
        if base.ordinary is not None and found.releases >= FEWEST:
            calibrated = _calibrated(simulator, found, question, base.ordinary)
        elif base.ordinary is not None:
            problem = TOO_SLOW_TO_CALIBRATE if base.last else CALIBRATED_FOLLOWS
        return replace(
            base,
            low=low,
            high=high,
            verdict=verdict_of(ends),
            simulations=found.releases,
            calibrated=calibrated,
            problem=problem,
        )

    if len(ordinary) == 1:
        return of(0, blank)
    pairs = tuple(
        of(i, replace(blank, levels=comparison.levels, ordinary=ordinary[i]))
        for i, comparison in enumerate(test.comparisons)
    )
    return of(len(pairs), replace(blank, pairs=pairs))


def _calibrated(
    simulator: NullSimulator, found: PlausibleNulls, question: int, ordinary: MannWhitney
) -> CalibratedMannWhitney:
    """From the same simulated releases: the largest p-value over the nulls that were looked at closely."""
    pvalue = float(found.pvalues[question])
    return CalibratedMannWhitney(
        pvalue=pvalue,
        error=math.sqrt(pvalue * (1 - pvalue) / (1 + found.releases)),
        simulations=found.releases,
        statistic=float(simulator.statistics[question]),
        null_mean=float(found.centres[question]),
        null_std=float(found.spreads[question]),
        ordinary=ordinary,
        path="counts" if simulator.quick else "rows",
    )
