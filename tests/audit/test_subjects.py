"""Every registered mechanism through every layer; a new one is audited by being registered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from dpsynth_core.audit.checks import QUICK, AuditCheck, failures
from dpsynth_core.audit.end_to_end_attack import end_to_end_checks
from dpsynth_core.audit.enumeration import enumeration_checks
from dpsynth_core.audit.replay import replay_checks
from dpsynth_core.audit.sensitivity_search import search_checks
from dpsynth_core.audit.stage_attack import stage_checks
from dpsynth_core.audit.subject import Subject, registered
from dpsynth_core.mechanisms import MECHANISMS

SEED = 20_261_116
SUBJECTS = registered()
LAYERS: dict[str, Callable[[Subject], Iterator[AuditCheck]]] = {
    "replay": lambda subject: replay_checks(subject, QUICK, SEED),
    "sensitivity search": lambda subject: search_checks(subject, QUICK, SEED),
    "enumeration": lambda subject: enumeration_checks(subject, QUICK),
    "stage attack": lambda subject: stage_checks(subject, QUICK, SEED),
    "end-to-end attack": lambda subject: end_to_end_checks(subject, QUICK, SEED),
}


def test_every_mechanism_that_claims_something_is_audited() -> None:
    assert {key for key, kind in MECHANISMS.items() if kind.status != "none"} <= SUBJECTS.keys()


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("name", SUBJECTS)
def test_nothing_refutes_the_guarantee(name: str, layer: str) -> None:
    checks = list(LAYERS[layer](SUBJECTS[name]))
    assert not failures(checks)
    assert checks, "nothing was asked"
    if layer == "replay":
        assert any(check.verdict == "passed" for check in checks)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_what_is_released_is_a_function_of_what_was_drawn_for_many_seeds(name: str) -> None:
    assert not failures(replay_checks(SUBJECTS[name], replace(QUICK, seeds=15), SEED + 1))
