"""Trees that are broken on purpose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpsynth_core.mechanisms.kd_tree.growth import Boxes, SplitRule
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.mechanisms.kd_tree.split_rules import LevelRule, PrivTreeRule
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise


class BudgetNotSplit(KDTree):
    """Decisions and counts both get all of epsilon."""

    def _shares(self, budget: Budget, levels: int) -> tuple[Budget | None, Budget]:
        return (budget, budget) if levels else (None, budget)


class OneLevelTooFew(KDTree):
    """Shares the budget of the decisions among one level less than there are."""

    def _rule(self, noise: Noise, budget: Budget, levels: int, boxes: int) -> SplitRule:
        return super()._rule(noise, budget, max(levels - 1, 1), boxes)


class RawDecision(KDTree):
    """Splits by the raw count."""

    def _rule(self, noise: Noise, budget: Budget, levels: int, boxes: int) -> SplitRule:
        super()._rule(noise, budget, levels, boxes)
        return _RawRule()


class _RawRule:
    empty_rate, variance = 0.0, float("inf")

    def decide(self, boxes: Boxes, *, zeros: int, pick: Any, noise: Noise) -> Any:
        nothing = np.zeros(0)
        return boxes.counts > 2, nothing.astype(np.int64), np.zeros(len(boxes.counts)), nothing


class OneLevelUnpaid(KDTree):
    """The first level's noise comes from the stream that is free, so nothing is charged for it."""

    def _rule(self, noise: Noise, budget: Budget, levels: int, boxes: int) -> SplitRule:
        rule = super()._rule(noise, budget, levels, boxes)
        return _FirstFree(rule) if isinstance(rule, LevelRule) else rule


class _FirstFree:
    def __init__(self, rule: LevelRule) -> None:
        self._rule, self._asked = rule, False
        self.empty_rate, self.variance = rule.empty_rate, rule.variance

    def decide(self, boxes: Boxes, *, zeros: int, pick: Any, noise: Noise) -> Any:
        if self._asked:
            return self._rule.decide(boxes, zeros=zeros, pick=pick, noise=noise)
        self._asked = True
        split = boxes.counts + noise.integers(5, len(boxes.counts)) > self._rule.threshold
        nothing = np.zeros(0)
        return split, nothing.astype(np.int64), np.zeros(len(split)), nothing


class BiasForgotten(KDTree):
    """PrivTree without the bias that makes deep decisions cheap."""

    def _rule(self, noise: Noise, budget: Budget, levels: int, boxes: int) -> SplitRule:
        rule = super()._rule(noise, budget, levels, boxes)
        return replace(rule, bias=0) if isinstance(rule, PrivTreeRule) else rule


class HalfTheTreeNoise(KDTree):
    """PrivTree at half the scale that its proof needs."""

    def _rule(self, noise: Noise, budget: Budget, levels: int, boxes: int) -> SplitRule:
        rule = super()._rule(noise, budget, levels, boxes)
        return replace(rule, scale=rule.scale / 2) if isinstance(rule, PrivTreeRule) else rule
