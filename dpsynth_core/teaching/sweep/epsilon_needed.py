"""How much epsilon a target needs, read from a sweep."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth_core.errors import check_choice
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.teaching.sweep.aspects import ASPECTS
from dpsynth_core.teaching.sweep.results import SweepPoint, SweepResult


@dataclass(frozen=True, kw_only=True)
class EpsilonNeeded:
    """How much epsilon a mechanism needs for a target."""

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
