"""How near the time that the app expects comes to processor time: ``python -m benchmarks.expected_time``.

Every mechanism whose time is more than reading and counting, on tables of several shapes, release noise, one run each
after one that compiles.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.mwem.mechanism import MWEM
from dpsynth_core.mechanisms.pmse.mechanism import PMSE
from dpsynth_core.mechanisms.private_pgm.mechanism import PrivatePGM
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

SHAPES = ((500, 2, 0), (5_000, 2, 0), (5_000, 3, 2), (20_000, 4, 1), (2_000, 6, 4), (50_000, 3, 3), (10_000, 8, 6))
"""Rows, numeric columns, labels."""
EPSILON = "1"


def simulated(rows: int, numbers: int, labels: int) -> PrivateTable:
    """Correlated numbers and labels that depend on them."""
    rng = np.random.default_rng([rows, numbers, labels])
    common = rng.normal(size=rows)
    frame = pd.DataFrame({f"x{i}": 0.6 * common + 0.8 * rng.normal(size=rows) for i in range(numbers)})
    facts = [{"name": name, "kind": "continuous", "lower": -5.0, "upper": 5.0, "public": True} for name in frame]
    for i in range(labels):
        names = [f"c{k}" for k in range(2 + i % 4)]
        score = common + rng.normal(size=rows)
        frame[f"g{i}"] = np.array(names)[np.clip((score + 2) / 4 * len(names), 0, len(names) - 1).astype(int)]
        facts.append({"name": f"g{i}", "kind": "categorical", "categories": names, "public": True})
    return PrivateTable(frame, Schema.from_dict({"columns": facts}))


def settings(table: PrivateTable) -> Iterator[tuple[str, Mechanism]]:
    """What is timed."""
    schema, n = table.schema, table.n
    suggested = {key: MECHANISMS[key].suggest(schema, n, EPSILON) for key in ("pmse", "mwem", "private_pgm")}
    yield "pmse, distance", suggested["pmse"]
    yield "pmse, best tree", PMSE(criterion="optimal")
    yield "pmse, all cells", PMSE(criterion="cells")
    if len(schema.columns) <= 2:
        yield "pmse, distance, walks", PMSE(sampler="metropolis")
    yield "mwem, suggested", suggested["mwem"]
    if len(schema.columns) <= 2:
        yield "mwem, the paper's settings", MWEM(**next(iter(MWEM.presets.values())), rows=None)
    yield "private_pgm, suggested", suggested["private_pgm"]
    if len(schema.columns) <= 5:
        yield "private_pgm, given", PrivatePGM(strategy="given")


def main() -> None:
    """Print expected and measured seconds, and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.expected_time", description=__doc__)
    parser.add_argument("--only", default="", help="part of a setting's name")
    given = parser.parse_args()
    print(f"{'setting':28} {'rows':>7} {'columns':>8} {'expected s':>11} {'CPU s':>8}  expected / CPU")
    ratios: dict[str, list[float]] = {}
    for rows, numbers, labels in SHAPES:
        table = simulated(rows, numbers, labels)
        for name, mechanism in settings(table):
            if given.only not in name:
                continue
            try:
                expected = mechanism.plan(table.schema, rows, Budget.of(EPSILON)).seconds
                if not ratios.get(name):
                    synthesize(simulated(200, 2, 0), mechanism, epsilon=EPSILON)  # compiles
                began = time.process_time()
                synthesize(table, mechanism, epsilon=EPSILON).sample()
            except DPSynthError as problem:
                print(f"{name:28} {rows:7,} {numbers + labels:8} refused: {str(problem)[:60]}", flush=True)
                continue
            spent = time.process_time() - began
            ratios.setdefault(name, []).append(expected / spent)
            print(
                f"{name:28} {rows:7,} {numbers + labels:8} {expected:11.2f} {spent:8.2f}  {expected / spent:.2f}",
                flush=True,
            )
    for name, found in ratios.items():
        mean = math.exp(float(np.mean(np.log(found))))
        print(f"{name:28} geometric mean {mean:.2f}, from {min(found):.2f} to {max(found):.2f} ({len(found)} shapes)")


if __name__ == "__main__":
    main()
