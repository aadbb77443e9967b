"""Stated against true false-discovery risk, and the calibrated test's own, over shapes, groups, sizes and epsilons.

    python -m benchmarks.discovery_risk --results grid.csv [--cells 100] [--repetitions 400] [--mechanisms kd_tree,...]
    python -m benchmarks.discovery_risk --results grid.csv --calibrated 400        # the calibrated test's Type I error

In every cell one table without any difference is drawn and released once; the risk is stated from that release alone
and compared with the share of further releases, of fresh tables from the true law, on which the ordinary test reports
a difference: ``--repetitions`` of them, and 2,000 where a release is array arithmetic. Where the mechanism must run,
``--stage 1`` states the risk after the first refinement, which takes a quarter of the time of the last one. Cells
come in an order that is shuffled once and for all, so that any number of them is a fair sample; finished cells are
appended to the file at once and are not run again.
``python -m docs.pictures.discovery_risk`` draws them.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.discovery_risk import discovery_risk
from dpsynth_core.inference.experiments import Experiment
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.nuisance import Nuisance
from dpsynth_core.inference.null_simulation import NullSimulator
from dpsynth_core.inference.null_simulators import simulator_of
from dpsynth_core.inference.populations import populations
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.stated_risk import ALPHA
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.synthesize import Release, synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

BINS = 100
SHARES, SIZES, EPSILONS = (0.5, 0.2, 0.1, 0.02), (100, 1_000, 20_000), (0.1, 1.0, 5.0)
COUNTED = ("perturbed_histogram", "smoothed_histogram", "kd_grid")
RUN = ("kd_tree", "private_pgm", "mwem", "noisy_bayes", "pmse")
"""Mechanisms that must run table by table, in milliseconds each."""
MAX_ROWS = {"pmse": 100}
"""Rows up to which a mechanism does: a cell takes a thousand runs, and with 20,000 rows ``pmse`` takes seconds for one.
"""
COUNTED_REPETITIONS = 2_000
GREEN_MAX = 0.10
"""No cell whose verdict is "sound" may have a true rate above this."""
CALIBRATED_MAX = 0.07
SIMULATIONS = 99
SEED = 18


def _normalised(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / weights.sum())


def _bump(centre: float, width: float) -> FloatArray:
    x = (np.arange(BINS) + 0.5) / BINS
    return np.asarray(np.exp(-(((x - centre) / width) ** 2) / 2))


SHAPES: dict[str, FloatArray] = {
    "narrow": _normalised(_bump(0.5, 0.02)),
    "skewed": _normalised(np.exp2(-np.arange(BINS) / 10)),
    "spiky": _normalised(0.2 * _normalised(_bump(0.5, 0.3)) + 0.4 * np.eye(BINS)[10] + 0.4 * np.eye(BINS)[60]),
    "multimodal": _normalised(_bump(0.15, 0.04) + 2 * _bump(0.45, 0.08) + _bump(0.9, 0.03)),
    "bounds too wide": _normalised(np.where(np.arange(BINS) < 4, 1.0, 0.0)),
}


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """One setting."""

    mechanism: str
    shape: str
    share: float
    """Of the rows, in the smaller group."""
    n: int
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """What was stated for one release, and what is true."""

    mechanism: str
    shape: str
    share: float
    n: int
    epsilon: float
    low: float
    high: float
    verdict: str
    true: float
    """Share of further releases on which the ordinary test reports a difference."""
    repetitions: int
    seconds: float
    """Processor time for the stated risk."""
    calibrated: float
    """The calibrated p-value on the release; not a number where there is none."""

    @property
    def covered(self) -> bool:
        """Whether the stated range reaches the true rate's own Monte-Carlo interval."""
        true = Proportion(count=round(self.true * self.repetitions), reps=self.repetitions)
        return self.low <= true.high and true.low <= self.high

    @property
    def falsely_green(self) -> bool:
        return self.verdict == "sound" and self.true > GREEN_MAX


def cells(mechanisms: Sequence[str]) -> list[GridCell]:
    """Every setting, in an order that is always the same and follows no pattern."""
    settings = [
        GridCell(mechanism=mechanism, shape=shape, share=share, n=n, epsilon=epsilon)
        for mechanism, shape, share, n, epsilon in product(mechanisms, SHAPES, SHARES, SIZES, EPSILONS)
        if n <= MAX_ROWS.get(mechanism, n)
    ]
    order = np.random.default_rng(SEED).permutation(len(settings))
    return [settings[i] for i in order]


