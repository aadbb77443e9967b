"""An order: everything that defines a run, as plain values that can be saved, loaded and sent to a worker."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.ledger.accounts import Ledger
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.privacy.budget import Budget, Guarantee, compose, exact
from dpsynth_core.privacy.noise import Noise, SeededNoise
from dpsynth_core.privacy.primitives import Charge
from dpsynth_core.progress import Point, RunProgress
from dpsynth_core.runs.synthesize import Release, synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MOST_COPIES = 20
SILENT = RunProgress()


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to run, and how private it is to be."""

    mechanism: Mechanism
    """With its parameters."""
    epsilon: str
    """For each synthetic table, as it was typed."""
    delta: str = "0"
    """For each synthetic table."""
    copies: int = 1
    """How many synthetic tables (l); their losses add up."""
    seed: int | None = None
    """For simulation in teaching mode only; None draws real noise."""

    def __post_init__(self) -> None:
        Budget.of(self.epsilon, self.delta)
        if not isinstance(self.copies, int) or isinstance(self.copies, bool) or not 1 <= self.copies <= MOST_COPIES:
            raise ParameterError("copies", self.copies, allowed=f"a whole number from 1 to {MOST_COPIES}")

    @property
    def each(self) -> Budget:
        """The loss of one table."""
        return Budget.of(self.epsilon, self.delta)

    @property
    def total(self) -> Budget:
        """The loss of all tables together: what is charged."""
        return self.each.times(self.copies)

    def to_json(self) -> str:
        """JSON text, readable by people."""
        settings = {name: value for name, value in asdict(self.mechanism).items() if name != "reason"}
        return json.dumps(
            {
                "mechanism": self.mechanism.key,
                "parameters": settings,
                "epsilon": self.epsilon,
                "delta": self.delta,
                "copies": self.copies,
            },
            indent=2,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Order:
        """An order from JSON text; unknown names are refused rather than ignored."""
        try:
            facts = json.loads(text)
        except (ValueError, RecursionError):
            raise DPSynthError("This file is not JSON. Load a configuration that was saved here.") from None
        if not isinstance(facts, Mapping) or not isinstance(facts.get("parameters", {}), Mapping):
            raise DPSynthError("This file is no configuration. Load one that was saved here.")
        unknown = set(facts) - {"mechanism", "parameters", "epsilon", "delta", "copies"}
        if unknown:
            raise ParameterError("field", sorted(unknown)[0], allowed="mechanism, parameters, epsilon, delta, copies")
        epsilon, delta = (str(facts.get(name, fallback)) for name, fallback in (("epsilon", "1"), ("delta", "0")))
        return cls(
            mechanism=configured(str(facts.get("mechanism")), facts.get("parameters", {})),
            epsilon=epsilon,
            delta=delta,
            copies=facts.get("copies", 1),
        )


def configured(key: str, parameters: Mapping[str, Any]) -> Mechanism:
    """A mechanism by its name with these parameters."""
    if key not in MECHANISMS:
        raise ParameterError("mechanism", key, allowed=", ".join(MECHANISMS))
    kind = MECHANISMS[key]
    known = set(kind.__dataclass_fields__) - {"reason"}
    for name in parameters:
        if name not in known:
            raise ParameterError("parameter", name, allowed=", ".join(sorted(known)))
    return kind(**parameters)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run has made; nothing in it is private."""

    order: Order
    """What was asked for."""
    schema: Schema
    """The public facts."""
    tables: tuple[pd.DataFrame, ...]
    """The synthetic tables."""
    guarantee: Guarantee
    """For all of them together."""
    charges: tuple[Charge, ...]
    """What each stage of the first run spent, per row."""
    leaves: pd.DataFrame | None
    """The partition of the first run, where there is one."""
    seconds: float
    """How long it took."""


@dataclass(frozen=True, kw_only=True)
class PublishedRows:
    """A model of which only the rows it has drawn are left."""

    table: pd.DataFrame
    """The rows."""

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """The same rows again, or a resample of them if another number is wanted."""
        if rows == len(self.table):
            return self.table
        return self.table.iloc[noise.integers(len(self.table), rows)].reset_index(drop=True)


def published(outcome: Outcome, n: int, which: int = 0) -> Release:
    """One of an outcome's tables as a release, for whoever wants to run its mechanism again on simulated rows.

    Args:
        outcome: What a run has made.
        n: Rows of the original, which are public.
        which: Which of its tables.
    """
    each = outcome.order.each
    return Release(
        mechanism=outcome.order.mechanism, schema=outcome.schema, n=n, charges=outcome.charges,
        guarantee=replace(outcome.guarantee, budget=each), model=PublishedRows(table=outcome.tables[which]),
        noise=SeededNoise(each, seed=0),
    )  # fmt: skip


def run_order(table: pd.DataFrame, schema: Schema, order: Order, *, progress: RunProgress = SILENT) -> Outcome:
    """Make the tables; ``progress.drawn()`` is called before anything is drawn."""
    began = time.monotonic()
    progress("Reading the table", 0.0)
    private = PrivateTable(table, schema)
    tables, guarantees, first = [], [], None
    for copy in range(order.copies):

        def report(stage: str, done: float, /, *points: Point, copy: int = copy) -> None:
            name = stage if order.copies == 1 else f"{stage} (table {copy + 1} of {order.copies})"
            progress(name, (copy + done) / order.copies, *points)

        if copy:
            progress.restart()

        release = synthesize(
            private, order.mechanism, epsilon=exact(order.epsilon, parameter="epsilon"),
            delta=exact(order.delta, parameter="delta"), seed=None if order.seed is None else order.seed + copy,
            progress=report, watch=lambda _: progress.drawn(),
        )  # fmt: skip
        report("Drawing rows", 0.95)
        tables.append(release.sample())
        guarantees.append(release.guarantee)
        first = first or release
    assert first is not None  # noqa: S101  an order has at least one copy
    leaves = first.model.leaves() if hasattr(first.model, "leaves") else None
    return Outcome(
        order=order, schema=schema, tables=tuple(tables), guarantee=compose(guarantees), charges=first.charges,
        leaves=leaves, seconds=time.monotonic() - began,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LedgerSettlement:
    """Settles a reservation when its job ends."""

    ledger: Ledger
    """Where it is on record."""
    reservation: int
    """Its number."""

    def commit(self) -> None:
        """The charge was used."""
        self.ledger.commit(self.reservation)

    def refund(self, reason: str) -> None:
        """Nothing was drawn."""
        self.ledger.refund(self.reservation, reason)
