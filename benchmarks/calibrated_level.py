"""Type I error of the calibrated Mann-Whitney test, over the cells of ``benchmarks.discovery_risk``.

    python -m benchmarks.calibrated_level --results level.csv [--cells 100] [--releases 400] [--mechanisms kd_grid,...]
    python -m benchmarks.calibrated_level --results level.csv --fresh fresh.csv [--releases 600]

In every cell the test is tried on releases, of tables without a difference, that leave something to test: 100 of them,
and 100 more each time, up to ``--releases``, as long as the interval of its rate of false reports reaches above 0.07.
The rate is that among its answers; how often it said that it cannot tell is kept beside it. What is finished is
appended to the file at once and is not run again.

The largest of many rates is large by chance too. With ``--fresh``, the cells whose rate is above 0.07 are tried once
more, on releases that have nothing in common with the first ones, each of which the test is asked about.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in the app's workers

import numpy as np

from benchmarks.discovery_risk import (
    BINS,
    COUNTED,
    MAX_BATCHES,
    GridCell,
    append,
    finished,
    null_release,
    rng_of,
    schema,
    truth,
    unfinished,
)
from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.calibrated import count_pvalues, pvalue_over_nulls
from dpsynth_core.inference.count_simulator import CountSimulator
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.histograms import GroupIndices
from dpsynth_core.inference.null_simulation import NullSimulator
from dpsynth_core.inference.null_simulators import simulator_of
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.simulated_pvalues import ALPHA
from dpsynth_core.inference.u_statistics import testable

CALIBRATED_MAX = 0.07
BATCH = 100
"""Releases that are tried at a time."""
SIMULATIONS = 99
FAR, CHECKED = 0.15, 0.05
"""Where the mechanism must run: the share of a batch's releases, those whose groups lie furthest apart, that are all
tested, and the share of the others that are."""


@dataclass(frozen=True, kw_only=True)
class CalibratedResult:
    """How often the calibrated test was wrong in one cell."""

    mechanism: str
    shape: str
    share: float
    n: int
    epsilon: float
    reported: int
    """Releases with a calibrated p-value of 0.05 or less."""
    answered: int
    """Releases with a calibrated p-value."""
    tested: int
    """Releases that left something to test: on the others of these, the test said that it cannot tell."""
    releases: int
    """Drawn for that."""
    asked: int
    """Releases on which the test was made; the others of those tested count as not reported."""
    seconds: float
    """Processor time."""

    @property
    def cell(self) -> GridCell:
        return GridCell(mechanism=self.mechanism, shape=self.shape, share=self.share, n=self.n, epsilon=self.epsilon)

    @property
    def type_one(self) -> Proportion:
        """Of the releases with an answer."""
        return Proportion(count=self.reported, reps=self.answered)


FIRST, FRESH = 2, 4
"""Streams of random numbers: of the releases that are tried first, and of those that nothing has been learnt from. The
nulls that are tried were settled on releases of a third stream."""


def run_calibrated(cell: GridCell, repetitions: int, *, fresh: bool = False) -> CalibratedResult:
    """The test on releases of tables without a difference that leave something to test.

    More are drawn, up to so many, as long as the interval of the rate reaches above what is allowed. Fresh releases are
    drawn all at any rate, and the test is asked about every one.
    """
    rng, started = rng_of(cell, FRESH if fresh else FIRST), time.process_time()

    def tried(cell: GridCell, wanted: int, rng: np.random.Generator) -> _Tried:
        if cell.mechanism in COUNTED:
            return _counted_pvalues(cell, wanted, rng)
        return _run_pvalues(cell, wanted, rng, far=1.0 if fresh else FAR)

    reported = answered = tested = releases = asked = 0
    while tested < repetitions:
        found = tried(cell, min(BATCH, repetitions), rng)
        reported, tested = reported + int((found.pvalues <= ALPHA).sum()), tested + len(found.pvalues)
        answered, releases = answered + int((~np.isnan(found.pvalues)).sum()), releases + found.drawn
        asked += found.asked
        settled = not fresh and Proportion(count=reported, reps=answered).high <= CALIBRATED_MAX
        if settled or not len(found.pvalues):
            break
    seconds = time.process_time() - started
    counts = {"reported": reported, "answered": answered, "tested": tested, "releases": releases, "asked": asked}
    return CalibratedResult(**asdict(cell), **counts, seconds=seconds)


@dataclass(frozen=True, kw_only=True)
class _Tried:
    """The test on a batch of releases that leave something to test."""

    pvalues: FloatArray
    drawn: int
    """Releases, for that."""
    asked: int
    """On how many the test was made."""


def _counted_pvalues(cell: GridCell, wanted: int, rng: np.random.Generator) -> _Tried:
    """On that many releases that can be tested, where releases are known by their counts."""
    release = null_release(cell, rng)
    table = release.sample()
    simulator = simulator_of(release, GroupTest.of(schema(), value="value", group="group"), table)
    assert isinstance(simulator, CountSimulator)
    law = simulator.cells.law
    kept: list[FloatArray] = []
    drawn = 0
    while drawn < MAX_BATCHES * wanted and sum(map(len, kept)) < wanted:
        counts = law.run(truth(cell).draw(wanted, rng), rng)
        kept.append(counts[testable(counts, centre=law.centre)])
        drawn += wanted
    released = np.concatenate(kept)[:wanted]
    indices = GroupIndices(values=BINS)
    return _Tried(
        pvalues=count_pvalues(simulator, indices, released, SIMULATIONS, rng), drawn=drawn, asked=len(released)
    )


def _run_pvalues(cell: GridCell, wanted: int, rng: np.random.Generator, *, far: float) -> _Tried:
    """The same where the mechanism must run, by the test as it is; releases with nothing to test are left out.

    One test takes hundreds of runs, so it is asked about the releases whose groups lie furthest apart, in which false
    reports are, and about a few of the others by chance; about all of them as soon as one of these few is reported.
    """
    test = GroupTest.of(schema(), value="value", group="group")
    simulators, drawn = list[NullSimulator](), 0
    while drawn < 2 * wanted and len(simulators) < wanted:
        release, drawn = null_release(cell, rng), drawn + 1
        table = release.sample()
        if all(map(len, test.comparisons[0].split(table))):
            simulators.append(simulator_of(release, test, table, workers=1))
    statistics = np.array([float(simulator.statistics[0]) for simulator in simulators])
    order = np.argsort(-np.abs(statistics - statistics.mean())) if len(statistics) else np.empty(0, dtype=int)
    furthest, others = order[: math.ceil(far * len(order))], rng.permutation(order[math.ceil(far * len(order)) :])
    pvalues = np.ones(len(simulators))
    asked = [*furthest, *others[: math.ceil(CHECKED * len(others))]]
    for i in asked:
        pvalues[i] = _low_pvalue(simulators[i], rng)
    if (pvalues[asked[len(furthest) :]] <= ALPHA).any():
        rest = others[math.ceil(CHECKED * len(others)) :]
        pvalues[rest] = [_low_pvalue(simulators[i], rng) for i in rest]
        asked += rest.tolist()
    return _Tried(pvalues=pvalues, drawn=drawn, asked=len(asked))


def _low_pvalue(simulator: NullSimulator, rng: np.random.Generator) -> float:
    """Exact where it is low, and above the level where it is not."""
    return pvalue_over_nulls(simulator, SIMULATIONS, rng, stop_above=ALPHA)[0]


def load_calibrated(path: Path) -> Iterator[CalibratedResult]:
    for row in finished(path, CalibratedResult):
        numbers = {name: float(row[name]) for name in ("share", "epsilon", "seconds")}
        whole = {name: int(row[name]) for name in ("n", "reported", "answered", "tested", "releases", "asked")}
        yield CalibratedResult(mechanism=row["mechanism"], shape=row["shape"], **numbers, **whole)


def calibrated_summary(results: Sequence[CalibratedResult]) -> str:
    """The requirement for each mechanism, and the cells that come worst."""
    lines = []
    for mechanism in dict.fromkeys(one.mechanism for one in results):
        own = [one for one in results if one.mechanism == mechanism]
        answering = [one for one in own if one.answered]
        above = [one for one in answering if one.type_one.estimate > CALIBRATED_MAX]
        pooled = Proportion(count=sum(one.reported for one in own), reps=sum(one.answered for one in own))
        lines.append(
            f"{mechanism}: {len(own)} cells, {len(answering)} with an answer, {len(above)} above {CALIBRATED_MAX:g}; "
            f"{pooled.count} false reports in {pooled.reps:,} answers ({pooled}), "
            f"{sum(one.tested - one.answered for one in own):,} withheld"
        )
        worst = sorted(answering, key=lambda one: -one.type_one.estimate)[:3]
        lines += [
            f"  {one.shape}, {one.share:.0%} of {one.n:,} rows, epsilon {one.epsilon:g}: {one.reported} of "
            f"{one.answered} ({one.type_one}), {one.tested} tested of {one.releases} releases"
            for one in worst
        ]
    return "\n".join(lines)


def _above(results: Sequence[CalibratedResult], path: Path) -> list[GridCell]:
    """Cells whose rate is above what is allowed, but for those with fresh releases already."""
    done = {one.cell for one in load_calibrated(path)}
    return [
        one.cell for one in results if one.answered and one.type_one.estimate > CALIBRATED_MAX and one.cell not in done
    ]


def main() -> None:
    """Run cells that are not finished yet, then say what holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="a CSV file; what is in it is not run again")
    parser.add_argument("--cells", type=int, default=10**6, help="how many more to run")
    parser.add_argument("--releases", type=int, default=400, help="tried in a cell at most")
    parser.add_argument("--mechanisms", default=",".join(COUNTED))
    parser.add_argument("--fresh", type=Path, help="a CSV file for fresh releases of the cells above 0.07")
    chosen = parser.parse_args()
    if chosen.fresh:
        for cell in _above(list(load_calibrated(chosen.results)), chosen.fresh):
            append(chosen.fresh, run_calibrated(cell, chosen.releases, fresh=True))
        print(calibrated_summary(list(load_calibrated(chosen.fresh))))
        return
    for cell in unfinished(chosen.results, CalibratedResult, chosen.mechanisms)[: chosen.cells]:
        append(chosen.results, run_calibrated(cell, chosen.releases))
    print(calibrated_summary(list(load_calibrated(chosen.results))))


if __name__ == "__main__":
    main()
