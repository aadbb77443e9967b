"""Growing a private KD tree over bit-interleaved codes, level by level, with its empty boxes exactly simulated.

A box is a prefix of bits. Boxes that hold rows are listed; the empty ones of the first level that takes decisions are
only counted. When a decision is due, the number of empty boxes that split is binomial and which ones is uniform; those
are listed from then on, and their (empty) children with them. So the tree has exactly the law that it would have if all
boxes were listed (docs/proofs.md, section 8), whatever the dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.kd_tree.interleaving import Coding
from dpsynth_core.mechanisms.kd_tree.ranked_codes import RankedCodes
from dpsynth_core.privacy.noise import Noise

MAX_EMPTY_SPLITS = 1_000_000
"""Empty boxes that noise is expected to split at the first level; each of them has to be listed."""


@dataclass(frozen=True, kw_only=True)
class Boxes:
    """Boxes of one depth, listed."""

    prefix: IntArray
    """The bits that lead to each box."""
    start: IntArray
    """First of its rows in the sorted codes."""
    end: IntArray
    """One past the last; equal to ``start`` for an empty box."""
    decisions: IntArray
    """How many decisions led to it."""

    @property
    def counts(self) -> IntArray:
        """Rows in each box: private."""
        return self.end - self.start

    def take(self, which: NDArray[np.bool_]) -> Boxes:
        return Boxes(**{name: column[which] for name, column in vars(self).items()})

    @classmethod
    def joined(cls, *parts: Boxes) -> Boxes:
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.__annotations__})


@dataclass(frozen=True, kw_only=True)
class Level:
    """What was decided at one depth."""

    depth: int
    """Bits that lead to the boxes of this level."""
    prefix: IntArray
    """Every listed box that took a decision."""
    split: NDArray[np.bool_]
    counts: IntArray
    """Rows in each of them: private."""
    noisy: FloatArray
    """Their noisy counts, where those were paid for."""
    variance: FloatArray
    """Of the noisy counts; infinite where there is none."""
    asked: NDArray[np.bool_]
    """Of the halves of the level above, in order, then of what that passed on: which took a decision. These come first
    in ``prefix``, then empty boxes that are listed from here on; the others are passed on, as they are."""


@dataclass(frozen=True, kw_only=True)
class Leaves:
    """The boxes of the finished tree."""

    depth: IntArray
    """How many bits lead to each listed leaf."""
    prefix: IntArray
    counts: IntArray
    """Rows in it: private."""
    decisions: IntArray
    """Splits that led to it. None means a box of the first depth, which may be listed only because it holds rows:
    it must be treated exactly as the hidden ones are."""
    hidden: HiddenBoxes
    """The empty leaves that are not listed."""
    levels: tuple[Level, ...]
    """The decisions, from the root down."""

    @property
    def boxes(self) -> tuple[IntArray, IntArray]:
        """Depth and prefix of each listed leaf; one that was only passed on is the first-depth box it always was."""
        passed = np.where(self.decisions == 0, self.depth - self.hidden.depth, 0)
        return self.depth - passed, self.prefix >> passed


class SplitRule(Protocol):
    """When a box is split."""

    @property
    def empty_rate(self) -> float:
        """Probability that an empty box is split."""

    @property
    def variance(self) -> float:
        """Of the noisy counts that decisions are taken on; infinite where those counts may not be used."""

    def decide(
        self, boxes: Boxes, *, zeros: int, pick: Callable[[int], IntArray], noise: Noise
    ) -> tuple[NDArray[np.bool_], IntArray, FloatArray, FloatArray]:
        """Which listed boxes split, which empty ones do, and the noisy counts of both, where those may be used."""


class HiddenBoxes:
    """The empty boxes of the first deciding depth that nobody has listed: counted, and drawn from uniformly."""

    def __init__(self, coding: Coding, depth: int, occupied: IntArray, noise: Noise) -> None:
        self._coding, self.depth, self._noise = coding, depth, noise
        self._taken = coding.taken(depth)
        self._listed = np.sort(occupied)
        self._strings = [h.real(k) for h, k in zip(coding.halvings, self._taken, strict=True)]

    @property
    def total(self) -> int:
        """Boxes of this depth, listed or not: public."""
        return math.prod(len(strings) for strings in self._strings)

    @property
    def count(self) -> int:
        """How many are not listed: private, as it tells how many hold rows."""
        return self.total - len(self._listed)

    def enlist(self, prefix: IntArray) -> None:
        if len(prefix):
            self._listed = np.union1d(self._listed, prefix)

    def first_asked_at(self, level: int) -> tuple[list[IntArray], int]:
        """Per axis the strings of boxes whose first real question is bit ``level``, and how many are unlisted.

        A box is passed on while the axis in turn cannot be halved, so those axes are single; the axis of ``level``
        is not; the others may be anything.
        """
        passed, asked = set(self._coding.order[self.depth : level]), self._coding.order[level]
        chosen = list(self._strings)
        for axis in passed | {asked}:
            single = self._coding.halvings[axis].is_single(self._taken[axis])[chosen[axis]]
            # An axis that was passed and is asked again would be single and not single at once: no such box.
            keep = single if axis != asked else ~single if asked not in passed else np.zeros_like(single)
            chosen[axis] = chosen[axis][keep]
        total = math.prod(len(strings) for strings in chosen)
        return chosen, total - self._listed_among(chosen) if total else 0

    def _listed_among(self, chosen: list[IntArray]) -> int:
        inside = np.ones(len(self._listed), dtype=np.bool_)
        for axis, strings in enumerate(chosen):
            if len(strings) < len(self._strings[axis]):
                inside &= np.isin(self._coding.string(self._listed, axis, self.depth), strings)
        return int(np.count_nonzero(inside))

    def picker(self, chosen: list[IntArray] | None = None) -> Callable[[int], IntArray]:
        """Draws that many different unlisted boxes uniformly, from all or from the chosen strings."""
        strings = self._strings if chosen is None else chosen

        def pick(size: int) -> IntArray:
            total = math.prod(len(s) for s in strings)
            found = np.zeros(0, dtype=np.int64)
            while len(found) < size:
                # Rejection: enough candidates that one round usually suffices, even where few boxes are unlisted.
                free = max(total - self._listed_among(strings), 1)
                batch = min(int(1.2 * (size - len(found)) * total / free) + 16, 4_000_000)
                drawn = [s[self._noise.integers(len(s), batch)] for s in strings]
                candidates = self._coding.prefix(drawn, self.depth)
                candidates = candidates[~np.isin(candidates, self._listed)]
                _, first = np.unique(np.concatenate([found, candidates]), return_index=True)
                # In order of drawing, so that cutting off the surplus does not favour small prefixes.
                found = np.concatenate([found, candidates])[np.sort(first)]
            return found[:size]

        return pick


def grow(coding: Coding, codes: RankedCodes, *, free: int, stop: int, rule: SplitRule | None, noise: Noise) -> Leaves:
    """Split boxes from depth ``free`` to depth ``stop`` as ``rule`` decides."""
    if rule is not None and coding.boxes(free) * rule.empty_rate > MAX_EMPTY_SPLITS:
        raise ParameterError(
            "free_levels",
            free,
            allowed=f"few enough that noise splits at most {MAX_EMPTY_SPLITS:,} empty boxes",
            remedy="Lower free_levels or raise split_threshold.",
        )
    boxes = _boxes_at(codes, free)
    hidden = HiddenBoxes(coding, free, boxes.prefix, noise)
    finished: list[tuple[int, Boxes]] = []
    levels: list[Level] = []
    for depth in range(free, stop):
        assert rule is not None  # noqa: S101  without a rule there is nothing to decide: stop == free
        asked = coding.undecided(boxes.prefix, depth)
        chosen, zeros = hidden.first_asked_at(depth)
        asking, passed = boxes.take(asked), boxes.take(~asked)
        # Picked boxes were passed on at every level before their first question.
        pick = partial(_deepened, hidden.picker(chosen), depth - free)
        split, extra, noisy, extra_noisy = rule.decide(asking, zeros=zeros, pick=pick, noise=noise)
        hidden.enlist(extra >> (depth - free))
        if not len(boxes.prefix) and not len(extra):  # nobody was asked, so there is nothing to halve
            levels.append(_nobody_asked(depth))
            continue
        deciding = Boxes.joined(asking, _empty(extra))
        split = np.append(split, np.ones(len(extra), dtype=np.bool_))
        level = Level(
            depth=depth,
            prefix=deciding.prefix,
            split=split,
            counts=deciding.counts,
            noisy=np.append(noisy, extra_noisy),
            variance=np.full(len(split), rule.variance),
            asked=asked,
        )
        levels.append(level)
        finished.append((depth, deciding.take(~split)))
        splitting = deciding.take(split)
        alive = Boxes.joined(splitting, passed)
        codes.look_into(alive.prefix, alive.start, alive.end, depth)
        halves = _children(codes, splitting, depth)
        boxes = Boxes.joined(halves, replace(passed, prefix=passed.prefix << 1))
    finished.append((stop, boxes))
    leaves = Boxes.joined(*(boxes for _, boxes in finished))
    depths = np.repeat([depth for depth, _ in finished], [len(boxes.prefix) for _, boxes in finished])
    return Leaves(
        depth=depths,
        prefix=leaves.prefix,
        counts=leaves.counts,
        decisions=leaves.decisions,
        hidden=hidden,
        levels=tuple(levels),
    )


def _boxes_at(codes: RankedCodes, depth: int) -> Boxes:
    prefix, start, end = codes.occupied(depth)
    return Boxes(prefix=prefix, start=start, end=end, decisions=np.zeros(len(prefix), dtype=np.int64))


def _children(codes: RankedCodes, parents: Boxes, depth: int) -> Boxes:
    """Both halves of every box, in order."""
    left, right = parents.prefix << 1, (parents.prefix << 1) | 1
    # Rows whose next bit is one begin where the right child's smallest code would stand.
    middle = np.clip(codes.rank(right, depth + 1), parents.start, parents.end)
    return Boxes(
        prefix=np.stack([left, right], 1).ravel(),
        start=np.stack([parents.start, middle], 1).ravel(),
        end=np.stack([middle, parents.end], 1).ravel(),
        decisions=np.repeat(parents.decisions + 1, 2),
    )


def _empty(prefix: IntArray) -> Boxes:
    nothing = np.zeros(len(prefix), dtype=np.int64)
    return Boxes(prefix=prefix, start=nothing, end=nothing, decisions=nothing)


def _nobody_asked(depth: int) -> Level:
    nothing, none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    no_counts = np.zeros(0)
    return Level(
        depth=depth, prefix=nothing, split=none, counts=nothing, noisy=no_counts, variance=no_counts, asked=none
    )


def _deepened(pick: Callable[[int], IntArray], levels: int, size: int) -> IntArray:
    return pick(size) << levels