def schema() -> Schema:
    group = {"name": "group", "kind": "categorical", "categories": ["a", "b"], "public": True}
    value = {"name": "value", "kind": "continuous", "lower": 0, "upper": 1, "bins": BINS, "public": True}
    return Schema.from_dict({"columns": [group, value]})


def mechanism_of(cell: GridCell) -> Mechanism:
    """Over the declared cells where it counts cells; else as it suggests."""
    kind = MECHANISMS[cell.mechanism]
    return kind() if cell.mechanism in COUNTED else kind.suggest(schema(), cell.n, cell.epsilon)


def rng_of(cell: GridCell, what: int) -> np.random.Generator:
    shape, mechanism = list(SHAPES).index(cell.shape), list(MECHANISMS).index(cell.mechanism)
    return np.random.default_rng(
        [SEED, what, mechanism, shape, round(1000 * cell.share), cell.n, round(10 * cell.epsilon)]
    )


def truth(cell: GridCell) -> Nuisance:
    first = max(1, round(cell.share * cell.n))
    return Nuisance(sizes=np.array([[first, cell.n - first]]), chances=SHAPES[cell.shape][None])


def null_release(cell: GridCell, rng: np.random.Generator) -> Release:
    """One release of a table without any difference."""
    first = max(1, round(cell.share * cell.n))
    value = (rng.choice(BINS, cell.n, p=SHAPES[cell.shape]) + rng.random(cell.n)) / BINS
    table = pd.DataFrame({"group": np.where(np.arange(cell.n) < first, "a", "b"), "value": value})
    private = PrivateTable(table, schema())
    seed = int(rng.integers(2**62))
    return synthesize(private, mechanism_of(cell), epsilon=str(cell.epsilon), seed=seed)


def true_rate(cell: GridCell, simulator: NullSimulator, repetitions: int) -> float:
    """By the true law: array arithmetic where counts suffice, else a fresh table for every release."""
    rng = rng_of(cell, 1)
    if simulator.quick:
        return float(simulator.rates(truth(cell), repetitions, rng, ALPHA)[0])
    test = GroupTest.of(schema(), value="value", group="group")
    found = [test.on_rows(null_release(cell, rng).sample()).pvalues[0] for _ in range(repetitions)]
    return float(np.mean(np.array(found) <= ALPHA))


def run_cell(cell: GridCell, repetitions: int, stage: int | None = None) -> CellResult:
    release = null_release(cell, rng_of(cell, 0))
    table = release.sample()
    started = time.process_time()
    risk = discovery_risk(release, value="value", group="group", table=table, advice=False, stage=stage, workers=1)
    seconds = time.process_time() - started
    test = GroupTest.of(release.schema, value="value", group="group")
    repetitions = max(repetitions, COUNTED_REPETITIONS) if cell.mechanism in COUNTED else repetitions
    return CellResult(
        **asdict(cell),
        low=risk.low,
        high=risk.high,
        verdict=risk.verdict,
        true=true_rate(cell, simulator_of(release, test, table), repetitions),
        repetitions=repetitions,
        seconds=seconds,
        calibrated=float("nan") if risk.calibrated is None else risk.calibrated.pvalue,
    )


@dataclass(frozen=True, kw_only=True)
class CalibratedResult:
    """How often the calibrated test was wrong in one cell."""

    mechanism: str
    shape: str
    share: float
    n: int
    epsilon: float
    type_one: float
    answered: int
    """Releases that left something to test; the others count as no report."""
    repetitions: int


def run_calibrated(cell: GridCell, repetitions: int) -> CalibratedResult:
    """The test on that many releases of tables without a difference, where releases are known by their counts."""
    first = max(1, round(cell.share * cell.n))
    groups, _ = populations(n1=first, n2=cell.n - first, effect=1.0, shape=SHAPES[cell.shape])
    experiment = Experiment(
        mechanism=mechanism_of(cell),
        budget=Budget.of(str(cell.epsilon)),
        bins=BINS,
        test="calibrated",
        simulations=SIMULATIONS,
    )
    entropy = rng_of(cell, 2).integers(2**62)
    (pvalues,) = experiment.pvalues([groups], repetitions, np.random.SeedSequence(int(entropy)))
    return CalibratedResult(
        **asdict(cell),
        type_one=float((pvalues <= ALPHA).mean()),
        answered=int((~np.isnan(pvalues)).sum()),
        repetitions=repetitions,
    )


