"""KD-tree synthesis (Kreačić et al. 2023, Algorithms 2 and 3), with a guarantee that is pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal, Self

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import check_between, check_choice, check_int
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.kd_tree.consistency import consistent_counts
from dpsynth_core.mechanisms.kd_tree.growth import Leaves, Level, SplitRule, grow
from dpsynth_core.mechanisms.kd_tree.interleaving import MAX_BITS, Coding
from dpsynth_core.mechanisms.kd_tree.ranked_codes import BOXES_PER_PASS, RankedCodes
from dpsynth_core.mechanisms.kd_tree.split_rules import PRIVTREE_LOSS, SPLITS, LevelRule, PrivTreeRule
from dpsynth_core.mechanisms.parameters import PLACEMENTS, setting
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.partition.thresholds import spurious_threshold
from dpsynth_core.mechanisms.plan import Plan, Stage
from dpsynth_core.privacy.budget import Amount, Budget, exact
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY, laplace_variance
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.privacy.primitives import SparseNoisy
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema

INNER, LEAVES = "counts of inner boxes", "counts of the leaves"
"""The stages after the decisions."""
MAX_FREE_LEVELS = 10
LEVELS_RULE_DEPTH = 8
"""Decisions on a path under the paper's rule, whose noise grows with their number."""
ROWS_PER_LEAF = 20
"""A large table's rows for each box that is counted in the end, about: how much noise to begin with."""
RULES = {"privtree": "PrivTree", "levels": "by level (paper)"}


