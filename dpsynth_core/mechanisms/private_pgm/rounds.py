"""Rounds that count what the model so far misses most (after AIM, McKenna et al. 2022), over groups of bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.private_pgm.allocation import COUNT_SETS, SELECT_SETS, Allocation
from dpsynth_core.mechanisms.private_pgm.binned_columns import BinnedColumn
from dpsynth_core.mechanisms.private_pgm.bins import Bins
from dpsynth_core.mechanisms.private_pgm.estimation import (
    Estimate,
    MeasuredTable,
    Measurement,
    combined,
    estimate,
)
from dpsynth_core.mechanisms.private_pgm.junction_tree import Clique, Coarsening, FittedTree
from dpsynth_core.mechanisms.private_pgm.loose_pairs import corrected_pairs
from dpsynth_core.mechanisms.private_pgm.measuring import SCORE_SENSITIVITY, Measurer, expected_std
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.table.private_rows import PrivateRows, RowsAtHand, full_counts

MEAN_ERROR = 0.8
"""Mean absolute value of Gaussian noise, in units of its standard deviation."""
MAX_MODEL_CELLS = 100_000
"""Cells of all tables of the model that the whole budget may lead to."""
ROUND_ITERATIONS, FINAL_ITERATIONS = 40, 400
MAX_TRIPLES = 200
"""Triples that are compared in a round, at most."""
MAX_COLUMNS_WITH_TRIPLES = 5
"""Columns up to which there are no more triples than pairs, so that all are counted in one pass."""
TARGET_WEIGHT = 2
"""How much more an error counts in a pair with the column that is to be predicted."""
GROWTH, MIN_ROUNDS_LEFT = 2, 2
"""By how much a round grows if the one before it said nothing new, and which part of the rest it may take at most."""
MIN_PART = Fraction(1, 6)
"""Of a full round, what the smallest table gets, so that rounds do not become too many."""
SMALL_SHARE = Fraction(1, 1000)
SHARE_STEPS = 10**6
"""Shares that are computed are rounded down to such parts."""
SELECTIONS_PER_STEP = 3
"""Selections that the budget for them is laid out for, for each full round: tables of fewer cells cost less."""


@dataclass(frozen=True, kw_only=True)
class BinGroups:
    """A column's groups of bins, as a direction to count rows by."""

    bins: Bins
    groups: IntArray
    """The group of each bin."""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.bins.axis.columns

    @cached_property
    def size(self) -> int:
        return int(self.groups.max()) + 1

    @cached_property
    def _of_slot(self) -> IntArray:
        return self.groups[self.bins.of_slot]

    def locate(self, rows: RowsAtHand) -> IntArray:
        return self.bins.axis.cells(rows, self._of_slot)