def finished(path: Path, kind: type) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert not rows or set(rows[0]) == {one.name for one in fields(kind)}, f"{path} holds other results"
    return rows


def append(path: Path, result: CellResult | CalibratedResult) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, [one.name for one in fields(result)])
        if new:
            writer.writeheader()
        writer.writerow(asdict(result))


def _key(row: dict[str, str] | dict[str, object]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("mechanism", "shape", "share", "n", "epsilon"))


def load(path: Path) -> Iterator[CellResult]:
    for row in finished(path, CellResult):
        numbers = {
            name: float(row[name]) for name in ("share", "epsilon", "low", "high", "true", "seconds", "calibrated")
        }
        whole = {name: int(row[name]) for name in ("n", "repetitions")}
        yield CellResult(mechanism=row["mechanism"], shape=row["shape"], verdict=row["verdict"], **numbers, **whole)


def summary(results: Sequence[CellResult]) -> str:
    """Both requirements, and the cells that come worst."""
    covered = sum(one.covered for one in results)
    green = [one for one in results if one.verdict == "sound"]
    worst = max(results, key=lambda one: max(one.low - one.true, one.true - one.high))
    greenest = max(green, key=lambda one: one.true, default=None)
    lines = [
        f"{len(results)} cells: the stated range holds the true rate in {covered} ({covered / len(results):.1%}).",
        f"{len(green)} are called sound; {sum(one.falsely_green for one in results)} of them have a true rate above "
        f"{GREEN_MAX:g}" + ("." if greenest is None else f"; the highest is {greenest.true:.3f}."),
        f"Furthest off: {worst.mechanism}, {worst.shape}, {worst.share:.0%} of {worst.n:,} rows, epsilon "
        f"{worst.epsilon:g}: stated {worst.low:.3f} to {worst.high:.3f}, true {worst.true:.3f}.",
    ]
    for mechanism in dict.fromkeys(one.mechanism for one in results):
        own = [one for one in results if one.mechanism == mechanism]
        width = np.median([one.high - one.low for one in own])
        lines.append(
            f"  {mechanism}: {len(own)} cells, {sum(one.covered for one in own)} covered, "
            f"{sum(one.verdict == 'sound' for one in own)} sound, median width {width:.2f}, "
            f"{np.median([one.seconds for one in own]):.1f} s of processor time each"
        )
    return "\n".join(lines)


def main() -> None:
    """Run cells that are not finished yet, then say what holds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="a CSV file; what is in it is not run again")
    parser.add_argument("--cells", type=int, default=10**6, help="how many more to run")
    parser.add_argument("--repetitions", type=int, default=400, help="releases behind each true rate")
    parser.add_argument("--stage", type=int, help="how far to refine the figure; as far as it goes by default")
    parser.add_argument("--mechanisms", default=",".join(COUNTED + RUN))
    parser.add_argument("--calibrated", type=int, default=0, help="measure the calibrated test with so many releases")
    chosen = parser.parse_args()
    kind = CalibratedResult if chosen.calibrated else CellResult
    done = {_key(row) for row in finished(chosen.results, kind)}
    todo = [cell for cell in cells(chosen.mechanisms.split(",")) if _key(asdict(cell)) not in done]
    for cell in todo[: chosen.cells]:
        if chosen.calibrated:
            append(chosen.results, run_calibrated(cell, chosen.calibrated))
        else:
            append(chosen.results, run_cell(cell, chosen.repetitions, chosen.stage))
    if chosen.calibrated:
        rows = finished(chosen.results, CalibratedResult)
        worst = max(rows, key=lambda row: float(row["type_one"]))
        above = sum(float(row["type_one"]) > CALIBRATED_MAX for row in rows)
        print(f"{len(rows)} cells; {above} above {CALIBRATED_MAX:g}; worst {worst}")
        return
    print(summary(list(load(chosen.results))))


if __name__ == "__main__":
    main()
