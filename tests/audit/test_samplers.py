"""Samplers, releases and walks."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth_core.audit.chain import (
    REFERENCE,
    anywhere,
    chain_checks,
    metropolis,
    total_variation,
    toy_scores,
    walk_checks,
)
from dpsynth_core.audit.checks import QUICK, failures, seed_for
from dpsynth_core.audit.claims import claim_checks
from dpsynth_core.audit.noise_law import SOURCES, law_checks, laws, p_value
from dpsynth_core.audit.outcomes import exponential_law

SEED = 20_261_116


@pytest.mark.parametrize("source", SOURCES)
def test_samplers_follow_their_laws_and_a_scale_ten_percent_off_would_be_noticed(source: str) -> None:
    checks = list(law_checks(QUICK, SEED, {source: SOURCES[source]}))
    assert not failures(checks)
    assert sum("ten percent off" in check.detail for check in checks) == sum(law.scaled for law in laws())


def test_the_cells_of_every_law_add_up_to_one() -> None:
    for law in laws():
        for factor in (1.0, 1.1):
            assert np.isclose(law.expected(factor).sum(), 1.0), law.name


def test_a_sample_of_another_law_is_noticed() -> None:
    fair = np.full(6, 1000)
    assert p_value(fair, np.full(6, 1 / 6)) == 1.0
    assert p_value(np.array([1300, 940, 940, 940, 940, 940]), np.full(6, 1 / 6)) < 1e-6


def test_releases_claim_no_more_than_they_may() -> None:
    checks = list(claim_checks())
    assert not failures(checks)
    assert checks


def test_the_reference_walk_passes() -> None:
    assert not failures(chain_checks(REFERENCE))


def test_the_walk_of_the_pmse_mechanism_ends_as_its_target_says() -> None:
    assert not failures(walk_checks(seed_for(SEED, "walk"), level=QUICK.level))


def test_the_textbook_kernel_is_that_of_a_function_that_steps() -> None:
    scores, _ = toy_scores()
    scores, generator, draws = scores[::4], np.random.default_rng(4), 20_000

    def step(states: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        proposed = (states + generator.choice([-8, -4, -2, -1, 1, 2, 4, 8], len(states))) % len(scores)
        accepted = np.log(generator.random(len(states))) < (scores[proposed] - scores[states]) / 2
        return np.where(accepted, proposed, states)

    estimated = np.array(
        [np.bincount(step(np.full(draws, i), generator), minlength=len(scores)) / draws for i in range(len(scores))]
    )
    exact = metropolis(scores, 2.0)
    # Five standard errors of a share.
    assert np.abs(estimated - exact).max() < 5 * 0.5 / draws**0.5
    goal = exponential_law(scores, 2.0)
    ends = [anywhere(scores) @ np.linalg.matrix_power(kernel, 2_000) for kernel in (exact, estimated)]
    assert total_variation(ends[0], goal) < 1e-9
    assert total_variation(ends[1], goal) < 0.05
