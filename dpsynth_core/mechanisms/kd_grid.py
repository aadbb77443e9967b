"""Data-independent binning (Kreačić et al. 2023, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from dpsynth_core.errors import check_choice, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.parameters import PLACEMENTS, setting
from dpsynth_core.mechanisms.partition.grid import MOST_BINS, Grid, noisy_grid
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.partition.thresholds import spurious_threshold
from dpsynth_core.mechanisms.plan import Plan, counting_plan
from dpsynth_core.privacy.budget import Amount, Budget, exact
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MOST_CELLS = 2**62
MOST_INVENTED = 5_000_000


@dataclass(frozen=True, kw_only=True)
class KDGrid(Mechanism):
    """Count equal cells, add noise, keep the cells whose noisy count reaches a threshold.

    Empty cells take part without being listed (Algorithm 5), so the grid may be far larger than memory.
    """

    key: ClassVar[str] = "kd_grid"
    title: ClassVar[str] = "Thresholded grid"
    summary: ClassVar[str] = "Counts equal cells with noise and keeps only those that stand out."
    good_for: ClassVar[str] = "Two or three numeric columns whose rows fill a small part of the domain."
    beware: ClassVar[str] = (
        "Cells with few rows are dropped as noise, so rare combinations vanish; with more than a few "
        "columns a grid is too coarse to keep how they go together."
    )
    paper: ClassVar[str] = "Kreačić et al. (2023), Algorithms 1 and 5."

    bins: int | None = setting(None, title="Bins per numeric column")
    """Cells along every numeric column (R/w). None: as declared in the schema."""
    threshold: int | None = setting(None, title="Fewest rows to keep a cell")
    """Smallest noisy count that is kept (t). None: empty cells invent at most one row in a hundred."""
    placement: Literal["uniform", "centre"] = setting("uniform", advanced=True, labels=PLACEMENTS)
    """Where a row lies in its cell: anywhere, or in the middle."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("bins", self.bins, 1, 65_536, optional=True)
        check_int("threshold", self.threshold, 1, 10**9, optional=True)
        check_choice("placement", self.placement, ("uniform", "centre"))

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  takes no delta
        bins = balanced_bins(schema, n, epsilon)
        return cls(
            bins=bins,
            reason=f"{bins} bins per numeric column: with more, cells with few rows would be lost to the noise; with "
            "fewer, rows would be spread too widely. The threshold lets empty cells invent at most one row in a "
            "hundred.",
        )

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        """Also with the lowest threshold, where empty cells invent the most."""
        return {**super().audited(schema, n, epsilon), "invents": cls(bins=6, threshold=1)}

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One paid step: the counts of all cells."""
        grid = Grid.of(schema, self.bins, most=MOST_CELLS)
        return counting_plan(grid.shape, n, budget.epsilon, sensitivity=HISTOGRAM_SENSITIVITY)

    def fit(self, table: PrivateTable, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        grid = Grid.of(table.schema, self.bins, most=MOST_CELLS)
        progress("Counting the cells", 0.0)
        scale = HISTOGRAM_SENSITIVITY / noise.budget.epsilon
        threshold = self.threshold or spurious_threshold(grid.cells, table.n, scale)
        cells, counts = noisy_grid(
            grid, table, noise, threshold=threshold, label="counts of all cells", most=MOST_INVENTED
        )
        return grid.model(cells, counts, rows=table.n, centre=self.placement == "centre")


def balanced_bins(schema: Schema, n: int, epsilon: Amount) -> int:
    """Bins along every numeric column at which the width of a cell costs as much as noise and threshold do.

    Moving a row within its cell costs up to its diagonal, sqrt(d) / bins of the range; noise and threshold cost each of
    bins^d cells about 1/epsilon rows of the n (docs/results.md). Labels divide the rows.
    """
    numeric = sum(column.is_numeric for column in schema)
    labels = math.prod(column.size for column in schema if not column.is_numeric)
    rows = n * float(exact(epsilon, parameter="epsilon")) / labels
    bins = math.sqrt(max(numeric, 1)) * math.pow(rows, 1 / (numeric + 1))
    return max(2, min(math.floor(bins), MOST_BINS))
