"""Recording a run's draws, and replaying them on a neighbouring table.

If a mechanism is run again on a table with one row replaced, and every sampler returns what it returned before,
then the mechanism must make the same calls, and the private values that enter each call may differ by no more
than the sensitivity it declared. That turns "the sensitivity is right" into something that can be measured.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_core.errors import DPSynthError
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.privacy.primitives import Call, Output, PaidCall, SparseNoisy, ThresholdedCounts


@dataclass(frozen=True, kw_only=True)
class Draw:
    """A call and what came back."""

    call: Call[Any]
    output: Any


class Recorder(Noise):
    """Passes every draw on to another source and keeps it together with its output."""

    def __init__(self, source: Noise) -> None:
        super().__init__(source.budget)
        self._source = source
        self.draws: list[Draw] = []
        self._inside = False

    @property
    def secure(self) -> bool:  # type: ignore[override]
        """As secure as the source that draws."""
        return self._source.secure

    def _perform(self, call: Call[Output]) -> Output:
        if self._inside:
            return self._source._perform(call)
        # What a sampler draws to name empty cells is part of its outcome, not a draw of its own.
        self._inside = True
        try:
            output = self._source._perform(call)
        finally:
            self._inside = False
        self.draws.append(Draw(call=call, output=copy.deepcopy(output)))
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
        return max(self.moves.values(), default=0.0)

    @property
    def moves(self) -> dict[str, float]:
        """The same for the draws of every label."""
        largest: dict[str, float] = {}
        for distance, draw in zip(self.distances, self._draws, strict=False):
            if isinstance(draw.call, PaidCall):
                label, move = draw.call.charge.label, distance / float(draw.call.charge.sensitivity)
                largest[label] = max(largest.get(label, 0.0), move)
        return largest

    def _perform(self, call: Call[Any]) -> Any:
        step = len(self.distances)
        if step >= len(self._draws):
            raise ReplayMismatchError(f"Draw {step + 1} ({call.name}) was not made on the first table.")
        before = self._draws[step]
        forms = before.call.public_form(), call.public_form()
        if forms[0] != forms[1]:
            raise ReplayMismatchError(
                f"Draw {step + 1} was {forms[0]} on the first table and {forms[1]} on the second."
            )
        self.distances.append(before.call.distance(call))
        if isinstance(call, ThresholdedCounts) and isinstance(before.call, ThresholdedCounts):
            return _aligned(before.call, before.output, call)
        return copy.deepcopy(before.output)


def _aligned(before: ThresholdedCounts, recorded: SparseNoisy, call: ThresholdedCounts) -> SparseNoisy:
    """The recorded outcome for the cells that are listed now; those that were not listed stayed below."""
    known = dict(zip(before.keys.tolist(), recorded.values.tolist(), strict=True))
    known |= dict(zip(recorded.extra_keys.tolist(), recorded.extra_values.tolist(), strict=True))
    listed = call.keys.tolist()
    now = set(listed)
    rest = {key: value for key, value in known.items() if key not in now and value >= call.threshold}
    return SparseNoisy(
        values=np.array([known.get(key, call.threshold - 1) for key in listed], dtype=np.int64),
        extra_keys=np.array(list(rest), dtype=call.keys.dtype),
        extra_values=np.array(list(rest.values()), dtype=np.int64),
    )
