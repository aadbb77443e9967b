"""What a private test of two groups has found, with what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpsynth_core.privacy.budget import Budget, Cost, Guarantee, format_amount
from dpsynth_core.table.schema import Schema

_NUMBERS = ("n", "statistic", "scale", "pvalue", "smaller")
_IN_ALL = "rows_in_all"


@dataclass(frozen=True, kw_only=True)
class PaidComparison:
    """A private Mann-Whitney test that was paid for. Nothing in it depends on the rows except through paid draws."""

    schema: Schema
    """The public facts it was made with: the value column, the group column, the layout of the file, the unit."""
    value: str
    group: str
    levels: tuple[Any, Any]
    """The two groups, the first one first."""
    n: int
    """Rows that were tested, whether or not they belong to either group: public."""
    rows_in_all: int
    """Rows of the table: as many, or more where those that were tested were drawn from them by position."""
    statistic: float
    """min(U1, U2) with noise; it may be negative."""
    scale: float
    """Of that noise."""
    pvalue: float
    smaller: int
    """Rows that the smaller group has at least, but for a probability of about delta."""
    guarantee: Guarantee
    """What may be claimed for this result by itself: the first part is its own cost, the others are those of the
    private estimates behind its columns."""

    @property
    def cost(self) -> Cost:
        """What the test itself cost."""
        return self.guarantee.parts[0]

    @property
    def about(self) -> tuple[str, str, tuple[Any, Any]]:
        """Which question it answers."""
        return self.value, self.group, self.levels

    @property
    def basis(self) -> str:
        """On how many rows the test was made."""
        if self.n == self.rows_in_all:
            return f"{self.n:,} original rows"
        return f"{self.n:,} of {self.rows_in_all:,} original rows, drawn at random by position"

    @property
    def finding(self) -> str:
        """The result in a sentence; it may hold names from a file."""
        first, second = self.levels
        return (
            f"{self.value!r} by {self.group!r}, {first!r} against {second!r}: p-value {self.pvalue:.2g} (private "
            f"Mann-Whitney test on {self.basis})."
        )

    @property
    def published(self) -> dict[str, Any]:
        """What is published of it, as plain JSON values; the facts it was made with are in the release's schema."""
        cost = self.cost.budget
        return {
            "test": "private Mann-Whitney (Couch et al. 2019)",
            **{"value": self.value, "group": self.group, "levels": list(self.levels), "rows": self.n},
            **({} if self.n == self.rows_in_all else {"drawnByPositionFrom": self.rows_in_all}),
            **{"pvalue": self.pvalue, "noisyMinU": self.statistic, "noiseScale": self.scale},
            **{"epsilon": format_amount(cost.epsilon), "delta": format_amount(cost.delta)},
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        claim = self.guarantee
        costs = [[part.label, str(part.budget.epsilon), str(part.budget.delta)] for part in claim.parts]
        sampled = {} if self.n == self.rows_in_all else {_IN_ALL: self.rows_in_all}
        return {
            "schema": self.schema.to_dict(),
            **{"value": self.value, "group": self.group, "levels": list(self.levels)},
            **{name: getattr(self, name) for name in _NUMBERS},
            **sampled,
            "guarantee": {"status": claim.status, "costs": costs, "caveats": list(claim.caveats)},
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> PaidComparison:
        """A result from what was kept of it."""
        schema, claim = Schema.from_dict(saved["schema"]), saved["guarantee"]
        first, second = saved["levels"]
        return cls(
            schema=schema,
            value=saved["value"],
            group=saved["group"],
            levels=(first, second),
            rows_in_all=saved.get(_IN_ALL, saved["n"]),
            guarantee=Guarantee(
                status=claim["status"],
                parts=tuple(Cost(label=label, budget=Budget.of(*amounts)) for label, *amounts in claim["costs"]),
                rows_per_person=schema.rows_per_person,
                caveats=tuple(claim["caveats"]),
            ),
            **{name: saved[name] for name in _NUMBERS},
        )
