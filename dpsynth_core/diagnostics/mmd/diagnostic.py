"""The whole table at once: how far apart are the two clouds of rows?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.base import Diagnostic, Measure, Result, Scale, TablePair, Verdict, judge, some_rows
from dpsynth_core.diagnostics.features import features, frequent_labels, uniform_rows
from dpsynth_core.diagnostics.mmd.distance import mmd, sup_density_distance, witnesses
from dpsynth_core.diagnostics.mmd.random_features import FREQUENCIES, random_feature_mmd
from dpsynth_core.diagnostics.wording import measured
from dpsynth_core.errors import check_int
from dpsynth_core.inference.proportions import NORMAL_QUANTILE, UPPER_TAIL
from dpsynth_core.progress import Progress, no_progress

GAMMA_ROWS = 1_000
"""Rows behind the median distance."""
QUERIES = 1_000
"""Points at which the two kernel densities are compared."""
HALVES, HALF_ROWS = 5, 4_000
"""Times that the original is cut in two, and rows that take part."""
READINGS: dict[Verdict, str] = {
    "excellent": "no further apart than a fresh sample can be by chance.",
    "good": "the tables are close.",
    "fair": "the overall shape is kept, details are not.",
    "poor": "the tables have little in common.",
}
LIMITS = 0.1, 0.3
"""Shares of the distance of pure noise, beyond chance, up to which tables are called close, and beyond which far
apart."""


@dataclass(frozen=True, kw_only=True)
class MMDDiagnostic(Diagnostic):
    """Maximum mean discrepancy with a Gaussian kernel."""

    key: ClassVar[str] = "mmd"
    title: ClassVar[str] = "Distance between the whole tables (MMD)"
    question: ClassVar[str] = "Taken as a whole, how far apart are the two tables?"
    method: ClassVar[str] = (
        "Every row becomes a point: numbers scaled to [0, 1] by their declared bounds, labels as indicators. MMD is "
        "the largest difference of averages that any smooth function of a row can show. The kernel is Gaussian; its "
        "width is the median distance between rows of the original, so it is the same for every release of this "
        "table. MMD is exact for smaller tables and estimated by random features, with a stated error, for larger "
        "ones. The reference is the distance between two halves of the original, scaled to these sizes. The p-value "
        "comes from permuting rows between the tables. Every distance is given as a share of that of pure noise: rows "
        "drawn uniformly from the declared domain. MMD itself is in the table below the picture."
    )
    scale: ClassVar[Scale] = Scale(
        name="MMD as a share of pure noise",
        high=math.inf,
        good="about the distance between two halves of the original; pure noise has 1",
    )

    exact_rows: int = 100_000
    """Rows of the larger table, with up to five features each, up to which every pair of rows is visited; with more
    features so many fewer that it takes no longer. Beyond, random features."""
    frequencies: int = FREQUENCIES
    """Random features; the error falls with their square root."""
    permutations: int = 499
    """Rearrangements behind the p-value."""
    permuted_rows: int = 1_500
    """Rows of either table, at most, that take part in the rearrangements."""

    def __post_init__(self) -> None:
        check_int("exact_rows", self.exact_rows, 0, 10**6)
        check_int("frequencies", self.frequencies, 16, 10**5)
        check_int("permutations", self.permutations, 19, 10**5)
        check_int("permuted_rows", self.permuted_rows, 10, 10_000)

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        if min(pair.original.n, pair.synthetic.n) < 2:
            return self.unable("A table has fewer than two rows, so distances between rows do not exist.")
        frequent = frequent_labels(pair.original)
        x, y = features(pair.original, frequent).values, features(pair.synthetic, frequent).values
        gamma = median_gamma(x, rng)
        progress("Measuring the distance", 0.05)
        value, error, notes = self._distance(x, y, gamma, rng)
        progress("Rearranging rows between the tables", 0.5)
        p_value, null = permutation_test(x, y, gamma, rng, permutations=self.permutations, max_rows=self.permuted_rows)
        progress("Cutting the original in two", 0.75)
        halves = halves_distance(x, len(y), gamma, rng)
        progress("Comparing with pure noise", 0.85)
        noise_rows = features(uniform_rows(pair.original, min(len(x), HALF_ROWS), rng), frequent).values
        noise = random_feature_mmd(x, noise_rows, gamma, rng, self.frequencies).value
        at = np.concatenate([_some(x, QUERIES, rng), _some(y, QUERIES, rng)])
        largest = sup_density_distance(_some(x, 20_000, rng), _some(y, 20_000, rng), gamma, at)
        usual = max(float(np.quantile(null, UPPER_TAIL)), halves)
        if not noise:
            return self.unable("Every row of the original and of the declared domain is the same: nothing can differ.")
        # Squared distances add up: what remains of MMD^2 without chance estimates that of the two laws, at any size.
        excess = math.sqrt(max(0.0, value**2 - halves**2)) / noise
        verdict = judge(value, usual, excess, LIMITS)
        headline = Measure(
            name=self.title,
            value=value / noise,
            low=max(0.0, value - NORMAL_QUANTILE * error) / noise,
            high=(value + NORMAL_QUANTILE * error) / noise,
            reference=halves / noise,
            reference_high=usual / noise,
            verdict=verdict,
            reading=_reading(value, halves, noise, verdict),
        )
        names = ["MMD", "two halves of the original", "pure noise", "p-value", "largest density difference"]
        scores = pd.DataFrame({"score": names, "value": [value, halves, noise, p_value, largest]})
        chance = pd.DataFrame({"MMD by chance": null})
        return self.result((), headline=headline, notes=notes, tables={"scores": scores, "chance": chance})

    def _distance(
        self, x: FloatArray, y: FloatArray, gamma: float, rng: np.random.Generator
    ) -> tuple[float, float, list[str]]:
        """MMD with its standard error over the rows, exactly or by random features."""
        # Of the time for a pair, measured from 5 to 32 features, as much as for ten features depends on none.
        slower = max(1.0, (10 + x.shape[1]) / (10 + 5))
        if max(len(x), len(y)) * math.sqrt(slower) <= self.exact_rows:
            value, error = mmd_with_error(x, y, gamma)
            return value, error, []
        found = random_feature_mmd(x, y, gamma, rng, self.frequencies)
        note = f"By {self.frequencies:,} random features, whose own standard error is {found.error:.2g}."
        return found.value, math.hypot(found.error, found.sampling), [note]


def median_gamma(points: FloatArray, rng: np.random.Generator) -> float:
    """The kernel's rate from the median square distance between rows: internal, because it looks at them."""
    squares = _square_distances(_some(points, GAMMA_ROWS, rng))
    positive = squares[squares > 1e-12]  # rounding leaves a little between equal rows
    return 1.0 / float(np.median(positive)) if len(positive) else 1.0


