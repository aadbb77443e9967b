"""How much is simulated for a figure: a first one within seconds, then finer ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsynth_core.inference.null_simulation import ESTIMATION_ROUNDS, ESTIMATION_RUNS

MIN_USUAL = 8
"""Releases of the estimate at least, from which it is known how far releases of one null lie apart."""
FEWEST = 19
"""Fewer simulations cannot give a p-value of 0.05."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How many nulls are tried, and how many releases of each are simulated."""

    fractions: tuple[float, ...]
    """Shares of the rows that a group may have."""
    tilts: tuple[float, ...]
    """Values are shifted by weights exp(tilt x) for x from -1/2 to 1/2."""
    widths: tuple[float, ...]
    """Shares of the range over which the estimated distribution is smoothed."""
    repeats: int
    """Nulls estimated again from releases of the first one."""
    screening: int
    """Releases of each null that decide whether it is plausible. 0: nothing is tried beside the released shares."""
    releases: int
    """Releases of each null at the ends of the range."""
    ends: int
    """Nulls looked at more closely at either end of the range of rates."""
    closest: int = 0
    """Nulls looked at more closely because the release is the least surprising under them, for a calibrated p-value."""
    rare: int = 0
    """Times as many releases that are screened where hardly any of a null's can be tested, as the real one can."""
    unseen: tuple[float, ...] = ()
    """Rows that cells may have that are not seen, in parts of the threshold below which they are emptied."""
    neighbours: tuple[int, ...] = ()
    """Numbers of cells that one kept cell may stand for, where others around it can have been emptied."""
    settling: int = 0
    """Further releases at most of the null that comes worst, whichever it is by then, until the verdict is settled."""
    estimating: int = ESTIMATION_RUNS
    """Releases in each round of the estimation, where the mechanism itself must run."""

    @property
    def calibrates(self) -> bool:
        """Whether there are releases enough for a calibrated p-value."""
        return self.releases >= FEWEST

    @property
    def runs(self) -> int:
        """Releases to be simulated, for two groups and no more of them than that."""
        if not self.screening:
            return self.releases
        shapes, sizes = 3 + len(self.widths) + 2 * len(self.tilts), 1 + len(self.fractions)
        tried = 2 * self.repeats + shapes * sizes
        closely = (1 + 2 * self.ends + self.calibrates * self.closest) * self.releases + self.settling
        usual = max(MIN_USUAL, self.screening)
        return ESTIMATION_ROUNDS * self.estimating + self.repeats + usual + tried * self.screening + closely


_FRACTIONS = (0.004, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
_MIRRORED = (*_FRACTIONS, *(1 - share for share in reversed(_FRACTIONS[:-1])))
COUNT_EFFORTS = (
    Effort(
        fractions=_MIRRORED[::2],
        tilts=(-5, 5),
        widths=(0.03, 0.3),
        repeats=6,
        neighbours=(2, 4),
        unseen=(0.5,),
        rare=8,
        screening=20,
        releases=400,
        ends=2,
        closest=2,
    ),
    Effort(
        fractions=_MIRRORED,
        tilts=(-12, -5, -2, 2, 5, 12),
        widths=(0.03, 0.1, 0.3),
        repeats=12,
        neighbours=(2, 3, 4, 6),
        unseen=(0.25, 0.5, 0.75),
        rare=16,
        screening=40,
        releases=2_000,
        ends=3,
        closest=3,
    ),
)
"""Where a release is array arithmetic: a first figure, and the full one."""
COUNT_CALIBRATION = replace(COUNT_EFFORTS[0], unseen=COUNT_EFFORTS[-1].unseen, closest=4)
"""For a calibrated p-value alone. With fewer nulls it was too low where many cells lie just below a threshold: 256 of
3,500 releases without a difference at 0.05 or less in the worst of 540 settings, and 46 of 900 with these."""
ROW_EFFORTS = (
    Effort(fractions=(0.5,), tilts=(), widths=(0.1,), repeats=2, screening=1, releases=8, ends=1, estimating=3),
    Effort(
        fractions=(0.02, 0.1, 0.2, 0.5, 0.9),
        tilts=(-5, 5),
        widths=(0.1,),
        repeats=6,
        screening=3,
        releases=60,
        ends=2,
        closest=4,
    ),
    Effort(
        fractions=(0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 0.98),
        tilts=(-5, 5),
        widths=(0.1,),
        repeats=10,
        screening=6,
        releases=300,
        ends=2,
        closest=5,
        settling=1_200,
    ),
)
"""Where the mechanism itself must run: the first figure takes fifty-five runs, so that it comes within seconds. It is
rough, and never calls a test sound."""
FIRST_SECONDS = 5.0
"""Within which a first figure should come."""
FEWEST_SEEN = 2
"""Releases of a first figure at least, however long they take."""
ROW_SCREENING = Effort(
    fractions=(0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9),
    tilts=(),
    widths=(0.1,),
    repeats=10,
    screening=3,
    releases=99,
    ends=0,
    closest=5,
)
"""The nulls that a calibrated test by itself is held against. In the worst setting (MWEM, bounds far too wide, 20% of
20,000 rows, epsilon 0.1) it was wrong in 31 of 400 releases with half of these sizes and three nulls looked at closely,
and in 16 of the same 400 with these."""


def row_efforts(seconds: float) -> tuple[Effort, ...]:
    """The refinements where one run of the mechanism takes so long: a glimpse first, if the usual first figure is slow.

    A glimpse takes the released shares for the truth, and few releases, so its range is wide.
    """
    if ROW_EFFORTS[0].runs * seconds <= FIRST_SECONDS:
        return ROW_EFFORTS
    seen = min(max(FEWEST_SEEN, int(FIRST_SECONDS / seconds)), FEWEST - 1)  # nothing is calibrated by one null
    glimpse = Effort(fractions=(), tilts=(), widths=(), repeats=0, screening=0, releases=seen, ends=0)
    return glimpse, *ROW_EFFORTS
