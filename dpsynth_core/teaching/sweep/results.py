"""What a sweep has measured: a band for every aspect of every mechanism at every epsilon, and what a target needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from dpsynth_core.errors import check_choice
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.config import SweepConfig


@dataclass(frozen=True, kw_only=True)
class Band:
    """A number that varies from run to run: over the repetitions its minimum, median and maximum.

    For a rate, the rate itself between the ends of its Wilson 95% interval.
    """

    low: float
    middle: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> Band:
        """From smallest to largest: a few repetitions say nothing finer."""
        return cls(low=min(values), middle=float(np.median(values)), high=max(values))

    @classmethod
    def of_rate(cls, share: Proportion) -> Band:
        return cls(low=share.low, middle=share.estimate, high=share.high)


@dataclass(frozen=True, kw_only=True)
class SweepPoint:
    mechanism: str
    """Its key in the registry."""
    epsilon: float
    bands: Mapping[str, Band]
    """By aspect, where it could be measured."""
    table: pd.DataFrame | None
    """The first run's synthetic rows, at most ``MAX_TABLE_ROWS`` of them; None if the mechanism refused."""
    groups: Mapping[int, Band] = field(default_factory=dict)
    """The typical relative error of a group's size, by that size in powers of two."""
    problem: str = ""
    analysts: int = 0
    """Simulated analysts of each kind behind false and missed discoveries."""
    no_analysts: str = ""
    """Why there are none although they were asked for."""

    @property
    def title(self) -> str:
        return MECHANISMS[self.mechanism].title


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """How each aspect changes with epsilon. Computed from the rows: for public and simulated tables only."""

    config: SweepConfig
    rows: int
    """In the original, and in each synthetic table."""
    points: tuple[SweepPoint, ...]
    """By mechanism, then by epsilon."""
    references: Mapping[str, float] = field(default_factory=dict)
    """By aspect, what a fresh sample of the original would show."""
    group_references: Mapping[int, float] = field(default_factory=dict)
    """The same by size of a group."""

    def line(self, mechanism: str, aspect: str) -> tuple[SweepPoint, ...]:
        """A mechanism's points where the aspect is known, by epsilon."""
        return tuple(point for point in self.points if point.mechanism == mechanism and aspect in point.bands)

    @property
    def aspects(self) -> tuple[str, ...]:
        """Those that are known for at least one mechanism."""
        return tuple(key for key in ASPECTS if any(key in point.bands for point in self.points))

    @property
    def analysts(self) -> tuple[int, ...]:
        """Every number of simulated analysts of each kind that occurs, in increasing order."""
        return tuple(sorted({point.analysts for point in self.points if point.analysts}))

    @property
    def without_analysts(self) -> tuple[str, ...]:
        """For every mechanism whose discoveries were not simulated somewhere: where, and why."""
        lines = []
        for key in self.config.mechanisms:
            own = [point for point in self.points if point.mechanism == key]
            silent = [point for point in own if point.no_analysts]
            if silent:
                where = "" if len(silent) == len(own) else f" at ε {', '.join(f'{p.epsilon:g}' for p in silent)}"
                lines.append(f"{silent[-1].title}{where}: {silent[-1].no_analysts}")
        return tuple(lines)

    @property
    def problems(self) -> dict[str, str]:
        """By the title of a mechanism that refused somewhere, why."""
        return {point.title: point.problem for point in self.points if point.problem}


@dataclass(frozen=True, kw_only=True)
class EpsilonNeeded:
    mechanism: str
    """Its key in the registry."""
    epsilon: float | None
    """None if no epsilon on the grid is enough."""
    sentence: str


def epsilon_needed(swept: SweepResult, aspect: str, target: float) -> tuple[EpsilonNeeded, ...]:
    """For every mechanism, the smallest epsilon on the grid from which on the whole band stays within a target.

    A single lucky epsilon below one that misses does not count.
    """
    check_choice("aspect", aspect, tuple(ASPECTS))
    return tuple(_needed(swept.line(key, aspect), key, aspect, target) for key in swept.config.mechanisms)


def _needed(line: tuple[SweepPoint, ...], key: str, aspect: str, target: float) -> EpsilonNeeded:
    say, title = ASPECTS[aspect].say, MECHANISMS[key].title
    missed = [i for i, point in enumerate(line) if point.bands[aspect].high > target]
    first = missed[-1] + 1 if missed else 0
    if not line:
        sentence = f"{title}: not measured here."
    elif first == len(line):
        last = line[-1]
        sentence = (
            f"{title}: no ε up to {last.epsilon:g} is enough; there it is {say(last.bands[aspect].middle)}, "
            f"at worst {say(last.bands[aspect].high)}."
        )
    else:
        sentence = f"{title}: ε {line[first].epsilon:g} is enough (at worst {say(line[first].bands[aspect].high)})"
        sentence += f"; ε {line[first - 1].epsilon:g} is not." if first else ", the smallest that was tried."
    epsilon = line[first].epsilon if first < len(line) else None
    return EpsilonNeeded(mechanism=key, epsilon=epsilon, sentence=sentence)
