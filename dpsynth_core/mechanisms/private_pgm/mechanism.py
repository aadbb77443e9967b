"""Private-PGM: noisy marginals, and rows from the graphical model that fits them (McKenna, Sheldon & Miklau 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np

from dpsynth_core.errors import ParameterError, check_int, check_text
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.column_sets import chosen_sets
from dpsynth_core.mechanisms.parameters import PLACEMENTS, setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.mechanisms.private_pgm.allocation import (
    COUNT_MORE,
    COUNT_PAIRS,
    SELECT_MORE,
    SELECT_TREE,
    Allocation,
    allocate,
)
from dpsynth_core.mechanisms.private_pgm.binned_columns import find_bins, measure_column
from dpsynth_core.mechanisms.private_pgm.bins import Bins
from dpsynth_core.mechanisms.private_pgm.estimation import SMALL_DOMAIN, Measurement, check_clique_size, estimate
from dpsynth_core.mechanisms.private_pgm.graphical_model import GraphicalModel, marginal
from dpsynth_core.mechanisms.private_pgm.marginal_oracles import Clique
from dpsynth_core.mechanisms.private_pgm.measuring import GaussianMeasurer, PlannedDraw, expected_std, measurer_for
from dpsynth_core.mechanisms.private_pgm.pairs import GroupedRows, independent_counts, measure_pairs, select_pairs
from dpsynth_core.privacy.accounting import check_delta
from dpsynth_core.privacy.budget import Amount, Budget, exact
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

STRATEGIES = {"tree": "a tree of pairs", "adaptive": "a tree, then what it misses", "given": "marginals that I name"}
NOISES = {"matching": "Laplace, or Gaussian if there is a delta", "laplace": "Laplace", "gaussian": "Gaussian"}
COUNT_GIVEN = "counts of the given marginals"
MAX_MARGINAL_CELLS = 1_000_000
SECONDS_PER_CLIQUE = 0.5
"""Compiling, for each pair or single column of a model that is not small."""
USUAL_DELTA = "1e-6"
"""A suggestion says what this delta would allow."""
FEW_ROWS = 300
"""Rows times epsilon below which the result is mostly noise."""


@dataclass(frozen=True, kw_only=True)
class PrivatePGM(Mechanism):
    """Count single columns and the pairs that belong together with noise, and draw rows from the model that fits best.

    Numeric columns are cut finely where noisy counts find many rows. Pairs are counted over groups of bins, as coarse
    as the noise demands; within a group, bins have the shares that the single column showed.
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

    strategy: Literal["tree", "adaptive", "given"] = setting("tree", labels=STRATEGIES)
    """What is counted: single columns and a tree of pairs; in addition, pairs that the tree's model misses; or exactly
    the marginals that you name, as in Montoya Perez et al. (2024)."""
    marginals: str | None = setting(None, title="Named marginals")
    """For named marginals: columns counted together, as in 'age, sex; age, income'. None: every pair."""
    bins: int | None = setting(None, title="Bins per numeric column")
    """Approximate number of bins. None: from the rows and epsilon; for named marginals, as declared."""
    pairs: int | None = setting(None, advanced=True)
    """Pairs in the tree. None: as many as are worth their noise, which may be none at all."""
    groups: int | None = setting(None, title="Groups per column in a pair", advanced=True)
    """Maximum number of groups of a column when it is counted in a pair. None: as many as the noise allows."""
    kind_of_noise: Literal["matching", "laplace", "gaussian"] = setting("matching", advanced=True, labels=NOISES)
    """Laplace noise is pure epsilon. Gaussian noise needs a delta greater than zero and is smaller for many columns."""
    placement: Literal["uniform", "centre"] = setting("uniform", advanced=True, labels=PLACEMENTS)
    """Where a value lies in its bin: anywhere, or in the middle."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_text("marginals", self.marginals, optional=True)
        check_int("bins", self.bins, 1, 65_536, optional=True)
        check_int("pairs", self.pairs, 1, 10_000, optional=True)
        check_int("groups", self.groups, 1, 1_000, optional=True)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount) -> Self:
        granted = exact(epsilon, parameter="epsilon")
        columns = len(schema.columns)
        allocation = cls()._allocation(schema, n, Budget(epsilon=granted))
        if allocation.pairs:
            reason = (
                f"{columns} single column(s) and {allocation.pairs} pair(s) are counted, with about {allocation.bins} "
                f"bins for numbers and at most {allocation.groups} groups per column in a pair, as fine as the noise "
                "allows."
            )
        else:
            reason = f"{columns} single column(s) are counted, with about {allocation.bins} bins for numbers."
        if not allocation.pairs and columns > 1:
            reason += (
                " Pairs would be mostly noise, and counting them would leave less epsilon for the single columns: "
                "columns are drawn independently."
            )
        with_delta = cls()._allocation(schema, n, Budget.of(granted, USUAL_DELTA))
        if with_delta.pairs > allocation.pairs:
            reason += (
                f" A delta of {USUAL_DELTA} would allow {with_delta.pairs} pair(s) and about {with_delta.bins} bins."
            )
        if n * granted < FEW_ROWS:
            reason += " With so few rows at so small an epsilon, expect little but noise."
        return cls(reason=reason)

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        """Also a tree where none is suggested, rounds after it, and named marginals."""
        return {
            **super().audited(schema, n, epsilon),
            "tree": cls(pairs=2, bins=3, groups=2),
            "adaptive": cls(strategy="adaptive", bins=3, groups=2),
            "every column": cls(strategy="given", bins=2, marginals="; ".join(schema.names)),
        }

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """The stages with their shares; Gaussian draws are paid for as one."""
        planned: Sequence[PlannedDraw]
        if self.strategy == "given":
            planned, bins, cliques = self._given(schema)
            shape = tuple(each.size for each in bins)
            sizes = [math.prod(shape[variable] for variable in clique) for clique in cliques]
            cells, draws, small = max(sizes), sum(sizes), math.prod(shape) <= SMALL_DOMAIN
        else:
            allocation = self._allocation(schema, n, budget)
            shape = tuple(Bins.equal(column, allocation.bins).size for column in schema)
            planned, cells, small = allocation.draws, allocation.groups**2, not allocation.extra
            draws = sum(shape) + (allocation.pairs + allocation.extra) * cells
        return Plan(
            stages=self._stages(planned, budget),
            cuts=shape,
            cells=cells,
            draws=draws,
            values=n * len(schema.columns),
            computing=0.1 if small else 5 + SECONDS_PER_CLIQUE * len(planned),
        )

    def _stages(self, draws: Sequence[PlannedDraw], budget: Budget) -> tuple[Stage, ...]:
        granted = budget if self._gaussian(budget) else Budget(epsilon=budget.epsilon)
        scale = expected_std(draws[-1].share, granted) / math.sqrt(2)
        if granted.delta:
            return (Stage(label=GaussianMeasurer.LABEL, epsilon=granted.epsilon, scale=scale),)
        shares: dict[str, Fraction] = {}
        for draw in draws:
            shares[draw.label] = shares.get(draw.label, Fraction(0)) + draw.share
        return tuple(
            Stage(label=label, epsilon=granted.epsilon * share, scale=scale if label == draws[-1].label else None)
            for label, share in shares.items()
        )

    def fit(self, table: PrivateTable, noise: Noise, progress: Progress = no_progress) -> GraphicalModel:
        """Measure columns, select pairs, measure them, estimate; if adaptive, again for what the model misses."""
        if self.strategy == "given":
            return self._fit_given(table, noise, progress)
        allocation = self._allocation(table.schema, table.n, noise.budget)
        progress("Planning the noise", 0.0)
        measurer = allocation.measurer(noise)

        progress("Counting single columns", 0.1)
        bins = [find_bins(table, name, measurer, allocation) for name in table.schema.names]
        columns = [measure_column(table, each, measurer, max_groups=allocation.groups) for each in bins]
        measurements = [column.measurement(variable) for variable, column in enumerate(columns)]

        data, expected, pairs = GroupedRows.of(table, columns), independent_counts(columns, table.n), []
        if allocation.pairs:
            progress("Selecting and counting pairs", 0.3)
            std = allocation.std(COUNT_PAIRS, noise.budget)
            pairs = select_pairs(data, expected, measurer, SELECT_TREE, number=allocation.pairs, std=std)
            measurements += measure_pairs(data, pairs, expected, measurer, COUNT_PAIRS)
        tables = estimate(data.sizes, measurements, table.n, lambda stage: progress(stage, 0.5))

        if allocation.extra:
            progress("Selecting and counting pairs that the model misses", 0.7)
            expected = {pair: marginal(tables, pair) * table.n for pair in expected}
            std = allocation.std(COUNT_MORE, noise.budget)
            more = select_pairs(data, expected, measurer, SELECT_MORE, number=allocation.extra, std=std, taken=pairs)
            measurements += measure_pairs(data, more, expected, measurer, COUNT_MORE)
            tables = estimate(data.sizes, measurements, table.n, lambda stage: progress(stage, 0.8))

        size = len(columns)
        refined = [column.bins_given_group(variable, size + variable) for variable, column in enumerate(columns)]
        variables = tuple(range(size, 2 * size))
        return GraphicalModel(
            tables=(*tables, *refined), bins=tuple(bins), variables=variables, centre=self.placement == "centre"
        )

    def _fit_given(self, table: PrivateTable, noise: Noise, progress: Progress) -> GraphicalModel:
        """Named marginals with equal shares: Laplace noise of scale 2/share, as in the paper's demonstration."""
        draws, bins, cliques = self._given(table.schema)
        sizes = [each.size for each in bins]
        progress("Counting the given marginals", 0.0)
        measurer = measurer_for(draws, noise, gaussian=self._gaussian(noise.budget))
        data = GroupedRows(codes=tuple(each.codes(table) for each in bins), sizes=tuple(sizes))
        measurements = []
        for draw, clique in zip(draws, cliques, strict=True):
            noisy, std = measurer.histogram(draw.key, data.count(clique), rows=table.n)
            measurements.append(Measurement(clique=clique, values=noisy.astype(np.float64), std=std))
        tables = estimate(sizes, measurements, table.n, lambda stage: progress(stage, 0.5))
        variables = tuple(range(len(bins)))
        return GraphicalModel(tables=tables, bins=tuple(bins), variables=variables, centre=self.placement == "centre")

    def _given(self, schema: Schema) -> tuple[list[PlannedDraw], list[Bins], list[Clique]]:
        bins = [Bins.equal(column, self.bins) for column in schema]
        sizes = [each.size for each in bins]
        named = chosen_sets(self.marginals, schema, 2, parameter="marginals")
        cliques = [tuple(schema.names.index(name) for name in names) for names in named]
        for clique, names in zip(cliques, named, strict=True):
            cells = math.prod(sizes[variable] for variable in clique)
            if cells > MAX_MARGINAL_CELLS:
                raise ParameterError(
                    "marginals",
                    f"{', '.join(names)} with {cells:,} cells",
                    allowed=f"marginals of at most {MAX_MARGINAL_CELLS:,} cells",
                    remedy="Use fewer bins or columns, or the strategy 'tree'.",
                )
        check_clique_size(sizes, cliques)
        share = Fraction(1, len(cliques))
        draws = [PlannedDraw(key=(COUNT_GIVEN, i), label=COUNT_GIVEN, share=share) for i in range(len(cliques))]
        return draws, bins, cliques

    def _allocation(self, schema: Schema, n: int, budget: Budget) -> Allocation:
        return allocate(
            schema,
            n,
            budget,
            gaussian=self._gaussian(budget),
            adaptive=self.strategy == "adaptive",
            bins=self.bins,
            groups=self.groups,
            pairs=self.pairs,
        )

    def _gaussian(self, budget: Budget) -> bool:
        if self.kind_of_noise == "gaussian":
            check_delta(budget.delta)
        return bool(budget.delta) and self.kind_of_noise != "laplace"
