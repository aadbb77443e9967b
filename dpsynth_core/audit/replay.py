"""Replay: the same run on another table, with every sampler returning what it returned before.

Then the mechanism must make the same calls, and whatever leaves it must be the same to the last bit: it is a function
of what was drawn, and of nothing else. On a neighbouring table, besides, no input may move by more than its declared
sensitivity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dpsynth_core.audit.accounts import departures
from dpsynth_core.audit.checks import AuditCheck, Size, audit_check, not_applicable, seed_for
from dpsynth_core.audit.neighbours import HURTFUL, NeighbourPair
from dpsynth_core.audit.overheard import overheard
from dpsynth_core.audit.prices import SHARED, underpriced, underpriced_together
from dpsynth_core.audit.shapes import QUICK_SHAPES, random_shapes
from dpsynth_core.audit.subject import Subject
from dpsynth_core.errors import BudgetError, DPSynthError
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.privacy.primitives import PaidCall
from dpsynth_core.privacy.recording import Recorder, Replay, ReplayMismatchError
from dpsynth_core.table.private_table import PrivateTable

ROWS = 25
EPSILON = "0.7"


@dataclass(frozen=True, kw_only=True)
class ReplayOutcome:
    """What a run did, as far as an outsider could see: a model and a sample, or an error, and all that it said."""

    model: Any = None
    rows: pd.DataFrame | None = None
    error: str = ""
    crashed: bool = False
    """Whether the error is none that is meant for people."""
    said: tuple[str, ...] = ()
    """Warnings, log lines, prints, and what it reported while it ran."""
    mismatch: str = ""
    """Where a replay left the recording."""


def run(mechanism: Mechanism, table: PrivateTable, noise: Noise) -> ReplayOutcome:
    with overheard() as said:
        try:
            model = mechanism.fit(table, noise, said.progress)
            outcome = ReplayOutcome(model=model, rows=model.sample(ROWS, noise))
        except ReplayMismatchError as error:
            outcome = ReplayOutcome(mismatch=str(error))
        except Exception as error:  # noqa: BLE001  the kind of error and its words are the finding
            crashed = not isinstance(error, DPSynthError)
            outcome = ReplayOutcome(error=f"{type(error).__name__}: {error}", crashed=crashed)
    return replace(outcome, said=said.lines)


def differences(
    mechanism: Mechanism,
    first: PrivateTable,
    second: PrivateTable,
    recorder: Recorder,
    budget: Budget,
    *,
    neighbours: bool = True,
) -> dict[str, str]:
    """What a replay on the second table shows, by kind; empty if all is well.

    Args:
        mechanism: What is run.
        first: The table that is recorded.
        second: The table that the recording is replayed on.
        recorder: Draws for the first run, and keeps it.
        budget: What the run was granted.
        neighbours: Whether the tables differ in one row; if not, inputs may be as far apart as they like.
    """
    recorded = run(mechanism, first, recorder)
    replay = Replay(recorder)
    replayed = run(mechanism, second, replay)
    problems: dict[str, str] = {}
    if replayed.mismatch:
        problems["calls"] = replayed.mismatch
    elif recorded.error != replayed.error:
        problems["errors"] = f"{recorded.error or 'no error'} and {replayed.error or 'no error'}"
    elif recorded.said != replayed.said:
        apart = set(recorded.said) ^ set(replayed.said) or {"the same in another order"}
        problems["said"] = f"what it reports depends on the rows: {min(apart)}"
    elif not recorded.error:
        problems |= dict(_released_otherwise(recorded, replayed, second))
        if not replay.finished:
            problems["calls"] = "fewer draws on the second table"
    if neighbours and replay.excess > 1:
        problems["sensitivity"] = f"{replay.excess:g} times what was declared"
    problems |= dict(_accounts(recorder, budget))
    if recorded.crashed:
        problems["crash"] = recorded.error
    if recorded.error.startswith(BudgetError.__name__):
        problems["budget"] = recorded.error
    if not recorded.error:
        problems |= dict(departures(recorder.charges, mechanism.plan(first.schema, first.n, budget), budget))
    return problems


def _released_otherwise(
    recorded: ReplayOutcome, replayed: ReplayOutcome, table: PrivateTable
) -> Iterator[tuple[str, str]]:
    if not same(recorded.model, replayed.model):
        yield "release", "the same draws do not lead to the same model"
    assert recorded.rows is not None  # noqa: S101
    assert replayed.rows is not None  # noqa: S101
    if not recorded.rows.equals(replayed.rows):
        yield "rows", "the same draws do not lead to the same rows"
    for rows in (recorded.rows, replayed.rows):
        if len(rows) != ROWS or tuple(rows.columns) != table.schema.names:
            yield "domain", "another number of rows or other columns than declared"


def _accounts(recorder: Recorder, budget: Budget) -> Iterator[tuple[str, str]]:
    """Charges within the budget, a charge for every paid draw, and noise that is large enough for it."""
    spent = recorder.spent
    if spent is not None and not budget.covers(spent):
        yield "budget", f"charges add up to epsilon {float(spent.epsilon):g} of {float(budget.epsilon):g}"
    paid = [draw.call for draw in recorder.draws if isinstance(draw.call, PaidCall)]
    # Equal shares with equal labels are equal charges, so they are counted.
    drawn = Counter(call.charge for call in paid if not isinstance(call, SHARED))
    if drawn - Counter(recorder.charges):
        yield "unpaid", "a charge paid for more than one draw"
    for problem in (*map(underpriced, paid), *underpriced_together(paid)):
        if problem:
            yield "price", problem


def same(first: Any, second: Any) -> bool:  # noqa: PLR0911  one line for each kind
    """Whether two models hold the same, to the last bit: arrays, tables, and dataclasses of them."""
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        return bool(np.array_equal(first, second, equal_nan=first.dtype.kind == "f"))
    if isinstance(first, pd.DataFrame | pd.Series | pd.Index):
        return bool(first.equals(second))
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if is_dataclass(first) and not isinstance(first, type):
        return all(same(getattr(first, f.name), getattr(second, f.name)) for f in fields(first) if f.compare)
    if callable(first):
        return True
    return bool(first == second) or (first != first and second != second)  # noqa: PLR0124  NaN


def replay_pair(
    subject: Subject, mechanism: Mechanism, pair: NeighbourPair, seed: Any, epsilon: Amount, *, neighbours: bool = True
) -> dict[str, str]:
    """A pair of tables both ways, and the first table again on itself."""
    first, second = pair.tables
    budget = subject.budget(epsilon).per_row(pair.schema.rows_per_person)
    problems: dict[str, str] = {}
    for here, there in ((first, second), (second, first), (first, first)):
        recorder = Recorder(subject.source(budget, seed))
        problems |= differences(mechanism, here, there, recorder, budget, neighbours=neighbours)
    return problems


def replay_checks(
    subject: Subject, size: Size, root: int, pairs: tuple[NeighbourPair, ...] = HURTFUL
) -> Iterator[AuditCheck]:
    """Rows that hurt, on small tables; then tables of every shape, neighbours and such as have nothing in common."""
    for pair in pairs:
        yield from _replayed(subject, size, root, pair, EPSILON)
    for place, shape in enumerate((*QUICK_SHAPES, *random_shapes(size.shapes, root))):
        yield from _replayed(subject, size, root, shape.far(root + place), shape.epsilon, neighbours=False)
        if shape.rows > 1:  # sensitivities have a search of their own, so one setting is enough
            yield from _replayed(subject.suggested, size, root, shape.near(root + place), shape.epsilon)


def _replayed(
    subject: Subject, size: Size, root: int, pair: NeighbourPair, epsilon: str, *, neighbours: bool = True
) -> Iterator[AuditCheck]:
    try:
        settings = subject.settings(pair.schema, pair.n, epsilon)
    except DPSynthError as error:  # not for tables of this kind, as it knows from public facts alone
        yield not_applicable("replay", subject.name, pair.name, error)
        return
    for setting, mechanism in settings.items():
        problems: dict[str, str] = {}
        for repetition in range(size.seeds):
            seed = seed_for(root, "replay", subject.name, setting, pair.name, repetition)
            problems |= replay_pair(subject, mechanism, pair, seed, epsilon, neighbours=neighbours)
        detail = "; ".join(f"{kind}: {words}" for kind, words in problems.items())
        yield audit_check("replay", subject.name, f"{setting}; {pair.name}", not problems, detail)