@dataclass(frozen=True, kw_only=True)
class KDTree(Mechanism):
    """Halve the declared domain where there are rows, count the boxes with noise, draw rows from the boxes.

    Boxes are halved along one column after the other. Down to ``free_levels`` this does not look at the data; from
    there to ``max_levels`` a noisy decision is taken for every box. The boxes are then counted with the rest of the
    budget, and the counts are made to agree.
    """

    key: ClassVar[str] = "kd_tree"
    title: ClassVar[str] = "KD tree"
    summary: ClassVar[str] = "Cuts the domain finely where there are rows and coarsely where there are none."
    good_for: ClassVar[str] = (
        "A few columns of clustered numbers, and small epsilon. It fits any table, though many columns come out coarse."
    )
    beware: ClassVar[str] = (
        "Within a box rows are spread evenly, so fine structure is lost; rare combinations are merged with "
        "their surroundings or dropped."
    )
    audit_runs: ClassVar[int] = 100
    paper: ClassVar[str] = "Kreačić et al. (2023), Algorithms 2 and 3; split rule of Zhang, Xiao & Xie (2016)."

    rule: Literal["privtree", "levels"] = setting("privtree", title="Split rule", advanced=True, labels=RULES)
    """How splits are decided. 'privtree' needs the same noise at any depth. 'levels' is the paper's: its noise grows
    with the number of levels, but the noisy counts taken on the way down are used again."""
    free_levels: int | None = setting(None, title="Free halvings")
    """Halvings that do not look at the data (h). None: one for each numeric column, at most ten."""
    max_levels: int | None = setting(None, title="Most halvings")
    """Halvings after which a box is never split (h'). None: as deep as codes reach, or eight decisions for 'levels'."""
    split_share: float = setting(0.5, title="Share for finding boxes")
    """Share of epsilon for the decisions; the rest goes to the counts."""
    split_threshold: int | None = setting(None, title="Fewest rows to split a box", advanced=True)
    """Rows that a box needs to be worth splitting (theta, tau). None: 0 for 'privtree', whose bias does the work; for
    'levels', so many that noise splits about one empty box of a level."""
    inner_levels: int = setting(3, title="Depths counted on the way", advanced=True)
    """At how many depths inner boxes are counted too, which steadies the coarse picture."""
    inner_share: float = setting(0.3, title="Share for counts on the way", advanced=True)
    """Share of the counting budget for those inner boxes; the rest goes to the leaves."""
    leaf_threshold: int | None = setting(None, title="Fewest rows to keep a box", advanced=True)
    """Smallest noisy count at which a box that was never split is kept (t). None: empty boxes invent at most one row
    in a hundred."""
    stand_out: float = setting(1.5, title="How far a half must stand out", advanced=True)
    """Standard deviations of its noise that a half must reach to keep its rows; else the other half gets them."""
    placement: Literal["uniform", "centre"] = setting("uniform", advanced=True, labels=PLACEMENTS)
    """Where a row lies in its box: anywhere, or in the middle."""
    boxes_per_pass: int = setting(BOXES_PER_PASS, title="Boxes counted in one pass", advanced=True)
    """Of a table with more rows, which is read several times. Fewer need less memory and more passes; the tree is the
    same."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("rule", self.rule, ("privtree", "levels"))
        check_choice("placement", self.placement, ("uniform", "centre"))
        check_between("split_share", self.split_share, 0, 1)
        check_between("inner_share", self.inner_share, 0, 1)
        check_between("stand_out", self.stand_out, -1e-9, 100)
        check_int("split_threshold", self.split_threshold, 0, 10**9, optional=True)
        check_int("inner_levels", self.inner_levels, 0, MAX_BITS)
        check_int("free_levels", self.free_levels, 0, MAX_BITS, optional=True)
        check_int("max_levels", self.max_levels, 0, MAX_BITS, optional=True)
        check_int("leaf_threshold", self.leaf_threshold, 1, 10**9, optional=True)
        check_int("boxes_per_pass", self.boxes_per_pass, 1, 2**30)

    @classmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:  # noqa: ARG003  the rule adapts to both by itself
        columns = len(schema.columns)
        share = round(columns / (columns + 4), 2)
        reason = (
            f"With {columns} {'column' if columns == 1 else 'columns'}, {share:.0%} of epsilon goes to finding the "
            "boxes: the more columns, the more there is to find. Depth needs no tuning, because this rule's noise does "
            "not grow with it."
        )
        return cls(split_share=share, reason=reason)

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        """Both rules, from the root, behind free levels, and without any decision."""
        return {
            **super().audited(schema, n, epsilon),
            "one free level": cls(free_levels=1, inner_levels=1, leaf_threshold=2),
            "from the root": cls(free_levels=0, inner_levels=1),
            "many free levels": cls(free_levels=5, leaf_threshold=3),
            "shallow decisions": cls(free_levels=2, max_levels=4, leaf_threshold=2, placement="centre"),
            "in stages": cls(free_levels=1, inner_levels=1, leaf_threshold=2, boxes_per_pass=4),
            "free levels only": cls(free_levels=4, max_levels=4, leaf_threshold=2),
            "paper's rule": cls(rule="levels", free_levels=1, max_levels=4, split_threshold=1, leaf_threshold=2),
            "paper's rule from the root": cls(rule="levels", free_levels=0, max_levels=3, split_threshold=0),
        }

    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """Decisions, counts of inner boxes, counts of leaves. How many boxes there will be is not known beforehand."""
        coding = Coding.of(schema)
        free, stop = self._depths(schema, coding)
        splitting, counting = self._shares(budget, stop - free)
        stages = []
        if splitting is not None:
            # Under the paper's rule each of the levels gets an equal share, so the noise on a count is the sum's.
            loss = PRIVTREE_LOSS if self.rule == "privtree" else HISTOGRAM_SENSITIVITY * (stop - free)
            scale = float(loss / splitting.epsilon)
            stages.append(Stage(label=SPLITS, epsilon=splitting.epsilon, scale=scale))
            if self.inner_levels and stop - free > len(coding.halvings):
                inner, counting = _split_off(counting, self.inner_share, "inner_share")
                scale = float(HISTOGRAM_SENSITIVITY * self.inner_levels / inner.epsilon)
                stages.append(Stage(label=INNER, epsilon=inner.epsilon, scale=scale, optional=True))
        scale = float(HISTOGRAM_SENSITIVITY / counting.epsilon)
        stages.append(Stage(label=LEAVES, epsilon=counting.epsilon, scale=scale))
        cuts, values = coding.parts(free), n * len(schema.columns)
        return Plan(
            stages=tuple(stages),
            cuts=cuts,
            cells=math.prod(cuts),
            draws=n // 8,
            values=values,
            made=self.cells_made(schema, n),
        )

    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> PartitionModel:
        """Grow the tree, count its boxes, make the counts agree."""
        progress("Sorting the rows by box", 0.0)
        last = self.plan(table.schema, table.n, noise.budget).stages[-1]
        noise.prefetch_laplace(table.n // ROWS_PER_LEAF, sensitivity=HISTOGRAM_SENSITIVITY, epsilon=last.epsilon)
        coding = Coding.of(table.schema)
        free, stop = self._depths(table.schema, coding)
        codes = RankedCodes(coding, table, free, self.boxes_per_pass)
        splitting, counting = self._shares(noise.budget, stop - free)
        progress("Deciding which boxes to split", 0.2)
        rule = None if splitting is None else self._rule(noise, splitting, stop - free, coding.boxes(free))
        leaves = grow(coding, codes, free=free, stop=stop, rule=rule, noise=noise)
        progress("Counting the boxes", 0.6)
        levels, remaining = self._count_inner(leaves.levels, noise, counting, len(coding.halvings))
        threshold, noisy = self._count_leaves(leaves, noise, remaining, table.n)
        progress("Making the counts agree", 0.9)
        if self.placement == "uniform":  # rows will be drawn from the boxes next
            noise.prefetch_uniform(self.rows or table.n, len(coding.halvings))
        variance = laplace_variance(HISTOGRAM_SENSITIVITY / remaining.epsilon)
        values = consistent_counts(levels, noisy.values, stand_out=self.stand_out, leaf_variance=variance)
        # That a box of the first depth is listed may only mean that it holds rows, so it gets what a hidden one gets:
        # its leaf count alone, and the threshold. All others are listed because of splits, which are paid for.
        first = leaves.decisions == 0
        values = np.where(first, noisy.values, values)
        kept = np.where(first, noisy.values >= threshold, values > 0)
        depth, prefix = leaves.boxes
        depth = np.append(depth[kept], np.full(len(noisy.extra_keys), free))
        prefix = np.append(prefix[kept], noisy.extra_keys ^ (np.int64(1) << free))
        low, high = box_ranges(coding, depth, prefix)
        weights: FloatArray = np.append(values[kept], noisy.extra_values)
        axes = tuple(halving.axis for halving in coding.halvings)
        return PartitionModel.of(axes, low, high, weights, rows=table.n, centre=self.placement == "centre")

    def _depths(self, schema: Schema, coding: Coding) -> tuple[int, int]:
        """Where decisions begin (h) and where they end (h')."""
        numeric = sum(column.is_numeric for column in schema)
        free = min(numeric, MAX_FREE_LEVELS) if self.free_levels is None else self.free_levels
        free = min(free, coding.bits)
        deepest = coding.bits if self.rule == "privtree" else free + LEVELS_RULE_DEPTH
        stop = deepest if self.max_levels is None else self.max_levels
        return free, max(min(stop, coding.bits), free)

    def _shares(self, budget: Budget, levels: int) -> tuple[Budget | None, Budget]:
        """For the decisions (eps') and for the counts (eps''); where nothing is decided, all goes to the counts."""
        return _split_off(budget, self.split_share, "split_share") if levels else (None, budget)

    def _rule(self, noise: Noise, budget: Budget, levels: int, boxes: int) -> SplitRule:
        if self.rule == "privtree":
            return PrivTreeRule.open(noise, epsilon=budget.epsilon, threshold=self.split_threshold or 0)
        epsilon = budget.epsilon / levels
        threshold = self.split_threshold
        if threshold is None:
            threshold = math.ceil(HISTOGRAM_SENSITIVITY / epsilon * Fraction(math.log(max(boxes, 2))))
        return LevelRule(epsilon=epsilon, threshold=threshold)

    def _count_inner(
        self, levels: Sequence[Level], noise: Noise, budget: Budget, columns: int
    ) -> tuple[list[Level], Budget]:
        """Noisy counts of boxes that were split, at a few depths one round over the columns apart.

        Which boxes were split is already paid for, so a level of them is a vector of known length.
        """
        first = levels[0].depth if levels else 0
        due = [level for level in levels[columns::columns] if level.split.any()][: self.inner_levels]
        if not due:
            return list(levels), budget
        inner, remaining = _split_off(budget, self.inner_share, "inner_share")
        price = inner.split(*(1 for _ in due))[0].epsilon
        measured = {level.depth: _measured(level, noise, price) for level in due}
        return [measured.get(first + i, level) for i, level in enumerate(levels)], remaining

    def _count_leaves(self, leaves: Leaves, noise: Noise, budget: Budget, rows: int) -> tuple[int, SparseNoisy]:
        """Noisy counts of the leaves, empty ones included: Algorithm 1 from line 9, on the leaves of the tree."""
        scale = HISTOGRAM_SENSITIVITY / budget.epsilon
        threshold = self.leaf_threshold or spurious_threshold(leaves.hidden.total, rows, scale)
        pick = leaves.hidden.picker()
        # A box's key is its bits behind a leading one, which tells boxes of different depth apart.
        top = np.int64(1) << leaves.hidden.depth
        depth, prefix = leaves.boxes
        noisy = noise.sparse_laplace(
            prefix | (np.int64(1) << depth),
            leaves.counts,
            zeros=leaves.hidden.count,
            threshold=threshold,
            pick=lambda size: pick(size) | top,
            sensitivity=HISTOGRAM_SENSITIVITY,
            epsilon=budget.epsilon,
            label=LEAVES,
        )
        return threshold, noisy


def _split_off(budget: Budget, share: float, parameter: str) -> tuple[Budget, Budget]:
    part = exact(share, parameter=parameter)
    split_off, rest = budget.split(part, 1 - part)
    return split_off, rest


def _measured(level: Level, noise: Noise, epsilon: Fraction) -> Level:
    """The level with its split boxes counted, averaged with what was known of them by inverse variance."""
    # In the order of the domain, so that what is asked of the sampler does not depend on how boxes came to be listed.
    split = np.flatnonzero(level.split)[np.argsort(level.prefix[level.split])]
    own = noise.laplace(level.counts[split], sensitivity=HISTOGRAM_SENSITIVITY, epsilon=epsilon, label=INNER)
    variance = laplace_variance(HISTOGRAM_SENSITIVITY / epsilon)
    weight = level.variance[split] / (level.variance[split] + variance) if np.isfinite(level.variance).all() else 1.0
    noisy, spread = level.noisy.copy(), level.variance.copy()
    noisy[split] = weight * own + (1 - weight) * level.noisy[split]
    spread[split] = weight * variance
    return replace(level, noisy=noisy, variance=spread)


def box_ranges(coding: Coding, depth: IntArray, prefix: IntArray) -> tuple[IntArray, IntArray]:
    """The box of every leaf, whatever its depth."""
    low = np.empty((len(prefix), len(coding.halvings)), dtype=np.int64)
    high = np.empty_like(low)
    for level in np.unique(depth):
        here = depth == level
        low[here], high[here] = coding.ranges(prefix[here], int(level))
    return low, high
