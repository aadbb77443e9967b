"""Private-PGM: noisy marginals, and rows from the graphical model that fits them (McKenna, Sheldon & Miklau 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError, check_choice, check_text, check_whole
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.column_sets import chosen_sets
from dpsynth_core.mechanisms.parameters import PLACEMENTS, setting
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.mechanisms.private_pgm.bins import Bins
from dpsynth_core.mechanisms.private_pgm.graphical import Step, draw_rows, marginal
from dpsynth_core.mechanisms.private_pgm.inference import Measurement, check_size, fitted_steps
from dpsynth_core.mechanisms.private_pgm.meter import GaussianMeter, Item, LaplaceMeter, expected_deviation
from dpsynth_core.mechanisms.private_pgm.outlay import MORE_PAIRS, PAIRS, REST, TREE, Outlay, laid_out
from dpsynth_core.mechanisms.private_pgm.pairs import GroupedRows, choose_pairs, independent, measure_pairs
from dpsynth_core.mechanisms.private_pgm.views import look_at, measure_single
from dpsynth_core.privacy.budget import Amount, Budget, exact
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

STRATEGIES = {"tree": "a tree of pairs", "adaptive": "a tree, then what it misses", "given": "marginals that I name"}
NOISES = {"matching": "Laplace, or Gaussian where there is a delta", "laplace": "Laplace", "gaussian": "Gaussian"}
GIVEN = "counts of the given marginals"
MOST_MARGINAL_CELLS = 1_000_000
SECONDS_PER_COLUMN_SET = 0.5
"""Compiling, for each pair or single column of a model that is not small."""
SMALL_PRODUCT = 2**14
USUAL_DELTA = "1e-6"
"""What people are told about, to compare."""
FEW_ROWS = 300
"""Rows times epsilon below which little but noise is to be expected."""


@dataclass(frozen=True, kw_only=True)
class GraphicalModel:
    """Conditional tables over groups and bins of columns. Safe to show: nothing here is private."""

    steps: tuple[Step, ...]
    """In the order in which variables are drawn."""
    bins: tuple[Bins, ...]
    """Of each column, in the schema's order."""
    variables: tuple[int, ...]
    """The variable that holds each column's bin."""
    centre: bool
    """Whether values are placed at the middle of their bin or anywhere in it."""

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """That many rows, whose counts follow the model's own tables."""
        drawn = draw_rows(self.steps, rows, noise)
        columns = {}
        for bins, variable in zip(self.bins, self.variables, strict=True):
            positions = bins.place(drawn[variable], noise, centre=self.centre)
            columns[bins.axis.column.name] = codec_for(bins.axis.column).restore(positions)
        return pd.DataFrame(columns, copy=False)

    def marginal(self, names: Sequence[str]) -> FloatArray:
        """The model's own probabilities of the bins of some columns."""
        place = {bins.axis.column.name: variable for bins, variable in zip(self.bins, self.variables, strict=True)}
        return marginal(self.steps, [place[name] for name in names])


