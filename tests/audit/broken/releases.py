"""Releases and random walks that are broken on purpose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.audit.chain import metropolis
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.runs.synthesize import Release, synthesize
from dpsynth_core.table.private_table import PrivateTable


class _CalledSecure(SeededNoise):
    secure = True


def seeded_release(private: PrivateTable, mechanism: Mechanism, *, epsilon: Amount, **options: Any) -> Release:
    """A release whose noise anybody can repeat, called proven."""
    release = synthesize(private, mechanism, epsilon=epsilon, **options)
    if options.get("seed") is not None:
        return release
    noise = _CalledSecure(Budget.of(epsilon).per_row(private.schema.rows_per_person), seed=0)
    return replace(release, model=mechanism.fit(private, noise), noise=noise, charges=noise.charges)


def person_forgotten(private: PrivateTable, mechanism: Mechanism, *, epsilon: Amount, **options: Any) -> Release:
    """A release that spends epsilon on every row, however many one person owns."""
    return synthesize(
        private, mechanism, epsilon=Budget.of(epsilon).times(private.schema.rows_per_person).epsilon, **options
    )


def always_proven(private: PrivateTable, mechanism: Mechanism, *, epsilon: Amount, **options: Any) -> Release:
    """A release that is called proven whatever its facts and its noise."""
    release = synthesize(private, mechanism, epsilon=epsilon, **options)
    return replace(release, guarantee=replace(release.guarantee, status="proven"))


def data_optimal_start(scores: FloatArray) -> FloatArray:
    """A walk that starts where the data's own score is best."""
    start = np.zeros(len(scores))
    start[int(np.argmax(scores))] = 1.0
    return start


def greedy_acceptance(scores: FloatArray, scale: float) -> FloatArray:
    """A walk that accepts improvements only."""
    return metropolis(scores, scale / 1000)


def half_the_temperature(scores: FloatArray, scale: float) -> FloatArray:
    """A walk at half the scale: the factor 2 of the exponential mechanism is missing."""
    return metropolis(scores, scale / 2)
