"""Recording a run's draws, and replaying them on a neighbouring table.

If a mechanism is run again on a table with one row replaced, and every sampler returns what it returned before,
then the mechanism must make the same calls, and the private values that enter each call may differ by no more
than the sensitivity it declared. That turns "the sensitivity is right" into something that can be measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_core.errors import DPSynthError
from dpsynth_core.noise import Call, Noise


@dataclass(frozen=True, kw_only=True)
class Draw:
    """A call and what came back."""

    call: Call
    """What was asked of the sampler."""
    output: Any
    """What it returned."""


class Recorder(Noise):
    """Passes every call on to another source and keeps it together with its output."""

    def __init__(self, source: Noise) -> None:
        super().__init__(source.budget)
        self._source = source
        self.draws: list[Draw] = []

    @property
    def secure(self) -> bool:  # type: ignore[override]
        """As secure as the source that draws."""
        return self._source.secure

    def _perform(self, call: Call) -> Any:
        output = self._source._perform(call)
        self.draws.append(Draw(call=call, output=output))
        return output


class ReplayMismatchError(DPSynthError):
    """The replayed run made another call than the recorded one, so its control flow looked at private values."""


class Replay(Noise):
    """Returns recorded outputs and measures how far each call's private values moved."""

    secure = False

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder.budget)
        self._draws = list(recorder.draws)
        self.distances: list[float] = []

    @property
    def finished(self) -> bool:
        """Whether every recorded draw was asked for again."""
        return len(self.distances) == len(self._draws)

    @property
    def excess(self) -> float:
        """The largest measured distance as a multiple of the declared sensitivity; at most 1 if all is well."""
        return max(
            (
                distance / float(draw.call.charge.sensitivity)
                for distance, draw in zip(self.distances, self._draws, strict=False)
                if draw.call.charge is not None
            ),
            default=0.0,
        )

    def _perform(self, call: Call) -> Any:
        step = len(self.distances)
        if step >= len(self._draws):
            raise ReplayMismatchError(f"Draw {step + 1} ({call.primitive}) was not made on the first table.")
        before = self._draws[step]
        if _form(before.call) != _form(call):
            raise ReplayMismatchError(
                f"Draw {step + 1} was {_form(before.call)} on the first table and {_form(call)} on the second."
            )
        self.distances.append(_distance(before.call, call))
        return before.output


def _form(call: Call) -> tuple[Any, ...]:
    """Everything about a call that must not depend on a single row."""
    shape = None if call.private is None else call.private.shape
    return call.primitive, call.charge, call.parameters, shape


def _distance(before: Call, after: Call) -> float:
    """L1 distance for laplace, largest difference for a selection; infinite where a value is not a number."""
    if before.private is None or after.private is None or not before.private.size:
        return 0.0
    moved = np.abs(after.private.astype(np.float64) - before.private.astype(np.float64))
    distance = float(moved.sum() if before.primitive == "laplace" else moved.max())
    return math.inf if math.isnan(distance) else distance
