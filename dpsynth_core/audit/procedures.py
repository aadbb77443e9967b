"""What spends epsilon without being a mechanism: estimates of ranges and labels, the private test, private regressions.

Each is replayed like a mechanism. The estimate of labels is not: which labels occur decides how many numbers get noise,
which is what its delta pays for. Its law is simple enough to be compared with the claim outcome by outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpsynth_core.arrays import IntArray
from dpsynth_core.audit.checks import AuditCheck, Size, audit_check, seed_for
from dpsynth_core.audit.neighbours import NeighbourPair
from dpsynth_core.audit.outcomes import log_tail
from dpsynth_core.audit.overheard import overheard
from dpsynth_core.audit.prices import underpriced
from dpsynth_core.audit.replay import same
from dpsynth_core.audit.shapes import Shape
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.dp_mann_whitney import release_test
from dpsynth_core.inference.private_comparison import ComparisonRequest, group_rows
from dpsynth_core.inference.regression.design import build
from dpsynth_core.inference.regression.private import functional_mechanism
from dpsynth_core.mechanisms.pmse import PMSE
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise, SeededNoise
from dpsynth_core.privacy.primitives import Call, Laplace, Metropolis
from dpsynth_core.privacy.recording import Recorder, Replay, ReplayMismatchError
from dpsynth_core.table.estimate import discover_categories, estimate_bounds
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

GRANTED = Budget.of("0.9", "1e-6")
Outcome = tuple[Any, str, tuple[str, ...]]
"""The result or None, the error in words or nothing, and what was said."""


@dataclass(frozen=True, kw_only=True)
class Procedure:
    """Something that is paid for and returns a result."""

    name: str
    run: Callable[[pd.DataFrame, Schema, Noise], Any]
    """Spends all of the noise's budget."""
    shapes: tuple[Shape, ...]
    granted: Budget = GRANTED

    def due(self, shape: Shape) -> Budget:
        """What must be charged for each row: an estimate is granted a person's budget and divides it by itself."""
        return self.granted.per_row(shape.rows_per_person)


def _range(column: str) -> Callable[[pd.DataFrame, Schema, Noise], Any]:
    return lambda frame, schema, noise: estimate_bounds(
        frame[column], epsilon=noise.budget.epsilon, noise=noise, rows_per_person=schema.rows_per_person
    )


def _test(frame: pd.DataFrame, schema: Schema, noise: Noise) -> Any:
    private = PrivateTable(frame, schema)
    group = next(column for column in schema if not column.is_numeric)
    levels = (False, True) if group.categories is None else (group.categories[0], group.categories[1])
    epsilon, delta = str(noise.budget.epsilon), str(noise.budget.delta)
    request = ComparisonRequest(value="c0", group=group.name, levels=levels, epsilon=epsilon, delta=delta)
    values, first, left_out = group_rows(private, request.comparison(schema, private.n))
    return release_test(values, first, noise, claim=request.claim(schema), left_out=left_out)


def _regression(*, logistic: bool) -> Callable[[pd.DataFrame, Schema, Noise], Any]:
    def run(frame: pd.DataFrame, schema: Schema, noise: Noise) -> Any:
        outcome, *predictors = schema.names
        design = build(PrivateTable(frame, schema), outcome, predictors)
        return functional_mechanism(design, noise, logistic=logistic)

    return run


PURE = Budget.of("0.9")
PROCEDURES = (
    Procedure(
        name="estimated range",
        run=_range("c0"),
        granted=PURE,
        # With few rows nothing stands out, which is a result too.
        shapes=(
            Shape(columns=("continuous",), rows=400),
            Shape(columns=("integer",), rows=1),
            Shape(columns=("continuous",), rows=300, rows_per_person=3),
        ),
    ),
    Procedure(
        name="private test",
        run=_test,
        shapes=(
            Shape(columns=("continuous", "boolean"), rows=40),
            Shape(columns=("may be missing", "categorical"), rows=60),
            Shape(columns=("date", "with other"), rows=9),
        ),
    ),
    Procedure(
        name="private regression",
        run=_regression(logistic=False),
        granted=PURE,
        shapes=(
            Shape(columns=("continuous", "integer", "date"), rows=20),
            Shape(columns=("may be missing", "categorical", "ordinal"), rows=25),
        ),
    ),
    Procedure(
        name="private logistic regression",
        run=_regression(logistic=True),
        granted=PURE,
        shapes=(Shape(columns=("boolean", "continuous", "may be missing"), rows=20),),
    ),
)


