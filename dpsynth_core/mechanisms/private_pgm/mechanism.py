"""Private-PGM: noisy marginals, and rows from the graphical model that fits them (McKenna, Sheldon & Miklau 2019)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np

from dpsynth_core.errors import ParameterError, check_int, check_text
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.column_sets import chosen_sets
from dpsynth_core.mechanisms.parameters import PLACEMENTS, setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.mechanisms.private_pgm.allocation import Allocation, allocate
from dpsynth_core.mechanisms.private_pgm.balancing import PairTargets
from dpsynth_core.mechanisms.private_pgm.binned_columns import count_slots, find_bins, measure_column
from dpsynth_core.mechanisms.private_pgm.bins import Bins
from dpsynth_core.mechanisms.private_pgm.estimation import Measurement, check_clique_size, estimate, seconds_to_estimate
from dpsynth_core.mechanisms.private_pgm.graphical_model import GraphicalModel
from dpsynth_core.mechanisms.private_pgm.junction_tree import Clique
from dpsynth_core.mechanisms.private_pgm.measuring import GaussianMeasurer, expected_std, measurer_for
from dpsynth_core.mechanisms.private_pgm.rounds import BinGroups, GroupedRows, Rounds
from dpsynth_core.privacy.accounting import check_delta
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema

STRATEGIES = {"rounds": "what the model still misses", "given": "marginals that I name"}
NOISES = {"matching": "Laplace, or Gaussian if there is a delta", "laplace": "Laplace", "gaussian": "Gaussian"}
ROUNDS, GIVEN = {"strategy": ("rounds",)}, {"strategy": ("given",)}
COUNT_GIVEN = "counts of the given marginals"
MAX_MARGINAL_CELLS = 1_000_000
SECONDS_PER_COMPARED_VALUE = 2e-7
"""Comparing the model with what it misses in a round, for each row and column."""
SECONDS_PER_FITTED_CELL = 7e-4
"""Fitting it anew under Gaussian noise, where there are many rounds, for each cell of a pair in a round."""
SECONDS_PER_DRAWN_CELL = 2.5e-7
"""Drawing one cell of a row given those that it depends on."""
USUAL_DELTA = "1e-6"
"""A suggestion says what this delta would allow."""
FEW_ROWS = 300
"""Rows times epsilon below which the result is mostly noise."""


@dataclass(frozen=True, kw_only=True)
class PrivatePGM(Mechanism):
    """Count single columns and the pairs that belong together with noise, and draw rows from the model that fits best.

    Numeric columns are cut finely where noisy counts find many rows. Pairs are counted over groups of bins, as coarse
    as the noise demands; within a group, bins have the shares that the single column showed. A value that many rows
    share, such as an income of exactly zero, keeps its exact value.
    """

    key: ClassVar[str] = "private_pgm"
    title: ClassVar[str] = "Private-PGM"
    summary: ClassVar[str] = (
        "Adds noise to the counts of single columns and of related pairs, and draws rows from the model that fits them."
    )
    good_for: ClassVar[str] = "Tables with many columns of different kinds, where relations between pairs matter."
    beware: ClassVar[str] = (
        "Only the measured pairs of columns are reproduced; every other relation follows from the model."
    )
    paper: ClassVar[str] = (
        "McKenna, Sheldon & Miklau (2019); trees after McKenna, Miklau & Sheldon (2021), rounds after McKenna et al. "
        "(2022); Montoya Perez et al. (2024)."
    )

    takes_delta: ClassVar[bool] = True
    audit_runs: ClassVar[int] = 25

    strategy: Literal["rounds", "given"] = setting("rounds", title="What is counted", labels=STRATEGIES)
    """Single columns and then, round by round, the columns whose relation the model so far misses most; or exactly the
    marginals that you name, as in Montoya Perez et al. (2024)."""
    target: str | None = setting(None, title="Column to predict", only=ROUNDS)
    """A column that somebody will predict from the others: its relations count double when pairs are chosen. Naming
    it costs nothing. None: all columns alike."""
    marginals: str | None = setting(None, title="Named marginals", only=GIVEN)
    """For named marginals: columns counted together, as in 'age, sex; age, income'. None: every pair."""
    bins: int | None = setting(None, title="Bins per numeric column")
    """Approximate number of bins. None: from the rows and epsilon; for named marginals, as declared."""
    rounds: int | None = setting(None, advanced=True, only=ROUNDS)
    """Rounds that the budget is laid out for. None: from the columns, the rows and epsilon; there may be none."""
    last_counts: Literal["automatic", "selected", "every"] = setting("automatic", advanced=True, only=ROUNDS)
    """With a delta, part of the budget is kept to count pairs once more: those that were selected, or every one.
    Automatic: every pair if the noise is no larger than chance and there are at most 40 columns."""
    groups: int | None = setting(None, title="Groups per column in a pair", advanced=True, only=ROUNDS)
    """Maximum number of groups of a column when it is counted with others. None: of numbers as many as the noise
    allows, of labels 16."""
    kind_of_noise: Literal["matching", "laplace", "gaussian"] = setting("matching", advanced=True, labels=NOISES)
    """Laplace noise is pure epsilon. Gaussian noise needs a delta greater than zero and is smaller for many columns."""
    placement: Literal["uniform", "centre"] = setting("uniform", advanced=True, labels=PLACEMENTS)
    """Where a value lies in its bin: anywhere, or in the middle. A narrow bin that is far fuller than its neighbours
    stands for one value, the roundest number in it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_text("marginals", self.marginals, optional=True)
        check_int("bins", self.bins, 1, 65_536, optional=True)
        check_text("target", self.target, optional=True)
        check_int("rounds", self.rounds, 1, 500, optional=True)
        check_int("groups", self.groups, 1, 1_000, optional=True)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:
        budget = Budget.of(epsilon, delta)
        columns = len(schema.columns)
        allocation = cls()._allocation(schema, n, budget)
        if allocation.first:
            reason = (
                f"Single columns ({columns}) are counted with up to {allocation.bins} bins for numbers, then about "
                f"{allocation.first} times a pair that the model still misses, with at most {allocation.groups} groups "
                f"for numbers and {allocation.label_groups} for labels, as fine as the noise allows."
            )
            if allocation.every_pair:
                reason += " At the end every pair is counted, because the noise on it is smaller than chance."
        else:
            reason = f"Single columns ({columns}) are counted, with up to {allocation.bins} bins for numbers."
        if not allocation.first and columns > 1:
            reason += (
                " Pairs would be mostly noise, and counting them would leave less epsilon for the single columns: "
                "columns are drawn independently."
            )
        gain = "" if budget.delta else cls.delta_gain(schema, n, epsilon, USUAL_DELTA)
        if gain:
            reason += f" A delta of {USUAL_DELTA} would allow {gain}."
        if n * budget.epsilon < FEW_ROWS:
            reason += " With so few rows at so small an epsilon, expect little but noise."
        return cls(reason=reason)

    @classmethod
    def delta_gain(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount) -> str:
        """Rounds, groups and bins with a delta and without."""
        pure, mixed = (cls()._allocation(schema, n, Budget.of(epsilon, each)) for each in (0, delta))
        if mixed.first <= pure.first:
            return ""
        parts = [
            f"about {mixed.first} counts of pairs instead of {pure.first or 'none'}",
            f"up to {mixed.groups} groups for numbers" + (f" instead of {pure.groups}" if pure.first else ""),
        ]
        if mixed.bins != pure.bins:
            parts.append(f"up to {mixed.bins} bins for numbers instead of {pure.bins}")
        return ", ".join(parts[:-1]) + f" and {parts[-1]}"

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        """Also rounds where none are suggested, and named marginals."""
        return {
            **super().audited(schema, n, epsilon),
            "rounds": cls(rounds=2, bins=3, groups=2),
            "every pair": cls(rounds=2, bins=3, groups=2, last_counts="every"),
            "every column": cls(strategy="given", bins=2, marginals="; ".join(schema.names)),
        }

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """The stages with their shares; draws under Gaussian noise are paid for as one."""
        granted = self._granted(budget)
        if self.strategy == "given":
            bins, cliques = self._given(schema)
            shape = tuple(each.size for each in bins)
            sizes = [math.prod(shape[variable] for variable in clique) for clique in cliques]
            cells, draws = max(sizes), sum(sizes)
            fitting = seconds_to_estimate(shape, cliques, n)
            stages, last = {COUNT_GIVEN: Fraction(1)}, Fraction(1, len(cliques))
        else:
            allocation = self._allocation(schema, n, granted)
            shape = tuple(Bins.equal(column, allocation.bins).size for column in schema)
            # Without rounds the finest table that is counted is a single column's.
            cells = allocation.groups**2 if allocation.first else max(shape)
            a_round = SECONDS_PER_COMPARED_VALUE * n * len(schema.columns)
            if granted.delta:
                a_round += SECONDS_PER_FITTED_CELL * allocation.groups**2
            fitting = a_round * allocation.first * float(1 - allocation.again)
            stages = dict(allocation.stages)
            draws = sum(shape) + allocation.first * cells
            last = allocation.step if allocation.first else min(allocation.columns.values())
        scale = expected_std(last, granted) / math.sqrt(2)
        if granted.delta:
            stages = {GaussianMeasurer.LABEL: Fraction(1)}
        *_, counted = stages
        return Plan(
            stages=tuple(
                Stage(
                    label=label,
                    epsilon=granted.epsilon * share,
                    scale=scale if label == counted else None,
                    delta=granted.delta * share,
                )
                for label, share in stages.items()
            ),
            cuts=shape,
            cells=cells,
            draws=draws,
            values=n * len(schema.columns),
            made=self.cells_made(schema, n),
            seconds_per_made_cell=SECONDS_PER_DRAWN_CELL,
            computing=fitting,
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> GraphicalModel:
        """Measure columns, then round by round what the model misses; within groups, bins are as the columns say."""
        if self.strategy == "given":
            return self._fit_given(table, noise, progress)
        budget = self._granted(noise.budget)
        allocation = self._allocation(table.schema, table.n, budget)
        progress("Planning the noise", 0.0)
        measurer = measurer_for(noise, budget)

        progress("Counting single columns", 0.1)
        slots = count_slots(table, allocation.bins)
        found = [find_bins(column, slots[column.name], table.n, measurer, allocation) for column in table.schema]
        columns = [
            measure_column(each, slots[each.bins.axis.column.name], table.n, measurer, allocation) for each in found
        ]
        measurements = [column.measurement(variable) for variable, column in enumerate(columns)]

        data = GroupedRows.of(table, columns)
        target = None if self.target is None else table.schema.names.index(self.target)
        rounds = Rounds(data, measurements, measurer, allocation, budget=budget, target=target)
        model = rounds.run(lambda done: progress("Counting what the model misses", 0.2 + 0.7 * done))

        size = len(columns)
        refined = [column.bins_given_group(variable, size + variable) for variable, column in enumerate(columns)]
        variables = tuple(range(size, 2 * size))
        return GraphicalModel(
            tables=(*model.fitted.tables(), *refined),
            bins=tuple(column.bins for column in columns),
            variables=variables,
            centre=self.placement == "centre",
            targets=PairTargets.of(rounds.pairs(model), [column.strata() for column in columns]),
        )

    def _fit_given(self, table: PrivateRows, noise: Noise, progress: Progress) -> GraphicalModel:
        """Named marginals with equal shares: Laplace noise of scale 2/share, as in the paper's demonstration."""
        bins, cliques = self._given(table.schema)
        sizes = [each.size for each in bins]
        progress("Counting the given marginals", 0.0)
        measurer = measurer_for(noise, self._granted(noise.budget))
        data = GroupedRows(
            table=table, groups=tuple(BinGroups(bins=each, groups=np.arange(each.size)) for each in bins)
        )
        data.prepare(cliques)
        measurements = []
        for clique in cliques:
            share = Fraction(1, len(cliques))
            noisy, std = measurer.histogram(data.count(clique), share, COUNT_GIVEN, rows=table.n)
            measurements.append(Measurement(clique=clique, values=noisy.astype(np.float64), std=std))
        progress("Fitting the model", 0.5)
        tables = estimate(sizes, measurements, table.n).fitted.tables()
        variables = tuple(range(len(bins)))
        return GraphicalModel(tables=tables, bins=tuple(bins), variables=variables, centre=self.placement == "centre")

    def _given(self, schema: Schema) -> tuple[list[Bins], list[Clique]]:
        bins = [Bins.equal(column, self.bins) for column in schema]
        sizes = [each.size for each in bins]
        named = chosen_sets(self.marginals, schema, 2, parameter="marginals")
        cliques = [tuple(sorted(schema.names.index(name) for name in names)) for names in named]
        for clique, names in zip(cliques, named, strict=True):
            cells = math.prod(sizes[variable] for variable in clique)
            if cells > MAX_MARGINAL_CELLS:
                raise ParameterError(
                    "marginals",
                    f"{', '.join(names)} with {cells:,} cells",
                    allowed=f"marginals of at most {MAX_MARGINAL_CELLS:,} cells",
                    remedy="Use fewer bins or columns, or the strategy 'rounds'.",
                )
        check_clique_size(sizes, cliques)
        return bins, cliques

    def _allocation(self, schema: Schema, n: int, granted: Budget) -> Allocation:
        if self.target is not None and self.target not in schema.names:
            raise ParameterError("target", self.target, allowed=", ".join(schema.names))
        return allocate(
            schema,
            n,
            granted,
            bins=self.bins,
            groups=self.groups,
            rounds=self.rounds,
            every_pair=None if self.last_counts == "automatic" else self.last_counts == "every",
        )

    def _granted(self, budget: Budget) -> Budget:
        """With the delta that the noise makes use of."""
        if self.kind_of_noise == "gaussian":
            check_delta(budget.delta)
        return Budget(epsilon=budget.epsilon) if self.kind_of_noise == "laplace" else budget
