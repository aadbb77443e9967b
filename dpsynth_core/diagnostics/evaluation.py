"""Running diagnostics, and the verdict over all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd

from dpsynth_core.diagnostics import DIAGNOSTICS, Diagnostic, Result, TablePair, Verdict
from dpsynth_core.diagnostics.base import VERDICTS
from dpsynth_core.errors import DPSynthError, EngineError, ParameterError
from dpsynth_core.progress import Progress, RunProgress, no_progress
from dpsynth_core.runs.workers import part_of
from dpsynth_core.table.private_table import PrivateTable

SUMMARIES: dict[Verdict, str] = {
    "excellent": "As far as these checks can see, the synthetic table is as close as a fresh sample of the original.",
    "good": "The synthetic table is close to the original, though not as close as a fresh sample would be.",
    "fair": "The synthetic table keeps the main features; differences are visible, so check what you need.",
    "unknown": "Something could not be checked, so no verdict can be given on the whole.",
    "poor": "The synthetic table differs strongly from the original in at least one respect.",
}


@dataclass(frozen=True, kw_only=True)
class Evaluation(Mapping[str, Result]):
    """Every diagnostic's result, by its name in the registry. Private: for internal review."""

    results: tuple[Result, ...]
    """In the order asked for."""
    releasable: Literal[False] = field(default=False, init=False)

    def __getitem__(self, key: str) -> Result:
        return {result.key: result for result in self.results}[key]

    def __iter__(self) -> Iterator[str]:
        return (result.key for result in self.results)

    def __len__(self) -> int:
        return len(self.results)

    @property
    def verdict(self) -> Verdict:
        """The worst of the diagnostics': good columns do not make up for a bad pair."""
        return max((result.verdict for result in self.results), key=VERDICTS.index, default="unknown")

    @property
    def summary(self) -> str:
        return SUMMARIES[self.verdict]

    @property
    def culprits(self) -> tuple[Result, ...]:
        """The results behind the verdict, worst first."""
        return tuple(sorted(self.results, key=lambda result: -VERDICTS.index(result.verdict)))


def evaluate(
    private: PrivateTable,
    synthetic: pd.DataFrame,
    diagnostics: Sequence[str | Diagnostic] | None = None,
    *,
    columns: Sequence[str] | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
    ready: Callable[[Result], object] = lambda _: None,
) -> Evaluation:
    """Compare a synthetic table with its original.

    Args:
        private: The original.
        synthetic: Rows with the schema's columns.
        diagnostics: Names in ``DIAGNOSTICS``, or diagnostics with parameters of their own; None: all of them.
        columns: The columns to look at; None: all.
        seed: Of bootstraps and permutations; the same seed gives the same numbers.
        progress: Told about stages; raises to cancel.
        ready: Gets each result as soon as it is there, but the last, which comes with all of them.

    Example:
        >>> evaluate(private, release.sample(), ["marginals", "pmse"]).verdict  # doctest: +SKIP
        'good'
    """
    chosen = [_configured(item) for item in (DIAGNOSTICS if diagnostics is None else diagnostics)]
    if not chosen:
        raise ParameterError("diagnostics", [], allowed=f"one or more of {', '.join(DIAGNOSTICS)}")
    pair = TablePair.of(private, synthetic, columns)
    results = []
    for step, diagnostic in enumerate(chosen):
        results.append(_examined(diagnostic, pair, np.random.default_rng(seed), part_of(progress, step, len(chosen))))
        if len(results) < len(chosen):
            ready(results[-1])
    return Evaluation(results=tuple(results))


def evaluate_in_parts(
    private: PrivateTable,
    synthetic: pd.DataFrame,
    diagnostics: Sequence[str | Diagnostic],
    *,
    columns: Sequence[str],
    progress: RunProgress,
) -> Evaluation:
    """As ``evaluate``, for a worker that hands each result over as soon as it is there."""
    return evaluate(private, synthetic, diagnostics, columns=columns, progress=progress, ready=progress.part)


def evaluate_each(
    private: PrivateTable,
    tables: Sequence[tuple[pd.DataFrame, Sequence[str]]],
    diagnostic: Diagnostic,
    *,
    progress: Progress = no_progress,
) -> list[Result]:
    """One diagnostic for several synthetic tables of the same original, each over columns of its own."""
    return [
        evaluate(private, table, [diagnostic], columns=columns, progress=part_of(progress, step, len(tables))).results[
            0
        ]
        for step, (table, columns) in enumerate(tables)
    ]


def _configured(item: str | Diagnostic) -> Diagnostic:
    if isinstance(item, Diagnostic):
        return item
    if item not in DIAGNOSTICS:
        raise ParameterError("diagnostics", item, allowed=", ".join(DIAGNOSTICS))
    return DIAGNOSTICS[item]()


def _examined(diagnostic: Diagnostic, pair: TablePair, rng: np.random.Generator, progress: Progress) -> Result:
    """One diagnostic; where it refuses, its reason is the result, so that the others are still shown."""
    try:
        found = diagnostic.examine(pair, rng, progress)
    except EngineError:
        raise  # no result of any diagnostic would be about these rows
    except DPSynthError as error:
        return diagnostic.unable(str(error))
    return replace(found, notes=(*diagnostic.basis(pair), *found.notes))
