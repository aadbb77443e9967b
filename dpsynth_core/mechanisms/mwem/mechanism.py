"""MWEM: multiplicative weights with the exponential mechanism (Hardt, Ligett & McSherry 2012)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import check_int, check_text
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.column_sets import chosen_sets
from dpsynth_core.mechanisms.mwem.weights import (
    MEASUREMENT,
    SELECTION,
    MeasuredQuery,
    measure_query,
    reweigh,
    select_query,
    suggested_rounds,
)
from dpsynth_core.mechanisms.mwem.workload import IntervalWorkload, MarginalWorkload, RangeWorkload, Workload
from dpsynth_core.mechanisms.parameters import PLACEMENTS, setting
from dpsynth_core.mechanisms.partition.grid import Grid, bins_for
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget, exact
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema

MAX_CELLS = 1_000_000
"""Beyond this a full histogram is refused before anything is allocated."""
SUGGESTED_CELLS = 150_000
"""A suggestion keeps the histogram this small where labels allow it, for speed."""
ROWS_PER_SCALE = 5.0
"""Rows that a suggestion aims for in a cell of a measured marginal, per unit of its noise scale."""
SUGGESTED_UPDATES = 3_000
"""Updates that a suggestion aims for by going over the measurements repeatedly, at most 40 times."""
SECONDS_PER_UPDATE = 2.1e-5
"""What an update takes however small the histogram is."""
SECONDS_PER_QUERY = 4.9e-7
"""Finding one query that may still be selected, in one selection."""


@dataclass(frozen=True, kw_only=True)
class MWEM(Mechanism):
    """Start from a uniform histogram; repeatedly select a query that it answers badly, measure it, correct it.

    Every round gets an equal share of epsilon: half to select a query (exponential mechanism), half to measure it. A
    query is never selected twice. If there are no more queries than rounds, all are measured and none is selected.
    """

    key: ClassVar[str] = "mwem"
    title: ClassVar[str] = "MWEM"
    summary: ClassVar[str] = "Starts from a uniform histogram and corrects it where it answers your questions worst."
    good_for: ClassVar[str] = (
        "A few columns and questions that you know in advance. It is coarse: beware of false discoveries."
    )
    beware: ClassVar[str] = (
        "Only the chosen questions are fitted; everything else is nearly uniform, so ordinary tests may find "
        "differences that do not exist."
    )
    paper: ClassVar[str] = "Hardt, Ligett & McSherry (2012); Montoya Perez et al. (2024), section 3.2."
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        # The defaults of its software: 10 rounds and 10 repetitions over every interval. That software selects by
        # noisy maximum; here the exponential mechanism does.
        "Montoya Perez et al. (2024)": {
            "bins": None,
            "rounds": 10,
            "workload": "intervals",
            "passes": 10,
            "step": "paper",
            "estimate": "last",
            "placement": "centre",
        }
    }

    bins: int | None = None
    """Cells along every numeric column. None: as declared in the schema."""
    rounds: int | None = None
    """Number of queries to select and measure (T). None: balances learning against noise, from public facts."""
    workload: Literal["marginals", "ranges", "intervals"] = "marginals"
    """What a query is: the counts over all combinations of values of some columns; the count of one box of halves,
    quarters, ... or labels of some columns; or the count of a run of consecutive cells of the flattened histogram, as
    in Montoya Perez et al. (2024)."""
    order: int = setting(2, title="Columns in a question")
    """How many columns a query is about, for marginals and ranges."""
    columns: str | None = setting(None, title="Questions", advanced=True)
    """The columns asked about together, as in 'age, sex; age, income'. None: every set of that order."""
    passes: int = setting(40, advanced=True)
    """Maximum number of times that a round goes over all measurements so far again, which costs time but no epsilon."""
    step: Literal["relative", "paper"] = setting("relative", title="Correction", advanced=True)
    """How far a count q is corrected towards its measurement m: by (m - q) / (2 max(m, q)), which converges quickly for
    large and small counts alike, or by the paper's (m - q) / (2n)."""
    estimate: Literal["average", "last"] = setting("average", title="Histogram released", advanced=True)
    """The mean histogram over all rounds, as in the theorem, or the last one."""
    placement: Literal["uniform", "centre"] = setting("uniform", advanced=True, labels=PLACEMENTS)
    """Where a row lies in its cell: anywhere, or in the middle."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("bins", self.bins, 1, 65_536, optional=True)
        check_int("rounds", self.rounds, 1, 1_000, optional=True)
        check_int("order", self.order, 1, 10)
        check_text("columns", self.columns, optional=True)
        check_int("passes", self.passes, 0, 1_000)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  takes no delta
        granted, order = float(exact(epsilon, parameter="epsilon")), 2
        queries = len(chosen_sets(None, schema, order, parameter="columns"))
        rounds = suggested_rounds(n, granted, SUGGESTED_CELLS, queries)
        # Half of a round's share measures, all of it where nothing is left to select: scale b = 2 / share.
        share = granted / rounds / (2 if rounds < queries else 1)
        per_marginal = n / (ROWS_PER_SCALE * MarginalWorkload.sensitivity / share)
        numeric = max(sum(column.is_numeric for column in schema), 1)
        bins = max(2, math.floor(per_marginal ** (1 / min(order, numeric))))
        bins = min(bins, bins_for(schema, SUGGESTED_CELLS))
        return cls(
            bins=bins,
            rounds=rounds,
            passes=max(4, min(40, 2 * SUGGESTED_UPDATES // (rounds * (rounds + 1)))),
            reason=f"{rounds} {'round balances' if rounds == 1 else 'rounds balance'} what is learned against the "
            f"noise for {n:,} rows. With {bins} bins per numeric column, a cell of a measured pair holds about "
            f"{ROWS_PER_SCALE:g} times its noise, where the columns allow it.",
        )

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        """Also single columns with few passes, and the other kinds of queries, which are selected."""
        return {
            **super().audited(schema, n, epsilon),
            "single columns": cls(bins=2, order=1, rounds=2, passes=2),
            "ranges": cls(bins=2, workload="ranges", order=1, rounds=1, passes=2),
            "intervals": cls(bins=2, workload="intervals", rounds=2, passes=1, step="paper", estimate="last"),
        }

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        grid = Grid.of(schema, self.bins, most=MAX_CELLS)
        workload = self._workload(grid, schema)
        rounds = self._rounds(grid, workload, n, budget)
        selecting, measuring = _shares(budget.epsilon, rounds, len(workload))
        stages = [] if selecting is None else [Stage(label=SELECTION, epsilon=selecting * rounds, scale=None)]
        scale = float(workload.sensitivity / measuring)
        stages.append(Stage(label=MEASUREMENT, epsilon=measuring * rounds, scale=scale))
        updates = self.passes * rounds * (rounds + 1) // 2 + rounds
        selections = 0 if selecting is None else rounds
        return Plan(
            stages=tuple(stages),
            cuts=grid.shape,
            cells=grid.cells,
            draws=rounds * int(workload.sizes.max()),
            values=n * len(schema.columns) + grid.cells,
            made=self.cells_made(schema, n),
            computing=updates * (SECONDS_PER_UPDATE + workload.seconds_to_update)
            + selections * (SECONDS_PER_QUERY * len(workload) + workload.seconds_to_score),
            scores=selections * len(workload),
            listed=grid.cells * len(schema.columns),
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """Select, measure, reweigh, for as many rounds as there are."""
        grid = Grid.of(table.schema, self.bins, most=MAX_CELLS)
        workload = self._workload(grid, table.schema)
        rounds = self._rounds(grid, workload, table.n, noise.budget)
        selecting, measuring = _shares(noise.budget.epsilon, rounds, len(workload))
        progress("Counting the cells", 0.0)
        histogram = grid.full_counts(table)
        weights = np.full(grid.shape, table.n / grid.cells)
        average: FloatArray = np.zeros(grid.shape)
        measured: list[MeasuredQuery] = []
        for round_ in range(rounds):
            progress(f"Round {round_ + 1} of {rounds}", round_ / rounds)
            query = round_
            if selecting is not None:
                taken = [each.query for each in measured]
                query = select_query(
                    workload, histogram, weights, noise, taken=taken, epsilon=selecting, measuring=measuring
                )
            measured.append(measure_query(workload, histogram, noise, query=query, epsilon=measuring))
            weights = reweigh(workload, weights, measured, rows=table.n, passes=self.passes, correction=self.step)
            average += weights / rounds
        released = average if self.estimate == "average" else weights
        cells = np.column_stack(np.unravel_index(np.arange(grid.cells), grid.shape)).astype(np.int64)
        centre = self.placement == "centre"
        return PartitionModel.of(grid.axes, cells, cells + 1, released.ravel(), rows=table.n, centre=centre)

    def _workload(self, grid: Grid, schema: Schema) -> Workload:
        if self.workload == "intervals":
            return IntervalWorkload(shape=grid.shape)
        named = chosen_sets(self.columns, schema, self.order, parameter="columns")
        sets = tuple(tuple(schema.names.index(name) for name in group) for group in named)
        if self.workload == "ranges":
            return RangeWorkload.of(grid.axes, sets)
        return MarginalWorkload(shape=grid.shape, sets=sets)

    def _rounds(self, grid: Grid, workload: Workload, n: int, budget: Budget) -> int:
        if self.rounds is not None:
            return min(self.rounds, len(workload))
        return suggested_rounds(n, float(budget.epsilon), grid.cells, len(workload))


def _shares(epsilon: Fraction, rounds: int, queries: int) -> tuple[Fraction | None, Fraction]:
    """For one selection and one measurement; where all queries are measured, there is nothing to select."""
    return (None, epsilon / rounds) if rounds == queries else (epsilon / (2 * rounds), epsilon / (2 * rounds))
