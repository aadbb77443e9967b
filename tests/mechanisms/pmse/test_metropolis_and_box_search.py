"""Drawing parameters: random walks against a known density, lists against a known optimum."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.pmse.box_search import BoxSearch
from dpsynth_core.mechanisms.pmse.metropolis import ChainProgress, diagnose, walk
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SecureNoise, SeededNoise

COVARIANCE = np.array([[1.0, 1.6], [1.6, 4.0]])
MEAN = np.array([3.0, -2.0])


def normal(lines: FloatArray, heat: float) -> FloatArray:
    away = lines - MEAN
    return -0.5 * heat * np.einsum("ij,jk,ik->i", away, np.linalg.inv(COVARIANCE), away)


def test_chains_reach_a_density_that_is_known() -> None:
    """A correlated normal law, from starts far away; the last states of many chains are draws from it."""
    rng = np.random.default_rng(1)
    starts = rng.normal(0, 10, size=(400, 2))
    heard: list[ChainProgress] = []
    chains = walk(normal, starts, np.ones(2), steps=1_000, heat=0.1, generator=rng, progress=heard.append)
    # 400 independent draws: standard errors 1/20 of the deviations; five of them leave one failure in a million.
    assert np.abs(chains.states.mean(axis=0) - MEAN).max() < 5 * 2 / 20
    assert np.cov(chains.states.T) == pytest.approx(COVARIANCE, abs=5 * 4 * np.sqrt(2) / 20)
    assert chains.agree
    assert 0.15 < chains.acceptance < 0.45
    assert [chain_progress.done for chain_progress in heard] == sorted(chain_progress.done for chain_progress in heard)
    assert heard[-1].rhat == chains.rhat


def test_chains_in_different_places_are_not_called_a_draw() -> None:
    def two_peaks(lines: FloatArray, heat: float) -> FloatArray:
        return heat * np.logaddexp(-50 * (lines[:, 0] - 5) ** 2, -50 * (lines[:, 0] + 5) ** 2)

    starts = np.array([[5.0], [-5.0], [5.0], [-5.0]])
    generator = np.random.default_rng(1)
    chains = walk(two_peaks, starts, np.array([0.1]), steps=400, heat=1.0, generator=generator, progress=lambda _: None)
    assert chains.rhat > 1.5
    assert not chains.agree


def test_chains_that_never_move_are_not_called_a_draw() -> None:
    assert diagnose(np.zeros((4, 100, 1)))[1] < 50 or diagnose(np.zeros((4, 100, 1)))[0] > 1.1


def bowl(best: FloatArray) -> object:
    return lambda candidates: np.minimum(0.25, 0.06 * np.square(candidates - best).sum(axis=1))


def funnel(best: FloatArray) -> object:
    return lambda candidates: np.minimum(1.0, 0.3 * np.sqrt(np.square(candidates - best).sum(axis=1)))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("straight", [False, True])
def test_lists_close_in_on_the_optimum(size: int, straight: bool) -> None:
    best = np.array([0.83, -1.31, 0.4])[:size]
    noise = SecureNoise(Budget.of(1))
    box_search = BoxSearch.of(size, {1: 64, 2: 256, 3: 512}[size], rate=1e5, span=2.5, straight=straight)
    found = box_search.run(
        (funnel if straight else bowl)(best),
        np.zeros(size),
        np.full(size, 2.5),  # type: ignore[arg-type]
        noise=noise,
        sensitivity=Fraction(1, 200_000),
        epsilon=Fraction(1),
        label="x",
    )
    assert np.abs(found - best).max() < 0.12
    assert sum(charge.budget.epsilon for charge in noise.charges) == 1
    assert len(noise.charges) == box_search.stages


def test_there_are_more_stages_where_there_is_more_to_see() -> None:
    stages = [BoxSearch.of(2, 256, rate=rate, span=2.5, straight=False).stages for rate in (1, 1e2, 1e4, 1e8)]
    assert stages == sorted(stages)
    assert stages[0] == 1
    assert stages[-1] > 2


def test_with_hardly_any_epsilon_every_candidate_is_as_likely() -> None:
    chosen = [
        float(
            BoxSearch(candidates=4, stages=1, growth=3).run(
                bowl(np.zeros(1)),
                np.zeros(1),
                np.ones(1),  # type: ignore[arg-type]
                noise=SeededNoise(Budget.of(1), seed),
                sensitivity=Fraction(1),
                epsilon=Fraction(1, 10**6),
                label="x",
            )[0]
        )
        for seed in range(400)
    ]
    _, counts = np.unique(np.round(chosen, 6), return_counts=True)
    assert len(counts) == 4
    assert counts.min() > 60
