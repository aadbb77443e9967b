"""The false-discovery risk of one release: of those who test a difference that does not exist, how many report one.

Everything is computed from what is published (the rows, the mechanism, its epsilon, the declared columns), so the
figure may be shown to anybody. For internal review, :func:`private_discovery_risk` takes the groups' sizes and the
distribution of the values from the original instead, and is marked as private.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.calibrated import CalibratedMannWhitney
from dpsynth_core.inference.efforts import COUNT_EFFORTS, FEWEST
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.mann_whitney import MannWhitney
from dpsynth_core.inference.null_simulation import NullSimulator, shares_of
from dpsynth_core.inference.null_simulators import original_simulator, simulator_of, stated_budget
from dpsynth_core.inference.plausible_nulls import PlausibleNulls, false_reports, risk_range
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.risk_advice import Advice, advise
from dpsynth_core.inference.simulated_pvalues import ALPHA
from dpsynth_core.inference.stated_risk import (
    BORDERLINE,
    CALIBRATED_FOLLOWS,
    MAX_SECONDS,
    SEED,
    SOUND,
    TOO_FEW_TO_CALIBRATE,
    TOO_SLOW_TO_CALIBRATE,
    RiskStage,
    StatedRisk,
    efforts_for,
    range_of,
    shown_pvalue,
    verdict_of,
)
from dpsynth_core.progress import Progress, RunProgress, no_progress, share_of
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.private_table import PrivateTable


@dataclass(frozen=True, kw_only=True)
class DiscoveryRisk(StatedRisk):
    """How far a low p-value of a comparison between groups can be trusted."""

    value: str
    group: str
    levels: tuple[Any, ...]
    """The two groups, or all of them where every pair is tested and corrected for their number by Holm's method."""
    ordinary: MannWhitney | None
    """The ordinary test on the release, for two groups."""
    calibrated: CalibratedMannWhitney | None
    """The test that knows of the mechanism, where it answers."""
    advice: tuple[Advice, ...] = ()
    """What would change the figure, and to what."""
    pairs: tuple[DiscoveryRisk, ...] = ()
    """Each pair by itself, where there are more than two groups."""
    releasable: bool = True
    """False where the original was looked at."""

    @property
    def subject(self) -> str:
        return "difference"

    @property
    def offers_calibrated(self) -> bool:
        each = self.pairs or (self,)
        return any(one.calibrated is not None or one.problem == CALIBRATED_FOLLOWS for one in each)

    @property
    def nothing_to_test(self) -> bool:
        return self.ordinary is None and len(self.levels) == 2 and self.simulations > 0 and bool(self.problem)

    @property
    def who(self) -> str:
        if len(self.levels) == 2:
            return super().who
        return f"who compare all pairs of {len(self.levels)} groups that do not differ, with Holm's correction"

    @property
    def reported(self) -> str:
        return super().reported if len(self.levels) == 2 else "a difference"

    @property
    def tests_sentence(self) -> str:
        """The ordinary p-value and the calibrated one, side by side; or why there is no test."""
        if self.ordinary is None:
            return self.problem if self.nothing_to_test else ""
        ordinary = f"On this release the ordinary p-value is {shown_pvalue(self.ordinary.pvalue)}"
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
        return f"{ordinary}; the calibrated one is {shown_pvalue(self.calibrated.pvalue)}: {reading}."


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
    figure: Callable[[DiscoveryRisk], None] = lambda _: None,
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
        advice: Whether to work out what would change the figure, once it is no longer the first one.
        max_seconds: Expected computing time beyond which the risk is left unknown.
        seed: Of the simulation, so that the figure can be repeated.
        progress: Told the share that is done; raises to cancel.
        figure: Told the risk while the advice is still being worked out.
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
        stated = RiskStage.of(simulator, stage, max_seconds=max_seconds, seed=seed)
    except DPSynthError as error:
        return replace(blank, problem=str(error))
    rng, share = stated.rng(), 0.6 if advice and stated.stage else 1.0
    found = risk_range(simulator, stated.effort, alpha=ALPHA, rng=rng, progress=share_of(progress, 0.0, share))
    risk = _filled(replace(blank, stage=stated.stage, last=stated.last), found, simulator, ordinary)
    if advice and risk.verdict != "sound" and risk.stage:
        figure(risk)
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


def discovery_risk_in_parts(release: Release, *, progress: RunProgress, **asked: Any) -> DiscoveryRisk:
    """The same for somebody who reads the figure while the advice is worked out."""
    return discovery_risk(release, progress=progress, figure=progress.part, **asked)


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
    budget = stated_budget(release)
    simulator = original_simulator(private, release.mechanism, budget, test, rows=len(synthetic))
    releases = COUNT_EFFORTS[-1].releases
    if not simulator.quick:
        releases = max(effort.releases for effort in efforts_for(simulator, max_seconds))
    null = shares_of(simulator.counted(private)[None], private.n)
    drawn = simulator.run_tested(null, releases, np.random.default_rng(seed), progress)
    reported, tested = false_reports(drawn.found, ALPHA)
    share = Proportion(count=int(reported[-1]), reps=int(tested[-1]))
    return DiscoveryRisk(
        value=value,
        group=group,
        levels=test.levels,
        low=share.low,
        high=share.high,
        verdict=verdict_of([share]),
        ordinary=None,
        calibrated=None,
        simulations=releases,
        releasable=False,
    )


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
        rates = found.rates(question)
        low, high = range_of(rates)
        calibrated, problem = None, base.problem
        if base.ordinary is not None and found.releases < FEWEST:
            problem = TOO_SLOW_TO_CALIBRATE if base.last else CALIBRATED_FOLLOWS
        elif base.ordinary is not None and math.isnan(found.pvalues[question]):
            problem = TOO_FEW_TO_CALIBRATE
        elif base.ordinary is not None:
            calibrated = _calibrated(simulator, found, question, base.ordinary)
        risk = replace(
            base,
            low=low,
            high=high,
            verdict=verdict_of(rates),
            simulations=found.releases,
            calibrated=calibrated,
            problem=problem,
        )
        # Nobody can rely on a test that cannot be made.
        return replace(risk, verdict="unknown") if risk.nothing_to_test and risk.verdict == "sound" else risk

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
