"""The Mann-Whitney test calibrated to the mechanism: what would the release have looked like without a difference?

The mechanism and its epsilon are public, so whoever holds a release can simulate the null hypothesis *through the
mechanism*: estimate from the release what the null leaves open, draw tables in which the group says nothing about the
value, release each of them in the same way, and see how often they look as different as the real release does. All of
it is post-processing, so it costs no privacy. How the estimate and the statistic were chosen: ``docs/proofs.md``,
section 19.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.mann_whitney import GroupsError, MannWhitney
from dpsynth_core.inference.null_counts import CountedRelease
from dpsynth_core.inference.null_rows import STAGE, null_releases, row_statistics
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.synthesize import Release

IN_COUNTS, IN_ROWS = 999, 199
"""Simulations by default: of tables of counts, and of runs of a mechanism."""
FEWEST = 19
"""Fewer simulations cannot give a p-value of 0.05."""
ROUNDING = 1e-9
"""Statistics closer than this are equal."""


@dataclass(frozen=True, kw_only=True)
class CalibratedMannWhitney:
    """The outcome of one calibrated test."""

    pvalue: float
    """(1 + simulated releases that look at least as different) / (1 + simulations)."""
    error: float
    """Monte-Carlo standard error of the p-value: more simulations make it smaller."""
    simulations: int
    statistic: float
    """How far apart the groups are in the release: a standardised U, seen past the mechanism's own distortion."""
    null_mean: float
    """Its mean over the simulations: what the mechanism does to groups that do not differ."""
    null_std: float
    """Its standard deviation over the simulations; about 1 if the mechanism's noise did not matter."""
    ordinary: MannWhitney
    """The ordinary test on the same synthetic table, which takes it for real rows."""
    path: Literal["counts", "rows"]
    """How the null was simulated: as tables of counts, or by running the mechanism on tables."""


def calibrated_mann_whitney(
    release: Release,
    *,
    value: str,
    group: str,
    levels: Sequence[Any] | None = None,
    table: pd.DataFrame | None = None,
    simulations: int | None = None,
    seed: int | None = None,
    progress: Progress = no_progress,
    workers: int | None = None,
) -> CalibratedMannWhitney:
    """Test a difference between two groups on a release, with a p-value that knows of the mechanism's noise.

    Args:
        release: The release; its mechanism is run again on simulated tables only.
        value: Column to compare.
        group: Column of the groups.
        levels: The two groups, if the column has more.
        table: The synthetic table that was published; None: a fresh sample of the release.
        simulations: Null releases to simulate. None: 999 where counts suffice, 199 where the mechanism itself must run.
        seed: For a result that can be repeated.
        progress: Told the share that is done; raises to cancel.
        workers: Processes to use where the mechanism itself must run. None: one for each core.
    """
    chosen = [GroupComparison.of(release.schema, value=value, group=group, levels=levels)]
    synthetic = release.sample() if table is None else table
    return calibrate(
        release, chosen, synthetic, simulations=simulations, seed=seed, progress=progress, workers=workers
    )[0]


def calibrate(
    release: Release,
    comparisons: Sequence[GroupComparison],
    synthetic: pd.DataFrame,
    *,
    simulations: int | None,
    seed: int | None,
    progress: Progress = no_progress,
    workers: int | None = None,
) -> list[CalibratedMannWhitney]:
    """Several value columns against the same group, by one set of simulated releases."""
    budget = release.budget
    if budget is None:
        raise GroupsError("This release states no privacy loss, so its mechanism cannot be run again at the same one.")
    if simulations is not None and simulations < FEWEST:
        raise ParameterError("simulations", simulations, allowed=f"at least {FEWEST}", remedy="Fewer cannot give 0.05.")
    ordinary = [comparison.test(synthetic) for comparison in comparisons]
    rng = np.random.default_rng(seed)
    counted = CountedRelease.of(release, comparisons, synthetic)
    if counted is not None:
        progress(STAGE, 0.0)
        observed, simulated = counted.statistics(simulations or IN_COUNTS, rng)
        return [_outcome(observed, simulated, ordinary[0], "counts")]
    times = simulations or IN_ROWS
    drawn = null_releases(
        release, comparisons, synthetic, budget=budget, simulations=times, rng=rng, progress=progress, workers=workers
    )
    found = row_statistics(comparisons, synthetic)
    return [_outcome(found[i], drawn[:, i], ordinary[i], "rows") for i in range(len(comparisons))]


def _outcome(
    statistic: float, simulated: FloatArray, ordinary: MannWhitney, path: Literal["counts", "rows"]
) -> CalibratedMannWhitney:
    pvalue = float(calibrated_pvalue(np.array([statistic]), simulated[None])[0])
    return CalibratedMannWhitney(
        pvalue=pvalue,
        error=math.sqrt(pvalue * (1 - pvalue) / (1 + len(simulated))),
        simulations=len(simulated),
        statistic=float(statistic),
        null_mean=float(simulated.mean()),
        null_std=float(simulated.std()),
        ordinary=ordinary,
        path=path,
    )


def calibrated_pvalue(observed: FloatArray, simulated: FloatArray) -> FloatArray:
    """How unusual each observed statistic is among its own simulations, on either side of their common mean.

    The mean is over all of them, the observed one included, so that under the null they are exchangeable.
    """
    simulations = simulated.shape[1]
    centre = (observed + simulated.sum(axis=1)) / (1 + simulations)
    distance = np.abs(observed - centre)
    as_far = (np.abs(simulated - centre[:, None]) >= distance[:, None] - ROUNDING).sum(axis=1)
    return np.asarray((1 + as_far) / (1 + simulations), dtype=np.float64)
