"""In what order a model's parameters are found, and what each step looks at: public facts only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.encoding import FloatArray, IntArray
from dpsynth_core.models.parts import Part

LARGEST_GROUP = 3
"""Parameters that are selected together from a list: more would need longer lists than are of use."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """Some parameters of a block of columns that are found together."""

    label: str
    """What they describe, for people."""
    first: int
    """First column of the block."""
    last: int
    """Last column of the block."""
    places: IntArray
    """Which of the block's parameters."""
    pairs: IntArray
    """Pairs of columns whose trees are looked at; twice the same for a column by itself."""
    final: bool
    """Whether the block's columns are settled after this step."""

    @property
    def size(self) -> int:
        """How many parameters."""
        return len(self.places)


def block_prior(parts: tuple[Part, ...], first: int, last: int) -> tuple[FloatArray, FloatArray]:
    """Prior means and standard deviations of a block's parameters."""
    block = [part.prior for part in parts[first : last + 1]]
    return np.concatenate([p.mean for p in block]), np.concatenate([p.deviation for p in block])


def whole_blocks(parts: tuple[Part, ...], joint: int) -> tuple[Step, ...]:
    """All columns at once if they have no more than ``joint`` parameters together, else column by column."""
    total = sum(part.size for part in parts)
    if total <= joint:
        return (_whole(parts, 0, len(parts) - 1),) if total else ()
    return tuple(_whole(parts, j, j) for j, part in enumerate(parts) if part.size)


def _whole(parts: tuple[Part, ...], first: int, last: int) -> Step:
    names = [part.column.name for part in parts[first : last + 1]]
    pairs = [(i, j) for j in range(first, last + 1) for i in range(j)] or [(0, 0)]
    return Step(
        label=f"parameters of {', '.join(names)}", first=first, last=last,
        places=np.arange(sum(part.size for part in parts[first : last + 1])), pairs=np.array(pairs), final=True,
    )  # fmt: skip


def small_groups(parts: tuple[Part, ...]) -> tuple[Step, ...]:
    """Column by column: what it is by itself, then how it leans on each earlier column, a few parameters at a time."""
    steps: list[Step] = []
    for j, part in enumerate(parts):
        own = part.own + part.column.nullable
        groups = [(f"{part.column.name} by itself", j, np.arange(own))] if own else []
        for i, earlier in enumerate(parts[:j]):
            places = _leaning(part, earlier, own)
            if len(places):
                groups.append((f"{part.column.name} given {earlier.column.name}", i, places))
        pieces = [
            (label, i, piece)
            for label, i, places in groups
            for piece in np.array_split(places, -(-len(places) // LARGEST_GROUP))
        ]
        steps += [
            Step(
                label=label, first=j, last=j, places=piece, pairs=np.array([[i, j]]), final=number == len(pieces) - 1
            )
            for number, (label, i, piece) in enumerate(pieces)
        ]  # fmt: skip
    return tuple(steps)


def _leaning(part: Part, earlier: Part, own: int) -> IntArray:
    """Places of the parameters by which a column leans on an earlier one."""
    features = np.arange(earlier.before, earlier.before + earlier.features)
    return np.concatenate([own + k * part.before + features for k in range(part.leaning)] or [features[:0]])
