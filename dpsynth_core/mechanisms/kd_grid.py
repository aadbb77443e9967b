"""Data-independent binning (Kreačić et al. 2023, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, Self

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import check_between, check_choice, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.parameters import PLACEMENTS, setting
from dpsynth_core.mechanisms.partition.grid import MOST_BINS, Grid, check_invented, noisy_grid
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.partition.resolution import (
    COARSEST,
    Resolution,
    choose_resolution,
    resolutions,
    with_lost_rows,
)
from dpsynth_core.mechanisms.partition.thresholds import spurious_threshold
from dpsynth_core.mechanisms.plan import Plan, Stage, counting_plan
from dpsynth_core.privacy.budget import Amount, Budget, exact
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema

MOST_CELLS = 2**62
MOST_INVENTED = 5_000_000
MIN_ROWS_TO_CHOOSE = 5_000
"""Rows times epsilon from which a paid choice of the bins is suggested; with fewer, its own noise costs too much."""
MAX_COLUMNS_TO_CHOOSE = 5
"""Columns up to which it is: with more, cells that are fine enough for every column hold next to nothing each."""
CHOICE_SHARE = 0.05
"""Of epsilon, where it is."""


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
    """Cells along every numeric column (R/w). None: chosen privately, or as declared where no share is set aside."""
    choice_share: float = setting(0.0, title="Share for choosing the bins")
    """Share of epsilon with which the number of bins is chosen, if it is not given. Zero: the declared bins."""
    threshold: int | None = setting(None, title="Fewest rows to keep a cell")
    """Smallest noisy count that is kept (t). None: empty cells invent at most one row in a hundred, or in four hundred
    where the bins are chosen."""
    spread_lost: bool = setting(False, title="Return rows that were lost", advanced=True)
    """Whether rows that fell below the threshold go to the dropped cells beside kept ones, in up to three numeric
    columns. Otherwise all kept cells grow by the same factor."""
    placement: Literal["uniform", "centre"] = setting("uniform", advanced=True, labels=PLACEMENTS)
    """Where a row lies in its cell: anywhere, or in the middle."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("bins", self.bins, 1, 65_536, optional=True)
        check_int("threshold", self.threshold, 1, 10**9, optional=True)
        if self.choice_share:
            check_between("choice_share", self.choice_share, 0, 0.9)
        check_choice("placement", self.placement, ("uniform", "centre"))

    @property
    def chooses_bins(self) -> bool:
        """Whether part of epsilon goes to choosing the number of bins."""
        return self.bins is None and self.choice_share > 0

    @property
    def plain(self) -> bool:
        """Whether it is noise and threshold on a fixed grid and nothing else, so that its law is that of its counts."""
        return not (self.chooses_bins or self.spread_lost)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  takes no delta
        bins, rows = balanced_bins(schema, n, epsilon), n * float(exact(epsilon, parameter="epsilon"))
        few = 1 < len(schema.columns) <= MAX_COLUMNS_TO_CHOOSE and all(column.is_numeric for column in schema)
        if few and rows >= MIN_ROWS_TO_CHOOSE:
            return cls(
                choice_share=CHOICE_SHARE,
                spread_lost=True,
                reason=f"{CHOICE_SHARE:.0%} of epsilon goes to choosing how finely to cut: rows that fill a small part "
                f"of the domain deserve smaller cells. Rows spread over all of it would get about {bins} bins per "
                "column.",
            )
        return cls(
            bins=bins,
            reason=f"{bins} bins per numeric column: with more, cells with few rows would be lost to the noise; with "
            "fewer, rows would be spread too widely. The threshold lets empty cells invent at most one row in a "
            "hundred.",
        )

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        """Also with the lowest threshold, where empty cells invent the most."""
        return {
            **super().audited(schema, n, epsilon),
            "invents": cls(bins=6, threshold=1),
            "chooses": cls(choice_share=0.5),
        }

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """The counts of all cells; before them, where it is paid for, the choice of the cells."""
        if not self.chooses_bins:
            grid = Grid.of(schema, self.bins, most=MOST_CELLS)
            check_invented(grid, self._threshold(grid, n, budget.epsilon), budget.epsilon, most=MOST_INVENTED)
            return counting_plan(
                grid.shape, n, budget.epsilon, sensitivity=HISTOGRAM_SENSITIVITY, made=self.cells_made(schema, n)
            )
        choosing, counting = self._shares(budget)
        candidates, around = self._candidates(schema, n, counting), balanced_bins(schema, n, counting)
        # Which one will be chosen is not known beforehand: the one for rows all over the domain stands for it.
        likely = min(candidates, key=lambda candidate: abs(candidate.bins - around))
        plan = counting_plan(
            Grid.of(schema, likely.bins).shape,
            n,
            counting,
            sensitivity=HISTOGRAM_SENSITIVITY,
            made=self.cells_made(schema, n),
        )
        choice = Stage(label="how finely to cut", epsilon=choosing, scale=None)
        return replace(plan, stages=(choice, *plan.stages), values=plan.values * len(candidates))

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        bins, threshold, epsilon = self.bins, self.threshold, noise.budget.epsilon
        if self.chooses_bins:
            choosing, epsilon = self._shares(noise.budget)
            candidates = self._candidates(table.schema, table.n, epsilon)
            chosen = choose_resolution(table, candidates, noise, epsilon=choosing, progress=progress)
            bins, threshold = chosen.bins, chosen.threshold
        grid = Grid.of(table.schema, bins, most=MOST_CELLS)
        progress("Counting the cells", 0.5 if self.chooses_bins else 0.0)
        threshold = threshold or self._threshold(grid, table.n, epsilon)
        label = "counts of all cells"
        cells, counts = noisy_grid(
            grid, table, noise, threshold=threshold, label=label, most=MOST_INVENTED, epsilon=epsilon
        )
        weights: FloatArray | IntArray = counts
        if self.spread_lost:
            cells, weights = with_lost_rows(grid, cells, counts, rows=table.n, threshold=threshold)
        return grid.model(cells, weights, rows=table.n, centre=self.placement == "centre")

    def _threshold(self, grid: Grid, n: int, epsilon: Fraction) -> int:
        return self.threshold or spurious_threshold(grid.cells, n, HISTOGRAM_SENSITIVITY / epsilon)

    def _shares(self, budget: Budget) -> tuple[Fraction, Fraction]:
        """Epsilon for the choice of the cells, and for their counts."""
        share = exact(self.choice_share, parameter="choice_share")
        return budget.epsilon * share, budget.epsilon * (1 - share)

    def _candidates(self, schema: Schema, n: int, epsilon: Fraction) -> tuple[Resolution, ...]:
        """What is chosen from, by public facts: grids around the one that suits rows spread over the whole domain."""
        around = balanced_bins(schema, n, epsilon)
        most = MOST_CELLS if self.threshold is None else MOST_INVENTED
        Grid.of(schema, max(2, round(around * COARSEST)), most=most)  # refused here if even the coarsest is too large
        scale = HISTOGRAM_SENSITIVITY / epsilon
        return resolutions(schema, n, around=around, scale=scale, threshold=self.threshold, most=most)


def balanced_bins(schema: Schema, n: int, epsilon: Amount) -> int:
    """Bins along every numeric column at which the width of a cell costs as much as noise and threshold do.

    Moving a row within its cell costs up to its diagonal, sqrt(d) / bins of the range; noise and threshold cost each of
    bins^d cells about 1/epsilon rows of the n (docs/results/kd_trees.md). Labels divide the rows.
    """
    numeric = sum(column.is_numeric for column in schema)
    labels = math.prod(column.size for column in schema if not column.is_numeric)
    rows = n * float(exact(epsilon, parameter="epsilon")) / labels
    bins = math.sqrt(max(numeric, 1)) * math.pow(rows, 1 / (numeric + 1))
    return max(2, min(math.floor(bins), MOST_BINS))
