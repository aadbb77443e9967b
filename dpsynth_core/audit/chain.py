"""Metropolis chains on few states, exactly: does the kernel keep its target, and how far from it does a chain end?

On at most 64 states powers of the kernel's matrix are exact enough to measure distances of 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.audit.checks import AuditCheck, audit_check
from dpsynth_core.audit.noise_law import p_value
from dpsynth_core.audit.outcomes import exponential_law
from dpsynth_core.mechanisms.pmse.metropolis import walk

MAX_DRIFT = 1e-9
"""How far one step may move the target."""
MAX_DISTANCE = 0.01
"""Total variation between a chain's end and its target at which the chain counts as long enough."""
STATES, STEPS = 64, 4_000
EPSILON = 1.0


@dataclass(frozen=True, kw_only=True)
class MarkovChain:
    """A chain that is to end as the exponential mechanism would choose: P(i) proportional to exp(score_i / scale)."""

    name: str
    scale: float
    """Twice the sensitivity of the scores over epsilon."""
    kernel: Callable[[FloatArray, float], FloatArray]
    """The chance of every step, from the scores and the scale."""
    start: Callable[[FloatArray], FloatArray]
    """Where it starts: a law over the states. It must not depend on the scores."""
    steps: int = STEPS


def metropolis(scores: FloatArray, scale: float) -> FloatArray:
    """The textbook kernel: propose a few states away on a circle, accept with probability min(1, ratio)."""
    size = len(scores)
    kernel = np.zeros((size, size))
    for step in (-8, -4, -2, -1, 1, 2, 4, 8):
        for i in range(size):
            j = (i + step) % size
            kernel[i, j] += np.exp(min(0.0, float(scores[j] - scores[i])) / scale) / 8
    return kernel + np.diag(1 - kernel.sum(axis=1))


def anywhere(scores: FloatArray) -> FloatArray:
    return np.full(len(scores), 1 / len(scores))


def total_variation(first: FloatArray, second: FloatArray) -> float:
    """Half the sum of absolute differences; not rescaled, so that a kernel that loses mass is noticed."""
    return float(np.abs(first - second).sum() / 2)


def toy_scores() -> tuple[FloatArray, FloatArray]:
    """Two hills of different height, and the same after a row has moved every score by as much as it may."""
    angle = np.arange(STATES) * 2 * np.pi / STATES
    scores = 1.5 * np.cos(angle) + 1.2 * np.cos(2 * angle)
    return scores, scores + np.where(np.sin(3 * angle) > 0, 1.0, -1.0)


def chain_checks(audited: MarkovChain) -> Iterator[AuditCheck]:
    """Target kept, start free of the data, end near the target, loss of the finite chain within the claim."""
    first, second = toy_scores()
    kernels = [audited.kernel(scores, audited.scale) for scores in (first, second)]
    goals = [exponential_law(scores, audited.scale) for scores in (first, second)]
    starts = [audited.start(scores) for scores in (first, second)]

    def check(case: str, good: bool, detail: str) -> AuditCheck:
        return audit_check("chain", audited.name, case, good, detail)

    moved = max(total_variation(goal @ kernel, goal) for goal, kernel in zip(goals, kernels, strict=True))
    yield check("one step keeps the target", moved <= MAX_DRIFT, f"moves it by {moved:.2g}")
    apart = total_variation(starts[0], starts[1])
    yield check("the start does not depend on the data", apart == 0, f"starts differ by {apart:.2g}")
    powers = [np.linalg.matrix_power(kernel, audited.steps) for kernel in kernels]
    ends = [start @ power for start, power in zip(starts, powers, strict=True)]
    far = max(total_variation(end, goal) for end, goal in zip(ends, goals, strict=True))
    detail = f"total variation {far:.2g} after {audited.steps:,} steps"
    yield check("the end is near the target", far <= MAX_DISTANCE, detail)
    loss = float(np.abs(np.log(np.maximum(ends[0], 1e-300) / np.maximum(ends[1], 1e-300))).max())
    yield check("the loss of the finite walk", loss <= EPSILON + 0.01, f"{loss:.3f} of {EPSILON:g}")


def walk_checks(seed: np.random.SeedSequence, *, level: float) -> Iterator[AuditCheck]:
    """The walk of the pMSE mechanism, run as it is, towards a target on few cells of a line.

    Many chains end independently of each other, so that where they end is a sample to be held against the target.
    """
    scores, cells, chains, steps = toy_scores()[0][::4], STATES // 4, 2_000, 1_600
    scale, generator = 2 / EPSILON, np.random.default_rng(seed)

    def log_density(lines: FloatArray, heat: float) -> FloatArray:
        inside = (lines[:, 0] >= 0) & (lines[:, 0] < cells)
        cell = np.clip(lines[:, 0], 0, cells - 1e-9).astype(np.int64)
        return np.where(inside, heat * scores[cell] / scale, -np.inf)

    starts = generator.random((chains, 1)) * cells
    ended = walk(
        log_density, starts, np.array([cells / 8]), steps=steps, heat=0.5, generator=generator, progress=lambda _: None
    )
    observed = np.bincount(ended.states[:, 0].astype(np.int64), minlength=cells)
    goal = exponential_law(scores, scale)
    p, far = p_value(observed, goal), total_variation(observed / chains, goal)
    detail = f"p = {p:.2g}; total variation {far:.2g} over {chains:,} walks of {steps:,} steps"
    yield audit_check("chain", "pmse", "random walks end as their target says", p > level, detail)


REFERENCE = MarkovChain(name="probe: random walk", scale=2 / EPSILON, kernel=metropolis, start=anywhere)
"""Scores move by at most one, so the scale is 2 / epsilon."""
