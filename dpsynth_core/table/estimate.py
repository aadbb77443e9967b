"""Private answers to "I don't know": a number's range, a text column's categories.

Both cost epsilon and go through :class:`~dpsynth_core.privacy.noise.Noise` like any mechanism. The proofs are in
``docs/proofs.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.privacy.budget import Amount, Budget, exact, format_amount
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.cells import DEFAULT_LAYOUT, column_labels, column_numbers
from dpsynth_core.table.file_layout import FileLayout, layout_of
from dpsynth_core.table.paid_estimate import PaidEstimate, paid

SMALLEST_EXPONENT, LARGEST_EXPONENT = -6, 12
"""Magnitudes that a range estimate can tell apart: 10 ** -6 up to 10 ** 12."""
FALSE_BIN = 0.01
"""Probability that an empty bin passes for an occupied one somewhere."""
SEEN = 0.95
"""Probability with which a part of the range, or a label, that has the rows it needs is found."""
HOPELESS_SHARE = 0.1
"""Share of all rows: an estimate that misses what so many rows share is refused, because it would ruin the column."""
PROPOSED_EPSILONS = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5", "7", "10")
MAX_LABEL_ROWS = 1_000_000
"""Rows of a table that is not in memory among which labels are looked for."""
HISTOGRAM_SENSITIVITY = 2
"""A replaced row leaves one bin and enters another."""


class NothingFoundError(DPSynthError):
    """The private estimate found no range or category; its budget is spent all the same."""


@dataclass(frozen=True, kw_only=True)
class EstimatedBounds(PaidEstimate):
    """A range that covers nearly all rows, from noisy counts."""

    lower: float
    """Left edge of the first bin whose count is above the noise."""
    upper: float
    """Right edge of the last such bin."""


@dataclass(frozen=True, kw_only=True)
class DiscoveredCategories(PaidEstimate):
    """Labels that enough rows share to be named."""

    categories: tuple[str, ...]
    """In alphabetical order, which says nothing about how often they occur."""
    threshold: int
    """A label was named when its noisy count reached this."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnCounts:
    """Rows of a column in each bin of ``range_edges``, or with each label that occurs. Exact, so private."""

    column: str
    counts: IntArray
    labels: tuple[str, ...] | None = None
    """None where bins are counted."""
    layout: FileLayout | None = None
    """By which the cells were read; None for a table that comes from no file."""


@dataclass(frozen=True, kw_only=True)
class EstimateProspect:
    """What an estimate can find, from the number of rows and the budget alone."""

    n: int
    rows_needed: int
    """Rows that a part of the range, or a label, must have to be found with probability ``SEEN``."""
    epsilon_needed: str | None
    """The smallest of the proposed epsilons at which the estimate is worth making; None: none of them suffices."""

    @property
    def share_needed(self) -> float:
        """The same as a share of all rows."""
        return self.rows_needed / self.n

    @property
    def hopeless(self) -> bool:
        return self.share_needed > HOPELESS_SHARE


def label_rows(n: int) -> int:
    """Rows among which labels are looked for, of a table that is not in memory."""
    return min(n, MAX_LABEL_ROWS)


def estimate_prospect(n: int, budget: Budget, *, labels: bool, rows_per_person: int = 1) -> EstimateProspect:
    """What to expect of an estimate before it is paid for. Nothing here depends on the rows but their public number.

    A count c passes the threshold t with probability ``SEEN`` if c >= t + b ln(1 / (2 (1 - SEEN))), because
    P(DLap(b) < -x) <= exp(-x/b) / 2 for whole x >= 1.

    Args:
        n: Rows of the table.
        budget: Of the estimate, for the unit of protection.
        labels: Whether categories are to be found, rather than a range.
        rows_per_person: The unit of protection.

    Example:
        >>> prospect = estimate_prospect(768, Budget.of("0.1"), labels=False)
        >>> prospect.rows_needed, prospect.hopeless, prospect.epsilon_needed
        (233, True, '0.5')
    """

    def rows_needed(epsilon: Amount) -> int:
        share = Budget.of(epsilon, budget.delta).per_row(rows_per_person)
        scale = float(HISTOGRAM_SENSITIVITY / share.epsilon)
        threshold = discovery_threshold(share.epsilon, share.delta) if labels else range_threshold(scale)
        return math.ceil(threshold + scale * math.log(1 / (2 * (1 - SEEN))))

    enough = (each for each in PROPOSED_EPSILONS if rows_needed(each) <= HOPELESS_SHARE * n)
    return EstimateProspect(n=n, rows_needed=rows_needed(budget.epsilon), epsilon_needed=next(enough, None))


