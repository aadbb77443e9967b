"""A share of repetitions, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtri

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Proportion:
    """How often something happened.

    Example:
        >>> share = Proportion(count=50, reps=1000)
        >>> share.estimate, round(share.low, 3), round(share.high, 3)
        (0.05, 0.038, 0.065)
    """

    count: int
    """Times that it did."""
    reps: int
    """Times that it could have."""

    @property
    def estimate(self) -> float:
        """The share."""
        return self.count / self.reps

    @property
    def low(self) -> float:
        """Lower end of Wilson's 95% interval."""
        return self._wilson(-1)

    @property
    def high(self) -> float:
        """Upper end of Wilson's 95% interval."""
        return self._wilson(1)

    @property
    def complement(self) -> Proportion:
        """How often it did not happen."""
        return Proportion(count=self.reps - self.count, reps=self.reps)

    def _wilson(self, side: int) -> float:
        z, p, n = float(ndtri((1 + CONFIDENCE) / 2)), self.estimate, self.reps
        middle = p + z * z / (2 * n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        end = (middle + side * half) / (1 + z * z / n)
        # Rounding must not leave the unit interval, nor exclude the share itself.
        return max(0.0, min(end, p)) if side < 0 else min(1.0, max(end, p))

    def __str__(self) -> str:
        return f"{self.estimate:.3f} ({self.low:.3f} to {self.high:.3f})"
