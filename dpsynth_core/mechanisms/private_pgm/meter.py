"""Paying for counts and choices: a plan of draws from public facts, kept with Laplace or with Gaussian noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.partition.thresholds import laplace_variance
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.gaussian import GaussianDraw, calibrated, gaussian_mu
from dpsynth_core.privacy.noise import Noise

HISTOGRAM = 2
"""Most that one replaced row changes a histogram in L1; it is also the number of counts that change, by one each."""
SCORE = 2
"""Most that one replaced row changes the L1 distance of a histogram to a fixed one."""
PRICE_OF_NOISE = 0.4
"""Half the mean absolute error of a Gaussian in units of its deviation: what counting must earn for each cell."""

Key: TypeAlias = tuple[str | int, ...]
"""Names one draw of a plan."""
Following: TypeAlias = Callable[[Sequence[int]], Sequence[int]]
"""Which candidates may be chosen after these."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One draw of a plan."""

    key: Key
    """Its name."""
    label: str
    """The stage it belongs to, in words."""
    part: Fraction
    """Its part of the whole budget."""
    scores: int = 0
    """For a draw of scores, how many there are; zero for a histogram."""


def shared_out(stages: Sequence[tuple[str, Fraction, Mapping[Key, float]]], scores: Mapping[Key, int]) -> list[Item]:
    """Items from stages, each with its share and the weights of its draws; shares are rescaled to add up to one."""
    present = [(label, share, weights) for label, share, weights in stages if weights]
    whole = sum(share for _, share, _ in present)
    items = []
    for label, share, weights in present:
        exact = {key: Fraction(max(1, round(weight * 1000))) for key, weight in weights.items()}
        total = sum(exact.values())
        items += [
            Item(key=key, label=label, part=share / whole * weight / total, scores=scores.get(key, 0))
            for key, weight in exact.items()
        ]
    return items


class Meter(ABC):
    """Draws what was planned, each item once."""

    @abstractmethod
    def histogram(self, key: Key, counts: IntArray, *, rows: int | None = None) -> tuple[IntArray, float]:
        """Noisy counts of a histogram, and the standard deviation of their noise; ``rows`` if their sum is public."""

    @abstractmethod
    def choose(self, stage: str, scores: IntArray, wanted: int, following: Following) -> list[int]:
        """So many candidates with high scores, one after the other."""


class LaplaceMeter(Meter):
    """Pure epsilon: each item has its own share, and the shares add up."""

    def __init__(self, items: Sequence[Item], noise: Noise) -> None:
        self._items = {item.key: item for item in items}
        self._noise = noise

    def _epsilon(self, item: Item) -> Fraction:
        return self._noise.budget.epsilon * item.part

    def histogram(self, key: Key, counts: IntArray, *, rows: int | None = None) -> tuple[IntArray, float]:
        """Discrete Laplace noise of scale 2/share; 1/share on one count where the other follows from it."""
        item = self._items[key]
        epsilon = self._epsilon(item)
        if counts.size == 2 and rows is not None:
            second = self._noise.laplace(counts.ravel()[1:], sensitivity=1, epsilon=epsilon, label=item.label)
            noisy = np.append(rows - second, second).reshape(counts.shape)
            return noisy, math.sqrt(laplace_variance(1 / epsilon))
        noisy = self._noise.laplace(counts, sensitivity=HISTOGRAM, epsilon=epsilon, label=item.label)
        return noisy, math.sqrt(laplace_variance(HISTOGRAM / epsilon))

    def choose(self, stage: str, scores: IntArray, wanted: int, following: Following) -> list[int]:
        """By permute-and-flip, each choice paid for by itself."""
        chosen: list[int] = []
        for turn in range(wanted):
            item = self._items[stage, turn]
            options = following(chosen) or chosen[-1:] or [0]
            picked = self._noise.permute_and_flip(
                scores[list(options)], sensitivity=SCORE, epsilon=self._epsilon(item), label=item.label
            )
            chosen.append(options[picked])
        return chosen


class GaussianMeter(Meter):
    """(epsilon, delta): all draws are calibrated and paid for together."""

    LABEL = "counts and scores under Gaussian noise"

    def __init__(self, items: Sequence[Item], noise: Noise) -> None:
        epsilon, delta = noise.budget.epsilon, noise.budget.delta
        draws = calibrated([relative_draw(item) for item in items], epsilon, delta)
        self._draws = {item.key: draw for item, draw in zip(items, draws, strict=True)}
        self._noise = noise
        self._charge = noise.open_gaussian(draws, epsilon=epsilon, delta=delta, label=self.LABEL)

    def _noisy(self, key: Key, values: NDArray[np.int64]) -> IntArray:
        return self._noise.gaussian(values, self._draws[key], self._charge)

    def histogram(self, key: Key, counts: IntArray, *, rows: int | None = None) -> tuple[IntArray, float]:  # noqa: ARG002
        """Discrete Gaussian noise; knowing the sum saves nothing here, because L2 counts."""
        return self._noisy(key, counts), self._draws[key].scale

    def choose(self, stage: str, scores: IntArray, wanted: int, following: Following) -> list[int]:
        """All scores get noise once; choosing among noisy scores is free."""
        noisy: FloatArray = self._noisy((stage, 0), scores).astype(np.float64)
        chosen: list[int] = []
        for _ in range(wanted):
            options = list(following(chosen)) or chosen[-1:] or [0]
            chosen.append(options[int(np.argmax(noisy[options]))])
        return chosen


def relative_draw(item: Item) -> GaussianDraw:
    """The draw up to a common factor of all scales: its squared shift over scale is its part of the budget."""
    values, shift = (item.scores, SCORE) if item.scores else (HISTOGRAM, 1)
    return GaussianDraw(scale=shift * math.sqrt(values / item.part), values=values, shift=shift)


def expected_deviation(part: Fraction, budget: Budget) -> float:
    """Standard deviation of the noise on a histogram that gets this part of a budget."""
    if not budget.delta:
        return math.sqrt(laplace_variance(HISTOGRAM / (budget.epsilon * part)))
    return math.sqrt(HISTOGRAM / float(part)) / gaussian_mu(float(budget.epsilon), float(budget.delta))
