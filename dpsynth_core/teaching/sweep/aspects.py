"""What a sweep measures: each aspect with its question and a first target."""

from __future__ import annotations

from dataclasses import dataclass

SHARE_OF_ROWS, SHARE_OF_ANALYSTS = "share of rows", "share of analysts"


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """Something that gets better as epsilon grows."""

    title: str
    unit: str
    question: str
    target: float

    @property
    def percent(self) -> bool:
        return self.unit in (SHARE_OF_ROWS, SHARE_OF_ANALYSTS)

    @property
    def simulated(self) -> bool:
        """Whether it is measured on simulated groups with as many rows as the table, rather than on the table."""
        return self.unit == SHARE_OF_ANALYSTS

    def say(self, value: float) -> str:
        return f"{value:.1%}" if self.percent else f"{value:.3g}"


ASPECTS: dict[str, Aspect] = {
    "column": Aspect(
        title="Worst column (total variation)",
        unit=SHARE_OF_ROWS,
        target=0.1,
        question="What share of the rows would have to change their value for the worst column to be right?",
    ),
    "pairs": Aspect(
        title="Pairs of columns (mean total variation)",
        unit=SHARE_OF_ROWS,
        target=0.15,
        question="On average over all pairs of columns, what share of the rows would have to change their values?",
    ),
    "pmse": Aspect(
        title="pMSE beyond chance (regression)",
        unit="share of the maximum",
        target=0.02,
        question="How well does a regression tell synthetic rows from original ones, beyond chance?",
    ),
    "mmd": Aspect(
        title="MMD as a share of pure noise",
        unit="share of noise",
        target=0.3,
        question="How far apart are the two tables as a whole, compared with rows drawn from the domain at random?",
    ),
    "slope": Aspect(
        title="Worst slope of a regression",
        unit="standard deviations",
        target=0.1,
        question="How far off is the slope that a regression on the synthetic rows gets most wrong?",
    ),
    "type_one": Aspect(
        title="False discoveries (Type I error)",
        unit=SHARE_OF_ANALYSTS,
        target=0.08,
        question="Of the analysts who test a difference that does not exist at the 5% level, what share reports one?",
    ),
    "type_two": Aspect(
        title="Missed discoveries (Type II error)",
        unit=SHARE_OF_ANALYSTS,
        target=0.2,
        question="Of the analysts who test a difference of one standard deviation, what share misses it?",
    ),
}
"""By key, in the order in which they are shown."""
