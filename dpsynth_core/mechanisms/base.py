"""What every mechanism has: parameters, one verb, and an honest description of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal, Protocol, Self, get_args, get_origin, get_type_hints, runtime_checkable

import pandas as pd

from dpsynth_core.errors import check_choice, check_int
from dpsynth_core.mechanisms.parameters import setting
from dpsynth_core.mechanisms.plan import Plan
from dpsynth_core.privacy.budget import Amount, Budget, Guarantee, Status
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.encoding import Positions
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema


class Model(Protocol):
    """What a mechanism has learned: free to use, because everything in it was paid for."""

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """That many synthetic rows."""


@runtime_checkable
class PositionedModel(Model, Protocol):
    """One that can leave its rows encoded, for simulations that would encode them again at once."""

    def positions(self, rows: int, noise: Noise) -> Mapping[str, Positions]:
        """What ``sample`` would draw, by column, as positions in the declared domain."""


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A way to turn a private table into a synthetic one: frozen parameters and one verb, ``fit``."""

    key: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    """What it does, in a sentence."""
    good_for: ClassVar[str]
    """When to choose it, in a sentence."""
    beware: ClassVar[str] = ""
    """What a reviewer must know about its rows, in a sentence or two."""
    paper: ClassVar[str]
    status: ClassVar[Status] = "proven"
    """How far its guarantee can be trusted at best."""
    needs_delta: ClassVar[bool] = False
    """Whether it only works with a delta greater than zero."""
    takes_delta: ClassVar[bool] = False
    """Whether it works without a delta but makes use of one: then it is audited both ways."""
    audit_runs: ClassVar[int] = 200
    """Times that the quick audit runs it on each of two neighbouring tables; 0 where one run takes too long, so that
    only its draws are attacked, one by one."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Parameters with which a paper ran it, by the paper's short name; all others stay as suggested."""
    counts_cells: ClassVar[bool] = True
    """Whether it rests on counts over cells of the domain; if not, it fits a model of another kind."""

    max_rows: ClassVar[int | None] = None
    """Rows that it works on, for one that cannot do with counts and sums: of a longer table it asks for a random sample
    of so many, which is stated with the release. None: it takes every row into account, however many there are."""

    comparator: ClassVar[bool] = False
    """Whether it is here because a paper compares with it: shown apart from the others and never suggested."""

    rows: int | None = setting(None, title="Rows to make")
    """Rows of the synthetic table. None: as many as the original has."""
    reason: str = field(default="", compare=False)
    """Why the parameters are what they are; filled in by ``suggest``."""

    def __post_init__(self) -> None:
        for name, choices in _literal_fields(type(self)).items():
            check_choice(name, getattr(self, name), choices)
        check_int("rows", self.rows, 1, 10**8, optional=True)

    def cells_made(self, schema: Schema, n: int) -> int:
        """Cells of the synthetic table of an original with ``n`` rows."""
        return (self.rows or n) * len(schema.columns)

    @classmethod
    @abstractmethod
    def suggest(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount = 0) -> Self:
        """Parameters for this budget from public facts only, with the reason in a sentence."""

    @classmethod
    def delta_gain(cls, schema: Schema, n: int, epsilon: Amount, delta: Amount) -> str:  # noqa: ARG003
        """What a delta buys at this epsilon, in plain numbers; empty where it makes no difference to what is done."""
        return ""

    @classmethod
    def audited(cls, schema: Schema, n: int, epsilon: Amount) -> dict[str, Self]:
        """Settings that the audit runs, by name: as suggested, and others that take another path through the code."""
        return {"as suggested": cls.suggest(schema, n, epsilon)}

    @abstractmethod
    def plan(self, schema: Schema, n: int, budget: Budget) -> Plan:
        """What ``fit`` would do, from public facts only; raises where it would refuse."""

    @abstractmethod
    def fit(self, table: PrivateRows, noise: Noise, progress: Progress = no_progress) -> Model:
        """Learn a model, spending the noise source's whole budget."""

    @classmethod
    def rows_used(cls, n: int) -> int:
        """How many of a table's rows it looks at: public."""
        return n if cls.max_rows is None else min(n, cls.max_rows)

    def state_sample(self, guarantee: Guarantee, n: int) -> Guarantee:
        """The guarantee with a sentence about the rows that were used, where those are not all."""
        used = self.rows_used(n)
        if used == n:
            return guarantee
        return guarantee.with_caveat(
            f"Fitted to a random sample of {used:,} of the {n:,} rows, drawn by position; epsilon holds for every row."
        )

    def judge(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee that remains with these parameters: some choices leave less than the mechanism's best."""
        return guarantee


@cache
def _literal_fields(kind: type[Any]) -> dict[str, tuple[str, ...]]:
    """The fields that take one of a few values, with those values."""
    return {name: get_args(hint) for name, hint in get_type_hints(kind).items() if get_origin(hint) is Literal}