def procedure_checks(size: Size, root: int, procedures: tuple[Procedure, ...] = PROCEDURES) -> Iterator[AuditCheck]:
    """Every procedure on neighbours and on tables with nothing in common; and the estimate of labels."""
    for procedure in procedures:
        for place, shape in enumerate(procedure.shapes):
            for repetition in range(4 * size.seeds):
                seed = root + 97 * repetition + place
                pairs = [shape.far(seed), shape.far(seed, strange=False)]
                if shape.rows > 1:
                    pairs.append(shape.near(seed))
                for pair in pairs:
                    yield from _replayed(procedure, pair, seed, procedure.due(shape))
    yield from label_checks()
    yield from person_checks()
    yield from walk_price_checks(root)


def _replayed(procedure: Procedure, pair: NeighbourPair, root: int, due: Budget) -> Iterator[AuditCheck]:
    """Both ways."""
    problems: list[str] = []
    for here in (pair, pair.turned):
        recorder = Recorder(SeededNoise(procedure.granted, seed_for(root, "replay", procedure.name, pair.name)))
        try:
            recorded = _outcome(procedure, here.first, here.schema, recorder)
            replay = Replay(recorder)
            replayed = _outcome(procedure, here.second, here.schema, replay)
            problems += _problems(recorded, replayed, replay, recorder, due, neighbours=pair.close)
        except ReplayMismatchError as error:
            problems.append(str(error))
    yield audit_check("replay", procedure.name, f"{pair.name}, seed {root}", not problems, "; ".join(problems))


def _outcome(procedure: Procedure, frame: pd.DataFrame, schema: Schema, noise: Noise) -> Outcome:
    with overheard() as said:
        try:
            result, error = procedure.run(frame, schema, noise), ""
        except ReplayMismatchError:
            raise
        except DPSynthError as problem:
            result, error = None, str(problem)
    return result, error, said.lines


def _problems(
    recorded: Outcome, replayed: Outcome, replay: Replay, recorder: Recorder, granted: Budget, *, neighbours: bool
) -> Iterator[str]:
    if recorded[1:] != replayed[1:]:
        yield "another error, or something else was said"
    if not same(recorded[0], replayed[0]):
        yield "the same draws do not lead to the same result"
    if not replay.finished:
        yield "fewer draws on the second table"
    if neighbours and replay.excess > 1:
        yield f"an input moved by {replay.excess:g} times what was declared"
    if recorder.spent != granted:
        yield "not all that was granted is charged, or more"


# ---------------------------------------------------------------------------------------------------- estimated labels


class Shifted(Noise):
    """Adds the same chosen number to every value, so that what comes back shows what noise would do."""

    secure = False

    def __init__(self, budget: Budget, shift: int) -> None:
        super().__init__(budget)
        self._shift = shift
        self.scale = math.nan
        self.values: IntArray = np.zeros(0, dtype=np.int64)
        """What was to get noise."""

    def _perform(self, call: Call[Any]) -> Any:
        if not isinstance(call, Laplace):
            raise TypeError(f"the estimate of labels drew {call.name}")
        self.scale, self.values = call.scale, call.values
        return call.values + self._shift


CountPair: TypeAlias = tuple[Mapping[str, int], Mapping[str, int]]
COUNTS: tuple[CountPair, ...] = (
    ({"a": 3, "b": 1}, {"a": 4}),
    ({"a": 3, "b": 1}, {"a": 3, "c": 1}),
    ({"a": 40, "b": 40}, {"a": 39, "b": 41}),
    ({"a": 25}, {"a": 24, "b": 1}),
)
"""Rows by label on two neighbouring tables."""


def label_checks(
    granted: tuple[Budget, ...] = (Budget.of("0.5", "1e-3"), Budget.of(2, "1e-2")),
) -> Iterator[AuditCheck]:
    """The exact loss of the set of named labels, with the scale and the threshold that the code really uses."""
    for budget in granted:
        edge = _least_named(budget)
        yield audit_check(
            "enumeration", "estimated labels", f"noise decides, {budget}", edge is not None, "it does not"
        )
        for number, counts in enumerate((*COUNTS, *(_at_the_edge(edge) if edge else ()))):
            passing = [[_passes(rows, label, budget) for label in "abc"] for rows in counts]
            excess = max(_beyond(passing[i], passing[1 - i], budget.epsilon) for i in range(2))
            detail = f"delta {excess:.3g} of {float(budget.delta):g} at epsilon {float(budget.epsilon):g}"
            good = excess <= float(budget.delta) * (1 + 1e-9)
            figures = {"measured": excess, "claimed": float(budget.delta)}
            yield audit_check(
                "enumeration",
                "estimated labels",
                f"pair {number + 1}, epsilon {float(budget.epsilon):g}",
                good,
                detail,
                **figures,
            )


