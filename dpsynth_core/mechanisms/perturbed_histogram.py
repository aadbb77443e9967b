"""DP perturbed histogram (Montoya Perez et al. 2024, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from dpsynth_core.errors import check_choice, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.parameters import PLACEMENTS, setting
from dpsynth_core.mechanisms.partition.grid import Grid, noisy_grid, suggested_bins
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.plan import Plan, counting_plan
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema

MOST_CELLS = 5_000_000
"""Beyond this a full grid is refused before anything is allocated."""


@dataclass(frozen=True, kw_only=True)
class PerturbedHistogram(Mechanism):
    """Count every cell of a grid, add noise to every count, set negative ones to zero, draw rows from the rest."""

    key: ClassVar[str] = "perturbed_histogram"
    title: ClassVar[str] = "Perturbed histogram"
    summary: ClassVar[str] = "Adds noise to the count of every cell of a grid and draws rows from the noisy counts."
    good_for: ClassVar[str] = (
        "One to three columns and many rows per cell. Beware of false discoveries at small epsilon."
    )
    beware: ClassVar[str] = (
        "Negative counts are set to zero, which adds rows to empty cells; at small epsilon ordinary tests "
        "find differences that are not there."
    )
    paper: ClassVar[str] = "Montoya Perez et al. (2024), after Dwork et al. (2006)."

    bins: int | None = setting(None, title="Bins per numeric column")
    """Cells along every numeric column. None: as declared in the schema."""
    placement: Literal["uniform", "centre"] = setting("uniform", advanced=True, labels=PLACEMENTS)
    """Where a row lies in its cell: anywhere, or in the middle (as in the paper's experiments)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("bins", self.bins, 1, 65_536, optional=True)
        check_choice("placement", self.placement, ("uniform", "centre"))

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  takes no delta
        bins = suggested_bins(schema, n, epsilon)
        cells = Grid.of(schema, bins).cells
        return cls(
            bins=bins,
            reason=f"{bins} bins per numeric column make {cells:,} cells for {n:,} rows, about ten rows per cell and "
            "1/epsilon where the columns allow it.",
        )

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        return {**super().audited(schema, n, epsilon), "few cells": cls(bins=2)}

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One paid step: the counts of all cells."""
        grid = Grid.of(schema, self.bins, most=MOST_CELLS)
        return counting_plan(
            grid.shape, n, budget.epsilon, sensitivity=HISTOGRAM_SENSITIVITY, made=self.cells_made(schema, n)
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        grid = Grid.of(table.schema, self.bins, most=MOST_CELLS)
        progress("Counting the cells", 0.0)
        # c_i + DLap(2/eps); an integer is positive or is set to zero, so the threshold is one.
        cells, counts = noisy_grid(grid, table, noise, threshold=1, label="counts of all cells", most=MOST_CELLS)
        return grid.model(cells, counts, rows=table.n, centre=self.placement == "centre")
