"""Measuring histograms and selecting candidates for shares of a budget: with Laplace or with Gaussian noise.

A share is of epsilon under Laplace noise, where epsilons add up, and of the squared distance over noise under Gaussian
noise, where squares do. Shares may be settled while the run goes on, from what was drawn before; more than the whole is
refused by the source of the noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.privacy.accounting import GaussianDraw, SelectionDraw, affordable_cost
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY, laplace_variance
from dpsynth_core.privacy.noise import Noise

SCORE_SENSITIVITY = 2
"""Most that one replaced row changes the L1 distance of a histogram to a fixed one."""


class Measurer(ABC):
    """Draws for shares of one budget."""

    @abstractmethod
    def histogram(
        self, counts: IntArray, share: Fraction, label: str, *, rows: int | None = None
    ) -> tuple[IntArray, float]:
        """Noisy counts of a histogram, and the standard deviation of their noise; ``rows`` if their sum is public."""

    @abstractmethod
    def select(self, scores: IntArray, share: Fraction, label: str, *, sensitivity: int) -> int:
        """The index of a candidate with a high score."""


class LaplaceMeasurer(Measurer):
    """Pure epsilon: each draw has its own share, and the shares add up."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise

    def histogram(
        self, counts: IntArray, share: Fraction, label: str, *, rows: int | None = None
    ) -> tuple[IntArray, float]:
        """Discrete Laplace noise of scale 2/epsilon; 1/epsilon on one count where the other follows from it."""
        epsilon = self._noise.budget.epsilon * share
        if counts.size == 2 and rows is not None:
            second = self._noise.laplace(counts.ravel()[1:], sensitivity=1, epsilon=epsilon, label=label)
            noisy = np.append(rows - second, second).reshape(counts.shape)
            return noisy, math.sqrt(laplace_variance(1 / epsilon))
        noisy = self._noise.laplace(counts, sensitivity=HISTOGRAM_SENSITIVITY, epsilon=epsilon, label=label)
        return noisy, math.sqrt(laplace_variance(HISTOGRAM_SENSITIVITY / epsilon))

    def select(self, scores: IntArray, share: Fraction, label: str, *, sensitivity: int) -> int:
        """By permute-and-flip, each selection paid for by itself."""
        epsilon = self._noise.budget.epsilon * share
        return self._noise.permute_and_flip(scores, sensitivity=sensitivity, epsilon=epsilon, label=label)


class GaussianMeasurer(Measurer):
    """(epsilon, delta): one charge pays for all draws."""

    LABEL = "counts and selections under Gaussian noise"

    def __init__(self, noise: Noise) -> None:
        epsilon, delta = noise.budget.epsilon, noise.budget.delta
        self._noise = noise
        self._charge = noise.open_gaussian(epsilon=epsilon, delta=delta, label=self.LABEL)
        self._whole = affordable_cost(epsilon, delta)

    def histogram(
        self,
        counts: IntArray,
        share: Fraction,
        label: str,  # noqa: ARG002  one charge, one label
        *,
        rows: int | None = None,  # noqa: ARG002
    ) -> tuple[IntArray, float]:
        """Discrete Gaussian noise; knowing the sum saves nothing here, because sensitivity is in L2."""
        draw = GaussianDraw.costing(self._whole * float(share), values=HISTOGRAM_SENSITIVITY)
        return self._noise.gaussian(counts, draw, self._charge), draw.scale

    def select(self, scores: IntArray, share: Fraction, label: str, *, sensitivity: int) -> int:  # noqa: ARG002
        """By the exponential mechanism."""
        draw = SelectionDraw.costing(self._whole * float(share), sensitivity=sensitivity)
        return self._noise.shared_exponential(scores, draw, self._charge)


def measurer_for(noise: Noise, granted: Budget) -> Measurer:
    """Ready to draw; with a delta, Gaussian noise is paid for here."""
    return GaussianMeasurer(noise) if granted.delta else LaplaceMeasurer(noise)


def expected_std(share: Fraction | float, budget: Budget) -> float:
    """Standard deviation of the noise on a histogram that gets this share of a budget."""
    if not budget.delta:
        return math.sqrt(laplace_variance(HISTOGRAM_SENSITIVITY / (budget.epsilon * Fraction(share))))
    cost = affordable_cost(budget.epsilon, budget.delta) * float(share)
    return GaussianDraw.costing(cost, values=HISTOGRAM_SENSITIVITY).scale
