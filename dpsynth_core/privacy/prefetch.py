"""Noise that is drawn while there is other work to do.

Discrete Laplace noise does not depend on what it is added to, so a run that knows the scale of a later draw may have
the noise made meanwhile, on another core. Every value is handed out once.
"""

from __future__ import annotations

from threading import Event, Thread

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.privacy.samplers import opendp_laplace, over_cores

CHUNK = 2_048
"""Draws between two looks at whether the rest is still wanted."""


class PrefetchedLaplace:
    """Discrete Laplace noise of one scale, drawn in the background until it is asked for."""

    def __init__(self, scale: float, size: int) -> None:
        self.scale = scale
        self._size = size
        self._wanted = Event()
        self._drawn: list[IntArray] = []
        self._thread = Thread(target=self._fill, daemon=True)
        self._thread.start()

    def _fill(self) -> None:
        measurement, zeros = opendp_laplace(self.scale), np.zeros(CHUNK, dtype=np.int64)
        while not self._wanted.is_set() and len(self._drawn) * CHUNK < self._size:
            self._drawn.append(np.array(measurement(zeros), dtype=np.int64))

    def add_to(self, values: IntArray) -> IntArray:
        """The values with noise: what is ready, then more drawn now. Nothing is left for another call."""
        self._wanted.set()
        self._thread.join()
        drawn = np.concatenate([np.zeros(0, dtype=np.int64), *self._drawn])[: values.size]
        self._drawn = []
        flat = values.ravel()
        rest = over_cores(opendp_laplace(self.scale), flat[drawn.size :])
        return np.concatenate([flat[: drawn.size] + drawn, rest]).reshape(values.shape)
