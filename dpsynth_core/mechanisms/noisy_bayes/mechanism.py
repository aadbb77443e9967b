"""Noisy Bayes (Bowen & Liu 2016; Snoke & Slavković 2018, section 2.1), and the same without noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self

from dpsynth_core.errors import check_between, check_choice
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.noisy_bayes.estimate import moments
from dpsynth_core.mechanisms.noisy_bayes.layout import COUNTS, PAIRS, Kind, Layout
from dpsynth_core.mechanisms.noisy_bayes.model import MixedNormal
from dpsynth_core.mechanisms.noisy_bayes.sums import exact_sums, noisy_sums
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget, Status, exact
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

SECOND: dict[str, Kind] = {"middle": "about the middle", "central": "central"}
SECONDS = {"middle": "about the middle of the range", "central": "about the mean (paper)"}


@dataclass(frozen=True, kw_only=True)
class NoisyBayes(Mechanism):
    """Add noise to means, variances and covariances, draw parameters from the posterior that they give, then rows.

    Numbers are taken to be jointly normal within their declared bounds. Labels, numbers with at most ten values, and
    whether a value is missing are drawn after them, with probabilities linear in all that was drawn before.
    """

    key: ClassVar[str] = "noisy_bayes"
    title: ClassVar[str] = "Noisy Bayes"
    summary: ClassVar[str] = "Adds noise to means, variances and covariances and draws normal rows that have them."
    good_for: ClassVar[str] = (
        "A few bell-shaped columns with tight bounds and many rows. Shapes other than a bell get lost."
    )
    beware: ClassVar[str] = (
        "Every column becomes bell-shaped within its bounds: skewness, peaks and how more than two columns "
        "go together are lost."
    )
    counts_cells: ClassVar[bool] = False
    paper: ClassVar[str] = "Bowen & Liu (2016), as compared by Snoke & Slavković (2018)."
    audit_runs: ClassVar[int] = 200

    second: Literal["middle", "central"] = setting("middle", title="Second moments", advanced=True, labels=SECONDS)
    """About which point squares and products are taken. About the middle of the declared range they need a quarter to a
    half of the noise that the paper's variances and covariances need."""
    ties_share: float = setting(0.5, title="Share for ties between columns")
    """Share of epsilon for how columns hang together; the rest goes to each column by itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("second", self.second, ("middle", "central"))
        check_between("ties_share", self.ties_share, 0, 1)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount) -> Self:
        """Parameters from public facts only."""
        layout = Layout.of(schema)
        shares = layout.shares(exact(epsilon, parameter="epsilon"), Fraction(1, 2), "about the middle")
        costs = layout.sensitivities("about the middle")
        error = max(float(costs[label] / share) for label, share in shares.items()) / n
        return cls(
            reason=f"{sum(layout.sizes().values()):,} sums share epsilon, half of it for the columns, half for their "
            f"ties. With {n:,} rows that blurs a mean or a tie by up to {error:.2g} of half a column's range."
        )

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        """Also the paper's moments, about the mean."""
        return {**super().audited(schema, n, epsilon), "about the mean": cls(second="central")}

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """One paid step for each kind of sum."""
        layout, kind = Layout.of(schema), SECOND[self.second]
        costs, shares = layout.sensitivities(kind), self._shares(layout, budget)
        stages = tuple(
            Stage(label=label, epsilon=share, scale=float(costs[label] / share) if label in (COUNTS, PAIRS) else None)
            for label, share in shares.items()
        )
        size = sum(layout.sizes().values())
        return Plan(stages=stages, cuts=_cuts(layout, schema), cells=size, draws=size, values=n * len(schema.columns))

    def fit(self, table: PrivateTable, noise: Noise, progress: Progress = no_progress) -> MixedNormal:
        """Noisy sums, valid moments, a draw from the posterior."""
        layout, kind = Layout.of(table.schema), SECOND[self.second]
        sums = noisy_sums(layout, table, noise, shares=self._shares(layout, noise.budget), kind=kind, progress=progress)
        progress("Drawing from the posterior", 0.8)
        return MixedNormal.draw(table.schema, layout, moments(layout, sums, table.n), table.n, noise.uniform)

    def _shares(self, layout: Layout, budget: Budget) -> dict[str, Fraction]:
        ties = exact(self.ties_share, parameter="ties_share")
        return layout.shares(budget.epsilon, ties, SECOND[self.second])


@dataclass(frozen=True, kw_only=True)
class Bayes(Mechanism):
    """Draw parameters from the posterior of the table itself, then rows: a reference without any privacy."""

    key: ClassVar[str] = "bayes"
    title: ClassVar[str] = "Bayes without noise"
    summary: ClassVar[str] = "The same as noisy Bayes without the noise: what the model could do if privacy were free."
    good_for: ClassVar[str] = (
        "Comparing only: how much is lost to the model, and how much to the noise. Never for release."
    )
    beware: ClassVar[str] = "There is no noise at all: it is a reference, and never private."
    counts_cells: ClassVar[bool] = False
    paper: ClassVar[str] = "Raghunathan, Reiter & Rubin (2003); the non-private reference of Snoke & Slavković (2018)."
    status: ClassVar[Status] = "none"

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount) -> Self:  # noqa: ARG003  nothing is spent
        """There is nothing to choose."""
        return cls(reason="There is nothing to choose: no noise is added, so epsilon does not matter.")

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:  # noqa: ARG002  nothing is spent
        """No paid step."""
        layout = Layout.of(schema)
        size = sum(layout.sizes().values())
        return Plan(stages=(), cuts=_cuts(layout, schema), cells=size, draws=0, values=n * len(schema.columns))

    def fit(self, table: PrivateTable, noise: Noise, progress: Progress = no_progress) -> MixedNormal:
        """Exact sums, and a draw from the posterior. Spends nothing, because it protects nothing."""
        progress("Adding up the rows", 0.0)
        layout = Layout.of(table.schema)
        sums = exact_sums(layout, table)
        progress("Drawing from the posterior", 0.8)
        return MixedNormal.draw(table.schema, layout, moments(layout, sums, table.n), table.n, noise.uniform)


def _cuts(layout: Layout, schema: Schema) -> tuple[int, ...]:
    """Numbers are not cut; labels are counted one by one."""
    numbers = {column.name for column in layout.numbers}
    levels = {factor.column.name: factor.levels for factor in layout.factors}
    return tuple(1 if column.name in numbers else levels[column.name] for column in schema)
