"""In what order a model's parameters are found, and what each step looks at: public facts only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.pmse.column_models import ColumnModels

Parents: TypeAlias = tuple[tuple[int, ...], ...]
"""For each column the earlier ones that predict it."""
MAX_GROUP = 3
"""Parameters that are selected together from a list: more would need longer lists than are of use."""


@dataclass(frozen=True, kw_only=True)
class FitStep:
    """Some parameters of a block of columns that are found together."""

    label: str
    first: int
    last: int
    """First and last column of the block."""
    indices: IntArray
    """Which of the block's parameters."""
    pairs: IntArray
    """Pairs of columns whose trees are looked at; twice the same for a column by itself."""
    final: bool
    """Whether the block's columns are settled after this step."""

    @property
    def size(self) -> int:
        return len(self.indices)

    def prior(self, models: ColumnModels) -> tuple[FloatArray, FloatArray]:
        """Prior means and standard deviations of this step's parameters."""
        mean, std = block_prior(models, self.first, self.last)
        return mean[self.indices], std[self.indices]

    def filled(self, theta: FloatArray, lines: FloatArray) -> FloatArray:
        """The block's parameters, once for each line, with this step's own from the line."""
        full = np.tile(theta, (len(lines), 1))
        full[:, self.indices] = lines
        return full


def block_prior(models: ColumnModels, first: int, last: int) -> tuple[FloatArray, FloatArray]:
    """Prior means and standard deviations of a block's parameters."""
    block = [model.prior for model in models[first : last + 1]]
    return np.concatenate([p.mean for p in block]), np.concatenate([p.std for p in block])


def block_start(models: ColumnModels, first: int, last: int, parents: Parents | None) -> FloatArray:
    """Parameters of a block before anything is known; not a number where a column does not depend on another."""
    mean = block_prior(models, first, last)[0].copy()
    if parents is not None:
        indices = [indices for _, _, indices in _groups(models, last, parents[last])]
        unused = np.setdiff1d(np.arange(len(mean)), np.concatenate([*indices, np.arange(0)]))
        mean[unused] = np.nan
    return mean


def blocks_of_columns(models: ColumnModels, joint: int, parents: Parents | None = None) -> tuple[FitStep, ...]:
    """All columns at once if they have no more than ``joint`` parameters together, else column by column."""
    total = sum(model.size for model in models)
    if parents is None and total <= joint:
        return (_block(models, 0, len(models) - 1, None),) if total else ()
    return tuple(_block(models, j, j, parents) for j, model in enumerate(models) if model.size)


def _block(models: ColumnModels, first: int, last: int, parents: Parents | None) -> FitStep:
    label = f"parameters of {', '.join(model.column.name for model in models[first : last + 1])}"
    pairs = [(i, j) for j in range(first, last + 1) for i in (range(j) if parents is None else parents[j])]
    used = np.flatnonzero(~np.isnan(block_start(models, first, last, parents)))
    return FitStep(
        label=label, first=first, last=last, indices=used, pairs=np.array(pairs or [(last, last)]), final=True
    )


def small_groups(models: ColumnModels, parents: Parents | None = None) -> tuple[FitStep, ...]:
    """Column by column: what it is by itself, then how it depends on each earlier column, a few at a time."""
    steps: list[FitStep] = []
    for j, model in enumerate(models):
        groups = _groups(models, j, range(j) if parents is None else parents[j])
        pieces = [
            # Predictors are themselves drawn, so a plan cannot name them.
            (label if parents is None else f"parameters of {model.column.name}", i, piece)
            for label, i, indices in groups
            for piece in np.array_split(indices, -(-len(indices) // MAX_GROUP))
        ]
        for number, (label, i, piece) in enumerate(pieces, start=1):
            pairs, final = np.array([[i, j]]), number == len(pieces)
            steps.append(FitStep(label=label, first=j, last=j, indices=piece, pairs=pairs, final=final))
    return tuple(steps)


def _groups(models: ColumnModels, j: int, earlier: Iterable[int]) -> list[tuple[str, int, IntArray]]:
    """A column's parameters by what they describe: with which column, and their places."""
    model, own = models[j], models[j].own + models[j].column.nullable
    groups = [(f"{model.column.name} by itself", j, np.arange(own))] if own else []
    for i in earlier:
        features = models[i].before + np.arange(models[i].features)
        if model.weights_each and len(features):
            indices = np.concatenate([own + k * model.before + features for k in range(model.weights_each)])
            groups.append((f"{model.column.name} given {models[i].column.name}", i, indices))
    return groups
