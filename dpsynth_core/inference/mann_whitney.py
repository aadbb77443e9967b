"""The ordinary Mann-Whitney test, from values or from counts, for one table or for thousands at once.

U counts the pairs in which the first group's member is larger, ties as half (Mann & Whitney 1947). From counts by value
it needs one running sum, so a whole experiment is array arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfc

from dpsynth_core.arrays import BoolArray, FloatArray
from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.inference.null_law import exact_pvalue
from dpsynth_core.table.cells import column_numbers

Method: TypeAlias = Literal["auto", "asymptotic", "exact"]
EXACT_UP_TO = 8
"""With a group of at most this size and no ties, ``auto`` takes the exact law, as scipy does."""


class GroupsError(DPSynthError, ValueError):
    """Two groups cannot be compared; the text says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class MannWhitney:
    """The outcome of one test, two-sided."""

    statistic: float
    """U of the first group: pairs in which its member is larger, ties as half."""
    pvalue: float
    """Chance of a U at least as far from n1 n2 / 2 if both groups came from one distribution."""
    n1: int
    n2: int
    method: Literal["asymptotic", "exact"]
    """Which law the p-value is from: normal with ties corrected, or exact."""

    @property
    def effect(self) -> float:
        """Chance that a random member of the first group exceeds one of the second, ties as half; 1/2: no effect."""
        return self.statistic / (self.n1 * self.n2)


@dataclass(frozen=True, kw_only=True)
class CountTests:
    """Tests of many tables of counts, one entry each."""

    statistic: FloatArray
    """U of the first group."""
    z: FloatArray
    """(U - n1 n2 / 2) over its standard deviation, corrected for ties only; 0 where undefined."""
    pvalue: FloatArray
    """Two-sided, from the normal law; 1 where undefined."""
    n1: FloatArray
    n2: FloatArray
    defined: BoolArray
    """Whether there was anything to test: both groups present and not all values equal."""

    @property
    def effect(self) -> FloatArray:
        """Chance that a member of the first group is larger; 1/2 where undefined."""
        pairs = self.n1 * self.n2
        return np.where(pairs > 0, self.statistic / np.where(pairs > 0, pairs, 1.0), 0.5)


def mann_whitney(
    x: ArrayLike,
    y: ArrayLike | None = None,
    *,
    groups: ArrayLike | None = None,
    levels: Sequence[Any] | None = None,
    continuity: bool = True,
    method: Method = "auto",
) -> MannWhitney:
    """Compare two samples, or the two groups of one column.

    Args:
        x: The first sample; or, with ``groups``, the values of all rows.
        y: The second sample.
        groups: Each row's group, instead of ``y``.
        levels: The two groups, the first one first. None: the two that occur, in sorted order.
        continuity: Whether the normal law is shifted by half a step.
        method: ``auto`` takes the exact law where a group has at most 8 members and nothing is tied.

    Example:
        Diabetes onset in men and women (the example of scipy's documentation):

        >>> found = mann_whitney([19, 22, 16, 29, 24], [20, 11, 17, 12])
        >>> found.statistic, round(found.pvalue, 4)
        (17.0, 0.1111)
    """
    if (y is None) == (groups is None):
        raise ParameterError("y", "both or neither of y and groups", allowed="one of them")
    first, second = (_sample("x", x), _sample("y", y)) if groups is None else split_groups(x, groups, levels)
    values, index = np.unique(np.concatenate([first, second]), return_inverse=True)
    a = np.bincount(index[: len(first)], minlength=len(values))
    b = np.bincount(index[len(first) :], minlength=len(values))
    tied = len(values) < len(index)
    if method not in ("auto", "asymptotic", "exact"):
        raise ParameterError("method", method, allowed="auto, asymptotic, exact")
    tests = mann_whitney_counts(a[None], b[None], continuity=continuity)
    u, exact = float(tests.statistic[0]), method == "exact"
    if method == "auto":
        exact = min(len(first), len(second)) <= EXACT_UP_TO and not tied
    return MannWhitney(
        statistic=u,
        n1=len(first),
        n2=len(second),
        method="exact" if exact else "asymptotic",
        pvalue=exact_pvalue(u, len(first), len(second)) if exact else float(tests.pvalue[0]),
    )


