"""Randomness that is drawn while there is other work to do.

Neither discrete Laplace noise nor uniform numbers depend on what they are used for, so a run that knows what it will
ask for may have it drawn meanwhile, on another core. Every value is handed out once.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Thread

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.privacy.samplers import opendp_laplace, over_cores

AHEAD, CHUNK = 4_096, 1_024
"""Draws of noise at once: before it is asked for, when the interpreter is busy elsewhere, and after."""


class PrefetchedLaplace:
    """Discrete Laplace noise of one scale, drawn in the background until it is asked for.

    Example:
        >>> PrefetchedLaplace(2.0, size=5_000).add_to(np.zeros((20, 300), dtype=np.int64)).shape
        (20, 300)
    """

    def __init__(self, scale: float, size: int) -> None:
        self.scale = scale
        self._lock = Lock()
        self._wanted, self._begun, self._chunk = size, 0, AHEAD
        self._drawn: list[IntArray] = []
        self._thread = Thread(target=self._fill, daemon=True)
        self._thread.start()

    def _fill(self) -> None:
        measurement = opendp_laplace(self.scale)
        while size := self._next_size():
            self._drawn.append(np.array(measurement(np.zeros(size, dtype=np.int64)), dtype=np.int64))

    def _next_size(self) -> int:
        """How many values the caller is to draw next: none once enough are under way."""
        with self._lock:
            size = max(min(self._chunk, self._wanted - self._begun), 0)
            self._begun += size
        return size

    def add_to(self, values: IntArray) -> IntArray:
        """The values with noise: what is ready, and more drawn now by all cores. Nothing is left for another call."""
        with self._lock:
            self._wanted, self._chunk = values.size, CHUNK
        cores = os.cpu_count() or 1
        with ThreadPoolExecutor(cores) as pool:
            for filled in [pool.submit(self._fill) for _ in range(cores)]:
                filled.result()
        self._thread.join()
        drawn = np.concatenate([np.zeros(0, dtype=np.int64), *self._drawn])[: values.size]
        self._drawn = []
        flat = values.ravel()
        # Nothing is missing unless the thread in the background has failed.
        rest = over_cores(opendp_laplace(self.scale), flat[drawn.size :])
        return np.concatenate([flat[: drawn.size] + drawn, rest]).reshape(values.shape)


class PrefetchedUniform:
    """Uniform numbers from [0, 1), drawn in the background by a generator of their own, in arrays of one size."""

    def __init__(self, generator: np.random.Generator, size: int, times: int) -> None:
        self.size = size
        self._generator = generator
        self._ready: deque[FloatArray] = deque()
        Thread(target=self._fill, args=(times,), daemon=True).start()

    def _fill(self, times: int) -> None:
        for _ in range(times):
            self._ready.append(self._generator.random(self.size))

    def take(self) -> FloatArray | None:
        """An array that is ready and now belongs to the caller; None if there is none."""
        try:
            return self._ready.popleft()
        except IndexError:
            return None
