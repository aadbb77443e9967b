"""What a mechanism would do, from public facts only: shown before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

SECONDS_PER_DRAW = 7e-6
"""An exact noise draw."""
SECONDS_PER_CELL = 3e-8
"""Reading, encoding and counting one cell of the table."""
SECONDS_PER_MADE_CELL = 3.6e-8
"""Drawing one cell of the synthetic table from boxes, the fastest of the models."""
SECONDS_PER_SCORE = 5e-7
"""Handing one score to an exact selection, which takes them number by number."""
SECONDS_PER_LISTED_CELL = 3.5e-7
"""Putting one side of one box into words."""
SECONDS_TO_START, SECONDS_TO_REPEAT = 0.05, 0.015
"""What a run costs besides: the first one, and any further one in the same process on a small table."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One paid step."""

    label: str
    epsilon: Fraction
    """Its share, per row."""
    scale: float | None
    """Scale of the noise that each count gets; None where the noise is of another kind."""
    delta: Fraction = Fraction(0)
    """Its share, per row."""
    optional: bool = False
    """Whether earlier outcomes may leave nothing for it to do; then its share goes to the last stage."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a mechanism would do with a table of this schema and size."""

    stages: tuple[Stage, ...]
    """Paid steps, in order; their epsilons add up to the budget per row."""
    cuts: tuple[int, ...]
    """Into how many parts each column is cut at the start."""
    cells: int
    """Cells or boxes over the declared domain that the noise is spread over at the start."""
    draws: int
    """Noise draws to expect, roughly."""
    values: int
    """Cells of the table that are read: rows times columns."""
    computing: float = 0.0
    """Seconds of computing beyond drawing and reading, roughly."""
    starting: float = 0.0
    """Seconds of computing that only the first run of a process takes: compiling."""
    made: int = 0
    """Cells of the synthetic table: its rows times columns."""
    seconds_per_made_cell: float = SECONDS_PER_MADE_CELL
    scores: int = 0
    """Scores that exact selections draw among, all selections together. Simulated ones take next to no time."""
    listed: int = 0
    """Cells of the list of boxes that goes with the first table: boxes times columns."""

    @property
    def seconds(self) -> float:
        """Running time to expect, roughly."""
        return self.seconds_of(1)

    def seconds_of(self, runs: int) -> float:
        """The same for several runs of which only the first compiles and has its boxes listed."""
        once = SECONDS_TO_START + self.starting + self.listed * SECONDS_PER_LISTED_CELL
        return once + runs * (self._work + self.scores * SECONDS_PER_SCORE) + (runs - 1) * SECONDS_TO_REPEAT

    @property
    def seconds_again(self) -> float:
        """The same for one more run in the same process, with simulated noise."""
        return SECONDS_TO_REPEAT + self._work

    @property
    def _work(self) -> float:
        making = self.made * self.seconds_per_made_cell
        return self.draws * SECONDS_PER_DRAW + self.values * SECONDS_PER_CELL + making + self.computing

    @property
    def count_error(self) -> float:
        """Expected absolute error of one count: E|DLap(b)| = 2 a / (1 - a^2), for the last stage that counts."""
        scales = [stage.scale for stage in self.stages if stage.scale is not None]
        if not scales:
            return math.nan
        a = math.exp(-1 / scales[-1])
        return 2 * a / (1 - a * a)


def counting_plan(shape: tuple[int, ...], n: int, epsilon: Fraction, *, sensitivity: int, made: int = 0) -> Plan:
    """The plan of a mechanism whose one paid step is to count every cell of a grid."""
    cells = math.prod(shape)
    stage = Stage(label="counts of all cells", epsilon=epsilon, scale=float(sensitivity / epsilon))
    return Plan(stages=(stage,), cuts=shape, cells=cells, draws=min(n, cells), values=n * len(shape), made=made)