@dataclass(frozen=True, kw_only=True)
class GroupedRows:
    """Rows by their groups in some columns: private."""

    table: PrivateRows
    groups: tuple[BinGroups, ...]
    """Of every column."""
    levels: tuple[tuple[IntArray, ...], ...] = ()
    """For each column, ways to gather its groups; public."""
    cells: tuple[IntArray, ...] = ()
    """The one of them that gathers them into declared cells."""
    _counted: dict[Clique, IntArray] = field(default_factory=dict)

    @classmethod
    def of(cls, table: PrivateRows, columns: Sequence[BinnedColumn]) -> GroupedRows:
        groups = tuple(BinGroups(bins=column.bins, groups=column.groups) for column in columns)
        return cls(
            table=table,
            groups=groups,
            levels=tuple(column.levels for column in columns),
            cells=tuple(column.cells for column in columns),
        )

    @property
    def rows(self) -> int:
        """How many; public."""
        return self.table.n

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(group.size for group in self.groups)

    def prepare(self, cliques: Iterable[Clique]) -> None:
        """Count in one pass what is not counted yet."""
        fresh = [clique for clique in dict.fromkeys(cliques) if clique not in self._counted]
        if not fresh:
            return
        counted = self.table.histograms([[self.groups[variable] for variable in clique] for clique in fresh])
        for clique, counts in zip(fresh, counted, strict=True):
            self._counted[clique] = full_counts(counts, [self.groups[variable].size for variable in clique])

    def count(self, clique: Clique) -> IntArray:
        """Rows by the groups of some columns: private."""
        self.prepare([clique])
        return self._counted[clique]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Columns that may be counted together, each in groups that are gathered more or less."""

    clique: Clique
    coarser: Coarsening

    @property
    def cells(self) -> int:
        return math.prod(self.coarser.shape)

    @property
    def key(self) -> MeasuredTable:
        return self.clique, self.coarser.shape


class Rounds:
    """A model that grows round by round until its share of the budget is spent."""

    def __init__(
        self,
        data: GroupedRows,
        columns: Sequence[Measurement],
        measurer: Measurer,
        allocation: Allocation,
        *,
        budget: Budget,
        target: int | None = None,
    ) -> None:
        self._data, self._measurer, self._budget = data, measurer, budget
        self._measurements = list(columns)
        self._target = target
        self._whole = allocation.stages.get(COUNT_SETS, Fraction(0))
        self._counting, self._selecting = self._whole, allocation.stages.get(SELECT_SETS, Fraction(0))
        self._again, self._every_pair = allocation.again * self._whole, allocation.every_pair
        self._first = self._step = (self._whole - self._again) / max(1, allocation.first)
        self._cells = allocation.groups**2
        self._listed = list(_candidates(data.levels))
        self._triple_candidates: dict[Clique, list[Candidate]] = {}
        self._counts: dict[MeasuredTable, IntArray] = {}
        self.selected: list[Candidate] = []
        self._loose: list[Measurement] = []
        self._model = self._fit(ROUND_ITERATIONS)

    def run(self, report: Callable[[float], None]) -> Estimate:
        """All rounds, and the model that comes of them."""
        while self._counting > self._again:
            report(float(1 - self._counting / self._whole))
            self._round()
        if self._counting:
            self._count_again()
        return self._fit(FINAL_ITERATIONS) if self.selected else self._model

    def pairs(self, model: Estimate) -> dict[Clique, FloatArray]:
        """Probabilities of every pair by the model, corrected by the counts that it does not hold."""
        expected = model.fitted.pairs()
        return expected | corrected_pairs(expected, self._loose, self._data.rows)

    def _fit(self, iterations: int) -> Estimate:
        start = self._model.potentials if self.selected else None
        return estimate(self._data.sizes, self._measurements, self._data.rows, start=start, iterations=iterations)

    def _round(self) -> None:
        """Select, count, fit; where the count said nothing new, the noise was too large for what is left to find."""
        self._hold_what_fits()
        expected = _expected(self._model.fitted, self._triples())
        expected |= corrected_pairs(expected, self._loose, self._data.rows)
        chosen = self._select(self._candidates(expected), expected)
        share = self._share(chosen.cells)
        self._counting -= share
        measured = self._measure(chosen, share)
        self.selected.append(chosen)
        fitted = self._refitted(chosen.clique)
        moved = np.abs(chosen.coarser.gather(fitted - expected[chosen.clique])).sum() * self._data.rows
        if moved <= MEAN_ERROR * measured.std * measured.values.size:
            self._step *= GROWTH
        # However noisy it is, no round takes so much that few others are left.
        self._step = max(self._first, min(self._step, (self._counting - self._again) / MIN_ROUNDS_LEFT))

    def _refitted(self, clique: Clique) -> FloatArray:
        """What is expected of columns that have just been counted."""
        if self._holds(clique):
            self._model = self._fit(ROUND_ITERATIONS)
            fitted = self._model.fitted.marginal(clique)
            assert fitted is not None  # noqa: S101  it was measured, so the tree holds it
            return fitted
        expected = self._model.fitted.pairs()
        return corrected_pairs(expected, self._loose, self._data.rows)[clique]

    def _holds(self, clique: Clique) -> bool:
        """Whether what is counted of some columns becomes part of the model: it has them, or is small enough."""
        return self._model.fitted.tree.home(clique) is not None or self._fits(clique)

    def _fits(self, clique: Clique) -> bool:
        """Whether the model stays small enough with it; its limit grows with what is spent."""
        tree = self._model.fitted.tree
        limit = max(tree.cells, MAX_MODEL_CELLS * float(1 - (self._counting - self._step) / self._whole))
        return len(clique) != 2 or tree.cells + tree.added_cells(clique) <= limit

    def _hold_what_fits(self) -> None:
        """Pairs that were too large for the model when they were counted, and are not any more."""
        for clique in dict.fromkeys(each.clique for each in self._loose):
            if self._fits(clique):
                self._measurements += [each for each in self._loose if each.clique == clique]
                self._loose = [each for each in self._loose if each.clique != clique]
                self._model = self._fit(ROUND_ITERATIONS)

    def _count_again(self) -> None:
        """What was selected, or every pair, so that the rest of the budget evens out their noise, without selecting."""
        left = self._counting + self._selecting
        self._counting = self._selecting = Fraction(0)
        self._hold_what_fits()
        chosen = self._in_cells() if self._every_pair else list({each.key: each for each in self.selected}.values())
        self._data.prepare(each.clique for each in chosen)
        for candidate, share in zip(chosen, self._even_shares(chosen, left), strict=True):
            if share:
                held = self._model.fitted.tree.home(candidate.clique) is not None
                (self._measurements if held else self._loose).append(self._noisy(candidate, share))
        if self._every_pair:
            self._model = self._fit(ROUND_ITERATIONS)
            self._hold_what_fits()

    def _in_cells(self) -> list[Candidate]:
        """Every pair of columns in declared cells, and the triples that were selected."""
        cells = self._data.cells
        pairs = [
            Candidate(clique=pair, coarser=Coarsening(maps=tuple(cells[v] for v in pair)))
            for pair in combinations(range(len(cells)), 2)
        ]
        return [*pairs, *{each.key: each for each in self.selected if len(each.clique) > 2}.values()]

    def _even_shares(self, chosen: Sequence[Candidate], left: Fraction) -> list[Fraction]:
        """Shares that bring the noise nearest to where the sum of all cells' errors is smallest.

        The error is cells times noise, whose square is one over the share so far and the new one together; the sum is
        smallest for totals in proportion to cells^(2/3), and a table that has more already gets nothing.
        """
        noise = {measured.key: measured.sigma for measured in combined([*self._measurements, *self._loose])}
        # A small share, for which whole numbers instead of real ones make no difference.
        variance = SMALL_SHARE * expected_std(SMALL_SHARE, self._budget) ** 2
        had = np.array([variance / noise.get(each.key, math.inf) ** 2 for each in chosen])
        weights = np.array([float(each.cells) for each in chosen]) ** (2 / 3)
        return [Fraction(int(share * SHARE_STEPS), SHARE_STEPS) for share in water_filling(had, weights, float(left))]

    def _measure(self, candidate: Candidate, share: Fraction) -> Measurement:
        measured = self._noisy(candidate, share)
        (self._measurements if self._holds(candidate.clique) else self._loose).append(measured)
        return measured

    def _noisy(self, candidate: Candidate, share: Fraction) -> Measurement:
        noisy, std = self._measurer.histogram(self._count(candidate), share, COUNT_SETS, rows=self._data.rows)
        values = noisy.astype(np.float64)
        return Measurement(clique=candidate.clique, values=values, std=std, coarser=candidate.coarser)

    @property
    def _last(self) -> bool:
        """Whether what is left for rounds is not enough for two."""
        return self._counting - self._again < 2 * self._first

    def _noise_error(self, cells: int) -> int:
        """The error that counting a table of so many cells would bring."""
        return round(MEAN_ERROR * expected_std(self._share(cells), self._budget) * cells)

    def _share(self, cells: int) -> Fraction:
        """Of the budget: less for fewer cells, so that the noise is small where there are most of them."""
        if self._last:
            return self._counting - self._again
        # As for single columns: squares are shared under Gaussian noise.
        part = (cells / self._cells) ** (2 / 3 if self._budget.delta else 1 / 2)
        return self._step * max(MIN_PART, Fraction(round(64 * min(1.0, part)), 64))

    def _select(self, candidates: Sequence[Candidate], expected: Mapping[Clique, FloatArray]) -> Candidate:
        """By how much the model's expected counts are wrong, less the error that noise would bring instead."""
        if not self._selecting:
            return candidates[0]
        share = self._selecting
        if not self._last:
            share *= self._step / (self._counting - self._again) / SELECTIONS_PER_STEP
        self._selecting -= share
        self._data.prepare(self._wanted(candidates))
        cost = {cells: self._noise_error(cells) for cells in {each.cells for each in candidates}}
        scores = [self._weight(each) * (self._misfit(each, expected) - cost[each.cells]) for each in candidates]
        sensitivity = SCORE_SENSITIVITY * max(self._weight(each) for each in candidates)
        chosen = self._measurer.select(np.array(scores, dtype=np.int64), share, SELECT_SETS, sensitivity=sensitivity)
        return candidates[chosen]

    def _wanted(self, candidates: Sequence[Candidate]) -> Iterable[Clique]:
        """What scores need; the first time the triples too if there are few, because later rounds need them."""
        cliques = [each.clique for each in candidates]
        variables = range(len(self._data.groups))
        if not self.selected and len(variables) <= MAX_COLUMNS_WITH_TRIPLES:
            cliques += combinations(variables, 3)
        return cliques

    def _weight(self, candidate: Candidate) -> int:
        return TARGET_WEIGHT if self._target in candidate.clique and len(candidate.clique) > 1 else 1

    def _count(self, candidate: Candidate) -> IntArray:
        """Rows by the gathered groups: private."""
        if candidate.key not in self._counts:
            counts = self._data.count(candidate.clique).astype(np.float64)
            self._counts[candidate.key] = candidate.coarser.gather(counts).astype(np.int64)
        return self._counts[candidate.key]

    def _misfit(self, candidate: Candidate, expected: Mapping[Clique, FloatArray]) -> int:
        """Twice the rows that the model has elsewhere: whole numbers, so one replaced row moves it by at most two."""
        model = candidate.coarser.gather(expected[candidate.clique]) * self._data.rows
        return int(np.abs(self._count(candidate) - np.rint(model).astype(np.int64)).sum())

    def _candidates(self, expected: Mapping[Clique, FloatArray]) -> list[Candidate]:
        """What may be counted next."""
        # With Laplace noise, counting twice is worse than counting once with both shares.
        done = set() if self._budget.delta else {each.key for each in (*self._measurements, *self._loose)}
        triples = (each for clique in expected if len(clique) == 3 for each in self._gathered(clique))
        kept = [each for each in (*self._listed, *triples) if each.key not in done]
        return kept or self._listed[-1:]

    def _triples(self) -> Sequence[Clique]:
        """Triples that the model's tables hold already, so that counting them makes it no larger."""
        nodes = self._model.fitted.tree.nodes
        return sorted({t for node in nodes for t in combinations(sorted(node.clique), 3)})[:MAX_TRIPLES]

    def _gathered(self, clique: Clique) -> list[Candidate]:
        """At levels that leave no more cells than a pair has at its finest."""
        if clique not in self._triple_candidates:
            every = _at_levels(clique, self._data.levels)
            self._triple_candidates[clique] = [each for each in every if each.cells <= self._cells]
        return self._triple_candidates[clique]


