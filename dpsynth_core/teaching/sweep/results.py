"""What a sweep has found: a band for every aspect of every mechanism at every epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from dpsynth_core.inference import Proportion
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.config import SweepConfig


@dataclass(frozen=True, kw_only=True)
class Band:
    """A number that differs from run to run."""

    low: float
    """The smallest over the repetitions; of a rate, the lower end of Wilson's 95% interval."""
    middle: float
    """Their median; of a rate, the rate itself."""
    high: float
    """The largest; of a rate, the upper end of the interval."""

    @classmethod
    def over(cls, values: Sequence[float]) -> Band:
        """From smallest to largest: with few repetitions nothing finer can be said."""
        return cls(low=min(values), middle=float(np.median(values)), high=max(values))

    @classmethod
    def of_rate(cls, share: Proportion) -> Band:
        """Of a share of simulated analysts."""
        return cls(low=share.low, middle=share.estimate, high=share.high)


@dataclass(frozen=True, kw_only=True)
class SweepPoint:
    """One mechanism at one epsilon."""

    mechanism: str
    """Its name in the registry."""
    epsilon: float
    """The loss granted to each run."""
    bands: Mapping[str, Band]
    """By aspect, as far as it could be measured."""
    table: pd.DataFrame | None
    """The first run's synthetic rows, at most ``MAX_TABLE_ROWS`` of them; None where the mechanism refused."""
    groups: Mapping[int, Band] = field(default_factory=dict)
    """By how much the size of a group is typically off, as a share of it: by size, in powers of two."""
    problem: str = ""
    """Why it refused, in words."""
    analysts: int = 0
    """Simulated analysts of each kind behind false and missed discoveries."""
    no_analysts: str = ""
    """Why there are none, where they were asked for."""

    @property
    def title(self) -> str:
        """What people call the mechanism."""
        return MECHANISMS[self.mechanism].title


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """How each aspect changes with epsilon. Computed from the rows: for public and simulated tables only."""

    config: SweepConfig
    """What was asked for."""
    rows: int
    """Of the original, and of each synthetic table."""
    points: tuple[SweepPoint, ...]
    """By mechanism, then by epsilon."""
    references: Mapping[str, float] = field(default_factory=dict)
    """By aspect, what a fresh sample of the original would show."""
    group_references: Mapping[int, float] = field(default_factory=dict)
    """By size of a group, the same."""

    def line(self, mechanism: str, aspect: str) -> tuple[SweepPoint, ...]:
        """A mechanism's points where the aspect is known, by epsilon."""
        return tuple(point for point in self.points if point.mechanism == mechanism and aspect in point.bands)

    def at(self, mechanism: str, epsilon: float) -> SweepPoint | None:
        """One point."""
        return next((s for s in self.points if s.mechanism == mechanism and s.epsilon == epsilon), None)

    @property
    def aspects(self) -> tuple[str, ...]:
        """Those that at least one mechanism shows."""
        return tuple(key for key in ASPECTS if any(key in point.bands for point in self.points))

    @property
    def analysts(self) -> tuple[int, ...]:
        """How many simulated analysts of each kind stand behind discoveries: every number that occurs, rising."""
        return tuple(sorted({point.analysts for point in self.points if point.analysts}))

    @property
    def without_analysts(self) -> tuple[str, ...]:
        """For every mechanism whose discoveries were not simulated somewhere: where, and why."""
        said = []
        for key in self.config.mechanisms:
            mine = [point for point in self.points if point.mechanism == key]
            silent = [point for point in mine if point.no_analysts]
            if silent:
                where = "" if len(silent) == len(mine) else f" at ε {', '.join(f'{s.epsilon:g}' for s in silent)}"
                said.append(f"{silent[-1].title}{where}: {silent[-1].no_analysts}")
        return tuple(said)

    @property
    def problems(self) -> dict[str, str]:
        """By mechanism, why it refused somewhere."""
        return {point.title: point.problem for point in self.points if point.problem}
