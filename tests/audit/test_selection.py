"""Private selection under audit: on toys the loss of the whole is computed exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dpsynth_core.audit.checks import QUICK, failures
from dpsynth_core.audit.selection import mean_slope, selection_checks
from dpsynth_core.runs.selection import COST

SEED = 20_261_116


def test_nothing_refutes_the_guarantee_of_a_selection() -> None:
    checks = list(selection_checks(QUICK, SEED))
    assert not failures(checks)
    assert {check.layer for check in checks} == {"enumeration", "replay", "claims"}
    # A toy on which several runs cost more than one: the factor is not idle.
    assert any((check.measured or 0) > float(check.claimed or 0) / COST + 1e-6 for check in checks)


Outcome = tuple[str, int]
"""What a run makes, and its score."""
Law = dict[Outcome, Fraction]
E = Fraction(2)
"""exp(epsilon) of one run."""


def selected(run: Law, max_runs: int, runs: list[Fraction] | None = None) -> Law:
    """By brute force: every number of runs and every sequence of outcomes; the first of the best is released."""
    released = dict.fromkeys(run, Fraction(0))
    for count in range(1, max_runs + 1):
        chance = Fraction(1, max_runs) if runs is None else runs[count - 1]
        for sequence in product(run, repeat=count):
            best = max(sequence, key=lambda outcome: outcome[1])  # max returns the first one of equals
            released[best] += chance * math.prod((run[outcome] for outcome in sequence), start=Fraction(1))
    return released


def neighbours() -> list[tuple[Law, Law]]:
    """Pairs of laws that are private at exp(epsilon) = 2, with ties among the scores."""
    outcomes = [("a", 0), ("b", 1), ("c", 1), ("d", 2)]
    grid = [Fraction(k, 24) for k in (1, 2, 4, 8)]
    laws = [law for law in product(grid, [*grid, Fraction(0)], grid, [*grid, Fraction(12, 24)]) if sum(law) < 1]
    pairs = []
    for law in laws[::7]:
        for factors in product((1 / E, Fraction(1), E), repeat=3):
            first = [*law[:3], 1 - sum(law[:3])]
            second = [p * factor for p, factor in zip(first[:3], factors, strict=True)]
            rest = 1 - sum(second)
            if first[3] / E <= rest <= first[3] * E:
                pairs.append(
                    (dict(zip(outcomes, first, strict=True)), dict(zip(outcomes, [*second, rest], strict=True)))
                )
    return pairs


@pytest.mark.parametrize("max_runs", [2, 3, 4])
def test_by_brute_force_no_outcome_is_more_than_three_times_as_telling_as_one_run(max_runs: int) -> None:
    pairs = neighbours()[:: 1 if max_runs < 4 else 5]
    assert len(pairs) > 20
    for first, second in pairs:
        p, q = selected(first, max_runs), selected(second, max_runs)
        assert sum(p.values()) == 1
        for outcome in p:
            assert p[outcome] <= E**COST * q[outcome]
            assert q[outcome] <= E**COST * p[outcome]


def closed_form(run: Law, max_runs: int) -> dict[Outcome, float]:
    scores = sorted({score for _, score in run})
    q = np.array([float(sum(p for (_, s), p in run.items() if s == score)) for score in scores])
    slope = mean_slope(np.cumsum(q) - q, np.cumsum(q), max_runs)
    return {outcome: float(p) * slope[scores.index(outcome[1])] for outcome, p in run.items()}


def test_the_closed_form_of_the_audit_is_the_law_by_brute_force() -> None:
    run = neighbours()[3][0]
    for max_runs in (2, 3, 4):
        brute = selected(run, max_runs)
        assert closed_form(run, max_runs) == pytest.approx({key: float(p) for key, p in brute.items()})


def rare(max_runs: int, epsilon: float) -> float:
    """The loss of a rare outcome just below a rare better one, as a multiple of epsilon: the worst case known."""
    worst = 0.0
    for exponent in np.linspace(0.3, 3, 28):
        better = 10.0**-exponent
        slopes = [
            mean_slope(np.array([1 - high - 1e-9]), np.array([1 - high]), max_runs)[0]
            for high in (better * math.exp(-epsilon), better)
        ]
        worst = max(worst, epsilon + math.log(slopes[0] / slopes[1]))
    return worst / epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_factor_three_is_needed_and_enough(epsilon: float) -> None:
    assert 2.99 < rare(50, epsilon) <= 3 + 1e-6
    assert all(rare(max_runs, epsilon) <= 3 + 1e-6 for max_runs in (2, 5, 20))


def test_runs_that_are_stopped_by_force_cost_more_than_three() -> None:
    # A coin that hardly ever ends the runs, cut off at five: the last number of runs gets all that is left.
    forced = [Fraction(1, 1000)] * 4 + [Fraction(996, 1000)]
    first: Law = {("low", 0): Fraction(1, 4), ("high", 1): Fraction(3, 4)}
    second: Law = {("low", 0): Fraction(1, 2), ("high", 1): Fraction(1, 2)}
    assert selected(second, 5, forced)["low", 0] > E**COST * selected(first, 5, forced)["low", 0]
    assert selected(second, 5)["low", 0] <= E**COST * selected(first, 5)["low", 0]
