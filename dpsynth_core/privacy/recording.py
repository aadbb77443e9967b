"""Recording a run's draws, and replaying them on a neighbouring table.

If a mechanism is run again on a table with one row replaced, and every sampler returns what it returned before,
then the mechanism must make the same calls, and the private values that enter each call may differ by no more
than the sensitivity it declared. That turns "the sensitivity is right" into something that can be measured.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth_core.errors import DPSynthError
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.privacy.primitives import Call, SparseNoisy


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
        self._inside = False

    @property
    def secure(self) -> bool:  # type: ignore[override]
        """As secure as the source that draws."""
        return self._source.secure

    def _perform(self, call: Call) -> Any:
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
        return _aligned(before, call) if isinstance(before.output, SparseNoisy) else copy.deepcopy(before.output)


def _aligned(before: Draw, call: Call) -> SparseNoisy:
    """The recorded outcome told for the cells that are listed now; those that were not listed stayed below."""
    output, threshold = before.output, int(call.parameters[2])
    assert before.call.keys is not None  # noqa: S101
    assert call.keys is not None  # noqa: S101
    known = dict(zip(before.call.keys.tolist(), output.values.tolist(), strict=True))
    extra = dict(zip(output.extra_keys.tolist(), output.extra_values.tolist(), strict=True))
    listed = call.keys.tolist()
    values = [known.get(key, extra.get(key, threshold - 1)) for key in listed]
    now = set(listed)
    rest = {key: value for key, value in (known | extra).items() if key not in now and value >= threshold}
    return SparseNoisy(
        values=np.array(values, dtype=np.int64),
        extra_keys=np.array(list(rest), dtype=before.call.keys.dtype),
        extra_values=np.array(list(rest.values()), dtype=np.int64),
    )


def _form(call: Call) -> tuple[Any, ...]:
    """Everything about a call that must not depend on a single row."""
    if call.primitive in ("sparse_laplace", "decisions"):
        scale, zeros, threshold = call.parameters
        # How many cells are listed depends on the rows; how many there are does not.
        return call.primitive, call.charge, scale, threshold, len(_values(call)) + zeros
    shape = None if call.private is None or call.keys is not None else call.private.shape
    return call.primitive, call.charge, call.parameters, shape


def _values(call: Call) -> NDArray[Any]:
    return np.zeros(0) if call.private is None else call.private


def _distance(before: Call, after: Call) -> float:
    """L1 distance of counts, largest difference of scores; infinite where a value is not a number."""
    first, second = _values(before), _values(after)
    if before.keys is not None and after.keys is not None:
        return _keyed_distance(before.keys, first, after.keys, second)
    if not first.size:
        return 0.0
    moved = np.abs(second.astype(np.float64) - first.astype(np.float64))
    if before.primitive == "gaussian":
        # Its charge says 1: both how many values moved and how far each moved, as shares of what the draw declared.
        _, shift, values = before.parameters
        return float(max(np.count_nonzero(moved) / values, moved.max() / shift))
    if before.primitive == "sampled_gaussian":
        # Likewise, as a share of the Euclidean distance that the draw declared.
        return math.sqrt(float((moved**2).sum()) / before.parameters[1])
    distance = float(moved.sum() if before.primitive == "laplace" else moved.max())
    return math.inf if math.isnan(distance) else distance


def _keyed_distance(
    first_keys: NDArray[Any], first: NDArray[Any], second_keys: NDArray[Any], second: NDArray[Any]
) -> float:
    """L1 distance of two sparse counts: a cell that is not listed holds nothing."""
    counts: dict[Any, int] = {}
    for sign, keys, values in ((1, first_keys, first), (-1, second_keys, second)):
        for key, value in zip(keys.tolist(), values.tolist(), strict=True):
            cell = tuple(key) if isinstance(key, list) else key
            counts[cell] = counts.get(cell, 0) + sign * value
    return float(sum(abs(value) for value in counts.values()))
