"""The risk of a false discovery for the questions asked most after group comparisons: shares, correlations, slopes.

The ordinary result, how often it would be wrong on this release, and a calibrated p-value, all from what is published.
The questions are :class:`~dpsynth_core.inference.share_test.ShareTest`,
:class:`~dpsynth_core.inference.correlation_test.CorrelationTest` and
:class:`~dpsynth_core.inference.slope_test.SlopeTest`; the simulation is that of ``null_simulation``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.discovery_risk import (
    ALPHA,
    BORDERLINE,
    CALIBRATED_FOLLOWS,
    MAX_SECONDS,
    SEED,
    SOUND,
    TOO_SLOW_TO_CALIBRATE,
    RiskVerdict,
    efforts_for,
    of_100,
    verdict_of,
)
from dpsynth_core.inference.null_simulation import NullSimulator, count_simulator, row_simulator
from dpsynth_core.inference.plausible_nulls import risk_range
from dpsynth_core.inference.question import OrdinaryFinding, Question
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.column import Column

CELLS = 32
"""Cells of a number in which its distribution is estimated."""
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
class QuestionRisk:
    """How far an ordinary result on a release can be trusted."""

    ordinary: OrdinaryFinding | None
    """On the release; None where there is nothing to test."""
    low: float
    """Rate of false discoveries under the most favourable null that the release leaves plausible; 0 if not known."""
    high: float
    """The same under the least favourable one; 1 if not known."""
    verdict: RiskVerdict
    """From the bad end."""
    calibrated: float | None = None
    """The largest p-value over the plausible nulls, from simulated releases; None where it cannot be told."""
    error: float = 0.0
    """Its Monte-Carlo standard error."""
    problem: str = ""
    """Why something is missing."""
    simulations: int = 0
    """Simulated releases of each null."""
    stage: int = 0
    last: bool = True

    @property
    def sentences(self) -> tuple[str, str]:
        """The figure and what it means, for people who do not program."""
        if not self.simulations:
            figure = f"How many analysts would report a relation that does not exist is not known. {self.problem}"
            return figure, "Do not rely on an ordinary p-value from this release until that is known."
        figure = (
            f"Of 100 analysts who test a relation that does not exist, {of_100(self.low, self.high)} would report one; "
            f"{100 * ALPHA:g} is what a sound test allows."
        )
        if self.verdict == "sound":
            return figure, "An ordinary p-value on this release means about what it says."
        if self.verdict == "unknown":
            return figure, "Do not rely on an ordinary p-value from this release: the simulation leaves it open."
        instead = "" if self.calibrated is None else " Use the calibrated one."
        if self.low > SOUND:
            return figure, f"A low ordinary p-value on this release is no evidence by itself.{instead}"
        return figure, f"The release says too little to narrow this down, so do not rely on the ordinary one.{instead}"

    @property
    def tests_sentence(self) -> str:
        """The ordinary p-value and the calibrated one, side by side; it holds names from a file."""
        if self.ordinary is None:
            return "There is nothing to test in this release: one of the columns does not vary."
        said = f"{self.ordinary.text} The ordinary p-value is {_p(self.ordinary.pvalue)}"
        if self.calibrated is None:
            return f"{said}. {self.problem}".rstrip()
        reading = "no sign of a relation beyond what the mechanism makes by itself"
        if self.calibrated <= ALPHA:
            reading = "more than what the mechanism makes by itself"
        if self.verdict == "sound" and (self.ordinary.pvalue <= ALPHA) != (self.calibrated <= ALPHA):
            reading = BORDERLINE
        return f"{said}; the calibrated one is {_p(self.calibrated)}: {reading}."


def _p(pvalue: float) -> str:
    return f"{pvalue:.2g}" if pvalue >= 0.0001 else "below 0.0001"


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
        simulator = question_simulator(release, question, synthetic, workers=workers)
        efforts = efforts_for(simulator, max_seconds)
    except DPSynthError as error:
        return replace(blank, problem=str(error))
    chosen = len(efforts) - 1 if stage is None else min(stage, len(efforts) - 1)
    effort, rng = efforts[chosen], np.random.default_rng([seed, chosen])
    found = risk_range(simulator, effort, alpha=ALPHA, rng=rng, progress=progress)
    ends = found.ends()
    risk = replace(
        blank,
        low=ends[0].low,
        high=ends[1].high,
        verdict=verdict_of(ends),
        simulations=found.releases,
        stage=chosen,
        last=chosen == len(efforts) - 1,
    )
    if risk.ordinary is None:
        return risk
    if not effort.calibrates:
        return replace(risk, problem=TOO_SLOW_TO_CALIBRATE if risk.last else CALIBRATED_FOLLOWS)
    centre, spread, pvalue = (float(each[0]) for each in (found.centres, found.spreads, found.pvalues))
    if not simulator.quick:
        near = abs(float(simulator.statistics[0]) - centre) < FAR * spread
        if abs(centre) > MAX_BIAS * spread or (pvalue <= ALPHA and near and risk.verdict != "sound"):
            return replace(risk, problem=MADE_BY_THE_MECHANISM)
    return replace(risk, calibrated=pvalue, error=math.sqrt(pvalue * (1 - pvalue) / (1 + effort.releases)))


def question_simulator(
    release: Release, question: Question, synthetic: pd.DataFrame, *, workers: int | None = None
) -> NullSimulator:
    """The quickest one, with coarser cells than for groups: here both columns may be numbers."""
    axes = _axis(question.group), _axis(question.value)
    by_counts = count_simulator(release, question, synthetic)
    return by_counts or replace(row_simulator(release, question, synthetic, axes=axes), workers=workers)


def _axis(column: Column) -> Axis:
    if not column.is_numeric:
        return Axis.coarse(column)
    return Axis.coarse(column, min(CELLS, column.points or CELLS))
