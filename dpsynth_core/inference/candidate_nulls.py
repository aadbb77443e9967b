"""Nulls that a release may leave plausible: other shapes of the values, and groups of other sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.inference.efforts import Effort
from dpsynth_core.inference.nuisance import Nuisance, rounded_sizes
from dpsynth_core.inference.null_simulation import NullSimulator

NEAR = 3
"""Cells on either side of one that was kept in which others may be hidden."""


def candidates(
    simulator: NullSimulator, estimate: Nuisance, effort: Effort, rng: np.random.Generator
) -> list[Nuisance]:
    """Nulls to be tried beside the estimate."""
    n = simulator.n
    again = simulator.again(estimate, effort.repeats, rng)
    # The estimate may be off as far as estimates from its own releases are, in their direction or in the opposite one.
    mirrored = Nuisance(
        sizes=rounded_sizes((2 * estimate.sizes - again.sizes).astype(np.float64), n),
        chances=_normalised(2 * estimate.chances - again.chances),
    )
    nulls = [*_each(again), *_each(mirrored)]
    if simulator.test.group.is_numeric:
        return nulls + _other_numbers(simulator, estimate, effort)
    hidden = _Hidden.of(simulator, estimate, effort)
    for shape in _shapes(estimate.chances[0], effort, nullable=simulator.test.value.nullable, hidden=hidden):
        for sizes in _sizes(estimate.sizes[0], effort.fractions, n):
            nulls.append(Nuisance(sizes=sizes[None], chances=shape[None]))
    return nulls


def _other_numbers(simulator: NullSimulator, estimate: Nuisance, effort: Effort) -> list[Nuisance]:
    """Where both columns are numbers: other shapes of the one, then of the other."""
    sizes, chances, n = estimate.sizes[0], estimate.chances[0], simulator.n
    of_values = _shapes(chances, effort, nullable=simulator.test.value.nullable)
    of_group = _shapes(sizes / n, effort, nullable=simulator.test.group.nullable)
    nulls = [Nuisance(sizes=sizes[None], chances=shape[None]) for shape in of_values]
    return nulls + [Nuisance(sizes=rounded_sizes(n * shape[None], n), chances=chances[None]) for shape in of_group]


def _each(nuisance: Nuisance) -> list[Nuisance]:
    return [
        Nuisance(sizes=sizes[None], chances=chances[None])
        for sizes, chances in zip(nuisance.sizes, nuisance.chances, strict=True)
    ]


def _normalised(weights: FloatArray) -> FloatArray:
    kept = np.maximum(weights, 0.0)
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


@dataclass(frozen=True, kw_only=True)
class _Hidden:
    """What cells below a threshold may hide."""

    neighbours: tuple[int, ...] = ()
    """Cells that a kept one may stand for."""
    floors: tuple[float, ...] = ()
    """Shares that cells may have that are not seen."""

    @classmethod
    def of(cls, simulator: NullSimulator, estimate: Nuisance, effort: Effort) -> _Hidden:
        if simulator.threshold <= 1:
            return cls()
        just_seen = simulator.threshold / float(estimate.sizes.max())
        return cls(neighbours=effort.neighbours, floors=tuple(part * just_seen for part in effort.unseen))

    def shapes(self, chances: FloatArray) -> list[FloatArray]:
        """With a kept cell's share dealt to so many cells around it; and with rows in all cells that are not seen, or
        in those near the ones that are."""
        near = _smoothed(chances, NEAR) > 0
        raised = [np.maximum(chances, floor * where) for floor in self.floors for where in (near, np.ones_like(near))]
        return [*(_spread(chances, cells) for cells in self.neighbours), *map(_normalised, raised)]


NOTHING = _Hidden()


def _shapes(chances: FloatArray, effort: Effort, *, nullable: bool, hidden: _Hidden = NOTHING) -> list[FloatArray]:
    """The estimated distribution as it is, smoothed, shifted, and mixed with a flat one, and with what may be hidden;
    missing values keep their share."""
    known, missing = (chances[:-1], chances[-1:]) if nullable else (chances, chances[:0])
    total = known.sum()
    if not total > 0:
        return [chances]
    values = len(known)
    flat = np.full(values, 1 / values)
    smooth = [_smoothed(known / total, max(1, round(width * values / 2))) for width in effort.widths]
    shapes = [known / total, *smooth, flat, (known / total + flat) / 2]
    shapes += hidden.shapes(known / total)
    x = np.linspace(-0.5, 0.5, values)
    for base in (known / total, smooth[len(smooth) // 2]):
        shapes += [_normalised(base * np.exp(tilt * x)) for tilt in effort.tilts]
    return [np.concatenate([shape * total, missing]) for shape in shapes]


def _spread(chances: FloatArray, cells: int) -> FloatArray:
    """Each cell's share dealt evenly to so many cells around it; what would fall outside stays at the edge."""
    shifts = np.arange(cells) - (cells - 1) // 2
    to = np.clip(np.arange(len(chances))[:, None] + shifts, 0, len(chances) - 1)
    dealt = np.repeat(chances / cells, cells)
    return np.asarray(np.bincount(to.ravel(), weights=dealt, minlength=len(chances)), dtype=np.float64)


def _smoothed(chances: FloatArray, half: int) -> FloatArray:
    padded = np.pad(chances, half, mode="edge")
    return _normalised(np.convolve(padded, np.ones(2 * half + 1), "valid"))


def _sizes(sizes: IntArray, fractions: tuple[float, ...], n: int) -> list[IntArray]:
    """The estimated sizes, and each group in turn with other shares of the rows, the rest as they relate."""
    out = [sizes]
    for group in range(len(sizes) if len(sizes) > 2 else 1):
        rest = np.maximum(np.delete(sizes, group).astype(np.float64), 0.5)
        for share in fractions:
            others = rest / rest.sum() * (1 - share) * n
            out.append(rounded_sizes(np.insert(others, group, share * n)[None], n)[0])
    return out
