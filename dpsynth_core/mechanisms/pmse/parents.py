"""Which earlier columns predict each column, where there is not enough to pay for all of them: chosen privately.

A column that depends on all columns before it has one parameter or more for each, and epsilon is shared by all of them.
Where rows and epsilon are few, a few strong ties described well are worth more than all ties described badly.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.mechanisms.pmse.column_models import ColumnModel, ColumnModels
from dpsynth_core.mechanisms.pmse.fit_steps import FitStep, Parents
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable

RANGES = 8
"""Equal ranges that a number is cut into when ties are compared."""
CHOOSING = "which columns go together"
CHOOSING_SHARE = Fraction(1, 10)
"""Of epsilon, for choosing predictors."""
ENOUGH_EACH = 300
"""Rows times epsilon for each parameter, from which on columns have more than one predictor."""
DEPENDENCE_SENSITIVITY = 3
"""Times 1/n: the most that one replaced row can change a tie (docs/proofs.md, section 14)."""


def selections(models: ColumnModels, limit: int) -> int:
    """How many choices there are: none for a column that may have all its candidates."""
    return sum(limit for j in range(len(models)) if len(candidates(models, j)) > limit)


def candidates(models: ColumnModels, j: int) -> list[int]:
    """Earlier columns that could predict column ``j``."""
    return [i for i in range(j) if models[i].features] if models[j].weights_each else []


def predictor_counts(models: ColumnModels, parents: Parents | None) -> list[int]:
    """Features that each column is predicted from: those of its parents, or of every column before it."""
    if parents is None:
        return [model.before if model.weights_each else 0 for model in models]
    return [sum(models[i].features for i in own) for own in parents]


def max_parameters(models: ColumnModels, limit: int) -> list[int]:
    """For each column the most parameters that it can have with so many predictors."""
    sizes = []
    for j, model in enumerate(models):
        widest = sorted((models[i].features for i in candidates(models, j)), reverse=True)[:limit]
        sizes.append(model.own + model.column.nullable + model.weights_each * sum(widest))
    return sizes


def max_parents(models: ColumnModels, worth: Fraction, wanted: int | None) -> int | None:
    """Predictors that a column may have; None for all columns before it.

    Args:
        models: One for each column.
        worth: Rows times epsilon, which the parameters share.
        wanted: By the user; None for as many as there is enough for.
    """
    widest = max(len(candidates(models, j)) for j in range(len(models)))
    if wanted is None:
        enough = (limit for limit in range(widest, 1, -1) if worth / sum(max_parameters(models, limit)) >= ENOUGH_EACH)
        wanted = next(enough, 1)
    return wanted if wanted < widest else None


def share_out(
    models: ColumnModels, steps: tuple[FitStep, ...], budget: Budget, limit: int | None
) -> tuple[Budget | None, tuple[Budget, ...]]:
    """For finding parents, and for each step: by number of parameters, or where parents are drawn by how many there
    can be, so that no column's share reveals its predictors."""
    if limit is None or not steps:
        return None, budget.split(*(step.size for step in steps)) if steps else ()
    choosing, rest = budget.split(CHOOSING_SHARE, 1 - CHOOSING_SHARE)
    weights = max_parameters(models, limit)
    columns = dict.fromkeys(step.last for step in steps)
    granted = dict(zip(columns, rest.split(*(weights[j] for j in columns)), strict=True))
    shares: list[Budget] = []
    for j, share in granted.items():
        shares += share.split(*(step.size for step in steps if step.last == j))
    return choosing, tuple(shares)


def choose_parents(table: PrivateTable, models: ColumnModels, limit: int, noise: Noise, epsilon: Fraction) -> Parents:
    """For each column the earlier ones that it goes together with most, at most ``limit`` of them.

    Args:
        table: The private rows.
        models: One for each column.
        limit: Predictors that a column may have.
        noise: Where choices are drawn from.
        epsilon: For all choices together.
    """
    codes = [_codes(table, model) for model in models]
    price = epsilon / max(selections(models, limit), 1)
    chosen: list[tuple[int, ...]] = []
    for j in range(len(models)):
        left = candidates(models, j)
        if len(left) <= limit:
            chosen.append(tuple(left))
            continue
        taken = []
        for _ in range(limit):
            dependences = np.array([dependence(codes[i], codes[j]) for i in left])
            best = noise.permute_and_flip(
                dependences, sensitivity=Fraction(DEPENDENCE_SENSITIVITY, table.n), epsilon=price, label=CHOOSING
            )
            taken.append(left.pop(best))
        chosen.append(tuple(sorted(taken)))
    return tuple(chosen)


def dependence(first: IntArray, second: IntArray) -> float:
    """How far two columns are from independence: total variation between their joint shares and the product's.

    Example:
        >>> dependence(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]))
        0.5
    """
    joint = np.zeros((int(first.max()) + 1, int(second.max()) + 1))
    np.add.at(joint, (first, second), 1 / len(first))
    return float(np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum() / 2)


def _codes(table: PrivateTable, model: ColumnModel) -> IntArray:
    column = model.column
    if column.is_numeric and column.levels > RANGES:
        column = replace(column, bins=RANGES)
    return codec_for(column).codes(table.positions(column.name))
