"""The fast tree against the plain one, in distribution.

Thousands of trees are grown in one call: a first column of as many labels as there are copies, halved for free, holds
the same little table under every label, so that every copy is an independent tree whose law is known exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.kd_tree import growth as kdtree
from dpsynth_core.mechanisms.kd_tree.growth import HiddenBoxes, Leaves, SplitRule
from dpsynth_core.mechanisms.kd_tree.interleaving import Coding
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.mechanisms.kd_tree.ranked_codes import RankedCodes
from dpsynth_core.mechanisms.kd_tree.split_rules import LevelRule, PrivTreeRule
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise, SeededNoise
from dpsynth_core.table.private_table import PrivateTable
from tests.tables.boxes import (
    Box,
    PlainRule,
    Row,
    Side,
    agreement,
    children,
    count,
    free_boxes,
    grow,
    paper_rule,
    privtree_rule,
    table_of,
    tail,
    tree_law,
    turns,
    whole,
)

LEVEL = 1e-4
"""Of the tests with a fixed seed; there are some forty of them."""


@dataclass(frozen=True)
class Case:
    """A little table and where its decisions begin and end."""

    sides: tuple[Side, ...]
    rows: tuple[Row, ...]
    free: int
    stop: int
    copies: int = 4_000

    @property
    def levels(self) -> int:
        return self.stop - self.free


CASES = {
    "one axis, from the root": Case((Side(8),), ((0,), (0,), (1,), (7,)), 0, 3),
    "two axes": Case((Side(4), Side(4)), ((0, 0),) * 4 + ((3, 1),), 0, 3),
    "two axes to the bottom": Case((Side(4), Side(2)), ((0, 0),) * 4 + ((3, 1),), 1, 3),
    "mostly empty boxes": Case((Side(4), Side(4)), ((2, 2),) * 5, 2, 4),
    "nothing but one row": Case((Side(8), Side(2)), ((5, 1),), 3, 4),
    "three slots": Case((Side(3),), ((0,), (2,), (2,), (2,)), 1, 2),
    "three by three": Case((Side(3), Side(3)), ((0, 0), (2, 2), (2, 2)), 1, 4),
    "three by three, deep": Case((Side(3), Side(3)), ((0, 0), (2, 2), (2, 2)), 2, 4, copies=1_500),
    "five": Case((Side(5),), ((0,), (3,), (3,), (4,)), 1, 3),
    "five and seven": Case((Side(5), Side(7)), ((4, 6),) * 3 + ((0, 0),), 3, 5),
    "five and three, passed on": Case((Side(5), Side(3)), ((4, 2),) * 3 + ((0, 0),), 3, 5),
    "a single slot": Case((Side(1), Side(5), Side(1)), ((0, 4, 0), (0, 1, 0)), 1, 3),
    "a label": Case((Side(3, label=True), Side(4)), ((2, 0), (2, 0), (0, 3)), 1, 4),
    "a label after a number": Case((Side(2), Side(3, label=True)), ((1, 2), (1, 2), (0, 0)), 1, 3),
    "a nullable number": Case((Side(3, nullable=True), Side(2)), ((3, 0), (3, 1), (0, 0)), 1, 4),
    "a nullable number, asked": Case((Side(3, nullable=True),), ((3,), (1,), (1,)), 0, 3),
    "a nullable label": Case((Side(3, nullable=True, label=True), Side(2)), ((3, 0), (0, 1)), 1, 4),
    "two nullable numbers": Case(
        (Side(2, nullable=True), Side(3, nullable=True)), ((2, 3), (0, 3)), 2, 4, copies=1_000
    ),
    "one nullable value": Case((Side(1, nullable=True), Side(3)), ((1, 2), (0, 0)), 1, 3),
    "all free": Case((Side(3), Side(2)), ((0, 0), (0, 0)), 2, 2),
}
RULES = ["privtree", "levels"]
MORE_RULES = ["privtree", "privtree, narrow noise", "levels", "levels, high threshold"]


def rules(name: str, case: Case, noise: Noise) -> tuple[PlainRule, SplitRule]:
    """The same rule twice: plain, and as it runs."""
    if name.startswith("privtree"):
        epsilon, theta = (Fraction(5), 0) if "narrow" in name else (Fraction(3, 2), 1)
        return privtree_rule(float(epsilon), theta), PrivTreeRule.open(noise, epsilon=epsilon, threshold=theta)
    epsilon, tau = Fraction(3), 3 if "high" in name else 0
    levels = max(case.levels, 1)
    return paper_rule(float(epsilon), levels, tau), LevelRule(epsilon=epsilon / levels, threshold=tau)


def many_copies(case: Case) -> tuple[PrivateTable, int]:
    """The little table under each of many labels, and how many questions tell the labels apart."""
    labels = Side(case.copies, label=True)
    rows = [(copy, *row) for copy in range(case.copies) for row in case.rows]
    return table_of(rows, (labels, *case.sides)), labels.questions(labels.whole)


def nodes(case: Case) -> tuple[list[Box], dict[Box, int]]:
    """Every box that can be a leaf, and for each the box of the free depth that it came from."""
    top = free_boxes(case.sides, case.free)
    origin: dict[Box, int] = {}

    def visit(box: Box, question: int, start: int) -> None:
        origin[box] = start
        if question < case.stop:
            for half in children(case.sides, box, question) or ():
                visit(half, question + 1, start)
            if children(case.sides, box, question) is None:
                visit(box, question + 1, start)

    for start, box in enumerate(top):
        visit(box, case.free, start)
    return top, origin


def as_box(low: Sequence[int], high: Sequence[int]) -> Box:
    return tuple(zip(low, high, strict=True))


def listed_boxes(coding: Coding, leaves: Leaves) -> tuple[np.ndarray[Any, Any], list[Box]]:
    """Copy and box of every listed leaf."""
    low = np.zeros((len(leaves.prefix), len(coding.halvings)), dtype=np.int64)
    high = np.zeros_like(low)
    for depth in np.unique(leaves.depth):
        here = leaves.depth == depth
        low[here], high[here] = coding.ranges(leaves.prefix[here], int(depth))
    assert (high[:, 0] - low[:, 0] == 1).all()
    boxes = list(map(as_box, low[:, 1:].tolist(), high[:, 1:].tolist()))
    return low[:, 0], boxes


def trees_of(case: Case, coding: Coding, leaves: Leaves) -> list[frozenset[Box]]:
    """Every copy's tree: its listed leaves, and the unlisted boxes that no listed leaf lies in."""
    top, origin = nodes(case)
    found: list[set[Box]] = [set() for _ in range(case.copies)]
    covered = np.zeros((case.copies, len(top)), dtype=np.bool_)
    copies, boxes = listed_boxes(coding, leaves)
    for copy, box, rows in zip(copies.tolist(), boxes, leaves.counts.tolist(), strict=True):
        assert box not in found[copy]
        assert rows == count(case.rows, box)
        found[copy].add(box)
        covered[copy, origin[box]] = True
    assert leaves.hidden.total == covered.size
    assert leaves.hidden.count == covered.size - covered.sum()
    for copy, start in zip(*np.nonzero(~covered), strict=True):
        found[copy].add(top[start])
    return [frozenset(tree) for tree in found]


