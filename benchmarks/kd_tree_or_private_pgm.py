"""What to begin with: a KD tree or Private-PGM, by the number of columns. Takes minutes, so it runs only by itself.

python -m benchmarks.kd_tree_or_private_pgm [--reps 3]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from statistics import fmean

import numpy as np
import pandas as pd

from benchmarks.papers.mixed_columns import SCHEMA, six_columns
from dpsynth_core.diagnostics import TablePair
from dpsynth_core.diagnostics.pairs import mean_pair_variation
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

RIVALS = ("kd_tree", "private_pgm")
COLUMNS = (2, 3, 4, 6)
EPSILONS = (0.1, 1.0, 10.0)
RANGES = 20
"""That numbers are cut into where pairs are compared."""
OFFSET = 0.002
"""Added to both errors before they are divided: below it they are noise."""


def tables(columns: int) -> Iterator[tuple[str, pd.DataFrame, Schema]]:
    """Tables with so many columns, real and simulated."""
    ends = {"first": SCHEMA.names[:columns]} | (
        {"last": SCHEMA.names[-columns:]} if columns < len(SCHEMA.names) else {}
    )
    for rows in (1_000, 10_000, 100_000):
        simulated = six_columns(rows, np.random.default_rng(1))
        for end, names in ends.items():
            yield f"mixed, {end}, {rows:,} rows", simulated, SCHEMA.select(names)
    for key in ("breast_cancer", "diabetes"):
        schema = EXAMPLES[key].schema
        yield key, EXAMPLES[key].load(), schema.select(schema.names[:columns])


def error(original: PrivateTable, key: str, epsilon: float, reps: int) -> float:
    """Mean total variation over all pairs of columns, parameters as suggested."""
    mechanism = MECHANISMS[key].suggest(original.schema, original.n, epsilon)
    releases = (synthesize(original, mechanism, epsilon=epsilon, seed=seed) for seed in range(reps))
    return fmean(mean_pair_variation(TablePair.of(original, release.sample()), RANGES) for release in releases)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=3)
    reps = parser.parse_args().reps
    for columns in COLUMNS:
        ratios, nearer = [], {"kd_tree": 0, "private_pgm": 0, "even": 0}
        for title, frame, schema in tables(columns):
            original = PrivateTable(frame[list(schema.names)], schema)
            for epsilon in EPSILONS:
                tree, model = (error(original, key, epsilon, reps) for key in RIVALS)
                print(f"  {columns} columns, {title}, epsilon {epsilon:g}: {tree:.3f} {model:.3f}", flush=True)
                ratios.append((tree + OFFSET) / (model + OFFSET))
                nearer["even" if round(tree - model, 3) == 0 else RIVALS[int(model < tree)]] += 1
        mean = math.exp(fmean(map(math.log, ratios)))
        print(f"{columns} columns: nearer {nearer}, kd_tree over private_pgm {mean:.2f}", flush=True)


if __name__ == "__main__":
    main()