def check_worthwhile(n: int, budget: Budget, *, labels: bool, rows_per_person: int = 1) -> None:
    """Refuse an estimate, before anything is charged, that would miss what a tenth of the rows share."""
    if labels and not budget.delta:
        return  # refused for that reason where the labels are looked for
    prospect = estimate_prospect(n, budget, labels=labels, rows_per_person=rows_per_person)
    if not prospect.hopeless:
        return
    what = "a label" if labels else "a part of the range"
    needed = prospect.epsilon_needed
    remedy = "Declare the facts from public knowledge."
    if needed is not None:
        remedy = f"Spend at least epsilon {needed}, or declare the facts from public knowledge."
    raise ParameterError(
        "epsilon",
        format_amount(budget.epsilon),
        allowed=f"enough to find what {HOPELESS_SHARE:.0%} of the rows share",
        remedy=f"With {n:,} rows, {what} would need about {prospect.rows_needed:,} rows to be found. {remedy}",
    )


def range_threshold(scale: float) -> float:
    """A count above it is taken for an occupied bin: P(DLap(b) > t) <= exp(-t/b) for each of the bins, union bound."""
    return scale * math.log((len(range_edges()) - 1) / FALSE_BIN)


def range_edges() -> NDArray[np.float64]:
    """Edges of the bins: 1, 2 and 5 times every power of ten, both signs, and zero."""
    positive = [
        float(f"{digit}e{exponent}") for exponent in range(SMALLEST_EXPONENT, LARGEST_EXPONENT) for digit in (1, 2, 5)
    ]
    positive.append(float(f"1e{LARGEST_EXPONENT}"))
    return np.array([*(-edge for edge in reversed(positive)), 0.0, *positive])


def count_range(values: pd.Series[Any], layout: FileLayout | None = None) -> ColumnCounts:
    """Rows by bin of ``range_edges``; cells are read by ``layout``, by default the one by which the table was read."""
    layout = layout or layout_of(values.attrs)
    edges, raw = range_edges(), column_numbers(values, layout or DEFAULT_LAYOUT)
    inside = np.clip(raw[~np.isnan(raw)], edges[0], np.nextafter(edges[-1], 0))
    counts = np.bincount(np.searchsorted(edges, inside, side="right") - 1, minlength=len(edges) - 1)
    return ColumnCounts(column=str(values.name), counts=counts.astype(np.int64), layout=layout)


def count_labels(values: pd.Series[Any], layout: FileLayout | None = None) -> ColumnCounts:
    """Rows by label; cells are read by ``layout``, by default the one by which the table was read."""
    layout = layout or layout_of(values.attrs)
    counted = column_labels(values, layout or DEFAULT_LAYOUT).value_counts(sort=False)
    labels = tuple(map(str, counted.index))
    return ColumnCounts(
        column=str(values.name), counts=np.asarray(counted, dtype=np.int64), labels=labels, layout=layout
    )


