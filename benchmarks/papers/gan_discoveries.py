"""The DP GAN in the layout of Montoya Perez et al. (2024): Figures 5 and 8.

20,000 original rows, critics that see 40 rows each (a subsampling rate of 1/500), tables of 50 to 1,000 rows, five from
each generator. A generator is trained for every epsilon; the paper saves one generator on the way. Training takes
seconds, so the repetitions are few and stored: a run goes on where it was stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.papers.base import CellValue, Estimate, ResultTable, RunOptions
from benchmarks.papers.body_mass_index import BodyMass
from benchmarks.papers.false_discoveries import BINS, LARGE
from dpsynth_core.inference.experiments import ALPHA
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.mann_whitney import GroupsError
from dpsynth_core.inference.populations import GROUP, VALUE, Population, populations
from dpsynth_core.mechanisms.dp_gan.mechanism import DPGAN
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.private_table import PrivateTable

EPSILONS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
SIZES = (50, 100, 500, 1_000)
TABLES = 5
"""Synthetic tables of each size from each generator."""
ROWS_PER_CRITIC = 40


def gan_discoveries(options: RunOptions) -> Iterator[ResultTable]:
    """Type I and Type II errors on rows of the DP GAN, by epsilon and number of synthetic rows: Figures 5 and 8."""
    n = options.rows(LARGE)
    null, signal = populations(n1=n // 2, n2=n - n // 2, effect=1.0)
    people = BodyMass.of(options)
    sources = {
        "no difference": null,
        "difference": signal,
        f"body mass index, {people.origin}": people.populations(n)[1],
    }
    found: dict[tuple[str, float], list[list[int]]] = {}
    for rep in range(options.reps):
        for source, population in sources.items():
            for epsilon in EPSILONS:
                key = f"DP GAN: {source}, {n} rows, epsilon {epsilon:g}, repetition {rep}"
                work = partial(_reported, population, epsilon, None if options.secure else rep, options, key)
                found.setdefault((source, epsilon), []).append(options.once(key, work))
    rows: list[tuple[CellValue, ...]] = []
    for source in sources:
        error = "Type I" if source == "no difference" else "Type II"
        for i, size in enumerate(SIZES):
            # Tables of one generator are alike in what it got wrong, so a generator counts as one observation.
            shares = [[counts[i] / TABLES for counts in found[source, epsilon]] for epsilon in EPSILONS]
            cells = [Estimate.of(each if error == "Type I" else [1 - share for share in each]) for each in shares]
            rows.append((source, error, f"m = {size:,}", *cells))
    yield ResultTable(
        title=f"Errors on rows of the DP GAN, {n:,} original rows: Figures 5 and 8",
        notes=(
            f"{options.reps} generators for each cell, {TABLES} tables from each; level {ALPHA}; "
            f"{ROWS_PER_CRITIC} rows for each critic, delta 1e-6. The paper has 1,000 generators.",
        ),
        columns=("rows", "error", "synthetic rows", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
        rows=tuple(rows),
    )


def _reported(population: Population, epsilon: float, seed: int | None, options: RunOptions, key: str) -> list[int]:
    """Of the tables of each size from one generator, how many show a significant difference."""
    options.report(f"Training {key}")
    schema = population.schema(BINS)
    rng = np.random.default_rng(seed)
    values = population.rows(1, rng)[0]
    table = pd.DataFrame({GROUP: np.arange(population.n) >= population.n1, VALUE: values})
    mechanism = DPGAN(rows_per_critic=min(ROWS_PER_CRITIC, population.n // 4))
    release = synthesize(PrivateTable(table, schema), mechanism, epsilon=str(epsilon), delta="1e-6", seed=seed)
    comparison = GroupComparison.of(schema, value=VALUE, group=GROUP)
    return [sum(_significant(comparison, release.sample(size)) for _ in range(TABLES)) for size in SIZES]


def _significant(comparison: GroupComparison, synthetic: pd.DataFrame) -> bool:
    try:
        return comparison.test(synthetic).pvalue <= ALPHA
    except GroupsError:  # nothing to test, so nothing is reported
        return False
