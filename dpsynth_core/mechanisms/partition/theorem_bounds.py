"""What the theory promises for a thresholded grid: bounds on sup_x |KD_Q(x) - KD_P(x)| (Kreačić et al. 2023).

The kernel is exp(-|x - y|^2 / 2), so lengths are in units of its bandwidth: for exp(-gamma |x - y|^2) multiply widths
and standard deviations by sqrt(2 gamma). P holds the n rows, Q the centres of the cells that Algorithm 1 keeps,
weighted by their noisy counts. Every theorem holds with probability at least 1 - delta over the noise.

All three rest on one event: no cell's noise exceeds b. With Laplace noise of scale 2/epsilon and
b = (4/epsilon) ln(1/delta), a cell does with probability delta^2 (Remark 2), so one of J cells with at most
J delta^2 <= delta, *provided that J <= 1/delta* (Lemma 17). On that event the rest is arithmetic: cells with fewer than
t/2 = b rows are filtered, cells with at least 3t/2 = 3b rows are kept, and totals are off by at most b a cell.

Our noise is a whole number: P(|X| > k) = 2 a^(k+1) / (1 + a) with a = exp(-epsilon/2), for whole k >= 0. As
2a <= 1 + a, that is at most a^k = exp(-k epsilon/2) where k is whole, but can exceed it by a factor of 2/(1 + a) just
below a whole number. So b is rounded *up* to a whole number, t = 2b with it: the paper's statements for a slightly
smaller delta, exp(-epsilon b/4), and true for integer noise without change (docs/proofs.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dpsynth_core.errors import ParameterError

NoiseLaw: TypeAlias = Literal["discrete", "laplace"]
"""Of the noise: whole numbers, as released here, or the paper's reals."""


def largest_noise(*, epsilon: float, delta: float, noise: NoiseLaw = "discrete") -> float:
    """What the noise of none of at most 1/delta cells exceeds, with probability 1 - delta (b; Lemma 17)."""
    _positive("epsilon", epsilon)
    _share("delta", delta)
    if noise not in ("discrete", "laplace"):
        raise ParameterError("noise", noise, allowed="discrete, laplace")
    bound = 4 / epsilon * math.log(1 / delta)
    return float(math.ceil(bound)) if noise == "discrete" else bound


def filtering_threshold(*, epsilon: float, delta: float) -> int:
    """The threshold t that Theorems 5 and 6 ask of a grid with whole-number noise."""
    return 2 * int(largest_noise(epsilon=epsilon, delta=delta))


def theorem_bound(
    theorem: Literal[3, 5, 6],
    *,
    n: int,
    epsilon: float,
    delta: float,
    dimensions: int,
    width: float,
    cells: int,
    heavy: int | None = None,
    light: int | None = None,
    sigma: float | None = None,
    noise: NoiseLaw = "discrete",
) -> float:
    """Upper bound on sup_x |KD_Q(x) - KD_P(x)| for Algorithm 1; one or more says nothing.

    Theorem 3 is for t = 0: every positive noisy count is kept (a threshold of one for whole numbers). Its statement
    forgets the condition J <= 1/delta that its Lemma 17 needs, which is enforced here. Theorems 5 and 6 are for
    t = 2b (``filtering_threshold``). Lemma 16 caps the rounding error with "max" where min(1, .) is meant.

    Theorem 6 replaces the unknown M and m of Theorem 5 for Gaussian data. Its bound is the paper's, but it is the
    weakest of the three in what is proven. J <= 1/delta and J's own cube are taken over from Theorem 5; the exponent of
    12 sigma/w in its condition must be d, not 2 (Equation 17); the condition that Equation 18 uses,
    epsilon m + 4 M ln(1/delta) <= epsilon n / 2, does not follow from the stated one for epsilon < 1 and is enforced;
    and the bounds on M and m hold "with high probability" beyond delta, under a condition of Lemma 28 (w above 7000
    sigma) that no useful grid meets and that is *not* enforced. With the rows at hand, prefer Theorem 5.

    Args:
        theorem: Which one.
        n: Rows.
        epsilon: The grid's budget.
        delta: Probability that the bound fails.
        dimensions: Columns (d).
        width: Edge of a cell in bandwidths (w).
        cells: All cells of the grid, J = (R/w)^d.
        heavy: Theorem 5: cells with at least t/2 rows (M): private.
        light: Theorem 5: rows in cells with fewer than 3t/2 rows (m): private.
        sigma: Theorem 6: standard deviation of the Gaussian rows, in bandwidths.
        noise: Law of the noise that was added.
    """
    _whole("n", n, 1)
    _whole("dimensions", dimensions, 1)
    _whole("cells", cells, 1)
    _positive("width", width)
    grid = _Grid(
        n=n, epsilon=epsilon, d=dimensions, w=width, b=largest_noise(epsilon=epsilon, delta=delta, noise=noise)
    )
    if cells > 1 / delta:
        raise ParameterError(
            "cells",
            cells,
            allowed=f"at most 1/delta = {1 / delta:g} (Theorem {theorem}, through Lemma 17)",
            remedy="Take a smaller delta or fewer cells.",
        )
    if theorem == 3:
        return grid.worst_case(cells)
    if theorem == 5:
        return grid.beyond_worst_case(_whole("heavy", heavy, 0), _whole("light", light, 0))
    if theorem == 6:
        return grid.gaussian(_positive("sigma", sigma))
    raise ParameterError("theorem", theorem, allowed="3, 5 or 6")


