"""What a sweep measures: each aspect in a word, a question and a target to begin with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """Something that gets better as epsilon grows."""

    title: str
    """What is measured; the title of its axis."""
    short: str
    """The same in a few words, as a heading."""
    unit: str
    """Of its axis."""
    question: str
    """What it answers, in a sentence."""
    target: float
    """A target to begin with."""
    percent: bool
    """Whether it is a share."""
    simulated: bool = False
    """Whether it is measured on simulated groups of as many rows rather than on the table."""

    def say(self, value: float) -> str:
        """A value in words."""
        return f"{value:.1%}" if self.percent else f"{value:.3g}"


ASPECTS: dict[str, Aspect] = {
    "column": Aspect(
        title="error of the worst column (total variation)", short="Worst column", unit="share of rows",
        target=0.1, percent=True,
        question="What share of rows would have to change cells for the worst column to be right?",
    ),
    "pairs": Aspect(
        title="mean error of a pair of columns (total variation)", short="Pairs of columns", unit="share of rows",
        target=0.15, percent=True,
        question="The same for the grid of two columns, on average over all pairs.",
    ),
    "pmse": Aspect(
        title="pMSE ratio (1: a fresh sample)", short="pMSE ratio (log scale)", unit="ratio",
        target=2.0, percent=False,
        question="How well does a regression tell synthetic rows from original ones?",
    ),
    "mmd": Aspect(
        title="MMD, distance of the whole table", short="MMD, distance of the tables", unit="distance",
        target=0.1, percent=False,
        question="How far apart are the two clouds of rows?",
    ),
    "slope": Aspect(
        title="error of the worst regression slope (standard deviations)", short="Worst slope of a regression",
        unit="standard deviations", target=0.1, percent=False,
        question="How far off is the slope that a regression on the synthetic rows gets most wrong?",
    ),
    "type_one": Aspect(
        title="false discoveries (Type I error)", short="False discoveries (Type I error)",
        unit="share of analysts", target=0.08, percent=True, simulated=True,
        question="Of analysts who test a difference that does not exist at the 5% level, what share reports one?",
    ),
    "type_two": Aspect(
        title="missed discoveries (Type II error)", short="Missed discoveries (Type II error)",
        unit="share of analysts", target=0.2, percent=True, simulated=True,
        question="Of analysts who test a difference of one standard deviation, what share misses it?",
    ),
}  # fmt: skip
"""By name, in the order in which they are shown."""