def mann_whitney_counts(
    first: ArrayLike, second: ArrayLike, *, continuity: bool = True, degenerate: Literal["refuse", "one"] = "refuse"
) -> CountTests:
    """The asymptotic test from counts by value, for any number of tables at once.

    Args:
        first: The first group's count of each value, in the values' order along the last axis; weights will do.
        second: The second group's.
        continuity: Whether the normal law is shifted by half a step.
        degenerate: What becomes of tables with an empty group or one value only: an error, or a p-value of one.

    Example:
        >>> tests = mann_whitney_counts([[1, 2, 3], [2, 2, 2]], [[3, 2, 1], [2, 2, 2]])
        >>> tests.statistic.tolist()
        [26.0, 18.0]
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or not a.ndim or not a.shape[-1]:
        raise ParameterError("second", f"shape {b.shape}", allowed=f"the first group's shape, {a.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all() and (a >= 0).all() and (b >= 0).all()):
        raise ParameterError("counts", "negative or not finite", allowed="finite numbers from 0")
    tests = _count_tests(a, b, continuity=continuity)
    if degenerate == "refuse" and not tests.defined.all():
        raise _why_degenerate(a[~tests.defined][0], b[~tests.defined][0])
    return tests


def _count_tests(a: FloatArray, b: FloatArray, *, continuity: bool) -> CountTests:
    n1, n2, together = a.sum(axis=-1), b.sum(axis=-1), a + b
    n, pairs = n1 + n2, n1 * n2
    below = np.cumsum(b, axis=-1)
    below -= b / 2  # members of the second group below each value, ties as half
    u = np.einsum("...i,...i->...", a, below)
    np.multiply(together, together * together - 1, out=below)
    ties = below.sum(axis=-1)  # sum of t^3 - t
    possible = (pairs > 0) & (n > 1)
    spread = np.where(possible, (n + 1) - ties / np.where(possible, n * (n - 1), 1.0), 0.0)
    # All values equal: the spread vanishes but for rounding.
    defined = possible & (spread > 1e-9 * n)
    std = np.sqrt(np.where(defined, pairs / 12 * spread, 1.0))
    distance = u - pairs / 2
    z = np.where(defined, distance / std, 0.0)
    shifted = np.abs(distance) - (0.5 if continuity else 0.0)
    pvalue = np.where(defined, np.clip(erfc(shifted / std / np.sqrt(2.0)), 0.0, 1.0), 1.0)
    return CountTests(statistic=u, z=z, pvalue=pvalue, n1=n1, n2=n2, defined=defined)


def weighted_z(first: FloatArray, second: FloatArray) -> FloatArray:
    """(U - n1 n2 / 2) over its standard deviation for large n, from counts or weights; 0 where undefined."""
    n1, n2, together = first.sum(axis=-1), second.sum(axis=-1), first + second
    n, pairs = n1 + n2, n1 * n2
    below = np.cumsum(second, axis=-1) - second / 2
    distance = np.einsum("...i,...i->...", first, below) - pairs / 2
    size = np.where(n > 0, n, 1.0)
    spread = size - (together * together * together).sum(axis=-1) / (size * size)
    defined = (pairs > 0) & (spread > 1e-9 * size)
    std = np.sqrt(np.where(defined, pairs / 12 * spread, 1.0))
    return np.where(defined, distance / std, 0.0)


def effect_size(first: FloatArray, second: FloatArray) -> float:
    """P(first > second) + P(first = second) / 2 of random members of two samples: U / (n1 n2).

    Example:
        >>> effect_size(np.array([1.0, 2.0]), np.array([0.0, 2.0]))
        0.625
    """
    second = np.sort(second)
    below, upto = np.searchsorted(second, first, "left"), np.searchsorted(second, first, "right")
    return float((below + upto).mean() / (2 * len(second)))


def _why_degenerate(a: FloatArray, b: FloatArray) -> GroupsError:
    if not a.sum() or not b.sum():
        return GroupsError(
            "One of the two groups is empty, so there is nothing to compare. Choose another group column or levels."
        )
    return GroupsError("All values are equal, so the groups cannot differ. Choose another value column.")


def split_groups(
    values: ArrayLike, groups: ArrayLike, levels: Sequence[Any] | None = None
) -> tuple[FloatArray, FloatArray]:
    """The values of the first and of the second group; errors name what makes them incomparable."""
    given = _sample("values", values)
    labels = pd.Series(np.asarray(groups) if not isinstance(groups, pd.Series) else groups.array)
    if len(labels) != len(given):
        raise ParameterError("groups", f"{len(labels)} rows", allowed=f"one for each of the {len(given)} values")
    if labels.isna().any():
        raise GroupsError("Some rows have no group. Leave them out before testing.")
    if levels is None:
        levels = sorted(labels.unique().tolist())
        if len(levels) != 2:
            raise GroupsError(
                f"The group column has {len(levels)} levels where two are needed. Choose two with ``levels``."
            )
    first, second = check_levels(levels)
    return given[(labels == first).to_numpy()], given[(labels == second).to_numpy()]


def check_levels(levels: Sequence[Any]) -> tuple[Any, Any]:
    """Two different levels."""
    if len(levels) != 2 or levels[0] == levels[1]:
        raise ParameterError("levels", list(levels), allowed="two different groups")
    return levels[0], levels[1]


def _sample(parameter: str, given: ArrayLike | None) -> FloatArray:
    array: NDArray[Any] = np.asarray(given)
    if array.ndim != 1 or array.dtype.kind not in "iufbO":
        raise ParameterError(
            parameter,
            f"shape {array.shape} of {array.dtype}",
            allowed="a list of numbers",
            remedy="To compare the groups of one column, name them with groups=.",
        )
    values = column_numbers(pd.Series(array))
    if not len(values):
        raise GroupsError("One of the two groups is empty, so there is nothing to compare.")
    if np.isnan(values).any():
        raise GroupsError(f"{parameter} has missing values or text among its numbers. Leave those rows out.")
    return values
