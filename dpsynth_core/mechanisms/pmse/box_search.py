"""Finding good parameters in a few paid selections from finite lists that never look at the data.

Each selection is made among points spread evenly over a box; the next box is a smaller one around the point selected.
A list depends on earlier selections only, which are paid for, so the losses add up and the guarantee is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.privacy.noise import Noise

MAX_STAGES = 6
REACH = 2.5
"""Half the width of the first box, in prior standard deviations."""
CURVATURE = 0.06
"""Rise of the pMSE when a parameter is one unit of grain from its best value, roughly: decides how far to zoom."""
SLOPE = 1 / 27
"""The same for the distance, which rises in a straight line. True slopes are some 0.3; but zooming on until the noise
is as large as the last step loses more by the choices that go wrong than it gains by the step."""


@dataclass(frozen=True, kw_only=True)
class BoxSearch:
    """How a group of parameters is selected."""

    candidates: int
    """Points in every list."""
    stages: int
    growth: int
    """How many times more each selection gets than the one before: early ones only have to find the region."""

    @classmethod
    def of(cls, size: int, candidates: int, rate: float, span: float, *, straight: bool) -> BoxSearch:
        """As many stages as the noise leaves room for.

        Args:
            size: Parameters in the group.
            candidates: Points in every list.
            rate: Epsilon of the group over twice the score's sensitivity.
            span: Half the width of the first box, in units of grain.
            straight: Whether the score rises in a straight line from its best value, or with the square.
        """
        # The selection cannot tell scores apart that differ by less than about size / rate.
        least = max(size / rate, 1e-12)
        needed = least / SLOPE if straight else math.sqrt(least / CURVATURE)
        box_search = cls(candidates=candidates, stages=1, growth=2 if straight else 3)
        shrink = box_search.shrink(size)
        stages = 1 + math.ceil(math.log(max(span * shrink / 2 / needed, 1.0)) / -math.log(shrink))
        return replace(box_search, stages=min(stages, MAX_STAGES))

    def shrink(self, size: int) -> float:
        """Width of a box over that of the one before: four times the distance of neighbouring points."""
        return float(min(4.0 / self.candidates ** (1 / size), 0.5))

    def shares(self) -> list[int]:
        """Of the group's epsilon, stage by stage."""
        return [self.growth**stage for stage in range(self.stages)]

    def run(
        self,
        score: Callable[[FloatArray], FloatArray],
        centre: FloatArray,
        reach: FloatArray,
        *,
        noise: Noise,
        sensitivity: Fraction,
        epsilon: Fraction,
        label: str,
    ) -> FloatArray:
        """The point selected last."""
        size = len(centre)
        points = _spread(self.candidates, size)
        for share in self.shares():
            candidates = centre + reach * points
            chosen = noise.permute_and_flip(
                -score(candidates), sensitivity=sensitivity, epsilon=epsilon * share / sum(self.shares()), label=label
            )
            centre, reach = candidates[chosen], reach * self.shrink(size)
        return centre


@lru_cache(maxsize=16)
def _spread(points: int, size: int) -> FloatArray:
    """Points spread evenly over the cube from -1 to 1, its centre first: the same in every run."""
    if size == 1:
        spread = np.linspace(-1, 1, points)[:, None]
    else:
        from scipy.stats import qmc  # noqa: PLC0415  takes long to import

        spread = 2 * qmc.Sobol(size, scramble=False).random(points) - 1
    spread[0] = 0.0  # the best of the stage before stays in the list
    return spread