def grown(case: Case, rule_name: str, seed: int) -> tuple[Coding, Leaves, PlainRule]:
    table, prefix = many_copies(case)
    coding = Coding.of(table.schema)
    noise = SeededNoise(Budget.of(10**6), seed=seed)
    plain, rule = rules(rule_name, case, noise)
    leaves = kdtree.grow(
        coding,
        RankedCodes(coding, table, prefix + case.free),
        free=prefix + case.free,
        stop=prefix + case.stop,
        noise=noise,
        rule=None if case.free == case.stop else rule,
    )
    return coding, leaves, plain


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", CASES)
def test_every_tree_comes_as_often_as_when_all_boxes_are_listed(name: str, rule: str) -> None:
    case = CASES[name]
    coding, leaves, plain = grown(case, rule, seed=11)
    law = tree_law(case.rows, case.sides, free=case.free, stop=case.stop, rule=plain)
    trees = trees_of(case, coding, leaves)
    assert agreement(Counter(trees), law) > LEVEL
    sizes: dict[int, float] = {}
    for tree, p in law.items():
        sizes[len(tree)] = sizes.get(len(tree), 0.0) + p
    assert agreement(Counter(map(len, trees)), sizes) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("rule", MORE_RULES)
@pytest.mark.parametrize("name", CASES)
def test_many_more_trees_of_each_kind(name: str, rule: str) -> None:
    case = CASES[name]
    law: dict[Any, float] = {}
    seen: Counter[Any] = Counter()
    for seed in range(6):
        coding, leaves, plain = grown(case, rule, seed=1000 + seed)
        law = law or tree_law(case.rows, case.sides, free=case.free, stop=case.stop, rule=plain)
        seen.update(trees_of(case, coding, leaves))
    assert agreement(seen, law) > LEVEL


