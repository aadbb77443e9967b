"""Metropolis chains: a draw whose law tends to a given density as the chains grow longer, and how far they got."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpsynth_core.arrays import FloatArray

MAX_RHAT, MIN_ESS = 1.1, 50.0
"""Chains beyond these do not agree, or have hardly moved."""
ADAPT_EVERY = 50
"""Steps between adaptations of the proposal during warm-up."""
TARGET_ACCEPTANCE = 0.27
"""About the best for a random walk in a few dimensions (Roberts, Gelman & Gilks 1997: 0.23 to 0.44)."""


@dataclass(frozen=True, kw_only=True)
class Chains:
    """What the chains did. Computed from private values beyond what epsilon covers: for internal review only."""

    state: FloatArray
    """The last state of the first chain: the draw."""
    states: FloatArray
    """The last states of all chains."""
    rhat: float
    """Largest split R-hat over the parameters, ranks normalised; close to one where the chains agree."""
    ess: float
    """Least effective number of draws over the parameters, all chains together."""
    acceptance: float
    """Share of proposals accepted after warm-up."""

    @property
    def agree(self) -> bool:
        """Whether the chains have met and moved enough for their states to be called draws."""
        return self.rhat <= MAX_RHAT and self.ess >= MIN_ESS


@dataclass(frozen=True, kw_only=True)
class ChainProgress:
    """How the chains are doing. As private as the data: for those who may see them."""

    done: float
    """Share of the steps."""
    step: int
    acceptance: float
    """Share of proposals accepted lately."""
    log_density: float
    """Of the first chain's state."""
    rhat: float | None
    """At the end only."""


def walk(
    log_density: Callable[[FloatArray, float], FloatArray],
    starts: FloatArray,
    scales: FloatArray,
    *,
    steps: int,
    heat: float,
    generator: np.random.Generator,
    progress: Callable[[ChainProgress], None],
) -> Chains:
    """Several Metropolis chains side by side.

    For the first half (warm-up) the proposal adapts to where the chains have been and the density is heated, cooling
    down to its own temperature; then the proposal is frozen, so that the chain's law does not depend on the past.

    Args:
        log_density: Of lines of parameters, at a temperature (a factor on the data's part, at most 1).
        starts: One line for each chain; must not depend on the data.
        scales: First guess of the proposal's standard deviations.
        steps: Of every chain, half of them warm-up.
        heat: Temperature to begin with, as a factor on the data's part.
        generator: Where all randomness comes from.
        progress: Told how it is going, now and then.
    """
    chains, size = starts.shape
    state, warm = starts.copy(), steps // 2
    root = np.diag(scales) * 2.4 / math.sqrt(size)
    step = 1.0
    now = heat
    density = log_density(state, now)
    history = np.empty((steps, chains, size))
    accepted = np.zeros(steps)
    for t in range(steps):
        proposal = state + step * generator.standard_normal((chains, size)) @ root.T
        if t < warm and t % ADAPT_EVERY == 0:
            now = heat ** max(0.0, 1.0 - 1.5 * t / warm)  # at its own temperature after two thirds of the warm-up
            density = log_density(state, now)
        proposed = log_density(proposal, now)
        taken = np.log(generator.random(chains)) < proposed - density
        state[taken], density[taken] = proposal[taken], proposed[taken]
        history[t], accepted[t] = state, taken.mean()
        if (t + 1) % ADAPT_EVERY:
            continue
        lately = accepted[t + 1 - ADAPT_EVERY : t + 1]
        if t < warm:
            step, root = _adapted(history[: t + 1], lately, step, root)
        chain_progress = ChainProgress(
            done=(t + 1) / steps, step=t + 1, acceptance=float(lately.mean()), log_density=float(density[0]), rhat=None
        )
        progress(chain_progress)
    rhat, ess = diagnose(history[warm:].swapaxes(0, 1))
    progress(replace(chain_progress, rhat=rhat))
    return Chains(state=state[0].copy(), states=state, rhat=rhat, ess=ess, acceptance=float(accepted[warm:].mean()))


def _adapted(history: FloatArray, accepted: FloatArray, step: float, root: FloatArray) -> tuple[float, FloatArray]:
    """A step that is accepted as often as it should be, along the directions the chains have moved in lately."""
    step *= math.exp(2 * (float(accepted.mean()) - TARGET_ACCEPTANCE))
    size, recent = history.shape[2], history[len(history) // 2 :]
    # Spread within chains: chains that have not met yet must not stretch the proposal.
    spread = (recent - recent.mean(axis=0)).reshape(-1, size)
    if len(spread) > 20 * size:
        covariance = spread.T @ spread / len(spread)
        covariance += 1e-10 * np.eye(size) + 1e-4 * np.diag(np.diag(covariance))
        root = np.linalg.cholesky(covariance) * 2.4 / math.sqrt(size)
    return float(np.clip(step, 1e-4, 1e4)), root


def diagnose(draws: FloatArray) -> tuple[float, float]:
    """Largest R-hat and least effective sample size over the parameters of (chains, draws, parameters)."""
    from arviz_stats.base import array_stats  # noqa: PLC0415  takes a second to import

    with np.errstate(invalid="ignore", divide="ignore"):
        rhat = array_stats.rhat(draws, chain_axis=0, draw_axis=1)
        ess = array_stats.ess(draws, chain_axis=0, draw_axis=1)
    worst = float(np.max(np.where(np.isnan(rhat), np.inf, rhat)))
    return worst, float(np.min(np.where(np.isnan(ess), 0.0, ess)))
