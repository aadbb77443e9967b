"""The Mann-Whitney test calibrated to the mechanism: what would the release have looked like without a difference?

The mechanism and its epsilon are public, so whoever holds a release can simulate the null hypothesis *through the
mechanism*: estimate from the release what the null leaves open, draw tables in which the group says nothing about the
value, release each of them in the same way, and see how often they look as different as the real release does. What
the release leaves open is tried out: the p-value is the largest over nulls that are plausible too. All of it is
post-processing, so it costs no privacy. How the estimate and the statistic were chosen: ``docs/proofs.md``, section 19.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.inference.count_simulator import CountSimulator
from dpsynth_core.inference.efforts import COUNT_CALIBRATION, FEWEST, ROW_SCREENING
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.group_test import GroupTest, tied_in_cells
from dpsynth_core.inference.histograms import GroupIndices
from dpsynth_core.inference.mann_whitney import GroupsError, MannWhitney
from dpsynth_core.inference.nuisance import Nuisance
from dpsynth_core.inference.null_counts import null_statistics
from dpsynth_core.inference.null_simulation import NullSimulator
from dpsynth_core.inference.null_simulators import simulator_of
from dpsynth_core.inference.plausible_nulls import screen
from dpsynth_core.inference.simulated_pvalues import least_favourable, simulated_pvalues
from dpsynth_core.inference.stated_risk import TOO_FEW_TO_CALIBRATE
from dpsynth_core.progress import Progress, no_progress, share_of
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.runs.workers import part_of

IN_COUNTS, IN_ROWS = 999, 99
"""Simulations of each null by default: of tables of counts, and of runs of a mechanism."""
UNDECIDED, LOW = 0.4, 0.1
"""A p-value above the first after a few simulations will not come down to any usual level; one above the second under
the estimated null needs no other nulls, which could only raise it."""


PORTION = 8
"""Runs of a mechanism after which an experiment asks whether more of them are needed."""


@dataclass(frozen=True, kw_only=True)
class CalibratedMannWhitney:
    """The outcome of one calibrated test."""

    pvalue: float
    """(1 + simulated releases at least as different) / (1 + simulations), the largest over plausible nulls; only
    releases that leave something to test count."""
    error: float
    """Monte-Carlo standard error of the p-value: more simulations make it smaller."""
    simulations: int
    """Of each null, or those of them that leave something to test where few do."""
    statistic: float
    """How far apart the groups are in the release: a standardised U, seen past the mechanism's own distortion."""
    null_mean: float
    """Its mean over the simulations of the null that gave the p-value: what the mechanism does to equal groups."""
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
        simulations: Releases of each null to simulate. None: 999 where counts suffice, 99 where the mechanism must run.
        seed: For a result that can be repeated.
        progress: Told the share that is done; raises to cancel.
        workers: Processes to use where the mechanism itself must run. None: one for each core.
    """
    chosen = [GroupComparison.of(release.schema, value=value, group=group, levels=levels)]
    synthetic = release.sample() if table is None else table
    (found,) = calibrate(
        release, chosen, synthetic, simulations=simulations, seed=seed, progress=progress, workers=workers
    )
    if found is None:
        raise GroupsError(TOO_FEW_TO_CALIBRATE)
    return found


def calibrate(
    release: Release,
    comparisons: Sequence[GroupComparison],
    synthetic: pd.DataFrame,
    *,
    simulations: int | None,
    seed: int | None,
    progress: Progress = no_progress,
    workers: int | None = None,
) -> list[CalibratedMannWhitney | None]:
    """Several comparisons on one release, one after the other; None where there is no answer."""
    if release.budget is None:
        raise GroupsError("This release states no privacy loss, so its mechanism cannot be run again at the same one.")
    if simulations is not None and simulations < FEWEST:
        raise ParameterError("simulations", simulations, allowed=f"at least {FEWEST}", remedy="Fewer cannot give 0.05.")
    rng = np.random.default_rng(seed)
    ordinary = [comparison.test(synthetic) for comparison in comparisons]
    out: list[CalibratedMannWhitney | None] = []
    for i, comparison in enumerate(comparisons):
        simulator = simulator_of(release, GroupTest(comparisons=(comparison,)), synthetic, workers=workers)
        times = simulations or (IN_COUNTS if simulator.quick else IN_ROWS)
        pvalue, simulated = pvalue_over_nulls(simulator, times, rng, part_of(progress, i, len(comparisons)))
        if math.isnan(pvalue):
            out.append(None)
            continue
        out.append(
            CalibratedMannWhitney(
                pvalue=pvalue,
                error=math.sqrt(pvalue * (1 - pvalue) / (1 + len(simulated))),
                simulations=len(simulated),
                statistic=float(simulator.statistics[0]),
                null_mean=float(simulated.mean()),
                null_std=float(simulated.std()),
                ordinary=ordinary[i],
                path="counts" if simulator.quick else "rows",
            )
        )
    return out


def pvalue_over_nulls(
    simulator: NullSimulator,
    simulations: int,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    *,
    stop_above: float = 1.0,
) -> tuple[float, FloatArray]:
    """The largest p-value over the estimated null and a few plausible ones, and the statistics simulated for it.

    Not a number where it would be low, but a null leaves too few releases to test to say so.

    Args:
        simulator: Of the release.
        simulations: Releases of each null.
        rng: Of the simulation.
        progress: Told the share that is done; raises to cancel.
        stop_above: For experiments that only ask whether the p-value is low: once it exceeds this, it is not raised
            any further.
    """
    effort, statistic = COUNT_CALIBRATION if simulator.quick else ROW_SCREENING, float(simulator.statistics[0])
    estimate = simulator.estimate(rng, share_of(progress, 0.0, 0.1), releases=effort.estimating)
    each: list[FloatArray] = []

    def raised_by(null: Nuisance, progress: Progress) -> bool:
        """Hold the release against one more null; whether its p-value is above ``stop_above`` by now."""
        drawn = _drawn(simulator, null, simulations, rng, progress, stop_above=stop_above)
        each.append(drawn.statistics)
        return drawn.stopped or least_favourable(statistic, [drawn.statistics])[0] > stop_above

    if raised_by(estimate, share_of(progress, 0.1, 0.2)):
        return _pvalue(statistic, each[-1]), each[-1]
    screened = screen(simulator, effort, rng, share_of(progress, 0.2, 0.6), estimate=estimate)
    chosen = [i for i in screened.least_unusual(simulator.statistics, effort.closest) if i]
    for i, index in enumerate(chosen):
        part = share_of(progress, 0.6 + 0.4 * i / len(chosen), 0.6 + 0.4 * (i + 1) / len(chosen))
        if raised_by(screened.plausible[index][0], part):
            return _pvalue(statistic, each[-1]), each[-1]
    pvalue, given_by = least_favourable(statistic, each)
    return pvalue, each[given_by]


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """Releases of one null."""

    statistics: FloatArray
    """Of those that leave something to test."""
    stopped: bool
    """Whether fewer were drawn than asked for, because more could not bring the p-value down far enough."""


def _pvalue(statistic: float, simulated: FloatArray) -> float:
    return float(simulated_pvalues(np.array([statistic]), simulated[None])[0])


def _drawn(
    simulator: NullSimulator,
    null: Nuisance,
    simulations: int,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    *,
    stop_above: float,
) -> _Drawn:
    """Releases of a null, in portions until no more of them could bring the p-value down to ``stop_above`` (Besag &
    Clifford 1991)."""
    found = _Drawn(statistics=np.empty(0), stopped=False)
    portion = PORTION if stop_above < 1 and not simulator.quick else simulations
    for start in range(0, simulations, portion):
        more = simulator.run_tested(null, min(portion, simulations - start), rng, progress).found.tested_statistics(0)
        found = _Drawn(statistics=np.concatenate([found.statistics, more]), stopped=False)
        as_far = _pvalue(float(simulator.statistics[0]), found.statistics) * (1 + len(found.statistics))
        if start + portion < simulations and as_far / (1 + simulations) > stop_above:
            return replace(found, stopped=True)
    return found


def count_pvalues(
    base: CountSimulator, indices: GroupIndices, released: FloatArray, simulations: int, rng: np.random.Generator
) -> FloatArray:
    """The test on many releases at once, for experiments; not a number where it has no answer.

    A few simulations decide most tables that are far from significant; only the others get them all, and only those
    that still look significant are held against other plausible nulls, which can only raise a p-value. Stopping early
    can turn a low p-value into a high one, though hardly ever does, and never the reverse.

    Args:
        base: The simulator of any release of the same mechanism and columns.
        indices: Where the two groups are.
        released: Counts of shape (tables, groups, values).
        simulations: Releases of each null.
        rng: Of the simulation.
    """
    law, tied = base.cells.law, tied_in_cells(base.cells.value, centre=base.cells.law.centre)
    observed, simulated = null_statistics(law, released, indices, FEWEST, rng, tied=tied)
    pvalues = simulated_pvalues(observed, simulated)
    open_still = pvalues <= UNDECIDED
    if simulations > FEWEST and open_still.any():
        _, more = null_statistics(law, released[open_still], indices, simulations - FEWEST, rng, tied=tied)
        together = np.concatenate([simulated[open_still], more], axis=1)
        pvalues[open_still] = simulated_pvalues(observed[open_still], together)
    # Where the first look takes released shares as they are, the estimated null is another one: all get a second; so do
    # those whose simulated releases often leave nothing to test.
    unsure = np.isnan(simulated).any(axis=1) | (not law.undoes_noise)
    for i in np.flatnonzero(~np.isnan(observed) & ((pvalues <= LOW) | unsure)):
        pvalues[i] = pvalue_over_nulls(replace(base, observed=released[i]), simulations, rng, stop_above=LOW)[0]
    return pvalues
