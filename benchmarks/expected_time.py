"""How near the time that the app expects comes to processor time: ``python -m benchmarks.expected_time``.

A whole run as the app makes it, its estimate of error included, on tables of several shapes and for synthetic tables
longer than their original; release noise, one run each after one that compiles. Linear algebra has one thread, as in
the app's workers: a second one would spin while it waits, and count as work. The app never promises less than a second,
so shorter times count as one.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.mwem.mechanism import MWEM
from dpsynth_core.mechanisms.pmse.mechanism import PMSE
from dpsynth_core.mechanisms.private_pgm.mechanism import PrivatePGM
from dpsynth_core.runs.configuration import RunConfig, execute
from dpsynth_core.table.schema import Schema

SHAPES = ((500, 2, 0), (5_000, 2, 0), (5_000, 3, 2), (20_000, 4, 1), (2_000, 6, 4), (50_000, 3, 3), (10_000, 8, 6))
"""Rows, numeric columns, labels."""
LONGER = ((2_000, 2, 1, 3_000_000, 1), (20_000, 2, 1, 5_000_000, 3), (5_000, 6, 4, 500_000, 2))
"""Rows, numeric columns, labels, rows to make, tables to make."""
EPSILON = "1"
LEAST = 1.0
"""Seconds; what takes less is shown as this."""


def simulated(rows: int, numbers: int, labels: int) -> tuple[pd.DataFrame, Schema]:
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
    return frame, Schema.from_dict({"columns": facts})


QUICK = ("kd_tree", "kd_grid", "perturbed_histogram", "smoothed_histogram", "noisy_bayes")
"""Mechanisms whose time is mostly reading, drawing noise and making rows."""


def settings(schema: Schema, n: int) -> Iterator[tuple[str, Mechanism]]:
    """What is timed on every shape."""
    suggested = {key: MECHANISMS[key].suggest(schema, n, EPSILON) for key in (*QUICK, "pmse", "mwem", "private_pgm")}
    for key in QUICK:
        yield f"{key}, suggested", suggested[key]
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


def cases() -> Iterator[tuple[str, RunConfig, int, int, int]]:
    """Every run, with the shape of its table."""
    for shape in SHAPES:
        _, schema = simulated(*shape)
        for name, mechanism in settings(schema, shape[0]):
            yield name, RunConfig(mechanism=mechanism, epsilon=EPSILON), *shape
    for n, numbers, labels, rows, copies in LONGER:
        _, schema = simulated(n, numbers, labels)
        for key in (*QUICK, "mwem", "private_pgm"):
            mechanism = replace(MECHANISMS[key].suggest(schema, n, EPSILON), rows=rows)
            yield f"{key}, longer", RunConfig(mechanism=mechanism, epsilon=EPSILON, copies=copies), n, numbers, labels


def main() -> None:
    """Print expected and measured seconds, and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.expected_time", description=__doc__)
    parser.add_argument("--only", default="", help="part of a setting's name")
    given = parser.parse_args()
    print(f"{'setting':30} {'rows':>7} {'columns':>8} {'made':>12} {'expected s':>11} {'CPU s':>8}  expected / CPU")
    ratios: dict[str, list[float]] = {}
    for name, config, n, numbers, labels in cases():
        if given.only not in name:
            continue
        table, schema = simulated(n, numbers, labels)
        made = f"{config.copies} x {config.mechanism.rows or n:,}"
        try:
            if name not in ratios:
                execute(
                    *simulated(200, 2, 0), replace(config, mechanism=replace(config.mechanism, rows=200))
                )  # compiles
            expected = config.seconds(schema, n)
            began = time.process_time()
            execute(table, schema, config)
        except DPSynthError as problem:
            print(f"{name:30} {n:7,} {numbers + labels:8} refused: {str(problem)[:60]}", flush=True)
            continue
        spent = time.process_time() - began
        ratio = max(expected, LEAST) / max(spent, LEAST)
        ratios.setdefault(name, []).append(ratio)
        print(
            f"{name:30} {n:7,} {numbers + labels:8} {made:>12} {expected:11.2f} {spent:8.2f}  {ratio:.2f}", flush=True
        )
    for name, found in ratios.items():
        mean = math.exp(float(np.mean(np.log(found))))
        print(f"{name:30} geometric mean {mean:.2f}, from {min(found):.2f} to {max(found):.2f} ({len(found)} shapes)")


if __name__ == "__main__":
    with threadpool_limits(1, user_api="blas"):
        main()
