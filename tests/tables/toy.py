"""The smallest mechanism that keeps the contract, to be registered by tests only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from dpsynth_core.errors import check_int
from dpsynth_core.mechanisms import Mechanism
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.partition.grid import Grid, noisy_grid, suggested_bins
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.plan import Plan, counting_plan
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema


@dataclass(frozen=True, kw_only=True)
class Toy(Mechanism):
    """Noisy counts of a grid's cells: all that a new mechanism has to say."""

    key: ClassVar[str] = "toy"
    title: ClassVar[str] = "Toy histogram"
    summary: ClassVar[str] = "Counts the cells of a toy grid with noise."
    good_for: ClassVar[str] = "Trying out what a registered mechanism gets."
    beware: ClassVar[str] = "It is a toy, and its rows are toys as well."
    paper: ClassVar[str] = "None."

    bins: int = setting(4, title="Bins of the toy")
    """Cells along every numeric column."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("bins", self.bins, 1, 65_536)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:
        """About ten rows per cell."""
        return cls(bins=suggested_bins(schema, n, epsilon), reason="About ten rows fall into a cell.")

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One paid step."""
        return counting_plan(Grid.of(schema, self.bins).shape, n, budget.epsilon, sensitivity=2)

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """Noisy counts of all cells."""
        progress("Counting the cells", 0.0)
        grid = Grid.of(table.schema, self.bins)
        cells, counts = noisy_grid(grid, table, noise, threshold=1, label="counts of all cells", most=10**7)
        return grid.model(cells, counts, rows=table.n, centre=False)