def test_a_slightly_different_law_would_be_noticed() -> None:
    case = CASES["three by three"]
    coding, leaves, plain = grown(case, "levels, high threshold", seed=11)
    trees = Counter(trees_of(case, coding, leaves))
    for wrong in (PlainRule(scale=plain.scale * 1.2, least=plain.least), PlainRule(plain.scale, plain.least + 1)):
        assert agreement(trees, tree_law(case.rows, case.sides, free=case.free, stop=case.stop, rule=wrong)) < 1e-6
    moved = ((0, 0), (0, 0), (2, 2))
    assert agreement(trees, tree_law(moved, case.sides, free=case.free, stop=case.stop, rule=plain)) < 1e-6


@pytest.mark.parametrize("rule", ["privtree", "levels"])
@pytest.mark.parametrize("name", ["three by three", "a label", "a nullable number"])
def test_the_plain_recursion_follows_its_own_law(name: str, rule: str) -> None:
    case = CASES[name]
    plain, _ = rules(rule, case, SeededNoise(Budget.of(10**6), seed=0))
    generator = np.random.default_rng(5)
    law = tree_law(case.rows, case.sides, free=case.free, stop=case.stop, rule=plain)
    trees = Counter(
        frozenset(grow(case.rows, case.sides, free=case.free, stop=case.stop, rule=plain, generator=generator))
        for _ in range(1_500)
    )
    assert agreement(trees, law) > LEVEL


@pytest.mark.parametrize("rule", ["privtree", "levels"])
def test_single_small_trees_follow_the_law_too(rule: str) -> None:
    """No copies: few boxes, so that binomial counts and picks are small numbers."""
    case = Case((Side(3), Side(3)), ((0, 0), (2, 2), (2, 2)), 1, 4)
    table = table_of(case.rows, case.sides)
    coding = Coding.of(table.schema)
    codes = RankedCodes(coding, table, case.free)
    top, origin = nodes(case)
    trees: Counter[Any] = Counter()
    for seed in range(900):
        noise = SeededNoise(Budget.of(10**6), seed=seed)
        plain, ours = rules(rule, case, noise)
        leaves = kdtree.grow(coding, codes, free=case.free, stop=case.stop, rule=ours, noise=noise)
        boxes = set()
        for depth, prefix in zip(leaves.depth.tolist(), leaves.prefix, strict=True):
            low, high = coding.ranges(np.array([prefix]), depth)
            boxes.add(as_box(low[0].tolist(), high[0].tolist()))
        inside = {origin[box] for box in boxes}
        trees[frozenset(boxes | {box for start, box in enumerate(top) if start not in inside})] += 1
    assert agreement(trees, tree_law(case.rows, case.sides, free=case.free, stop=case.stop, rule=plain)) > LEVEL


def test_the_order_of_questions_is_the_papers_with_labels_and_missing_values_first() -> None:
    for case in CASES.values():
        coding = Coding.of(table_of(case.rows, case.sides).schema)
        assert list(coding.order) == turns(case.sides)


