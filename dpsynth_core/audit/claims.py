"""What a release says of itself: that nobody can repeat its noise, and that it claims no more than was paid for."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpsynth_core.audit.checks import AuditCheck, audit_check
from dpsynth_core.audit.neighbours import TWO_AXES
from dpsynth_core.audit.replay import same
from dpsynth_core.audit.subject import DELTA
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import STATUS_ORDER, Budget, sequential
from dpsynth_core.runs.synthesize import Release, synthesize
from dpsynth_core.table.private_table import PrivateTable

Synthesize: TypeAlias = Callable[..., Release]
PERSON = 4
"""Rows that a person may own, in the check that this is paid for."""


def _table(schema: Any = TWO_AXES) -> PrivateTable:
    frame = pd.DataFrame({"x": ["a", "b", "c"] * 8, "y": [0.0, 1, 2, 3, 4, None] * 4})
    return PrivateTable(frame, schema)


def claim_checks(
    release: Synthesize = synthesize, kinds: Mapping[str, type[Mechanism]] | None = None, *, subject: str | None = None
) -> Iterator[AuditCheck]:
    for key, kind in (kinds or MECHANISMS).items():
        mechanism = kind.suggest(TWO_AXES, 24, 1)
        granted: dict[str, Any] = {"epsilon": 1, "delta": DELTA if kind.needs_delta else 0}
        for case, problem in _problems(release, mechanism, granted):
            yield audit_check("claims", subject or key, case, not problem, problem)


def _problems(release: Synthesize, mechanism: Mechanism, granted: dict[str, Any]) -> Iterator[tuple[str, str]]:
    first, second = (_unseeded(release, mechanism, granted) for _ in range(2))
    private = mechanism.status != "none"
    repeated = private and same(first.model, second.model) and first.sample(24).equals(second.sample(24))
    yield "two releases with every seed of the process equal", "the same noise twice" if repeated else ""
    better = STATUS_ORDER.index(first.guarantee.status) < STATUS_ORDER.index(mechanism.status)
    yield "no better status than the mechanism's", f"claims to be {first.guarantee.status}" if better else ""
    if private:
        yield "charges within the claim", _overspent(first, Budget.of(**granted))
    seeded = release(_table(), mechanism, seed=1, **granted)
    yield "a seeded run", "" if seeded.guarantee.status == "none" else f"is called {seeded.guarantee.status}"
    person = release(_table(replace(TWO_AXES, rows_per_person=PERSON)), mechanism, **granted)
    if private:
        yield "a person with several rows", _overspent(person, Budget.of(**granted).per_row(PERSON))
    # What was only read from the data is not public, whoever accepted it.
    read = tuple(replace(column, origin="read from the data") for column in TWO_AXES.columns)
    status = release(_table(replace(TWO_AXES, columns=read)), mechanism, **granted).guarantee.status
    good = STATUS_ORDER.index(status) >= STATUS_ORDER.index("void")
    yield "facts that nobody called public", "" if good else f"are called {status}"


def _unseeded(release: Synthesize, mechanism: Mechanism, granted: dict[str, Any]) -> Release:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  draws from the process's own streams must show
    return release(_table(), mechanism, **granted)


def _overspent(release: Release, budget: Budget) -> str:
    spent = sequential(charge.budget for charge in release.charges)
    if budget.covers(spent):
        return ""
    return f"epsilon {float(spent.epsilon):g} was spent where {float(budget.epsilon):g} may be"
