"""A share of repetitions, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

CONFIDENCE = 0.95
UPPER_TAIL = (1 + CONFIDENCE) / 2
NORMAL_QUANTILE = 1.959963984540054
"""Half the width of a normal interval at this confidence, in standard errors."""


@dataclass(frozen=True, kw_only=True)
class Proportion:
    """How often something happened, with Wilson's 95% interval: anything from 0 to 1 where nothing was tried.

    Example:
        >>> share = Proportion(count=50, reps=1000)
        >>> share.estimate, round(share.low, 3), round(share.high, 3)
        (0.05, 0.038, 0.065)
    """

    count: int
    reps: int

    @property
    def estimate(self) -> float:
        return self.count / self.reps

    @property
    def low(self) -> float:
        return self._interval[0]

    @property
    def high(self) -> float:
        return self._interval[1]

    @property
    def complement(self) -> Proportion:
        return Proportion(count=self.reps - self.count, reps=self.reps)

    @cached_property
    def _interval(self) -> tuple[float, float]:
        if not self.reps:
            return 0.0, 1.0
        from scipy.stats import binomtest  # noqa: PLC0415  slow to import, and few need an interval

        ends = binomtest(self.count, self.reps).proportion_ci(CONFIDENCE, method="wilson")
        return float(ends.low), float(ends.high)

    def __str__(self) -> str:
        return f"{self.estimate:.3f} ({self.low:.3f} to {self.high:.3f})"