@pytest.mark.parametrize("name", ["three by three", "five and three, passed on", "two nullable numbers", "a label"])
def test_unlisted_boxes_are_picked_uniformly_among_those_asked_for_the_first_time(name: str) -> None:
    case = CASES[name]
    coding = Coding.of(table_of(case.rows, case.sides).schema)
    noise = SeededNoise(Budget.of(1), seed=3)
    occupied = np.unique(coding.codes(table_of(case.rows, case.sides)) >> (coding.bits - case.free))
    hidden = HiddenBoxes(coding, case.free, occupied, noise)
    top = free_boxes(case.sides, case.free)
    empty = [box for box in top if not count(case.rows, box)]
    assert (hidden.total, hidden.count) == (len(top), len(empty))
    asked_anywhere: set[Box] = set()
    for level in range(case.free, case.stop):
        chosen, unlisted = hidden.first_asked_at(level)
        first_asked = [
            box
            for box in empty
            if children(case.sides, box, level) is not None
            and all(children(case.sides, box, earlier) is None for earlier in range(case.free, level))
        ]
        assert unlisted == len(first_asked)
        assert not asked_anywhere & set(first_asked)
        asked_anywhere |= set(first_asked)
        for size in range(1, min(unlisted, 3) + 1):
            pairs: Counter[Any] = Counter()
            for _ in range(800):
                low, high = coding.ranges(hidden.picker(chosen)(size), case.free)
                pairs[frozenset(map(as_box, low.tolist(), high.tolist()))] += 1
            subsets = list(combinations(first_asked, size))
            assert agreement(pairs, {frozenset(s): 1 / len(subsets) for s in subsets}) > LEVEL


def test_the_order_in_which_boxes_are_picked_tells_nothing_either() -> None:
    coding = Coding.of(table_of([(0,)], [Side(8)]).schema)
    hidden = HiddenBoxes(coding, 3, np.array([0, 5]), SeededNoise(Budget.of(1), seed=4))
    orders = Counter(tuple(hidden.picker()(2).tolist()) for _ in range(6_000))
    expected = {(a, b): 1 / 30 for a in (1, 2, 3, 4, 6, 7) for b in (1, 2, 3, 4, 6, 7) if a != b}
    assert agreement(orders, expected) > LEVEL


def test_noisy_counts_on_the_way_down_follow_their_law() -> None:
    case = CASES["mostly empty boxes"]
    _, leaves, plain = grown(case, "levels", seed=21)
    fresh = leaves.levels[0]
    for occupied in (True, False):
        which = (fresh.counts > 0) == occupied
        noise = (fresh.noisy - fresh.counts)[which].astype(int)
        # Empty boxes are listed only where they are split, so theirs is the law above the threshold.
        least = -(10**6) if occupied else plain.least
        reach = range(-12, 13) if occupied else range(plain.least, plain.least + 12)
        law = {k: tail(plain.scale, k) - tail(plain.scale, k + 1) for k in reach}
        law = {k: p / (1.0 if occupied else tail(plain.scale, least)) for k, p in law.items()}
        law[None] = 1 - sum(law.values())
        assert agreement(Counter(k if k in law else None for k in noise.tolist()), law) > LEVEL
    deeper = leaves.levels[1]
    noise = (deeper.noisy - deeper.counts)[deeper.counts == 0].astype(int)
    law = {k: tail(plain.scale, k) - tail(plain.scale, k + 1) for k in range(-12, 13)}
    law[None] = 1 - sum(law.values())
    assert agreement(Counter(k if k in law else None for k in noise.tolist()), law) > LEVEL


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("mostly empty boxes", "privtree"),
        ("three by three", "privtree"),
        ("five", "privtree"),
        ("all free", "privtree"),
        ("all free", "levels"),
        ("a label", "privtree"),
        ("a nullable number", "privtree"),
        ("mostly empty boxes", "levels"),
        ("three by three", "levels"),
        ("five", "levels"),
        ("a label", "levels"),
        ("a nullable number", "levels"),
    ],
)
def test_a_box_that_was_never_split_is_kept_as_often_as_its_noisy_count_reaches_the_threshold(
    name: str, rule: str
) -> None:
    """Whether it was listed or not: Algorithm 4 on the leaves that the first levels leave behind."""
    case, threshold, epsilon = CASES[name], 4, Fraction(2)
    table, prefix = many_copies(case)
    mechanism = KDTree(
        rule=rule,
        free_levels=prefix + case.free,
        max_levels=prefix + case.stop,
        inner_levels=0,
        split_threshold=1,
        leaf_threshold=threshold,
        split_share=0.5,
    )
    noise = SeededNoise(Budget(epsilon=epsilon), seed=31)
    model = mechanism.fit(table, noise)
    half = float(epsilon) / 2
    plain = privtree_rule(half, 1) if rule == "privtree" else paper_rule(half, max(case.levels, 1), 1)
    leaf_scale = 2 / (half if case.levels else float(epsilon))
    kept = Counter(map(as_box, model.low[:, 1:].tolist(), model.high[:, 1:].tolist()))
    for box in free_boxes(case.sides, case.free):
        rows = count(case.rows, box)
        asked = any(children(case.sides, box, question) for question in range(case.free, case.stop))
        p = (1 - plain.split(rows, 0) if asked else 1.0) * tail(leaf_scale, threshold - rows)
        assert stats.binomtest(kept[box], case.copies, p).pvalue > 1e-5, (box, rows, kept[box] / case.copies, p)