def mmd_with_error(x: FloatArray, y: FloatArray, gamma: float) -> tuple[float, float]:
    """Exact MMD and its standard error over the rows (delta method on the witness function)."""
    at_x, at_y = witnesses(x, y, gamma)
    value = math.sqrt(max(0.0, float(at_x.mean() - at_y.mean())))
    # MMD^2 = E w(x) - E w(y) with the witness w = KD_P - KD_Q; moving one row moves it by 2 w / n.
    error = math.sqrt(float(at_x.var()) / len(x) + float(at_y.var()) / len(y))
    return value, error / value if value else 0.0


def permutation_test(
    x: FloatArray, y: FloatArray, gamma: float, rng: np.random.Generator, *, permutations: int, max_rows: int = 1_500
) -> tuple[float, FloatArray]:
    """P-value of "both tables come from one law" and the distances under it, scaled to the tables' sizes.

    The kernel between all rows is computed once. A rearrangement only changes which rows count as +1/n and which as
    -1/m, so all of them are one matrix product: MMD^2 = s' K s.
    """
    a, b = _some(x, max_rows, rng), _some(y, max_rows, rng)
    pooled = np.concatenate([a, b])
    kernel = np.exp(-gamma * _square_distances(pooled))
    signs = np.concatenate([np.full(len(a), 1 / len(a)), np.full(len(b), -1 / len(b))])
    moved = np.column_stack([signs, *(rng.permutation(signs) for _ in range(permutations))])
    squared = np.maximum((moved * (kernel @ moved)).sum(axis=0), 0.0)
    # Rearrangements that equal the observed distance but for rounding count as reaching it.
    reached = int((squared[1:] >= squared[0] * (1 - 1e-9)).sum())
    # Under one law MMD^2 is proportional to 1/n + 1/m.
    shrink = math.sqrt((1 / len(x) + 1 / len(y)) / (1 / len(a) + 1 / len(b)))
    return (1 + reached) / (1 + permutations), np.sqrt(squared[1:]) * shrink


def halves_distance(x: FloatArray, m: int, gamma: float, rng: np.random.Generator) -> float:
    """Average distance between two random halves of the original, scaled to tables of n and m rows."""
    distances = []
    for _ in range(HALVES):
        part = _some(x, HALF_ROWS, rng)
        part = part[rng.permutation(len(part))]
        half = len(part) // 2
        distance = mmd(part[:half], part[half:], gamma)
        distances.append(distance * math.sqrt((1 / len(x) + 1 / m) / (1 / half + 1 / (len(part) - half))))
    return float(np.mean(distances))


def _square_distances(points: FloatArray) -> FloatArray:
    centred = points - points.mean(axis=0)
    squares = np.square(centred).sum(axis=1)
    return np.asarray(np.maximum(squares[:, None] + squares[None, :] - 2 * centred @ centred.T, 0.0))


def _some(points: FloatArray, max_rows: int, rng: np.random.Generator) -> FloatArray:
    return points[some_rows(len(points), max_rows, rng)]


def _reading(value: float, halves: float, noise: float, verdict: Verdict) -> str:
    share, usual = (f"{measured(100 * each / noise)}%" for each in (value, halves))
    distance = f"The distance is {share} of that between the original and pure noise"
    return f"{distance}; two halves of the original are {usual} apart: {READINGS[verdict]}"
