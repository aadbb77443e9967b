"""How well every mechanism preserves two real tables, over epsilon (not in the papers)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from time import perf_counter
from typing import NamedTuple

import pandas as pd

from benchmarks.papers.base import CellValue, Estimate, ResultTable, RunOptions
from benchmarks.papers.nist_survey import BINS, nist_table
from dpsynth_core.diagnostics import TablePair
from dpsynth_core.diagnostics.features import features, frequent_labels
from dpsynth_core.diagnostics.pairs import mean_pair_variation
from dpsynth_core.diagnostics.pmse.logistic import logistic_pmse
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.examples import EXAMPLES
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTA = Fraction(1, 10**6)
"""For mechanisms that can use one, in a row of their own."""
LABELS = 20
"""Labels of a column that get a coefficient in the regression that tells the tables apart."""


class UtilityErrors(NamedTuple):
    """How far one release is from its original, and how long it took."""

    two_way: float
    ratio: float
    seconds: float


MEASURES = {
    "two_way": "mean total variation of all pairs of columns",
    "ratio": "pMSE ratio by regression on main effects",
    "seconds": "seconds for a release",
}


def utility(options: RunOptions) -> Iterator[ResultTable]:
    """Two-way error and pMSE ratio of every mechanism on two real tables, over epsilon."""
    example = EXAMPLES["breast_cancer"]
    yield from _on_table("Breast cancer", example.load(), example.schema, options)
    folder = None if options.data is None else options.data / "nist_acs"
    if folder is not None and folder.exists():
        yield from _on_table("American Community Survey (NIST)", *nist_table(folder), options)


def _on_table(title: str, frame: pd.DataFrame, schema: Schema, options: RunOptions) -> Iterator[ResultTable]:
    original = PrivateTable(frame.iloc[: options.rows(len(frame))], schema)
    samples = [original.rows().sample(original.n, replace=True, random_state=seed) for seed in range(options.reps)]
    lines = {"a bootstrap of the original": [[_errors(original, sample, 0.0) for sample in samples]]}
    refused = []
    for name, kind, delta in _methods():
        options.report(f"{title}: {name}")
        try:
            lines[name] = [
                [_released(original, kind, epsilon, delta, seed) for seed in options.seeds]
                for epsilon in (EPSILONS[:1] if kind.status == "none" else EPSILONS)
            ]
        except DPSynthError as error:
            refused.append(f"{name} does not run here: {error}")
    sizes = f"n = {original.n:,}, {len(schema.columns)} columns, {options.reps} repetition(s), parameters as suggested."
    for field, measure in MEASURES.items():
        yield ResultTable(
            title=f"{title}: {measure}",
            notes=(sizes, *refused),
            columns=("method", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
            rows=tuple(_row(name, scores, field) for name, scores in lines.items()),
        )


def _row(name: str, scores: list[list[UtilityErrors]], field: str) -> tuple[CellValue, ...]:
    cells: list[CellValue] = [Estimate.of([getattr(score, field) for score in repeated]) for repeated in scores]
    return (name, *cells, *[None] * (len(EPSILONS) - len(cells)))


def _methods() -> Iterator[tuple[str, type[Mechanism], Fraction]]:
    for key, kind in MECHANISMS.items():
        if kind.comparator:  # they have an experiment of their own
            continue
        if not kind.needs_delta:
            yield key, kind, Fraction(0)
        if kind.takes_delta or kind.needs_delta:
            yield f"{key}, delta {float(DELTA):g}", kind, DELTA


def _released(
    original: PrivateTable, kind: type[Mechanism], epsilon: float, delta: Fraction, seed: int | None
) -> UtilityErrors:
    start = perf_counter()
    mechanism = kind.suggest(original.schema, original.n, epsilon)
    table = synthesize(original, mechanism, epsilon=epsilon, delta=delta, seed=seed).sample()
    return _errors(original, table, perf_counter() - start)


def _errors(original: PrivateTable, table: pd.DataFrame, seconds: float) -> UtilityErrors:
    pair = TablePair.of(original, table)
    labels = frequent_labels(original, LABELS)
    fitted = logistic_pmse(features(pair.original, labels), features(pair.synthetic, labels), 1)
    ratio = math.nan if fitted is None else fitted.ratio
    return UtilityErrors(two_way=mean_pair_variation(pair, BINS), ratio=ratio, seconds=seconds)
