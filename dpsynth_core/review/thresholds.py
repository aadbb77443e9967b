"""What a reviewer asks of a release, in numbers that are recorded with the decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from dpsynth_core.errors import ParameterError, check_choice
from dpsynth_core.privacy.budget import Budget


@dataclass(frozen=True, kw_only=True)
class ThresholdLimit:
    """A threshold for a measured number, as a form shows it."""

    title: str
    help: str
    max: float = 1.0
    step: float = 0.01


LIMITS: dict[str, ThresholdLimit] = {
    "columns": ThresholdLimit(
        title="Worst column: total variation",
        help="Share of rows that would have to change their value for the column to agree. 0 means equal.",
    ),
    "pairs": ThresholdLimit(
        title="Worst pair of columns: total variation",
        help="The same for two columns together, which is harder to preserve.",
    ),
    "pmse": ThresholdLimit(
        title="pMSE beyond chance",
        help="How well models tell synthetic from original rows, beyond what they would of a fresh sample: 0 means not "
        "at all, 1 means every row. At 0.02, a guess is right for at most 57 rows of 100, instead of 50.",
    ),
    "mmd": ThresholdLimit(
        title="MMD as a share of pure noise",
        help="Distance between the tables as a whole: 0 means equal, 1 means rows drawn at random from the declared "
        "domain.",
        step=0.05,
    ),
    "false_discovery": ThresholdLimit(
        title="False-discovery risk",
        help="Of the analysts who test a difference that does not exist at the 5% level, the share who would report "
        "one: the higher end of what the release leaves possible.",
    ),
}
"""Limits on measured numbers, by their name in :class:`Thresholds`."""


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """A policy on privacy loss, and what is good enough. The defaults are a starting point, not a standard.

    Example:
        >>> Thresholds(epsilon="2").policy.epsilon
        Fraction(2, 1)
    """

    epsilon: str = "1"
    """Maximum for everything released from the data set together, as typed."""
    delta: str = "1e-6"
    columns: float = 0.1
    pairs: float = 0.15
    pmse: float = 0.02
    mmd: float = 0.3
    false_discovery: float = 0.08
    pmse_ratio: float | None = None
    """What earlier decisions asked of pMSE, as a ratio that grows with the number of rows. It is kept as part of their
    record and compared with nothing any more."""

    def __post_init__(self) -> None:
        Budget.of(self.epsilon, self.delta)
        for name, limit in LIMITS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= limit.max:
                raise ParameterError(name, value, allowed=f"a number greater than 0 and at most {limit.max:g}")

    @property
    def policy(self) -> Budget:
        return Budget.of(self.epsilon, self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: what was asked, and nothing that was not."""
        absent = "pmse_ratio" if self.pmse_ratio is None else "pmse"
        return {name: value for name, value in asdict(self).items() if name != absent}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Thresholds:
        """Thresholds from plain JSON values; unknown names are refused."""
        known = tuple(sorted(part.name for part in fields(cls)))
        for name in facts:
            check_choice("threshold", name, known)
        return cls(**facts)
