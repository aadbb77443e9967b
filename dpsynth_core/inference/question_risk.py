"""The risk of a false discovery for the questions asked most after group comparisons: shares, correlations, slopes.

The ordinary result, how often it would be wrong on this release, and a calibrated p-value, all from what is published.
The questions are :class:`~dpsynth_core.inference.share_test.ShareTest`,
:class:`~dpsynth_core.inference.correlation_test.CorrelationTest` and
:class:`~dpsynth_core.inference.slope_test.SlopeTest`; the simulation is that of ``null_simulation``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.null_simulators import simulator_of
from dpsynth_core.inference.plausible_nulls import risk_range
from dpsynth_core.inference.question import OrdinaryFinding, Question
from dpsynth_core.inference.simulated_pvalues import ALPHA
from dpsynth_core.inference.stated_risk import (
    BORDERLINE,
    CALIBRATED_FOLLOWS,
    MAX_SECONDS,
    SEED,
    TOO_FEW_TO_CALIBRATE,
    TOO_SLOW_TO_CALIBRATE,
    RiskStage,
    StatedRisk,
    range_of,
    shown_pvalue,
    verdict_of,
)
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.synthesize import Release

MAX_BIAS = 1.0
"""Standard deviations by which the mechanism may move the statistic of unrelated columns. Beyond, a p-value would rest
on knowing that shift exactly, and releases of skewed columns were called related in 17% of cases."""
FAR = 5.0
"""Standard deviations from every plausible null that make a relation credible where the ordinary test is not sound:
the nulls that are tried need not include the true one."""
MADE_BY_THE_MECHANISM = (
    "The mechanism by itself can make columns like these look related, and the release does not tell exactly how much, "
    "so there is no calibrated p-value. Ask for more epsilon, fewer columns, or another mechanism."
)


@dataclass(frozen=True, kw_only=True)
class QuestionRisk(StatedRisk):
    """How far an ordinary result on a release can be trusted."""

    ordinary: OrdinaryFinding | None
    """On the release; None where there is nothing to test."""
    calibrated: float | None = None
    """The largest p-value over the plausible nulls, from simulated releases; None where it cannot be told."""
    error: float = 0.0
    """Its Monte-Carlo standard error."""

    @property
    def subject(self) -> str:
        return "relation"

    @property
    def offers_calibrated(self) -> bool:
        return self.calibrated is not None or self.problem == CALIBRATED_FOLLOWS

    @property
    def nothing_to_test(self) -> bool:
        return self.ordinary is None and self.simulations > 0

    @property
    def tests_sentence(self) -> str:
        """The ordinary p-value and the calibrated one, side by side; it holds names from a file."""
        if self.ordinary is None:
            return "There is nothing to test in this release: one of the columns does not vary."
        said = f"{self.ordinary.text} The ordinary p-value is {shown_pvalue(self.ordinary.pvalue)}"
        if self.calibrated is None:
            return f"{said}. {self.problem}".rstrip()
        reading = "no sign of a relation beyond what the mechanism makes by itself"
        if self.calibrated <= ALPHA:
            reading = "more than what the mechanism makes by itself"
        if self.verdict == "sound" and (self.ordinary.pvalue <= ALPHA) != (self.calibrated <= ALPHA):
            reading = BORDERLINE
        return f"{said}; the calibrated one is {shown_pvalue(self.calibrated)}: {reading}."


def question_risk(
    release: Release,
    question: Question,
    *,
    table: pd.DataFrame | None = None,
    stage: int | None = None,
    max_seconds: float = MAX_SECONDS,
    seed: int = SEED,
    progress: Progress = no_progress,
    workers: int | None = None,
) -> QuestionRisk:
    """The ordinary result of a question, how often it would be a false discovery, and a calibrated p-value.

    Args:
        release: The release; its mechanism is run again, on simulated tables only.
        question: What an analyst asks.
        table: The synthetic table that was published; None: a fresh sample of the release.
        stage: How far to refine the figures, from 0 (seconds); None: as far as it goes.
        max_seconds: Expected computing time beyond which the risk is left unknown.
        seed: Of the simulation, so that the figures can be repeated.
        progress: Told the share that is done; raises to cancel.
        workers: Processes to use where the mechanism itself must run. None: as many as pay.

    Example:
        >>> import dpsynth_core as dp
        >>> from dpsynth_core.inference.share_test import ShareTest
        >>> schema = dp.Schema.from_dict({"columns": [
        ...     {"name": "smokes", "kind": "boolean", "public": True},
        ...     {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "public": True}]})
        >>> people = pd.DataFrame({"smokes": [True, False, False, False] * 100, "sex": ["f", "f", "m", "m"] * 100})
        >>> release = dp.synthesize(dp.PrivateTable(people, schema), dp.MECHANISMS["kd_grid"](), epsilon=5, seed=1)
        >>> risk = question_risk(release, ShareTest.of(schema, value="smokes", group="sex", outcome=True), stage=0)
        >>> risk.calibrated < 0.05
        True
    """
    synthetic = release.sample() if table is None else table
    blank = QuestionRisk(ordinary=question.finding(synthetic), low=0.0, high=1.0, verdict="unknown")
    try:
        simulator = simulator_of(release, question, synthetic, workers=workers)
        stated = RiskStage.of(simulator, stage, max_seconds=max_seconds, seed=seed)
    except DPSynthError as error:
        return replace(blank, problem=str(error))
    found = risk_range(simulator, stated.effort, alpha=ALPHA, rng=stated.rng(), progress=progress)
    rates = found.rates()
    low, high = range_of(rates)
    risk = replace(
        blank,
        low=low,
        high=high,
        verdict=verdict_of(rates),
        simulations=found.releases,
        stage=stated.stage,
        last=stated.last,
    )
    if risk.ordinary is None:
        return replace(risk, verdict="unknown") if risk.verdict == "sound" else risk
    if not stated.effort.calibrates:
        return replace(risk, problem=TOO_SLOW_TO_CALIBRATE if risk.last else CALIBRATED_FOLLOWS)
    centre, spread, pvalue = (float(each[0]) for each in (found.centres, found.spreads, found.pvalues))
    if math.isnan(pvalue):
        return replace(risk, problem=TOO_FEW_TO_CALIBRATE)
    if not simulator.quick:
        near = abs(float(simulator.statistics[0]) - centre) < FAR * spread
        if abs(centre) > MAX_BIAS * spread or (pvalue <= ALPHA and near and risk.verdict != "sound"):
            return replace(risk, problem=MADE_BY_THE_MECHANISM)
    return replace(risk, calibrated=pvalue, error=math.sqrt(pvalue * (1 - pvalue) / (1 + stated.effort.releases)))
