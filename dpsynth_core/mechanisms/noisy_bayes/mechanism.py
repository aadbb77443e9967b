"""Noisy Bayes (Bowen & Liu 2016; Snoke & Slavković 2018, section 2.1), and the same without noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self

from dpsynth_core.errors import check_between
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.noisy_bayes.model import MixedNormal
from dpsynth_core.mechanisms.noisy_bayes.moment_layout import COUNTS, PAIR_COUNTS, MomentLayout
from dpsynth_core.mechanisms.noisy_bayes.moment_sums import exact_sums, noisy_sums
from dpsynth_core.mechanisms.noisy_bayes.moments import valid_moments
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget, Status, exact
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema

SECONDS_PER_DRAWN_CELL = 9e-8
"""Drawing one cell of a row given the others."""
SECOND = {"middle": "about the middle of the range", "central": "about the mean (paper)"}


@dataclass(frozen=True, kw_only=True)
class NoisyBayes(Mechanism):
    """Add noise to means, variances and covariances, draw parameters from the posterior that they give, then rows.

    Numbers are taken to be jointly normal within their declared bounds. Labels, numbers with at most ten values, and
    whether a value is missing are drawn after them, with probabilities that are linear in everything drawn before.
    """

    key: ClassVar[str] = "noisy_bayes"
    title: ClassVar[str] = "Noisy Bayes"
    summary: ClassVar[str] = "Adds noise to means, variances and covariances, and draws normal rows with these moments."
    good_for: ClassVar[str] = "A few bell-shaped columns with tight bounds and many rows. Other shapes are lost."
    beware: ClassVar[str] = (
        "Every number becomes bell-shaped within its bounds: skewness, peaks and relations between more than two "
        "columns are lost."
    )
    counts_cells: ClassVar[bool] = False
    paper: ClassVar[str] = "Bowen & Liu (2016), as compared by Snoke & Slavković (2018)."

    second: Literal["middle", "central"] = setting("middle", title="Second moments", advanced=True, labels=SECOND)
    """The point about which squares and products are taken. About the middle of the declared range they need a quarter
    to a half of the noise that the paper's variances and covariances need."""
    relations_share: float = setting(0.5, title="Share for relations between columns")
    """Share of epsilon for the relations between columns; the rest goes to each column by itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("relations_share", self.relations_share, 0, 1)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  takes no delta
        layout = MomentLayout.of(schema)
        shares = layout.shares(exact(epsilon, parameter="epsilon"), Fraction(1, 2), "middle")
        costs = layout.sensitivities("middle")
        error = max(float(costs[label] / share) for label, share in shares.items()) / n
        return cls(
            reason=f"{sum(layout.sizes().values()):,} sums share epsilon, half of it for single columns and half for "
            f"their relations. With {n:,} rows, noise on a mean or a covariance has a scale of up to {error:.2g} of "
            "half a column's range."
        )

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        return {**super().audited(schema, n, epsilon), "about the mean": cls(second="central")}

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        layout = MomentLayout.of(schema)
        costs = layout.sensitivities(self.second)
        stages = tuple(
            Stage(
                label=label,
                epsilon=share,
                scale=float(costs[label] / share) if label in (COUNTS, PAIR_COUNTS) else None,
            )
            for label, share in self._shares(layout, budget).items()
        )
        size = sum(layout.sizes().values())
        return Plan(
            stages=stages,
            cuts=_cuts(layout, schema),
            cells=size,
            draws=size,
            values=n * len(schema.columns),
            made=self.cells_made(schema, n),
            seconds_per_made_cell=SECONDS_PER_DRAWN_CELL,
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> MixedNormal:
        """Noisy sums, valid moments, a draw from the posterior."""
        layout = MomentLayout.of(table.schema)
        shares = self._shares(layout, noise.budget)
        sums = noisy_sums(layout, table, noise, shares=shares, kind=self.second, progress=progress)
        progress("Drawing from the posterior", 0.8)
        return MixedNormal.draw(table.schema, layout, valid_moments(layout, sums, table.n), table.n, noise.uniform)

    def _shares(self, layout: MomentLayout, budget: Budget) -> dict[str, Fraction]:
        relations = exact(self.relations_share, parameter="relations_share")
        return layout.shares(budget.epsilon, relations, self.second)


@dataclass(frozen=True, kw_only=True)
class Bayes(Mechanism):
    """Draw parameters from the posterior of the table itself, then rows: a reference without any privacy."""

    key: ClassVar[str] = "bayes"
    title: ClassVar[str] = "Bayes without noise"
    summary: ClassVar[str] = "The same as Noisy Bayes but without noise: what the model could do if privacy were free."
    good_for: ClassVar[str] = (
        "Comparison only: it shows how much the model loses and how much the noise. Never release its rows."
    )
    beware: ClassVar[str] = "It adds no noise at all: it is a reference without any privacy."
    counts_cells: ClassVar[bool] = False
    paper: ClassVar[str] = "Raghunathan, Reiter & Rubin (2003); the non-private reference of Snoke & Slavković (2018)."
    status: ClassVar[Status] = "none"

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  nothing is spent
        return cls(reason="There is nothing to choose: no noise is added, so epsilon does not matter.")

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:  # noqa: ARG002  nothing is spent
        layout = MomentLayout.of(schema)
        size = sum(layout.sizes().values())
        return Plan(
            stages=(),
            cuts=_cuts(layout, schema),
            cells=size,
            draws=0,
            values=n * len(schema.columns),
            made=self.cells_made(schema, n),
            seconds_per_made_cell=SECONDS_PER_DRAWN_CELL,
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> MixedNormal:
        """Exact sums, and a draw from the posterior. Spends nothing, because it protects nothing."""
        progress("Adding up the rows", 0.0)
        layout = MomentLayout.of(table.schema)
        sums = exact_sums(layout, table)
        progress("Drawing from the posterior", 0.8)
        return MixedNormal.draw(table.schema, layout, valid_moments(layout, sums, table.n), table.n, noise.uniform)


def _cuts(layout: MomentLayout, schema: Schema) -> tuple[int, ...]:
    """Numbers are not cut; labels are counted one by one."""
    numbers = {column.name for column in layout.numbers}
    levels = {variable.column.name: variable.levels for variable in layout.categorical}
    return tuple(1 if column.name in numbers else levels[column.name] for column in schema)
