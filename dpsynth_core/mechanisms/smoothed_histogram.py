"""DP smoothed histogram (Wasserman & Zhou 2010; Montoya Perez et al. 2024, section 3.2), with half the smoothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np

from dpsynth_core.errors import check_choice, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.parameters import PLACEMENTS, setting
from dpsynth_core.mechanisms.partition.grid import Grid, bins_for
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget, exact
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema

SECONDS_PER_DRAWN_ROW, SECONDS_PER_DRAWN_CELL = 1e-7, 1e-7
"""Drawing a row takes a few random numbers; each of its cells is drawn and takes part in sorting the rows."""
FEWEST_ROWS = 50
"""A suggestion does not go below this many rows, however much smoothing they cost."""
SMOOTHINGS = {"tight": "as little as suffices", "paper": "as in the paper"}


@dataclass(frozen=True, kw_only=True)
class SmoothedHistogram(Mechanism):
    """Draw every row from the histogram after adding the same constant to every cell.

    The more rows are drawn, the larger the constant must be: each row that comes out is paid for.
    """

    key: ClassVar[str] = "smoothed_histogram"
    title: ClassVar[str] = "Smoothed histogram"
    summary: ClassVar[str] = "Mixes the table with uniform noise over the whole domain and draws rows from the mixture."
    good_for: ClassVar[str] = (
        "Few rows out of many, few cells; tests between groups of equal size stay valid, though they find little."
    )
    beware: ClassVar[str] = (
        "Rows are mixed with uniform noise, so differences between groups shrink and many real ones are missed."
    )
    paper: ClassVar[str] = "Wasserman & Zhou (2010); Montoya Perez et al. (2024)."

    bins: int | None = setting(None, title="Bins per numeric column")
    """Cells along every numeric column. None: as declared in the schema."""
    smoothing: Literal["tight", "paper"] = setting("tight", advanced=True, labels=SMOOTHINGS)
    """What is added to every cell: 1/(exp(eps/m) - 1), which suffices, or the paper's 2m/eps."""
    placement: Literal["uniform", "centre"] = setting("uniform", advanced=True, labels=PLACEMENTS)
    """Where a row lies in its cell: anywhere, or in the middle."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("bins", self.bins, 1, 65_536, optional=True)
        check_choice("smoothing", self.smoothing, ("tight", "paper"))
        check_choice("placement", self.placement, ("uniform", "centre"))

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  takes no delta
        # With m rows drawn from K cells, alpha is about m/eps, so half of the draws are real rows when K m = n eps.
        granted = exact(epsilon, parameter="epsilon")
        bins = bins_for(schema, n * float(granted) / FEWEST_ROWS)
        cells = Grid.of(schema, bins).cells
        rows = max(min(n, FEWEST_ROWS), min(n, math.floor(n * granted / cells)))
        real = n / (n + cells * float(smoothing_constant(granted, rows)))
        return cls(
            bins=bins,
            rows=rows,
            reason=f"Of {rows:,} rows over {cells:,} cells about {real:.0%} come from the table, the rest are noise; "
            "more rows or cells would mean more noise.",
        )

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        """Also with the paper's constant, and with few rows, where each of them tells most."""
        few = {"two rows": cls(rows=2), "paper's smoothing": cls(smoothing="paper", rows=3)}
        return {**super().audited(schema, n, epsilon), **few}

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One paid step: every row that is drawn."""
        stage = Stage(label="every row drawn", epsilon=budget.epsilon, scale=None)
        grid, rows = Grid.of(schema, self.bins), self.rows or n
        return Plan(
            stages=(stage,),
            cuts=grid.shape,
            cells=grid.cells,
            draws=0,
            values=n * len(schema.columns),
            computing=rows * (SECONDS_PER_DRAWN_ROW + SECONDS_PER_DRAWN_CELL * len(schema.columns)),
            made=self.cells_made(schema, n),
            listed=self.cells_made(schema, n),
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """Draw the rows. Sampling fewer later takes a part of them; sampling more repeats some, which is free."""
        grid = Grid.of(table.schema, self.bins)
        draws = self.rows or table.n
        epsilon = noise.budget.epsilon
        alpha = smoothing_constant(epsilon, draws) if self.smoothing == "tight" else 2 * draws / epsilon
        progress("Counting the cells", 0.0)
        cells, counts = grid.count(table)
        progress("Drawing rows", 0.5)
        drawn = noise.smoothed(
            cells, counts, shape=grid.shape, draws=draws, alpha=alpha, epsilon=epsilon, label="every row drawn"
        )
        weights = np.ones(draws, dtype=np.int64)
        return grid.model(drawn, weights, rows=table.n, centre=self.placement == "centre")


def smoothing_constant(epsilon: Fraction, draws: int) -> Fraction:
    """The smallest constant that makes ``draws`` draws epsilon-private, rounded up: 1 / (exp(epsilon/draws) - 1).

    Example:
        >>> float(smoothing_constant(Fraction(1), 100))  # about draws/epsilon - 1/2
        99.500833...
    """
    with localcontext(prec=60):
        rate = Decimal(epsilon.numerator) / Decimal(epsilon.denominator * draws)
        least = 1 / (rate.exp() - 1)
        # Twelve significant digits, rounded up; sixty digits of working precision leave no doubt about the direction.
        digits = max(0, 12 - least.adjusted())
        return Fraction(math.ceil(least * 10**digits) + 1, 10**digits)
