"""Stated against true false-discovery risk, over shapes, groups, sizes and epsilons.

    python -m benchmarks.discovery_risk --results grid.csv [--cells 100] [--repetitions 400] [--mechanisms kd_tree,...]

In every cell one table without any difference is drawn and released once; the risk is stated from that release alone
and compared with the share of further releases, of fresh tables from the true law, on which the ordinary test reports
a difference: ``--repetitions`` of them, and 2,000 where a release is array arithmetic. Releases that leave nothing to
test are not counted, and more are drawn instead. Where the mechanism must run, ``--stage 1`` states the risk after the
first refinement, which takes a quarter of the time of the last one. Cells
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
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.discovery_risk import discovery_risk
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.nuisance import Nuisance
from dpsynth_core.inference.null_simulation import NullSimulator
from dpsynth_core.inference.null_simulators import simulator_of
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.simulated_pvalues import ALPHA
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.runs.synthesize import Release, synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

BINS = 100
SHARES, SIZES, EPSILONS = (0.5, 0.2, 0.1, 0.02), (100, 1_000, 20_000), (0.1, 1.0, 5.0)
COUNTED = ("perturbed_histogram", "smoothed_histogram", "kd_grid")
RUN = ("kd_tree", "private_pgm", "mwem", "noisy_bayes", "pmse")
"""Mechanisms that must run table by table, in milliseconds each."""
MAX_ROWS = {"pmse": 1_000}
"""Rows up to which a mechanism does: a cell takes a thousand runs, and with 20,000 rows ``pmse`` takes seconds for one.
"""
COUNTED_REPETITIONS = 2_000
GREEN_MAX = 0.10
"""No cell whose verdict is "sound" may have a true rate above this."""
MAX_BATCHES = 100
"""Times as many releases as wanted that are drawn at most, where few leave something to test."""
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
    """Share of further releases that leave something to test on which the ordinary test reports a difference."""
    repetitions: int
    """How many those are."""
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


def true_rate(cell: GridCell, simulator: NullSimulator, repetitions: int) -> Proportion:
    """By the true law: array arithmetic where counts suffice, else a fresh table for every release."""
    rng, test = rng_of(cell, 1), GroupTest.of(schema(), value="value", group="group")
    reported = tested = 0
    for _ in range(MAX_BATCHES):
        if simulator.quick:
            pvalues = simulator.run(truth(cell), repetitions, rng).found.pvalues[:, 0]
        else:
            missing = range(repetitions - tested)
            pvalues = np.array([test.on_rows(null_release(cell, rng).sample()).pvalues[0] for _ in missing])
        reported += int((pvalues <= ALPHA).sum())
        tested += int((~np.isnan(pvalues)).sum())
        if tested >= repetitions:
            break
    return Proportion(count=reported, reps=tested)


def run_cell(cell: GridCell, repetitions: int, stage: int | None = None) -> CellResult:
    release = null_release(cell, rng_of(cell, 0))
    table = release.sample()
    started = time.process_time()
    risk = discovery_risk(release, value="value", group="group", table=table, advice=False, stage=stage, workers=1)
    seconds = time.process_time() - started
    test = GroupTest.of(release.schema, value="value", group="group")
    repetitions = max(repetitions, COUNTED_REPETITIONS) if cell.mechanism in COUNTED else repetitions
    true = true_rate(cell, simulator_of(release, test, table), repetitions)
    return CellResult(
        **asdict(cell),
        low=risk.low,
        high=risk.high,
        verdict=risk.verdict,
        true=true.estimate,
        repetitions=true.reps,
        seconds=seconds,
        calibrated=float("nan") if risk.calibrated is None else risk.calibrated.pvalue,
    )


def finished(path: Path, kind: type) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert not rows or set(rows[0]) == {one.name for one in fields(kind)}, f"{path} holds other results"
    return rows


def unfinished(path: Path, kind: type, mechanisms: str) -> list[GridCell]:
    """Cells of these mechanisms, divided by commas, that are not in the file."""
    done = {_key(row) for row in finished(path, kind)}
    return [cell for cell in cells(mechanisms.split(",")) if _key(asdict(cell)) not in done]


def append(path: Path, result: DataclassInstance) -> None:
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
    chosen = parser.parse_args()
    for cell in unfinished(chosen.results, CellResult, chosen.mechanisms)[: chosen.cells]:
        append(chosen.results, run_cell(cell, chosen.repetitions, chosen.stage))
    print(summary(list(load(chosen.results))))


if __name__ == "__main__":
    main()
