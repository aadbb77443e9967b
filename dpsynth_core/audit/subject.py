"""What is audited: a mechanism's settings together with the source of its noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import TypeAlias

import numpy as np

from dpsynth_core.audit.canary import CanaryGradients
from dpsynth_core.audit.probes import PROBES
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise, SeededNoise
from dpsynth_core.table.schema import Schema

AuditSettings: TypeAlias = Callable[[Schema, int, Amount], Mapping[str, Mechanism]]
Source: TypeAlias = Callable[[Budget, np.random.SeedSequence], Noise]

EPSILONS = (1, 4)
DELTA = Fraction(1, 10**6)
"""Granted to mechanisms that need one."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    name: str
    settings: AuditSettings
    runs: int
    """Whole runs of a quick audit, on each of two tables."""
    delta: Fraction = Fraction(0)
    source: Source = SeededNoise

    def settings_for(self, schema: Schema, n: int, epsilon: Amount) -> Mapping[str, Mechanism]:
        """The settings, or none where the mechanism is not for tables of this kind, which it says from public facts."""
        try:
            return self.settings(schema, n, epsilon)
        except DPSynthError:
            return {}

    @property
    def suggested(self) -> Subject:
        """With the first of its settings only, which are those that are suggested."""
        settings = self.settings
        return replace(self, settings=lambda schema, n, epsilon: dict(islice(settings(schema, n, epsilon).items(), 1)))

    def budget(self, epsilon: Amount) -> Budget:
        return Budget.of(epsilon, self.delta)


def subject_of(
    kind: type[Mechanism], *, name: str | None = None, source: Source = SeededNoise, delta: bool = False
) -> Subject:
    return Subject(
        name=name or kind.key,
        settings=kind.audited,
        runs=kind.audit_runs,
        delta=DELTA if kind.needs_delta or delta else Fraction(0),
        source=source,
    )


def registered() -> dict[str, Subject]:
    """Every mechanism of the registry that claims anything, and the probes that exercise samplers by themselves."""
    every: list[type[Mechanism]] = [*MECHANISMS.values(), *PROBES, CanaryGradients]
    kinds = [kind for kind in every if kind.status != "none"]
    subjects = {kind.key: subject_of(kind) for kind in kinds}
    for kind in kinds:
        if kind.takes_delta:
            name = f"{kind.key} with delta"
            subjects[name] = subject_of(kind, name=name, delta=True)
    return subjects
