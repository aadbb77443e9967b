"""Which earlier columns each column leans on, where it cannot lean on all of them: chosen privately.

A column that leans on all columns before it has one parameter or more for each, and epsilon is shared by all of them.
Where rows and epsilon are few, a few strong ties described well are worth more than all ties described badly.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsynth_core.encoding import IntArray, codec_for
from dpsynth_core.models.blocks import Parents
from dpsynth_core.models.parts import Part
from dpsynth_core.noise import Noise
from dpsynth_core.private import PrivateTable

RANGES = 8
"""Equal ranges that a number is cut into when ties are compared."""
CHOOSING = "which columns go together"
TIE_SENSITIVITY = 3
"""Times 1/n: the most that one replaced row can change a tie (docs/proofs.md, section 14)."""


def selections(parts: tuple[Part, ...], most: int) -> int:
    """How many choices there are: none for a column that may lean on all that it could lean on."""
    return sum(most for j in range(len(parts)) if len(candidates(parts, j)) > most)


def candidates(parts: tuple[Part, ...], j: int) -> list[int]:
    """Earlier columns that column ``j`` could lean on."""
    return [i for i in range(j) if parts[i].features] if parts[j].leaning else []


def most_parameters(parts: tuple[Part, ...], most: int) -> list[int]:
    """For each column the most parameters that it can have if it leans on no more than so many others."""
    sizes = []
    for j, part in enumerate(parts):
        widest = sorted((parts[i].features for i in candidates(parts, j)), reverse=True)[:most]
        sizes.append(part.own + part.column.nullable + part.leaning * sum(widest))
    return sizes


def choose_parents(
    table: PrivateTable, parts: tuple[Part, ...], most: int, noise: Noise, epsilon: Fraction
) -> Parents:  # fmt: skip
    """For each column the earlier ones that it goes together with most, at most ``most`` of them.

    Args:
        table: The private rows.
        parts: Of the model.
        most: Columns to lean on.
        noise: Where choices are drawn from.
        epsilon: For all choices together.
    """
    codes = [_codes(table, part) for part in parts]
    price = epsilon / max(selections(parts, most), 1)
    chosen: list[tuple[int, ...]] = []
    for j in range(len(parts)):
        left = candidates(parts, j)
        if len(left) <= most:
            chosen.append(tuple(left))
            continue
        taken = []
        for _ in range(most):
            ties = np.array([tie(codes[i], codes[j]) for i in left])
            best = noise.permute_and_flip(
                ties, sensitivity=Fraction(TIE_SENSITIVITY, table.n), epsilon=price, label=CHOOSING
            )
            taken.append(left.pop(best))
        chosen.append(tuple(sorted(taken)))
    return tuple(chosen)


def tie(first: IntArray, second: IntArray) -> float:
    """How far two columns are from independence: total variation between their joint shares and the product's.

    Example:
        >>> float(tie(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])))
        0.5
    """
    joint = np.zeros((int(first.max()) + 1, int(second.max()) + 1))
    np.add.at(joint, (first, second), 1 / len(first))
    return float(np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum() / 2)


def _codes(table: PrivateTable, part: Part) -> IntArray:
    column = part.column
    if column.is_numeric and column.levels > RANGES:
        column = replace(column, bins=RANGES)
    return codec_for(column).codes(table.positions(column.name))
