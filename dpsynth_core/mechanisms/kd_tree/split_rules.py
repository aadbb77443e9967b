"""When a box of a KD tree is split."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.mechanisms.kd_tree.growth import Boxes
from dpsynth_core.privacy.budget import float_up
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY, laplace_tail, laplace_variance
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.privacy.primitives import Charge

SPLITS = "which boxes to split"
"""The decisions' stage."""
PRIVTREE_LOSS = 4
"""The decisions of a whole tree cost this many times 1/scale, however deep it grows (docs/proofs.md, section 9)."""

MIN_SCALE = 16
"""Of the noise, in steps of its lattice: the bias is a whole number of steps, and must not cost much by that."""
LN2_UP = math.nextafter(math.log(2), 1)

SplitDecision = tuple[NDArray[np.bool_], IntArray, FloatArray, FloatArray]


@dataclass(frozen=True, kw_only=True)
class LevelRule:
    """The paper's rule: every level pays an equal share for noisy counts (Kreačić et al., Algorithm 3)."""

    epsilon: Fraction
    """For the decisions of one level."""
    threshold: int
    """Split where count + noise exceeds this (tau)."""

    def decide(self, boxes: Boxes, *, zeros: int, pick: Callable[[int], IntArray], noise: Noise) -> SplitDecision:
        """Noisy count above the threshold; the noisy counts are paid for and may be used again."""
        # Algorithm 3, line 5: |P| + Lap(2 (h' - h) / eps') > tau.
        noisy = noise.sparse_laplace(
            boxes.prefix,
            boxes.counts,
            zeros=zeros,
            threshold=self.threshold + 1,
            pick=pick,
            sensitivity=HISTOGRAM_SENSITIVITY,
            epsilon=self.epsilon,
            label=SPLITS,
        )
        split = noisy.values > self.threshold
        return split, noisy.extra_keys, noisy.values.astype(np.float64), noisy.extra_values.astype(np.float64)

    @property
    def empty_rate(self) -> float:
        """Probability that an empty box is split: P(DLap > tau)."""
        return laplace_tail(HISTOGRAM_SENSITIVITY / self.epsilon, self.threshold + 1)

    @property
    def variance(self) -> float:
        return laplace_variance(HISTOGRAM_SENSITIVITY / self.epsilon)


@dataclass(frozen=True, kw_only=True)
class PrivTreeRule:
    """PrivTree (Zhang, Xiao & Xie 2016): a bias that grows with depth lets one noise scale pay for every level."""

    charge: Charge
    """Opened once, for the decisions of the whole tree."""
    steps: int
    """How many steps of the noise's lattice one row counts: more than one where little noise is needed."""
    scale: float
    """Of the noise (lambda), in steps."""
    bias: int
    """What every further decision subtracts (delta), in steps; at least scale * ln 2."""
    threshold: int
    """Count that a box needs beyond its bias to be more likely split than not (theta)."""

    @classmethod
    def open(cls, noise: Noise, *, epsilon: Fraction, threshold: int) -> PrivTreeRule:
        """Pay for a tree and derive scale and bias from the price."""
        steps = max(1, math.ceil(MIN_SCALE * epsilon / PRIVTREE_LOSS))
        charge = noise.open_charge(SPLITS, sensitivity=HISTOGRAM_SENSITIVITY * steps, epsilon=epsilon)
        scale = float_up(steps * PRIVTREE_LOSS / epsilon)
        return cls(charge=charge, steps=steps, scale=scale, bias=math.ceil(scale * LN2_UP), threshold=threshold)

    def decide(self, boxes: Boxes, *, zeros: int, pick: Callable[[int], IntArray], noise: Noise) -> SplitDecision:
        """Biased count plus noise above the threshold; only the decision is paid for."""
        # b(v) = max(theta - delta, c(v) - depth * delta) and split if b(v) + noise > theta, all shifted by
        # delta - theta so that an empty box stands at zero.
        biased = np.maximum(self.steps * (boxes.counts - self.threshold) - boxes.decisions * self.bias, 0)
        split, extra = noise.decisions(
            boxes.prefix, biased, zeros=zeros, threshold=self.bias + 1, pick=pick, scale=self.scale, charge=self.charge
        )
        return split, extra, np.zeros(len(split)), np.zeros(len(extra))

    @property
    def empty_rate(self) -> float:
        """Probability that an empty box is split: P(DLap > bias), a little below one in four."""
        return laplace_tail(self.scale, self.bias + 1)

    @property
    def variance(self) -> float:
        """The counts behind the decisions are not paid for, so they tell nothing."""
        return math.inf
