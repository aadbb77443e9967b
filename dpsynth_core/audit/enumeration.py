"""Exact enumeration: a mechanism run on two toy tables through every outcome that its paid draws can have.

Both runs get the same outcomes, so the release is the same (the replay shows that it is a function of what is
drawn), and the largest difference of the outcomes' log-probabilities is the privacy loss: exactly, not statistically.
The law behind each draw is the one its sampler is named for at the scale it was called with; that samplers follow their
laws is what ``noise_law`` tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from dpsynth_core.audit.checks import AuditCheck, Size, audit_check, not_applicable
from dpsynth_core.audit.neighbours import TOYS, NeighbourPair
from dpsynth_core.audit.outcomes import NotEnumerableError, Option, options, output_of
from dpsynth_core.audit.subject import EPSILONS, Subject
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.privacy.primitives import Call, Decisions, PaidCall
from dpsynth_core.table.private_table import PrivateTable

MAX_DRAWS = 40
"""Paid draws of one run that are followed."""
MAX_BRANCHING = 20
"""Where one path has branched into more than this many times the outcomes that may be followed, none is; nor where one
draw alone has a quarter of them."""
SLACK = 1e-9
"""For rounding in sums of logarithms."""


class OpenDrawError(Exception):
    """The run has come to a draw whose outcome is not decided yet."""

    def __init__(self, call: PaidCall[Any], *, last: bool) -> None:
        super().__init__()
        self.call, self.last = call, last


class Scripted(Noise):
    """Returns decided outcomes, one after the other, and stops the run at the first draw that is open."""

    secure = False

    def __init__(self, source: Noise, script: list[Any]) -> None:
        super().__init__(source.budget)
        self._source, self._script, self._step = source, script, 0

    def _charge(self, *arguments: Any) -> Any:
        # The source keeps the accounts by its own rules, so that a mutant of it is audited as it is.
        charge = self._source._charge(*arguments)
        self._charges, self._spent = list(self._source.charges), self._source.spent
        return charge

    def _perform(self, call: Call[Any]) -> Any:
        if not isinstance(call, PaidCall):
            return self._source._perform(call)
        if self._step == len(self._script):
            raise OpenDrawError(call, last=self.spent == self.budget and not isinstance(call, Decisions))
        self._step += 1
        return output_of(call, self._script[self._step - 1])


@dataclass(kw_only=True)
class Exploration:
    """The largest loss so far, of this many outcomes followed to the end."""

    worst: float = 0.0
    outcomes: int = 0


def explore(
    subject: Subject, mechanism: Mechanism, pair: NeighbourPair, budget: Budget, max_outcomes: int
) -> Exploration:
    explored = Exploration()

    def follow(script: list[Any], loss: float, width: int) -> None:
        if len(script) > MAX_DRAWS:
            raise NotEnumerableError(f"more than {MAX_DRAWS} draws")
        calls = [_reach(subject, mechanism, table, budget, script) for table in pair.tables]
        if calls[0] is None and calls[1] is None:
            explored.worst = max(explored.worst, abs(loss))
            explored.outcomes += 1
            if explored.outcomes > max_outcomes:
                raise NotEnumerableError(f"more than {max_outcomes:,} outcomes")
            return
        if calls[0] is None or calls[1] is None or calls[0].call.name != calls[1].call.name:
            explored.worst = math.inf  # the tables lead to different draws, although everything drawn so far was equal
            return
        listed = list(options(calls[0].call, calls[1].call))
        followed = _extremes(listed) if calls[0].last else listed
        if width * len(followed) > MAX_BRANCHING * max_outcomes or 4 * len(followed) > max_outcomes:
            raise NotEnumerableError(f"more than {max_outcomes:,} outcomes")
        for option in followed:
            if math.isinf(option.loss):
                explored.worst = math.inf
            else:
                follow([*script, option.value], loss + option.loss, width * len(followed))

    follow([], 0.0, 1)
    return explored


def _extremes(listed: list[Option]) -> list[Option]:
    """The outcomes that speak most for either table: once the budget is used up, no further draw can add to that."""
    return [max(listed, key=lambda option: option.loss), min(listed, key=lambda option: option.loss)]


def _reach(
    subject: Subject, mechanism: Mechanism, table: PrivateTable, budget: Budget, script: list[Any]
) -> OpenDrawError | None:
    """The first draw that is open after these outcomes; None at the end of the run."""
    # What is free is the same in every run; paid draws are never asked of this source.
    noise = Scripted(subject.source(budget, np.random.SeedSequence(0)), script)
    try:
        mechanism.fit(table, noise)
    except OpenDrawError as reached:
        return reached
    return None


def enumeration_checks(subject: Subject, size: Size, pairs: tuple[NeighbourPair, ...] = TOYS) -> Iterator[AuditCheck]:
    """Every setting on every pair of toy tables, at a small and a large epsilon."""
    for pair, epsilon in product(pairs, EPSILONS):
        budget, claimed = subject.budget(epsilon), float(epsilon)
        for setting, mechanism in subject.settings_for(pair.schema, pair.n, epsilon).items():
            case = f"{setting}; {pair.name}; epsilon {epsilon}"
            try:
                explored = explore(subject, mechanism, pair, budget, size.outcomes)
            except (NotEnumerableError, DPSynthError) as reason:
                yield not_applicable("enumeration", subject.name, case, reason)
                continue
            worst, good = explored.worst, explored.worst <= claimed + SLACK
            detail = f"largest loss {worst:.4g} over {explored.outcomes:,} outcomes"
            yield audit_check("enumeration", subject.name, case, good, detail, measured=worst, claimed=claimed)
