"""How long the first figure of the false-discovery risk takes, for every mechanism as it suggests itself.

    python -m benchmarks.first_figure [--rows 5000] [--columns 10] [--repetitions 2] [--longest 120]

Processor seconds of this process, which does what a worker of the app does; starting the worker is not included. Where
the app expects more than ``--longest`` seconds, one release is timed and the figure is not run.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as in the app's workers

import numpy as np
import pandas as pd

from dpsynth_core.inference.discovery_risk import discovery_risk
from dpsynth_core.inference.group_test import GroupTest
from dpsynth_core.inference.stated_risk import expected_seconds
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

DELTA = "1e-6"


def example(rows: int, columns: int, rng: np.random.Generator) -> PrivateTable:
    """A tenth of the rows in one group, skewed values, and other columns of two kinds."""
    table: dict[str, Any] = {
        "group": rng.choice(["a", "b"], rows, p=[0.9, 0.1]),
        "value": rng.gamma(2, 10, rows).clip(0, 100),
    }
    declared: list[dict[str, Any]] = [
        {"name": "group", "kind": "categorical", "categories": ["a", "b"], "public": True},
        {"name": "value", "kind": "continuous", "lower": 0, "upper": 100, "bins": 32, "public": True},
    ]
    for i in range(columns - 2):
        name = f"other {i}"
        if i % 2:
            table[name] = rng.integers(0, 10, rows)
            declared.append({"name": name, "kind": "integer", "lower": 0, "upper": 9, "public": True})
        else:
            table[name] = rng.normal(50, 10, rows).clip(0, 100)
            declared.append({"name": name, "kind": "continuous", "lower": 0, "upper": 100, "bins": 16, "public": True})
    return PrivateTable(pd.DataFrame(table), Schema.from_dict({"columns": declared}))


def measured(key: str, private: PrivateTable, repetitions: int, longest: float) -> str:
    kind, schema = MECHANISMS[key], private.schema
    mechanism = kind.suggest(schema, private.n, 1.0)
    delta = DELTA if kind.needs_delta else "0"
    test = GroupTest.of(schema, value="value", group="group")
    compiled = synthesize(private, mechanism, epsilon="1", delta=delta, seed=0)
    expected = expected_seconds(compiled, test)
    times, alone = [], []
    for seed in range(1, 1 + repetitions):
        started = time.process_time()
        release = synthesize(private, mechanism, epsilon="1", delta=delta, seed=seed)
        table = release.sample()
        alone.append(time.process_time() - started)
        if expected > longest:
            continue
        started = time.process_time()
        discovery_risk(release, value="value", group="group", table=table, stage=0, workers=1)
        times.append(time.process_time() - started)
    first = " to ".join(f"{one:.1f} s" for one in (min(times), max(times))) if times else "not run"
    return f"{kind.title}: one release {min(alone):.2f} s, first figure {first}, expected {expected:.0f} s"


def main() -> None:
    """One line for each mechanism that states a privacy loss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--longest", type=float, default=120.0, help="seconds beyond which a figure is not run")
    parser.add_argument("--mechanisms", default=",".join(MECHANISMS))
    chosen = parser.parse_args()
    private = example(chosen.rows, chosen.columns, np.random.default_rng(0))
    for key in chosen.mechanisms.split(","):
        if MECHANISMS[key].status != "none":
            print(measured(key, private, chosen.repetitions, chosen.longest), flush=True)


if __name__ == "__main__":
    main()
