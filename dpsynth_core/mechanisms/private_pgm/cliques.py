"""Which sets of columns can be modelled together: trees, and how large a set of pairs makes the model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def joined(pairs: Iterable[Sequence[int]], size: int) -> list[int]:
    """For each of ``size`` nodes, a name of the connected part that it is in."""
    part = list(range(size))
    for first, *others in pairs:
        for other in others:
            old, new = part[other], part[first]
            part = [new if name == old else name for name in part]
    return part


def largest_clique(sets: Iterable[Sequence[int]], sizes: Sequence[int]) -> int:
    """Cells of the largest table that exact inference needs, by eliminating the cheapest column first."""
    neighbours: dict[int, set[int]] = {node: set() for node in range(len(sizes))}
    for group in sets:
        for node in group:
            neighbours[node] |= set(group) - {node}
    largest = 0
    while neighbours:
        cost = {node: math.prod(sizes[other] for other in (*near, node)) for node, near in neighbours.items()}
        node = min(cost, key=lambda name: (cost[name], name))
        largest = max(largest, cost[node])
        near = neighbours.pop(node)
        for other in near:
            neighbours[other] = (neighbours[other] | near) - {other, node}
    return largest