@dataclass(frozen=True, kw_only=True)
class _Grid:
    """What the three bounds share."""

    n: int
    """Rows."""
    epsilon: float
    """Budget of the counts."""
    d: int
    """Columns."""
    w: float
    """Edge of a cell."""
    b: float
    """What no cell's noise exceeds; the paper writes (4/epsilon) ln(1/delta)."""

    @property
    def rounding(self) -> float:
        """Moving rows to the centres of their cells: Lemma 16, with the minimum of Lemma 15."""
        return min(1.0, self.w / 2 * math.sqrt(self.d / math.e))

    def worst_case(self, cells: int) -> float:
        """Theorem 3."""
        if cells * self.b >= self.n:
            raise ParameterError(
                "cells",
                cells,
                allowed=f"fewer than epsilon n / (4 ln(1/delta)) = {self.n / self.b:g} (Theorem 3)",
                remedy="Take fewer cells, or Theorem 5 with a threshold.",
            )
        return 2 / (self.n / (cells * self.b) - 1) + self.rounding

    def beyond_worst_case(self, heavy: float, light: float) -> float:
        """Theorem 5, both sides of the fraction divided by epsilon."""
        least = self.n - light - heavy * self.b  # total of the cells that are kept, Lemma 22
        if least <= 0:
            raise ParameterError(
                "light",
                light,
                allowed="such that n > m + 4 M ln(1/delta) / epsilon (Theorem 5, through Lemma 22)",
                remedy="Too few rows lie in cells above the noise: use wider cells, a larger epsilon or delta.",
            )
        return (light + 2 * heavy * self.b) / least + light / self.n + self.rounding

    def gaussian(self, sigma: float) -> float:
        """Theorem 6."""
        log_delta = self.epsilon * self.b / 4  # ln(1/delta), as far as b was rounded up for it
        relative = self.w / (sigma * math.sqrt(2 * math.pi))
        least = math.pow(relative, self.d)
        if self.n < least:
            raise ParameterError("n", self.n, allowed=f"at least (w / (sigma sqrt(2 pi)))^d = {least:g} (Theorem 6)")
        heavy = math.pow(12 * sigma / self.w * math.sqrt(math.log(self.n)), self.d)  # M, Equation 16
        if self.n < 16 * log_delta * heavy:
            raise ParameterError(
                "n",
                self.n,
                allowed=f"at least 16 ln(1/delta) (12 sigma/w)^d ln(n)^(d/2) = {16 * log_delta * heavy:g} (Theorem 6)",
                remedy="Take wider cells or more rows.",
            )
        # Share of rows in light cells, m/n (Lemma 28), without its factor (16 ln(1/delta))^(1/3).
        tail = math.exp(-self.d / 3 * (math.log(relative) - 2)) / math.cbrt(self.epsilon * self.n)
        light = math.cbrt(16 * log_delta) * tail * self.n
        if light + heavy * self.b > self.n / 2:
            raise ParameterError(
                "epsilon",
                self.epsilon,
                allowed="such that epsilon m + 4 M ln(1/delta) <= epsilon n / 2 (Theorem 6, through Equation 18)",
                remedy="Take wider cells, more rows or a larger epsilon.",
            )
        return 8 * math.cbrt(log_delta) * tail + 16 * log_delta * heavy / (self.epsilon * self.n) + self.rounding


def _whole(parameter: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ParameterError(parameter, value, allowed=f"a whole number, at least {least}")
    return value


def _positive(parameter: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ParameterError(parameter, value, allowed="a number greater than 0")
    return float(value)


def _share(parameter: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise ParameterError(parameter, value, allowed="a number greater than 0 and less than 1")
