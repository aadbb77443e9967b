"""One column at a time: do the shares of its values agree?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsynth_core.diagnostics.base import Diagnostic, Measure, Result, Scale, TablePair, measure_each
from dpsynth_core.diagnostics.total_variation import SCALE, coarse, variation_measure
from dpsynth_core.errors import check_int
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.expected_error import COLUMN_CELLS

KIND_ROWS = 5
"""Original rows from which on a kind of value is looked for: a fresh sample would lack it one time in 150."""


@dataclass(frozen=True, kw_only=True)
class MarginalsDiagnostic(Diagnostic):
    """Total variation of every column."""

    key: ClassVar[str] = "marginals"
    title: ClassVar[str] = "Marginal distributions"
    question: ClassVar[str] = "Does every column keep its distribution?"
    method: ClassVar[str] = (
        "Each column is divided into its declared cells (numbers and dates into at most thirty equal ones; missing "
        "values have a cell of their own). Total variation is half the sum of the absolute differences between the two "
        "tables' shares. The interval is a basic bootstrap over both tables. The reference is the total variation "
        "between two samples of the original, of the same sizes. The headline is the worst column, never an average."
    )
    scale: ClassVar[Scale] = SCALE
    counted: ClassVar[str] = "Shares of values are"

    bins: int = COLUMN_CELLS
    """Largest number of cells that a range is divided into."""
    draws: int = 200
    """Bootstrap samples behind every interval."""

    def __post_init__(self) -> None:
        check_int("bins", self.bins, 1, 10_000)
        check_int("draws", self.draws, 20, 100_000)

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        kinds: list[tuple[str, int, int]] = []
        counted = dict(
            zip(pair.names, pair.counts([[coarse(column, self.bins)] for column in pair.original.schema]), strict=True)
        )

        def measure(name: str) -> Measure:
            original, synthetic = counted[name]
            present = original >= min(KIND_ROWS, original.max())
            kinds.append((name, int(present.sum()), int((present & (synthetic > 0)).sum())))
            return variation_measure(name, (name,), original, synthetic, rng, draws=self.draws)

        items = measure_each([(name, (name,)) for name in pair.names], measure, progress, "Comparing columns")
        kept = pd.DataFrame(kinds, columns=["column", "present", "kept"])
        return self.result(items, tables={"moments": moments(pair), "kinds": kept})


def moments(pair: TablePair) -> pd.DataFrame:
    tables = {"original": pair.original.rows(), "synthetic": pair.synthetic.rows()}
    rows = []
    for column in pair.original.schema:
        row: dict[str, Any] = {"column": column.name}
        for label, table in tables.items():
            values = table[column.name]
            if column.kind in ("continuous", "integer"):
                numbers = values.dropna().astype(float)
                row |= {f"mean, {label}": numbers.mean(), f"standard deviation, {label}": numbers.std(ddof=1)}
            row[f"missing, {label}"] = float(values.isna().mean())
        rows.append(row)
    return pd.DataFrame(rows)
