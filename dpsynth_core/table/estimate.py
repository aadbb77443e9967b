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

from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.privacy.budget import Amount, Budget, exact
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.cells import DEFAULT_LAYOUT, column_labels, column_numbers
from dpsynth_core.table.file_layout import FileLayout, layout_of
from dpsynth_core.table.paid_estimate import PaidEstimate, paid

SMALLEST_EXPONENT, LARGEST_EXPONENT = -6, 12
"""Magnitudes that a range estimate can tell apart: 10 ** -6 up to 10 ** 12."""
FALSE_BIN = 0.01
"""Probability that an empty bin passes for an occupied one somewhere."""
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


def range_edges() -> NDArray[np.float64]:
    """Edges of the bins: 1, 2 and 5 times every power of ten, both signs, and zero."""
    positive = [
        float(f"{digit}e{exponent}") for exponent in range(SMALLEST_EXPONENT, LARGEST_EXPONENT) for digit in (1, 2, 5)
    ]
    positive.append(float(f"1e{LARGEST_EXPONENT}"))
    return np.array([*(-edge for edge in reversed(positive)), 0.0, *positive])


def estimate_bounds(
    values: pd.Series[Any],
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

    Cells are read by ``layout``, by default the one by which the table was read.
    """
    share, layout = Budget.of(epsilon).per_row(rows_per_person), layout or layout_of(values.attrs)
    edges = range_edges()
    raw = column_numbers(values, layout or DEFAULT_LAYOUT)
    inside = np.clip(raw[~np.isnan(raw)], edges[0], np.nextafter(edges[-1], 0))
    counts = np.bincount(np.searchsorted(edges, inside, side="right") - 1, minlength=len(edges) - 1)
    noisy = noise.laplace(counts, sensitivity=HISTOGRAM_SENSITIVITY, epsilon=share.epsilon, label="range of a column")
    scale = HISTOGRAM_SENSITIVITY / share.epsilon
    # P(DLap(b) > t) <= exp(-t/b) for each of the bins: union bound.
    threshold = float(scale) * math.log(len(counts) / FALSE_BIN)
    occupied = np.flatnonzero(noisy > threshold)
    if not len(occupied):
        raise NothingFoundError(
            f"No range stands out from the noise at epsilon {float(exact(epsilon, parameter='epsilon')):g}; "
            "the budget for this estimate is spent. Declare the range from public knowledge, or try a larger epsilon."
        )
    name = str(values.name)
    return EstimatedBounds(
        column=name,
        layout=layout,
        lower=float(edges[occupied[0]]),
        upper=float(edges[occupied[-1] + 1]),
        guarantee=noise.judge(paid(name, Budget.of(epsilon), rows_per_person=rows_per_person)),
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
    values: pd.Series[Any],
    *,
    epsilon: Amount,
    delta: Amount,
    noise: Noise,
    rows_per_person: int = 1,
    layout: FileLayout | None = None,
) -> DiscoveredCategories:
    """The labels of a column that enough rows share, at a cost of (``epsilon``, ``delta``).

    A label that only one row has must stay unknown, whatever the noise: that is what delta bounds. With several
    rows per person the budget is converted by group privacy first. Cells are read by ``layout``, by default the one by
    which the table was read.
    """
    budget = Budget.of(epsilon, delta)
    if not budget.delta:
        remedy = "Naming labels costs a small delta, such as 1e-6."
        raise ParameterError("delta", delta, allowed="greater than 0", remedy=remedy)
    share = budget.per_row(rows_per_person)
    threshold = discovery_threshold(share.epsilon, share.delta)
    layout = layout or layout_of(values.attrs)
    counted = column_labels(values, layout or DEFAULT_LAYOUT).value_counts(sort=False)
    noisy = noise.laplace(
        counted.to_numpy(),
        sensitivity=HISTOGRAM_SENSITIVITY,
        epsilon=share.epsilon,
        delta=share.delta,
        label="labels of a column",
    )
    found = tuple(sorted(str(label) for label in counted.index[noisy >= threshold]))
    if not found:
        raise NothingFoundError(
            f"No label is shared by enough rows to be named (about {threshold} are needed); the budget for this "
            "estimate is spent. List the categories from public knowledge, or try a larger epsilon."
        )
    name = str(values.name)
    return DiscoveredCategories(
        column=name,
        layout=layout,
        categories=found,
        threshold=threshold,
        guarantee=noise.judge(paid(name, budget, labels=True, rows_per_person=rows_per_person)),
    )