def test_free_levels_that_noise_would_fill_are_refused_before_anything_is_listed() -> None:
    table = table_of([(0, 0)], [Side(2**16), Side(2**16)])
    with pytest.raises(ParameterError, match="free_levels"):
        KDTree(free_levels=30).fit(table, SeededNoise(Budget.of(1), seed=0))


def test_leaves_tile_the_domain_without_overlap() -> None:
    case = CASES["five and three, passed on"]
    coding, leaves, _ = grown(case, "levels", seed=41)

    def volume(box: Box) -> int:
        return int(np.prod([high - low for low, high in box]))

    for tree in trees_of(case, coding, leaves)[:400]:
        assert sum(map(volume, tree)) == volume(whole(case.sides))
        for first, second in combinations(tree, 2):
            assert any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(first, second, strict=True))


def test_rows_are_counted_in_the_box_that_holds_them_at_any_depth() -> None:
    generator = np.random.default_rng(6)
    sides = (Side(5, label=True), Side(9, nullable=True), Side(6))
    rows: Sequence[Row] = [tuple(int(generator.integers(s.size)) for s in sides) for _ in range(60)]
    table = table_of(rows, sides)
    coding = Coding.of(table.schema)
    noise = SeededNoise(Budget.of(10**6), seed=7)
    rule = LevelRule(epsilon=Fraction(10), threshold=0)
    leaves = kdtree.grow(coding, RankedCodes(coding, table, 2), free=2, stop=coding.bits, rule=rule, noise=noise)
    assert leaves.counts.sum() == len(rows)
    for depth, prefix, inside in zip(leaves.depth.tolist(), leaves.prefix, leaves.counts.tolist(), strict=True):
        low, high = coding.ranges(np.array([prefix]), depth)
        assert inside == count(rows, as_box(low[0].tolist(), high[0].tolist()))
    boxes = np.unique(coding.codes(table) >> (coding.bits - 2))
    for level in leaves.levels:  # halves come in order, then what was passed on; empty boxes may join
        assert level.prefix[: level.asked.sum()].tolist() == boxes[level.asked].tolist()
        assert level.split[level.asked.sum() :].all()
        halves = level.prefix[level.split] << 1
        boxes = np.append(np.stack([halves, halves | 1], 1).ravel(), boxes[~level.asked] << 1)
    assert leaves.prefix[leaves.depth == coding.bits].tolist() == boxes.tolist()