def _at_the_edge(edge: int) -> tuple[CountPair, ...]:
    """Neighbours with labels that are just named, or just not; in the last one, two counts move across the edge."""
    return (
        ({"a": edge}, {"a": edge - 1, "b": 1}),
        ({"a": edge + 1}, {"a": edge, "b": 1}),
        ({"a": edge, "b": edge - 1}, {"a": edge - 1, "b": edge}),
    )


def person_checks() -> Iterator[AuditCheck]:
    """An estimate of labels where a person may have several rows charges each row its share."""
    for person in (1, 4):
        noise = Shifted(Budget.of(2, "1e-2"), 1_000)
        labels = pd.Series(["a"] * 30, name="c0", dtype=object)
        discover_categories(labels, epsilon=2, delta="1e-2", noise=noise, rows_per_person=person)
        good = noise.spent == noise.budget.per_row(person)
        detail = "" if good else f"{noise.spent} is charged"
        yield audit_check("claims", "estimated labels", f"{person} row(s) a person", good, detail)


def _least_named(budget: Budget) -> int | None:
    """Rows from which on a label is named where noise changes nothing; None if noise does not decide at all."""

    def named(rows: int, shift: int) -> bool:
        labels = pd.Series(["a"] * rows, name="c0", dtype=object)
        with suppress(DPSynthError):
            discover_categories(labels, epsilon=budget.epsilon, delta=budget.delta, noise=Shifted(budget, shift))
            return True
        return False

    if named(200, -1_000) or not named(1, 1_000):
        return None
    return next((rows for rows in range(1, 200) if named(rows, 0)), None)


def _passes(rows: Mapping[str, int], label: str, budget: Budget) -> float:
    """Probability that a label is named: found by trying which shift of its count names it."""
    if label not in rows:
        return 0.0
    frame = pd.Series([name for name, count in rows.items() for _ in range(count)], name="c0", dtype=object)

    def named(shift: int) -> tuple[bool, float]:
        noise = Shifted(budget, shift)
        try:
            found = discover_categories(frame, epsilon=budget.epsilon, delta=budget.delta, noise=noise).categories
        except DPSynthError:
            found = ()
        return label in found, noise.scale

    low, high = -rows[label] - 1, 2_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if named(middle)[0] else (middle, high)
    return math.exp(log_tail(named(high)[1], high))


def _beyond(first: list[float], second: list[float], epsilon: Fraction) -> float:
    """The delta that this epsilon needs: sum over outcomes of max(0, P - exp(epsilon) Q), all labels independent."""
    total = 0.0
    for outcome in product((False, True), repeat=len(first)):
        p, q = _probability(first, outcome), _probability(second, outcome)
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


def _probability(named: list[float], outcome: tuple[bool, ...]) -> float:
    return math.prod(p if passed else 1 - p for p, passed in zip(named, outcome, strict=True))


# --------------------------------------------------------------------------------------------------------- random walks


WALKS = 12
"""Pairs of tables on which a walk is begun."""


class _WalkReachedError(Exception):
    """A run has come to its first walk."""


class _UpToTheWalk(SeededNoise):
    """Draws until a walk is asked for."""

    walk: Metropolis | None = None

    def _perform(self, call: Call[Any]) -> Any:
        if isinstance(call, Metropolis):
            self.walk = call
            raise _WalkReachedError
        return super()._perform(call)


def walk_price_checks(root: int) -> Iterator[AuditCheck]:
    """What a walk is charged and how fast it may climb, before it is walked: its kernel is audited by itself."""
    shape, budget = Shape(columns=("continuous", "categorical"), rows=6, epsilon="1"), Budget.of(1)
    mechanism = PMSE(sampler="metropolis", chains=2, steps=200)
    planned = {stage.label: stage.epsilon for stage in mechanism.plan(shape.schema, shape.rows, budget).stages}
    problems: list[str] = []
    moved = 0.0
    for number in range(WALKS):
        walks = []
        for table in shape.near(root + number).tables:
            noise = _UpToTheWalk(budget, seed_for(root, "walk", number))
            with suppress(_WalkReachedError):
                mechanism.fit(table, noise)
            assert noise.walk is not None  # noqa: S101  a table with a number has parameters to draw
            walks.append(noise.walk)
            label = noise.walk.charge.label
            if sum(charge.budget.epsilon for charge in noise.charges if charge.label == label) != planned[label]:
                problems.append("not charged as planned")
            problems += filter(None, [underpriced(noise.walk)])
        moved = max(moved, walks[0].distance(walks[1]) / float(walks[0].charge.sensitivity))
    yield audit_check("replay", "random walk", "charged as planned", not problems, "; ".join(dict.fromkeys(problems)))
    detail = f"{moved:.3f} of what is declared"
    figures = {"measured": moved, "claimed": 1.0}
    yield audit_check("sensitivity search", "random walk", "scores where it starts", moved <= 1, detail, **figures)