def estimate_bounds(
    values: pd.Series[Any] | ColumnCounts,
    *,
    epsilon: Amount,
    noise: Noise,
    rows_per_person: int = 1,
    layout: FileLayout | None = None,
) -> EstimatedBounds:
    """A range for a numeric column at a cost of ``epsilon``, without knowing anything about it.

    Rows are counted in bins whose edges are 1, 2, 5 times the powers of ten; each count gets discrete Laplace
    noise of scale 2/epsilon; the range spans the bins whose noisy count exceeds a threshold that all the empty
    bins together pass with probability at most 1%.

    ``values`` are the column's cells, read by ``layout`` (by default the one by which the table was read), or how many
    of them lie in each bin.
    """
    share, edges = Budget.of(epsilon).per_row(rows_per_person), range_edges()
    counted = values if isinstance(values, ColumnCounts) else count_range(values, layout)
    noisy = noise.laplace(
        counted.counts, sensitivity=HISTOGRAM_SENSITIVITY, epsilon=share.epsilon, label="range of a column"
    )
    scale = HISTOGRAM_SENSITIVITY / share.epsilon
    occupied = np.flatnonzero(noisy > range_threshold(float(scale)))
    if not len(occupied):
        raise NothingFoundError(
            f"No range stands out from the noise at epsilon {float(exact(epsilon, parameter='epsilon')):g}; "
            "the budget for this estimate is spent. Declare the range from public knowledge, or try a larger epsilon."
        )
    return EstimatedBounds(
        column=counted.column,
        layout=counted.layout,
        lower=float(edges[occupied[0]]),
        upper=float(edges[occupied[-1] + 1]),
        guarantee=noise.judge(paid(counted.column, Budget.of(epsilon), rows_per_person=rows_per_person)),
    )


def discovery_threshold(epsilon: Fraction, delta: Fraction) -> int:
    """Smallest noisy count at which a label may be named, so that a label of one row passes with at most ``delta``.

    With a = exp(-epsilon/2), P(1 + DLap(2/epsilon) >= T) = a^(T-1) / (1 + a) for T >= 1.
    """
    decay = float(epsilon) / HISTOGRAM_SENSITIVITY
    tail = -math.log(float(delta)) - math.log1p(math.exp(-decay))
    # One more than the exact solution's ceiling can only be safer than its float rounding.
    return 2 + max(0, math.ceil(tail / decay))


def discover_categories(
    values: pd.Series[Any] | ColumnCounts,
    *,
    epsilon: Amount,
    delta: Amount,
    noise: Noise,
    rows_per_person: int = 1,
    layout: FileLayout | None = None,
) -> DiscoveredCategories:
    """The labels of a column that enough rows share, at a cost of (``epsilon``, ``delta``).

    A label that only one row has must stay unknown, whatever the noise: that is what delta bounds. With several
    rows per person the budget is converted by group privacy first. ``values`` are the column's cells, read by
    ``layout`` (by default the one by which the table was read), or how many of them have each label.
    """
    budget = Budget.of(epsilon, delta)
    if not budget.delta:
        remedy = "Naming labels costs a small delta, such as 1e-6."
        raise ParameterError("delta", delta, allowed="greater than 0", remedy=remedy)
    share = budget.per_row(rows_per_person)
    threshold = discovery_threshold(share.epsilon, share.delta)
    counted = values if isinstance(values, ColumnCounts) else count_labels(values, layout)
    noisy = noise.laplace(
        counted.counts,
        sensitivity=HISTOGRAM_SENSITIVITY,
        epsilon=share.epsilon,
        delta=share.delta,
        label="labels of a column",
    )
    found = tuple(sorted(label for label, count in zip(counted.labels or (), noisy, strict=True) if count >= threshold))
    if not found:
        raise NothingFoundError(
            f"No label is shared by enough rows to be named (about {threshold} are needed); the budget for this "
            "estimate is spent. List the categories from public knowledge, or try a larger epsilon."
        )
    return DiscoveredCategories(
        column=counted.column,
        layout=counted.layout,
        categories=found,
        threshold=threshold,
        guarantee=noise.judge(paid(counted.column, budget, labels=True, rows_per_person=rows_per_person)),
    )
