"""What would change the false-discovery risk of a release, with the figure that each change would give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.calibrated import count_pvalues
from dpsynth_core.inference.count_simulator import CountSimulator
from dpsynth_core.inference.efforts import FEWEST
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.histograms import GroupIndices
from dpsynth_core.inference.nuisance import Nuisance
from dpsynth_core.inference.null_simulation import NullSimulator
from dpsynth_core.inference.null_simulators import row_simulator
from dpsynth_core.inference.plausible_nulls import PlausibleNulls, false_reports
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.row_simulator import RowSimulator
from dpsynth_core.inference.stated_risk import range_of
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.progress import Progress
from dpsynth_core.runs.synthesize import Release

Remedy: TypeAlias = Literal["calibrated", "rows", "epsilon", "mechanism"]
FACTORS = (4, 20)
"""Times the rows or the epsilon: up to the first that helps enough."""
COUNT_RELEASES, ROW_RELEASES = 400, 20
"""Simulated for each null; more where the mechanism must run but is quick."""
MAX_ROW_RELEASES = 100
CALIBRATED, CALIBRATING = 200, 99
"""Calibrated tests for each null, and simulations for each of them."""
MAX_SECONDS = 10.0
"""Expected computing time for one figure; what takes longer is left out."""
STAGE = "Looking for what would help"


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One change and the risk after it, under the same plausible nulls."""

    remedy: Remedy
    title: str
    """What to do."""
    short: str
    """The same in a few words, for a chart."""
    low: float
    high: float
    """Rates of false discoveries with the change, Monte-Carlo error included."""


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """The nulls under which changes are tried: the estimate, and those at the ends of the range."""

    nulls: Sequence[Nuisance]
    rng: np.random.Generator
    alpha: float

    def rates(self, simulator: NullSimulator, *, factor: int = 1) -> tuple[float, float]:
        """The range over the nulls, with so many times their rows."""
        releases = COUNT_RELEASES if simulator.quick else self._row_releases(simulator)
        rates = []
        for null in self.nulls:
            grown = Nuisance(sizes=null.sizes * factor, chances=null.chances)
            reported, tested = false_reports(simulator.run(grown, releases, self.rng).found, self.alpha)
            rates.append(Proportion(count=int(reported[-1]), reps=int(tested[-1])))
        return range_of(rates)

    def _row_releases(self, simulator: NullSimulator) -> int:
        assert isinstance(simulator, RowSimulator)  # noqa: S101  there are two kinds
        seconds = len(self.nulls) * simulator.seconds
        return min(max(int(MAX_SECONDS / seconds), ROW_RELEASES), MAX_ROW_RELEASES)

    def calibrated(self, simulator: NullSimulator) -> tuple[float, float]:
        """The range over the nulls of the calibrated test's own rate, everything it estimates included."""
        assert isinstance(simulator, CountSimulator)  # noqa: S101  asked for by its caller
        assert isinstance(simulator.test, GroupTest)  # noqa: S101  likewise
        law, (first, second) = simulator.cells.law, simulator.test.comparisons[0].codes
        indices = GroupIndices(first=first, second=second, values=simulator.cells.value.slots)
        rates = []
        for null in self.nulls:
            released = law.run(null.draw(CALIBRATED, self.rng), self.rng)
            pvalues = count_pvalues(simulator, indices, released, CALIBRATING, self.rng)
            answered = int((~np.isnan(pvalues)).sum())
            rates.append(Proportion(count=int((pvalues <= self.alpha).sum()), reps=answered))
        return range_of(rates)


def advise(
    simulator: NullSimulator,
    release: Release,
    synthetic: pd.DataFrame,
    found: PlausibleNulls,
    *,
    rng: np.random.Generator,
    alpha: float,
    enough: float,
    others: bool,
    progress: Progress,
) -> tuple[Advice, ...]:
    """The calibrated test, more epsilon, more rows, other mechanisms; each with its figure.

    Args:
        simulator: Of the release.
        release: What the risk was found for.
        synthetic: Its table.
        found: The plausible nulls.
        rng: Of the simulation.
        alpha: Significance level.
        enough: Rate up to which nothing more needs to be tried.
        others: Whether to run other mechanisms too, which takes longest.
        progress: Told the share that is done; raises to cancel.
    """
    trial = _Trial(nulls=found.extreme(-1), rng=rng, alpha=alpha)
    advice: list[Advice] = []
    progress(STAGE, 0.0)
    if found.questions == 1 and found.releases >= FEWEST and not np.isnan(found.pvalues[0]):
        by_counts = isinstance(simulator, CountSimulator) and isinstance(simulator.test, GroupTest)
        low, high = trial.calibrated(simulator) if by_counts else range_of(found.calibrated_rates(alpha))
        advice.append(
            Advice(remedy="calibrated", title="Use the calibrated test", short="calibrated test", low=low, high=high)
        )
    for step, (remedy, option) in enumerate((("epsilon", _epsilon), ("rows", _rows))):
        progress(STAGE, 0.2 + 0.2 * step)
        for factor in FACTORS:
            advice = [one for one in advice if one.remedy != remedy]
            advice.append(option(simulator, release, trial, factor))
            if advice[-1].high <= enough:
                break
    progress(STAGE, 0.6)
    return (*advice, *(_mechanisms(simulator, release, synthetic, trial) if others else ()))


def _epsilon(simulator: NullSimulator, release: Release, trial: _Trial, factor: int) -> Advice:
    low, high = trial.rates(simulator.changed(epsilon=factor))
    granted = 0.0 if release.budget is None else float(release.budget.epsilon * factor)
    title = f"Spend ε = {granted:g} ({factor} times as much)"
    return Advice(remedy="epsilon", title=title, short=f"ε = {granted:g}", low=low, high=high)


def _rows(simulator: NullSimulator, release: Release, trial: _Trial, factor: int) -> Advice:
    low, high = trial.rates(simulator.changed(factor=factor), factor=factor)
    rows = f"{release.n * factor:,} rows"
    title = f"Collect {rows} ({factor} times as many)"
    return Advice(remedy="rows", title=title, short=rows, low=low, high=high)


def _mechanisms(simulator: NullSimulator, release: Release, synthetic: pd.DataFrame, trial: _Trial) -> Iterator[Advice]:
    """Proven ones that are quick enough, with the parameters that each suggests for this table."""
    base = _on_rows(simulator, release, synthetic)
    schema, n = release.schema, release.n
    epsilon = base.budget.per_row(schema.rows_per_person).epsilon
    for key in MECHANISMS:
        kind = MECHANISMS[key]
        if kind.status != "proven" or kind.comparator or key == release.mechanism.key:
            continue
        if kind.needs_delta and not base.budget.delta:
            continue
        try:
            mechanism = kind.suggest(schema, n, epsilon)
            other = base.by(mechanism)
            if other.seconds * ROW_RELEASES * len(trial.nulls) > MAX_SECONDS:
                continue
            low, high = trial.rates(other)
        except DPSynthError:
            continue  # it does not fit this table
        title = f"Use {kind.title} at the same ε"
        yield Advice(remedy="mechanism", title=title, short=kind.title, low=low, high=high)


def _on_rows(simulator: NullSimulator, release: Release, synthetic: pd.DataFrame) -> RowSimulator:
    if isinstance(simulator, CountSimulator):
        cells = simulator.cells
        return row_simulator(release, simulator.test, synthetic, axes=(cells.group, cells.value))
    assert isinstance(simulator, RowSimulator)  # noqa: S101  there are two kinds
    return simulator
