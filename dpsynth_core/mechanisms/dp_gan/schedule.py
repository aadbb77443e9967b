"""How many critics there are, how many of them each round uses, and with how much noise: from public facts only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsynth_core.privacy.accounting import check_delta, gaussian_mu, min_multiplier
from dpsynth_core.privacy.budget import Budget

MAX_CHOSEN = 16
"""Critics of a round, which are trained side by side."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    parts: int
    """Disjoint parts of the rows, each with a critic of its own."""
    chosen: int
    """Parts that each round uses, drawn anew each time."""
    rounds: int
    multiplier: float
    """Noise over the most that one row can move, about; exactly so only after ``calibrated``."""

    @classmethod
    def of(cls, n: int, budget: Budget, *, rows_per_critic: int, rounds: int, multiplier: float) -> Schedule:
        """As few critics a round as need the given noise multiplier; if even all of them need less, less noise.

        With few critics a round and little noise, one more would be nearly free; beyond a multiplier of about one,
        twice as many need twice the noise.
        """
        check_delta(budget.delta)
        parts = max(1, n // rows_per_critic)
        chosen, limit = 1, min(parts, MAX_CHOSEN)
        while chosen < limit and expected_multiplier(chosen / parts, rounds, budget) < multiplier:
            chosen = min(2 * chosen, limit)
        expected = expected_multiplier(chosen / parts, rounds, budget)
        return cls(parts=parts, chosen=chosen, rounds=rounds, multiplier=expected)

    def calibrated(self, budget: Budget) -> float:
        """The multiplier that spends the budget at the last round, and not before: by the accountant."""
        return min_multiplier(self.chosen / self.parts, self.rounds, budget.epsilon, budget.delta)

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise on a coordinate of a round's mean gradient, whose norm is at most one."""
        return 2 * self.multiplier / self.chosen


def expected_multiplier(rate: float, rounds: int, budget: Budget) -> float:
    """In closed form, a little too small: the central limit of sampled draws (Bu, Dong, Long & Su 2020)."""
    mu = gaussian_mu(float(budget.epsilon), float(budget.delta))
    return 1 / math.sqrt(math.log1p((mu / rate) ** 2 / rounds))
