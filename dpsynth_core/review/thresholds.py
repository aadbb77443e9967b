"""What a reviewer asks of a release, in numbers that are recorded with the decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from dpsynth_core.errors import ParameterError
from dpsynth_core.privacy.budget import Budget


@dataclass(frozen=True, kw_only=True)
class ThresholdLimit:
    """A threshold for a measured number, as a form shows it."""

    title: str
    """What is limited."""
    help: str
    """How to read it."""
    most: float
    """Largest value that can be asked for."""
    step: float
    """By which a form moves it."""


LIMITS: dict[str, ThresholdLimit] = {
    "columns": ThresholdLimit(
        title="Worst column: total variation", most=1.0, step=0.01,
        help="Share of rows that would have to change their value for the column to agree. 0 is equal.",
    ),
    "pairs": ThresholdLimit(
        title="Worst pair of columns: total variation", most=1.0, step=0.01,
        help="The same for two columns together, which is harder to keep.",
    ),
    "pmse_ratio": ThresholdLimit(
        title="pMSE ratio", most=10_000.0, step=1.0,
        help="How much easier a model tells synthetic from original rows than it tells two halves of the original. "
        "1 is a fresh sample. It grows with the number of rows.",
    ),
    "mmd": ThresholdLimit(
        title="MMD, as a share of pure noise", most=1.0, step=0.05,
        help="Distance of the whole table: 0 is equal, 1 is rows drawn at random from the declared domain.",
    ),
    "false_discovery": ThresholdLimit(
        title="False-discovery risk", most=1.0, step=0.01,
        help="Of analysts who test a difference that does not exist at the 5% level, the share who would report one.",
    ),
}  # fmt: skip
"""Limits on measured numbers by their name in :class:`Thresholds`."""


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """A policy on privacy loss, and what is good enough. The defaults are a starting point, not a standard.

    Example:
        >>> Thresholds(epsilon="2").policy.epsilon
        Fraction(2, 1)
    """

    epsilon: str = "1"
    """Most that everything released from the data set may lose together, as typed."""
    delta: str = "1e-6"
    """The same for delta."""
    columns: float = 0.1
    """Largest total variation of a column."""
    pairs: float = 0.2
    """Largest total variation of a pair of columns."""
    pmse_ratio: float = 10.0
    """Largest pMSE ratio."""
    mmd: float = 0.3
    """Largest MMD, as a share of pure noise's."""
    false_discovery: float = 0.06
    """Largest share of false discoveries at the 5% level."""

    def __post_init__(self) -> None:
        Budget.of(self.epsilon, self.delta)
        for name, limit in LIMITS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= limit.most:
                raise ParameterError(name, value, allowed=f"a number above 0 and up to {limit.most:g}")

    @property
    def policy(self) -> Budget:
        """The loss allowed, exact."""
        return Budget.of(self.epsilon, self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Thresholds:
        """Thresholds from plain JSON values; unknown names are refused."""
        known = {part.name for part in fields(cls)}
        for name in facts:
            if name not in known:
                raise ParameterError("threshold", name, allowed=", ".join(sorted(known)))
        return cls(**facts)
