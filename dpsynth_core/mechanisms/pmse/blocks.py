"""In what order a model's parameters are found, and what each step looks at: public facts only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.pmse.parts import Part

Parents: TypeAlias = tuple[tuple[int, ...], ...]
"""For each column the earlier ones that it leans on."""
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

    def filled(self, theta: FloatArray, lines: FloatArray) -> FloatArray:
        """The block's parameters, once for each line, with this step's own from the line."""
        full = np.tile(theta, (len(lines), 1))
        full[:, self.places] = lines
        return full


def block_prior(parts: tuple[Part, ...], first: int, last: int) -> tuple[FloatArray, FloatArray]:
    """Prior means and standard deviations of a block's parameters."""
    block = [part.prior for part in parts[first : last + 1]]
    return np.concatenate([p.mean for p in block]), np.concatenate([p.deviation for p in block])


def block_start(parts: tuple[Part, ...], first: int, last: int, parents: Parents | None) -> FloatArray:
    """Parameters of a block before anything is known; not a number where a column does not lean on another."""
    mean = block_prior(parts, first, last)[0].copy()
    if parents is not None:
        places = [places for _, _, places in _groups(parts, last, parents[last])]
        unused = np.setdiff1d(np.arange(len(mean)), np.concatenate([*places, np.arange(0)]))
        mean[unused] = np.nan
    return mean


def whole_blocks(parts: tuple[Part, ...], joint: int, parents: Parents | None = None) -> tuple[Step, ...]:
    """All columns at once if they have no more than ``joint`` parameters together, else column by column."""
    total = sum(part.size for part in parts)
    if parents is None and total <= joint:
        return (_whole(parts, 0, len(parts) - 1, None),) if total else ()
    return tuple(_whole(parts, j, j, parents) for j, part in enumerate(parts) if part.size)


def _whole(parts: tuple[Part, ...], first: int, last: int, parents: Parents | None) -> Step:
    names = [part.column.name for part in parts[first : last + 1]]
    pairs = [(i, j) for j in range(first, last + 1) for i in (range(j) if parents is None else parents[j])]
    places = np.arange(sum(part.size for part in parts[first : last + 1]))
    if parents is not None:
        groups = _groups(parts, last, parents[last])
        places = np.concatenate([places for _, _, places in groups] or [places[:0]])
    return Step(
        label=f"parameters of {', '.join(names)}", first=first, last=last, places=places,
        pairs=np.array(pairs or [(last, last)]), final=True,
    )  # fmt: skip


def small_groups(parts: tuple[Part, ...], parents: Parents | None = None) -> tuple[Step, ...]:
    """Column by column: what it is by itself, then how it leans on each earlier column, a few parameters at a time."""
    steps: list[Step] = []
    for j, part in enumerate(parts):
        groups = _groups(parts, j, range(j) if parents is None else parents[j])
        pieces = [
            # What a column leans on is itself drawn, so a plan cannot name it.
            (label if parents is None else f"parameters of {part.column.name}", i, piece)
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


def _groups(parts: tuple[Part, ...], j: int, earlier: Iterable[int]) -> list[tuple[str, int, IntArray]]:
    """A column's parameters by what they describe: with which column, and their places."""
    part, own = parts[j], parts[j].own + parts[j].column.nullable
    groups = [(f"{part.column.name} by itself", j, np.arange(own))] if own else []
    for i in earlier:
        places = _leaning(part, parts[i], own)
        if len(places):
            groups.append((f"{part.column.name} given {parts[i].column.name}", i, places))
    return groups


def _leaning(part: Part, earlier: Part, own: int) -> IntArray:
    """Places of the parameters by which a column leans on an earlier one."""
    features = np.arange(earlier.before, earlier.before + earlier.features)
    return np.concatenate([own + k * part.before + features for k in range(part.leaning)] or [features[:0]])
