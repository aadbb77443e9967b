"""How much epsilon is needed for a target, read off a sweep."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.results import SweepPoint, SweepResult


@dataclass(frozen=True, kw_only=True)
class EpsilonNeeded:
    """How much epsilon a mechanism needs for a target."""

    mechanism: str
    """Its name in the registry."""
    epsilon: float | None
    """The smallest on the grid from which on every band stays within the target; None if there is none."""
    sentence: str
    """The same in words."""


def epsilon_needed(found: SweepResult, aspect: str, target: float) -> tuple[EpsilonNeeded, ...]:
    """For every mechanism, the smallest epsilon on the grid from which on the whole band stays within a target.

    A single lucky epsilon below one that misses does not count.
    """
    if aspect not in ASPECTS:
        raise ParameterError("aspect", aspect, allowed=", ".join(ASPECTS))
    return tuple(_needed(found, key, aspect, target) for key in found.config.mechanisms)


def _needed(found: SweepResult, key: str, aspect: str, target: float) -> EpsilonNeeded:
    kind, title = ASPECTS[aspect], MECHANISMS[key].title
    line = found.line(key, aspect)
    reached: SweepPoint | None = None
    for point in reversed(line):
        if point.bands[aspect].high > target:
            break
        reached = point
    if not line:
        said = f"{title}: not measured here."
    elif reached is not None:
        least = reached is line[0]
        worst = kind.say(reached.bands[aspect].high)
        said = f"{title}: ε {reached.epsilon:g} is enough (at worst {worst})" + (
            ", the smallest that was tried." if least else f"; ε {line[line.index(reached) - 1].epsilon:g} is not."
        )
    else:
        last = line[-1]
        said = (
            f"{title}: no ε up to {last.epsilon:g} is enough; there it is {kind.say(last.bands[aspect].middle)}, "
            f"at worst {kind.say(last.bands[aspect].high)}."
        )
    return EpsilonNeeded(mechanism=key, epsilon=None if reached is None else reached.epsilon, sentence=said)
