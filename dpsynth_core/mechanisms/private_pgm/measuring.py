"""Measuring histograms and selecting candidates, as planned and paid for: with Laplace or with Gaussian noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.privacy.accounting import GaussianDraw, calibrated, gaussian_mu
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY, laplace_variance
from dpsynth_core.privacy.noise import Noise

SCORE_SENSITIVITY = 2
"""Most that one replaced row changes the L1 distance of a histogram to a fixed one."""

DrawKey: TypeAlias = tuple[str | int, ...]
AllowedNext: TypeAlias = Callable[[Sequence[int]], Sequence[int]]
"""Which candidates may be selected after these."""


@dataclass(frozen=True, kw_only=True)
class PlannedDraw:
    key: DrawKey
    label: str
    """The stage it belongs to, in words."""
    share: Fraction
    """Of the whole budget."""
    scores: int = 0
    """For a draw of scores, how many there are; zero for a histogram."""


class Measurer(ABC):
    """Makes the planned draws, each once."""

    @abstractmethod
    def histogram(self, key: DrawKey, counts: IntArray, *, rows: int | None = None) -> tuple[IntArray, float]:
        """Noisy counts of a histogram, and the standard deviation of their noise; ``rows`` if their sum is public."""

    @abstractmethod
    def select(self, stage: str, scores: IntArray, number: int, allowed: AllowedNext) -> list[int]:
        """So many candidates with high scores, one after the other."""


class LaplaceMeasurer(Measurer):
    """Pure epsilon: each draw has its own share, and the shares add up."""

    def __init__(self, draws: Sequence[PlannedDraw], noise: Noise) -> None:
        self._draws = {draw.key: draw for draw in draws}
        self._noise = noise

    def _epsilon(self, draw: PlannedDraw) -> Fraction:
        return self._noise.budget.epsilon * draw.share

    def histogram(self, key: DrawKey, counts: IntArray, *, rows: int | None = None) -> tuple[IntArray, float]:
        """Discrete Laplace noise of scale 2/epsilon; 1/epsilon on one count where the other follows from it."""
        draw = self._draws[key]
        epsilon = self._epsilon(draw)
        if counts.size == 2 and rows is not None:
            second = self._noise.laplace(counts.ravel()[1:], sensitivity=1, epsilon=epsilon, label=draw.label)
            noisy = np.append(rows - second, second).reshape(counts.shape)
            return noisy, math.sqrt(laplace_variance(1 / epsilon))
        noisy = self._noise.laplace(counts, sensitivity=HISTOGRAM_SENSITIVITY, epsilon=epsilon, label=draw.label)
        return noisy, math.sqrt(laplace_variance(HISTOGRAM_SENSITIVITY / epsilon))

    def select(self, stage: str, scores: IntArray, number: int, allowed: AllowedNext) -> list[int]:
        """By permute-and-flip, each selection paid for by itself."""
        selected: list[int] = []
        for turn in range(number):
            draw = self._draws[stage, turn]
            options = allowed(selected) or selected[-1:] or [0]
            index = self._noise.permute_and_flip(
                scores[list(options)], sensitivity=SCORE_SENSITIVITY, epsilon=self._epsilon(draw), label=draw.label
            )
            selected.append(options[index])
        return selected


class GaussianMeasurer(Measurer):
    """(epsilon, delta): all draws are calibrated and paid for together."""

    LABEL = "counts and scores under Gaussian noise"

    def __init__(self, draws: Sequence[PlannedDraw], noise: Noise) -> None:
        epsilon, delta = noise.budget.epsilon, noise.budget.delta
        gaussian = calibrated([_uncalibrated(draw) for draw in draws], epsilon, delta)
        self._draws = {planned.key: draw for planned, draw in zip(draws, gaussian, strict=True)}
        self._noise = noise
        self._charge = noise.open_gaussian(gaussian, epsilon=epsilon, delta=delta, label=self.LABEL)

    def histogram(self, key: DrawKey, counts: IntArray, *, rows: int | None = None) -> tuple[IntArray, float]:  # noqa: ARG002
        """Discrete Gaussian noise; knowing the sum saves nothing here, because sensitivity is in L2."""
        return self._noise.gaussian(counts, self._draws[key], self._charge), self._draws[key].scale

    def select(self, stage: str, scores: IntArray, number: int, allowed: AllowedNext) -> list[int]:
        """All scores get noise once; selecting by noisy scores is free."""
        noisy = self._noise.gaussian(scores, self._draws[stage, 0], self._charge).astype(np.float64)
        selected: list[int] = []
        for _ in range(number):
            options = list(allowed(selected)) or selected[-1:] or [0]
            selected.append(options[int(np.argmax(noisy[options]))])
        return selected


def measurer_for(draws: Sequence[PlannedDraw], noise: Noise, *, gaussian: bool) -> Measurer:
    """Ready to draw; Gaussian draws are calibrated and paid for here."""
    return (GaussianMeasurer if gaussian else LaplaceMeasurer)(draws, noise)


def _uncalibrated(draw: PlannedDraw) -> GaussianDraw:
    """The draw up to a common factor of all scales: its squared shift over scale is its share of the budget."""
    values, shift = (draw.scores, SCORE_SENSITIVITY) if draw.scores else (HISTOGRAM_SENSITIVITY, 1)
    return GaussianDraw(scale=shift * math.sqrt(values / draw.share), values=values, shift=shift)


def expected_std(share: Fraction, budget: Budget) -> float:
    """Standard deviation of the noise on a histogram that gets this share of a budget."""
    if not budget.delta:
        return math.sqrt(laplace_variance(HISTOGRAM_SENSITIVITY / (budget.epsilon * share)))
    return math.sqrt(HISTOGRAM_SENSITIVITY / float(share)) / gaussian_mu(float(budget.epsilon), float(budget.delta))
