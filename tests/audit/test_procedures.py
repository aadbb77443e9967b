"""What spends epsilon without being a mechanism is audited too, and its mistakes are noticed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth_core.audit.checks import QUICK, failures
from dpsynth_core.audit.procedures import PROCEDURES, Procedure, Shifted, label_checks, procedure_checks
from dpsynth_core.inference.regression import private
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table import estimate
from dpsynth_core.table.schema import Schema

SEED = 20_261_117


def test_nothing_refutes_a_guarantee() -> None:
    checks = list(procedure_checks(QUICK, SEED))
    assert {check.subject for check in checks} == {
        *(each.name for each in PROCEDURES),
        "estimated labels",
        "random walk",
    }
    assert not failures(checks)


def _named(name: str) -> Procedure:
    return next(each for each in PROCEDURES if each.name == name)


def _largest_first(run: Callable[..., Any]) -> Callable[[pd.DataFrame, Schema, Noise], Any]:
    return lambda frame, schema, noise: (run(frame, schema, noise), float(pd.to_numeric(frame["c0"], "coerce").max()))


@pytest.mark.parametrize("name", [each.name for each in PROCEDURES])
def test_a_raw_number_beside_the_result_is_noticed(name: str) -> None:
    broken = replace(_named(name), run=_largest_first(_named(name).run))
    assert failures(procedure_checks(QUICK, SEED, (broken,)))


def test_a_sensitivity_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "functional_sensitivity", lambda columns: columns)
    assert failures(procedure_checks(QUICK, SEED, (_named("private regression"),)))


def test_labels_that_are_named_too_early_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not failures(label_checks())
    right = estimate.discovery_threshold

    def early(epsilon: Fraction, delta: Fraction) -> int:
        return right(epsilon, delta) - 3

    monkeypatch.setattr(estimate, "discovery_threshold", early)
    assert failures(label_checks())


def test_labels_that_are_named_by_raw_counts_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes back from the source is put aside."""
    right = Shifted.laplace

    def raw(self: Shifted, values: Any, **price: Any) -> Any:
        right(self, values, **price)
        return values

    monkeypatch.setattr(Shifted, "laplace", raw)
    assert failures(label_checks())


def test_an_unpaid_share_is_noticed() -> None:
    def half(frame: pd.DataFrame, _: Schema, noise: Noise) -> Any:
        counts = np.array([len(frame)])
        return noise.laplace(counts, sensitivity=2, epsilon=noise.budget.epsilon / 2, label="half")

    assert failures(procedure_checks(QUICK, SEED, (replace(_named("estimated range"), run=half),)))
