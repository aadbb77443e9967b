"""Taking times: rivals in turn, the best of a few rounds, as ratios."""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Spent:
    """The best of a few rounds."""

    wall: float = math.inf
    """Seconds on the clock: what a user waits."""
    cpu: float = math.inf
    """Seconds of processor time over all threads: what remains comparable when the machine is shared."""


def best_times(rivals: Mapping[str, Callable[[], object]], rounds: int = 3) -> dict[str, Spent]:
    """The least each rival needs; the rounds are interleaved, so that a slow minute hurts all alike."""
    best = dict.fromkeys(rivals, Spent())
    for _ in range(rounds):
        for name, run in rivals.items():
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            spent = Spent(wall=time.perf_counter() - wall, cpu=time.process_time() - cpu)
            best[name] = Spent(wall=min(best[name].wall, spent.wall), cpu=min(best[name].cpu, spent.cpu))
    return best


def show(title: str, times: Mapping[str, Spent], *, unit: str) -> None:
    """One line for each, with its ratio to ``unit``."""
    print(f"{title} ({os.cpu_count()} cores)")
    width = max(map(len, times))
    for name, spent in times.items():
        ratios = f"{spent.wall / times[unit].wall:6.2f} x wall, {spent.cpu / times[unit].cpu:6.2f} x cpu"
        print(f"  {name:{width}}  {spent.wall:8.3f} s wall  {spent.cpu:8.3f} s cpu  {ratios}", flush=True)