@dataclass(frozen=True, kw_only=True)
class PrivatePGM(Mechanism):
    """Count single columns and the pairs that belong together with noise, and draw rows from the model that fits best.

    Numeric columns are cut where a noisy look finds rows. Pairs are counted over groups of bins, as coarse as the noise
    demands; within a group, bins keep the shares that the single column showed.
    """

    key: ClassVar[str] = "private_pgm"
    title: ClassVar[str] = "Private-PGM"
    summary: ClassVar[str] = (
        "Counts columns and strongly related pairs with noise and draws rows from a matching model."
    )
    good_for: ClassVar[str] = "Tables of many mixed columns; how pairs of columns go together."
    beware: ClassVar[str] = "Only the measured pairs of columns are kept; all others are what the model makes of them."
    paper: ClassVar[str] = (
        "McKenna, Sheldon & Miklau (2019); trees after McKenna, Miklau & Sheldon (2021), rounds after McKenna et al. "
        "(2022); Montoya Perez et al. (2024)."
    )

    takes_delta: ClassVar[bool] = True
    audit_runs: ClassVar[int] = 25

    strategy: Literal["tree", "adaptive", "given"] = setting("tree", labels=STRATEGIES)
    """What is counted: single columns and a tree of pairs; also pairs that the tree's model misses; or exactly the
    marginals that you name, as in paper 004."""
    marginals: str | None = setting(None, title="Named marginals")
    """For named marginals: columns counted together, as in 'age, sex; age, income'. None: every pair."""
    bins: int | None = setting(None, title="Bins per numeric column")
    """Bins of every numeric column, about. None: from the rows and epsilon; for named marginals, as declared."""
    pairs: int | None = setting(None, advanced=True)
    """Pairs in the tree. None: as many as the noise leaves worthwhile, which may be none at all."""
    groups: int | None = setting(None, title="Groups per column in a pair", advanced=True)
    """Most groups of a column when it is counted in a pair. None: as many as the noise allows."""
    kind_of_noise: Literal["matching", "laplace", "gaussian"] = setting("matching", advanced=True, labels=NOISES)
    """Laplace noise is pure epsilon. Gaussian noise needs a delta greater than zero and is smaller for many columns."""
    placement: Literal["uniform", "centre"] = setting("uniform", advanced=True, labels=PLACEMENTS)
    """Where a value lies in its bin: anywhere, or in the middle."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("strategy", self.strategy, ("tree", "adaptive", "given"))
        check_text("marginals", self.marginals, optional=True)
        check_whole("bins", self.bins, 1, 65_536, optional=True)
        check_whole("pairs", self.pairs, 1, 10_000, optional=True)
        check_whole("groups", self.groups, 1, 1_000, optional=True)
        check_choice("kind_of_noise", self.kind_of_noise, ("matching", "laplace", "gaussian"))
        check_choice("placement", self.placement, ("uniform", "centre"))

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount) -> Self:
        """Parameters from public facts only; they adapt to the noise by themselves."""
        granted = exact(epsilon, parameter="epsilon")
        outlay = cls()._outlay(schema, n, Budget(epsilon=granted))
        if outlay.pairs:
            reason = (
                f"{len(schema.columns)} single column(s) and {outlay.pairs} pair(s) are counted, numbers in about "
                f"{outlay.bins} bins and pairs in at most {outlay.groups} groups a column, as fine as the noise allows."
            )
        else:
            reason = f"{len(schema.columns)} single column(s) are counted, numbers in about {outlay.bins} bins."
        if not outlay.pairs and len(schema.columns) > 1:
            reason += (
                " Noise would drown pairs, and what they cost would be missing in every column: columns are drawn "
                "independently."
            )
        eased = cls()._outlay(schema, n, Budget.of(granted, USUAL_DELTA))
        if eased.pairs > outlay.pairs:
            reason += f" A delta of {USUAL_DELTA} would allow {eased.pairs} pair(s) and about {eased.bins} bins."
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
        if self.strategy == "given":
            items, bins, sets = self._given(schema)
            shape = tuple(each.size for each in bins)
            cells = max(math.prod(shape[variable] for variable in group) for group in sets)
            draws = sum(math.prod(shape[variable] for variable in group) for group in sets)
            small = math.prod(shape) <= SMALL_PRODUCT
        else:
            outlay = self._outlay(schema, n, budget)
            items, cells = list(outlay.items), outlay.groups**2
            shape = tuple(Bins.equal(column, outlay.bins).size for column in schema)
            draws = sum(shape) + (outlay.pairs + outlay.extra) * cells
            small = not outlay.extra
        return Plan(
            stages=self._stages(items, budget), cuts=shape, cells=cells, draws=draws, values=n * len(schema.columns),
            computing=0.1 if small else 5 + SECONDS_PER_COLUMN_SET * len(items),
        )  # fmt: skip

    def _stages(self, items: Sequence[Item], budget: Budget) -> tuple[Stage, ...]:
        granted = budget if self._gaussian(budget) else Budget(epsilon=budget.epsilon)
        scale = expected_deviation(items[-1].part, granted) / math.sqrt(2)
        if granted.delta:
            return (Stage(label=GaussianMeter.LABEL, epsilon=granted.epsilon, scale=scale),)
        parts: dict[str, Fraction] = {}
        for item in items:
            parts[item.label] = parts.get(item.label, Fraction(0)) + item.part
        return tuple(
            Stage(label=label, epsilon=granted.epsilon * part, scale=scale if label == items[-1].label else None)
            for label, part in parts.items()
        )

    def fit(self, table: PrivateTable, noise: Noise, progress: Progress = no_progress) -> GraphicalModel:
        """Count single columns, choose pairs, count them, fit; if adaptive, go on with what the model misses."""
        if self.strategy == "given":
            return self._fit_given(table, noise, progress)
        outlay = self._outlay(table.schema, table.n, noise.budget)
        progress("Planning the noise", 0.0)
        meter = outlay.meter(noise)
        progress("Looking at single columns", 0.1)
        found = [look_at(table, name, meter, outlay) for name in table.schema.names]
        views = [measure_single(table, bins, meter, groups=outlay.groups) for bins in found]
        measured = [view.measurement(variable) for variable, view in enumerate(views)]
        data, expected, pairs = GroupedRows.of(table, views), independent(views, table.n), []
        if outlay.pairs:
            progress("Choosing and counting pairs", 0.3)
            deviation = outlay.deviation((PAIRS, 0), noise.budget)
            pairs = choose_pairs(data, expected, meter, TREE, wanted=outlay.pairs, taken=(), deviation=deviation)
            measured += measure_pairs(data, pairs, expected, meter, PAIRS)
        steps = fitted_steps(data.sizes, measured, table.n, lambda stage: progress(stage, 0.5))
        if outlay.extra:
            progress("Choosing and counting pairs that the model misses", 0.7)
            expected = {pair: marginal(steps, pair) * table.n for pair in expected}
            deviation = outlay.deviation((MORE_PAIRS, 0), noise.budget)
            more = choose_pairs(data, expected, meter, REST, wanted=outlay.extra, taken=pairs, deviation=deviation)
            measured += measure_pairs(data, more, expected, meter, MORE_PAIRS)
            steps = fitted_steps(data.sizes, measured, table.n, lambda stage: progress(stage, 0.8))
        refined = [view.step(variable, len(views) + variable) for variable, view in enumerate(views)]
        return GraphicalModel(
            steps=(*steps, *refined), bins=tuple(found), variables=tuple(range(len(views), 2 * len(views))),
            centre=self.placement == "centre",
        )  # fmt: skip

    def _fit_given(self, table: PrivateTable, noise: Noise, progress: Progress) -> GraphicalModel:
        """Named marginals with equal shares: Laplace noise of scale 2/share, as in the paper's demonstration."""
        items, bins, sets = self._given(table.schema)
        sizes = [each.size for each in bins]
        progress("Counting the given marginals", 0.0)
        meter = (GaussianMeter if self._gaussian(noise.budget) else LaplaceMeter)(items, noise)
        codes = [each.codes(table) for each in bins]
        measured = []
        for item, group in zip(items, sets, strict=True):
            shape = tuple(sizes[variable] for variable in group)
            flat = np.ravel_multi_index(tuple(codes[variable] for variable in group), shape)
            counts = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
            noisy, deviation = meter.histogram(item.key, counts, rows=table.n)
            measured.append(Measurement(variables=group, values=noisy.astype(np.float64), deviation=deviation))
        steps = fitted_steps(sizes, measured, table.n, lambda stage: progress(stage, 0.5))
        centre = self.placement == "centre"
        return GraphicalModel(steps=steps, bins=tuple(bins), variables=tuple(range(len(bins))), centre=centre)

    def _given(self, schema: Schema) -> tuple[list[Item], list[Bins], list[tuple[int, ...]]]:
        bins = [Bins.equal(column, self.bins) for column in schema]
        named = chosen_sets(self.marginals, schema, 2, parameter="marginals")
        sets = [tuple(schema.names.index(name) for name in group) for group in named]
        sizes = [each.size for each in bins]
        for group, names in zip(sets, named, strict=True):
            cells = math.prod(sizes[variable] for variable in group)
            if cells > MOST_MARGINAL_CELLS:
                raise ParameterError(
                    "marginals", f"{', '.join(names)} with {cells:,} cells",
                    allowed=f"marginals of at most {MOST_MARGINAL_CELLS:,} cells",
                    remedy="Use fewer bins or columns, or the strategy 'tree'.",
                )  # fmt: skip
        check_size(sizes, sets)
        part = Fraction(1, len(sets))
        return [Item(key=(GIVEN, turn), label=GIVEN, part=part) for turn in range(len(sets))], bins, sets

    def _outlay(self, schema: Schema, n: int, budget: Budget) -> Outlay:
        return laid_out(
            schema, n, budget, gaussian=self._gaussian(budget), adaptive=self.strategy == "adaptive",
            bins=self.bins, groups=self.groups, pairs=self.pairs,
        )  # fmt: skip

    def _gaussian(self, budget: Budget) -> bool:
        if self.kind_of_noise == "gaussian" and not budget.delta:
            raise ParameterError(
                "delta", 0, allowed="greater than 0 for Gaussian noise", remedy="Take for instance 1e-6."
            )
        return bool(budget.delta) and self.kind_of_noise != "laplace"