def water_filling(had: FloatArray, weights: FloatArray, left: float) -> FloatArray:
    """What each gets of what is left so that the totals are level * weight, except where one had more already."""
    order = np.argsort(had / weights)
    # With the k lowest ones raised, the level is (left + what they had) / their weights.
    levels = (left + np.cumsum(had[order])) / np.cumsum(weights[order])
    raised = np.flatnonzero(levels > (had / weights)[order])[-1]
    return np.asarray(np.maximum(0.0, levels[raised] * weights - had))


def _expected(fitted: FittedTree, triples: Sequence[Clique]) -> dict[Clique, FloatArray]:
    """The model's probabilities of every candidate."""
    out: dict[Clique, FloatArray] = {(v,): table for v, table in enumerate(fitted.singles())}
    out |= fitted.pairs()
    for triple in triples:
        table = fitted.marginal(triple)
        if table is not None:
            out[triple] = table
    return out


def _candidates(levels: Sequence[Sequence[IntArray]]) -> Iterator[Candidate]:
    """Every pair at every level that differs, and every column."""
    for pair in combinations(range(len(levels)), 2):
        yield from _at_levels(pair, levels)
    for v, own in enumerate(levels):
        yield Candidate(clique=(v,), coarser=Coarsening(maps=(own[0],)))


def _at_levels(clique: Clique, levels: Sequence[Sequence[IntArray]]) -> Iterator[Candidate]:
    """Some columns together, at every level that differs."""
    shapes = set()
    for level in range(max(len(levels[v]) for v in clique)):
        coarser = Coarsening(maps=tuple(levels[v][min(level, len(levels[v]) - 1)] for v in clique))
        if coarser.shape not in shapes:
            shapes.add(coarser.shape)
            yield Candidate(clique=clique, coarser=coarser)
