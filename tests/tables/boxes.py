"""Algorithms 1 to 4 of Kreačić et al. (2023) and the PrivTree rule, slowly and plainly.

Every box is an explicit tuple of ranges, every box gets its own draw, empty or not, and trees are recursions. Beside
the simulations stand exact laws: the probability of every possible tree, and the largest privacy loss over all trees.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

Range = tuple[int, int]
Box = tuple[Range, ...]
Row = tuple[int, ...]
Tree = frozenset[Box]


@dataclass(frozen=True)
class Side:
    """One column: so many values, numbers or labels, and perhaps a place for what is missing at the end."""

    values: int
    nullable: bool = False
    label: bool = False

    @property
    def size(self) -> int:
        return self.values + self.nullable

    @property
    def whole(self) -> Range:
        return 0, self.size

    def halves(self, where: Range) -> tuple[Range, Range] | None:
        """Both halves, the left one larger where they differ; first of all "is there a value?"."""
        low, high = where
        if high - low <= 1:
            return None
        middle = self.values if high > self.values else low + math.ceil((high - low) / 2)
        return (low, middle), (middle, high)

    def questions(self, where: Range) -> int:
        """How many questions tell all places apart."""
        halves = self.halves(where)
        return 0 if halves is None else 1 + max(self.questions(half) for half in halves)


@lru_cache(maxsize=64)
def turns(sides: tuple[Side, ...]) -> list[int]:
    """Which side each question is about: labels one after the other, "missing?", then the numbers in turn."""
    left = [side.questions(side.whole) for side in sides]
    order: list[int] = []
    for i, side in enumerate(sides):
        if side.label:
            order += [i] * left[i]
            left[i] = 0
    for i, side in enumerate(sides):
        if side.nullable and not side.label:
            order.append(i)
            left[i] -= 1
    while any(left):
        for i in range(len(sides)):
            if left[i]:
                order.append(i)
                left[i] -= 1
    return order


def whole(sides: Sequence[Side]) -> Box:
    return tuple(side.whole for side in sides)


def children(sides: Sequence[Side], box: Box, question: int) -> tuple[Box, Box] | None:
    """Both halves of a box along the side that the question is about; None where there is nothing to ask."""
    i = turns(tuple(sides))[question]
    halves = sides[i].halves(box[i])
    if halves is None:
        return None
    left, right = ((*box[:i], half, *box[i + 1 :]) for half in halves)
    return left, right


def free_boxes(sides: Sequence[Side], free: int) -> list[Box]:
    """All boxes after ``free`` questions that everybody answers."""
    boxes = [whole(sides)]
    for question in range(free):
        boxes = [part for box in boxes for part in (children(sides, box, question) or (box,))]
    return boxes


def holds(box: Box, row: Row) -> bool:
    return all(low <= value < high for (low, high), value in zip(box, row, strict=True))


def count(rows: Iterable[Row] | Counter[Row], box: Box) -> int:
    tally = rows if isinstance(rows, Counter) else Counter(rows)
    return sum(times for row, times in tally.items() if holds(box, row))


# ------------------------------------------------------------------------------------------------ noise and rules


def tail(scale: float, least: int) -> float:
    """P(DLap(scale) >= least) for any whole number."""
    a = math.exp(-1 / scale)
    return a**least / (1 + a) if least >= 1 else 1 - a ** (1 - least) / (1 + a)


def log_tail(scale: float, least: int) -> float:
    """Ln P(DLap(scale) >= least), accurate in both tails."""
    a = math.exp(-1 / scale)
    if least >= 1:
        return -least / scale - math.log1p(a)
    return math.log1p(-math.exp((least - 1) / scale) / (1 + a))


def draw(generator: np.random.Generator, scale: float) -> int:
    """One DLap(scale): the difference of two geometric variables."""
    success = -math.expm1(-1 / scale)
    return int(generator.geometric(success)) - int(generator.geometric(success))


@dataclass(frozen=True)
class PlainRule:
    """Split iff stand(count, earlier decisions) + DLap(scale) >= least."""

    scale: float
    least: int
    bias: int | None = None
    theta: int = 0
    steps: int = 1

    @property
    def row_scale(self) -> float:
        """Scale of the noise in rows."""
        return self.scale / self.steps

    def stand(self, rows: int, earlier: int) -> int:
        return rows if self.bias is None else max(0, self.steps * (rows - self.theta) - earlier * self.bias)

    def split(self, rows: int, earlier: int) -> float:
        """Probability that a box is split."""
        return tail(self.scale, self.least - self.stand(rows, earlier))

    def logs(self, rows: int, earlier: int) -> tuple[float, float]:
        """Ln P(split), ln P(no split); the latter is P(DLap >= 1 - (least - stand)) by symmetry."""
        need = self.least - self.stand(rows, earlier)
        return log_tail(self.scale, need), log_tail(self.scale, 1 - need)


def paper_rule(epsilon: float, levels: int, tau: int) -> PlainRule:
    """Algorithm 3, line 5: split iff |P| + Lap(2 L / eps') > tau."""
    return PlainRule(scale=2 * levels / epsilon, least=tau + 1)


def privtree_rule(epsilon: float, theta: int = 0, *, loss: float = 4.0) -> PlainRule:
    """V = max(0, M (c - theta) - j D); split iff v + DLap(4 M / eps') > D, with D = ceil(scale ln 2)."""
    steps = max(1, math.ceil(16 * epsilon / loss))
    scale = steps * loss / epsilon
    bias = math.ceil(scale * math.log(2))
    return PlainRule(scale=scale, least=bias + 1, bias=bias, theta=theta, steps=steps)


# ------------------------------------------------------------------------------------------------- Algorithms 1 to 4


def cells(sides: Sequence[Side]) -> Iterator[Box]:
    for place in product(*(range(side.size) for side in sides)):
        yield tuple((i, i + 1) for i in place)


def noisy_counts(
    rows: Sequence[Row], boxes: Sequence[Box], scale: float, threshold: int, generator: np.random.Generator
) -> dict[Box, int]:
    """Algorithm 1 from line 7, with Algorithm 4 for the empty bins: noise on every bin, those below t removed."""
    kept = {}
    for box in boxes:
        noisy = count(rows, box) + draw(generator, scale)
        if noisy >= threshold:
            kept[box] = noisy
    return kept


def grow(
    rows: Sequence[Row], sides: Sequence[Side], *, free: int, stop: int, rule: PlainRule, generator: np.random.Generator
) -> list[Box]:
    """Algorithms 2 and 3: recursive binning with one noisy decision per box, empty or not."""
    leaves: list[Box] = []

    def recurse(box: Box, question: int, earlier: int) -> None:
        if question == stop:
            leaves.append(box)
            return
        halves = children(sides, box, question)
        if halves is None:
            recurse(box, question + 1, earlier)
        elif rule.stand(count(rows, box), earlier) + draw(generator, rule.scale) >= rule.least:
            for half in halves:
                recurse(half, question + 1, earlier + 1)
        else:
            leaves.append(box)

    for box in free_boxes(sides, free):
        recurse(box, free, 0)
    return leaves


# ------------------------------------------------------------------------------------------------------- exact laws


def tree_law(rows: Sequence[Row], sides: Sequence[Side], *, free: int, stop: int, rule: PlainRule) -> dict[Tree, float]:
    """The probability of every possible tree, a tree being the set of its leaves."""

    tally = Counter(rows)

    def recurse(box: Box, question: int, earlier: int) -> dict[Tree, float]:
        if question == stop:
            return {frozenset([box]): 1.0}
        halves = children(sides, box, question)
        if halves is None:
            return recurse(box, question + 1, earlier)
        p = rule.split(count(tally, box), earlier)
        law = {frozenset([box]): 1 - p}
        left, right = (recurse(half, question + 1, earlier + 1) for half in halves)
        for (first, q), (second, r) in product(left.items(), right.items()):
            law[first | second] = p * q * r
        return law

    out: dict[Tree, float] = {frozenset(): 1.0}
    for box in free_boxes(sides, free):
        own = recurse(box, free, 0)
        out = {tree | part: p * q for (tree, p), (part, q) in product(out.items(), own.items())}
    return out


def worst_loss(
    rows: Sequence[Row], other: Sequence[Row], sides: Sequence[Side], *, free: int, stop: int, rule: PlainRule
) -> float:
    """Max over all trees T of ln P(T | rows) - ln P(T | other), exactly: every box takes its worse outcome."""
    here, there = Counter(rows), Counter(other)
    gone, new = here - there, there - here

    def recurse(box: Box, question: int, earlier: int) -> float:
        c, d = count(here, box), count(there, box)
        if question == stop or not (count(gone, box) or count(new, box)):
            return 0.0  # nothing in this box has changed, so neither has the law of what is below
        halves = children(sides, box, question)
        if halves is None:
            return recurse(box, question + 1, earlier)
        (split, leaf), (split_other, leaf_other) = rule.logs(c, earlier), rule.logs(d, earlier)
        below = sum(recurse(half, question + 1, earlier + 1) for half in halves)
        return max(leaf - leaf_other, split - split_other + below)

    return sum(recurse(box, free, 0) for box in free_boxes(sides, free))


def neighbours(rows: Sequence[Row], sides: Sequence[Side]) -> Iterator[tuple[Row, ...]]:
    """Every table that differs in one row, up to the order of rows."""
    for old in sorted(set(rows)):
        rest = list(rows)
        rest.remove(old)
        for new in product(*(range(side.size) for side in sides)):
            if new != old:
                yield (*rest, new)


@dataclass(frozen=True)
class Chain:
    """Counts along one path of asked boxes from the top, non-increasing, for searching the worst case."""

    counts: tuple[int, ...]

    def losing(self, rule: PlainRule) -> float:
        """Loss of a path whose every box holds one row less in the other table and whose every box is split."""
        return sum(rule.logs(c, j)[0] - rule.logs(c - 1, j)[0] for j, c in enumerate(self.counts))

    def gaining(self, rule: PlainRule) -> float:
        """Loss of a path whose every box holds one more in the other table: split until the last, which is a leaf."""
        *inner, last = self.counts
        total = sum(rule.logs(c, j)[0] - rule.logs(c + 1, j)[0] for j, c in enumerate(inner))
        return total + rule.logs(last, len(inner))[1] - rule.logs(last + 1, len(inner))[1]


def worst_chain(rule: PlainRule, length: int, most: int) -> float:
    """The largest loss of a losing path of that many split boxes and at most ``most`` rows: over all counts."""

    @cache
    def best(earlier: int, bound: int) -> float:
        if earlier == length:
            return 0.0
        return max(
            (
                rule.logs(c, earlier)[0] - rule.logs(c - 1, earlier)[0] + best(earlier + 1, c)
                for c in range(1, bound + 1)
            ),
            default=0.0,
        )

    return best(0, most)


# ------------------------------------------------------------------------------------- the same, as the package sees it


def schema_of(sides: Sequence[Side]) -> Schema:
    """Declared facts that give exactly these sides."""
    return Schema.from_dict(
        {
            "columns": [
                {
                    "name": f"c{i}",
                    "kind": "categorical",
                    "categories": list(range(side.values)),
                    "nullable": side.nullable,
                }
                if side.label
                else {
                    "name": f"c{i}",
                    "kind": "integer",
                    "lower": 0,
                    "upper": side.values - 1,
                    "nullable": side.nullable,
                }
                for i, side in enumerate(sides)
            ]
        }
    )


def table_of(rows: Sequence[Row], sides: Sequence[Side]) -> PrivateTable:
    """The rows as a table; the last place of a nullable side is a missing value."""
    data: dict[str, Any] = {}
    for i, side in enumerate(sides):
        values = [row[i] for row in rows]
        data[f"c{i}"] = pd.array([None if v >= side.values else v for v in values], dtype="Int64")
    return PrivateTable(pd.DataFrame(data), schema_of(sides))


def stretched(rule: PlainRule, factor: float) -> PlainRule:
    """The same rule with the noise scaled and nothing else changed."""
    return replace(rule, scale=rule.scale * factor)


def agreement(observed: Counter[Any], law: dict[Any, float]) -> float:
    """p-value of the chi-square test, rare outcomes taken together."""
    from scipy import stats  # slow to import, and few tests need it

    draws = sum(observed.values())
    assert set(observed) <= set(law), "an impossible outcome"
    common = [outcome for outcome, p in law.items() if p * draws >= 8]
    got = [observed[outcome] for outcome in common]
    want = [law[outcome] * draws for outcome in common]
    rest = draws - sum(want)
    if rest >= 3:
        got.append(draws - sum(got))
        want.append(rest)
    elif want:
        want = [w * sum(got) / sum(want) for w in want]
    return 1.0 if len(want) < 2 else float(stats.chisquare(got, np.array(want) * sum(got) / sum(want)).pvalue)
