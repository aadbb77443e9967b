"""What epsilon costs and buys: mechanisms over a grid of epsilon, several times, each table compared with the original.

For teaching, on public or simulated tables only: every point looks at the rows, all noise is seeded simulation noise,
and nothing is charged. Nothing here may be claimed to be private.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pandas as pd

from dpsynth_core.budget import exact
from dpsynth_core.diagnostics.features import features, frequent_labels
from dpsynth_core.diagnostics.kernel_distance import halves_distance, median_gamma
from dpsynth_core.diagnostics.logistic import logistic_pmse
from dpsynth_core.diagnostics.mmd import mmd
from dpsynth_core.diagnostics.variation import coarse, total_variation
from dpsynth_core.encoding import FloatArray, IntArray, codec_for
from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.inference import Proportion, error_rates
from dpsynth_core.inference.histograms import HISTOGRAMS
from dpsynth_core.inference.populations import populations
from dpsynth_core.jobs import Channel, reporter
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.mechanisms.base import check_whole
from dpsynth_core.private import PrivateTable
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.release import LEAST_EPSILON, MOST_EPSILON, synthesize
from dpsynth_core.schema import Schema

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
MECHANISM_KEYS = ("kd_tree", "perturbed_histogram", "smoothed_histogram")
COLUMN_CELLS, PAIR_CELLS = 30, 8
"""Most cells that a range is cut into, alone and in pairs: as in the diagnostics."""
LABELS = 20
"""Labels of a column that get a coefficient of their own in the regression."""
REGRESSION_ROWS, DISTANCE_ROWS = 20_000, 1_000
"""Most rows of either table behind pMSE and behind MMD."""
KEPT_ROWS = 2_000
"""Most synthetic rows that are kept of every point."""
MOST_ANALYSTS, FEWEST_ANALYSTS, ANALYSED_ROWS = 400, 50, 2_000_000
"""Simulated analysts of each kind behind a rate of wrong conclusions: fewer where each has many rows to look at."""
VALUE_CELLS = 100
FRESH_SAMPLES = 10


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """Something that gets better as epsilon grows."""

    title: str
    """What is measured; the title of its axis."""
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
        title="error of the worst column (total variation)", target=0.05, percent=True,
        question="What share of rows would have to change cells for the worst column to be right?",
    ),
    "pairs": Aspect(
        title="mean error of a pair of columns (total variation)", target=0.15, percent=True,
        question="The same for the grid of two columns, on average over all pairs.",
    ),
    "pmse": Aspect(
        title="pMSE ratio (1: a fresh sample)", target=2.0, percent=False,
        question="How well does a regression tell synthetic rows from original ones?",
    ),
    "mmd": Aspect(
        title="MMD, distance of the whole table", target=0.1, percent=False,
        question="How far apart are the two clouds of rows?",
    ),
    "type_one": Aspect(
        title="false discoveries (Type I error)", target=0.08, percent=True, simulated=True,
        question="Of analysts who test a difference that does not exist at the 5% level, what share reports one?",
    ),
    "type_two": Aspect(
        title="missed discoveries (Type II error)", target=0.2, percent=True, simulated=True,
        question="Of analysts who test a difference of one standard deviation, what share misses it?",
    ),
}  # fmt: skip
"""By name, in the order in which they are shown."""


@dataclass(frozen=True, kw_only=True)
class SweepOrder:
    """What to sweep, as plain values that can be sent to a worker."""

    mechanisms: tuple[str, ...] = MECHANISM_KEYS
    """Names in the registry; each runs with the parameters that it suggests itself at each epsilon."""
    epsilons: tuple[float, ...] = EPSILONS
    """The grid, rising."""
    repetitions: int = 3
    """Runs at each point; they make the band."""
    delta: float = 1e-6
    """For mechanisms that need one."""
    discoveries: bool = True
    """Whether to measure false and missed discoveries, for mechanisms where that is quick."""
    seed: int = 0
    """Of the whole sweep."""

    def __post_init__(self) -> None:
        if not self.mechanisms or len(set(self.mechanisms)) < len(self.mechanisms):
            raise ParameterError("mechanisms", list(self.mechanisms), allowed="one or more mechanisms, each once")
        for key in self.mechanisms:
            if key not in MECHANISMS:
                raise ParameterError("mechanisms", key, allowed=", ".join(MECHANISMS))
        inside = all(LEAST_EPSILON <= exact(e, parameter="epsilons") <= MOST_EPSILON for e in self.epsilons)
        if not self.epsilons or not inside or list(self.epsilons) != sorted(set(self.epsilons)):
            ends = f"{float(LEAST_EPSILON):g} to {MOST_EPSILON:,}"
            raise ParameterError("epsilons", list(self.epsilons), allowed=f"rising numbers from {ends}")
        check_whole("repetitions", self.repetitions, 1, 1_000)
        check_whole("seed", self.seed, 0, 2**63)

    @property
    def runs(self) -> int:
        """How many synthetic tables will be made."""
        return len(self.mechanisms) * len(self.epsilons) * self.repetitions


@dataclass(frozen=True, kw_only=True)
class Band:
    """A number that differs from run to run."""

    low: float
    """The smallest over the repetitions; of a rate, the lower end of Wilson's 95% interval."""
    middle: float
    """Their median; of a rate, the rate itself."""
    high: float
    """The largest; of a rate, the upper end of the interval."""

    @classmethod
    def over(cls, values: Sequence[float]) -> Band:
        """From smallest to largest: with few repetitions nothing finer can be said."""
        return cls(low=min(values), middle=float(np.median(values)), high=max(values))

    @classmethod
    def of_rate(cls, share: Proportion) -> Band:
        """Of a share of simulated analysts."""
        return cls(low=share.low, middle=share.estimate, high=share.high)


@dataclass(frozen=True, kw_only=True)
class Spot:
    """One mechanism at one epsilon."""

    mechanism: str
    """Its name in the registry."""
    epsilon: float
    """The loss granted to each run."""
    bands: Mapping[str, Band]
    """By aspect, as far as it could be measured."""
    table: pd.DataFrame | None
    """The first run's synthetic rows, at most ``KEPT_ROWS`` of them; None where the mechanism refused."""
    problem: str = ""
    """Why it refused, in words."""

    @property
    def title(self) -> str:
        """What people call the mechanism."""
        return MECHANISMS[self.mechanism].title


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """How each aspect changes with epsilon. Computed from the rows: for public and simulated tables only."""

    order: SweepOrder
    """What was asked for."""
    rows: int
    """Of the original, and of each synthetic table."""
    spots: tuple[Spot, ...]
    """By mechanism, then by epsilon."""
    references: Mapping[str, float] = field(default_factory=dict)
    """By aspect, what a fresh sample of the original would show."""

    def line(self, mechanism: str, aspect: str) -> tuple[Spot, ...]:
        """A mechanism's spots where the aspect is known, by epsilon."""
        return tuple(spot for spot in self.spots if spot.mechanism == mechanism and aspect in spot.bands)

    def at(self, mechanism: str, epsilon: float) -> Spot | None:
        """One spot."""
        return next((s for s in self.spots if s.mechanism == mechanism and s.epsilon == epsilon), None)

    @property
    def aspects(self) -> tuple[str, ...]:
        """Those that at least one mechanism shows."""
        return tuple(key for key in ASPECTS if any(key in spot.bands for spot in self.spots))

    @property
    def problems(self) -> dict[str, str]:
        """By mechanism, why it refused somewhere."""
        return {spot.title: spot.problem for spot in self.spots if spot.problem}


@dataclass(frozen=True, kw_only=True)
class Needed:
    """How much epsilon a mechanism needs for a target."""

    mechanism: str
    """Its name in the registry."""
    epsilon: float | None
    """The smallest on the grid from which on every band stays within the target; None if there is none."""
    sentence: str
    """The same in words."""


def sweep(
    table: pd.DataFrame, schema: Schema, order: SweepOrder | None = None, progress: Progress = no_progress
) -> Sweep:
    """Run every mechanism at every epsilon, several times, and measure.

    Args:
        table: A public or simulated table.
        schema: Its public facts.
        order: What to sweep.
        progress: Told about each run; raises to cancel.

    Example:
        >>> from dpsynth_core.intake.examples import EXAMPLES
        >>> example = EXAMPLES["two_groups_signal"]
        >>> grid = SweepOrder(mechanisms=("smoothed_histogram",), epsilons=(0.01, 10.0), repetitions=2)
        >>> tight, loose = sweep(example.load(), example.schema, grid).spots
        >>> tight.bands["column"].middle > loose.bands["column"].middle
        True
    """
    order = order or SweepOrder()
    original = _Original.of(PrivateTable(table, schema), order.seed)
    spots = []
    for place, key in enumerate(order.mechanisms):
        for step, epsilon in enumerate(order.epsilons):
            begun = (place * len(order.epsilons) + step) * order.repetitions
            spots.append(_spot(original, key, epsilon, order, begun, progress))
    return Sweep(order=order, rows=original.private.n, spots=tuple(spots), references=original.references())


def run_sweep(table: pd.DataFrame, schema: Schema, order: SweepOrder, job_id: str, channel: Channel) -> Sweep:
    """The task for a worker: reports every run, returns the sweep."""
    return sweep(table, schema, order, reporter(job_id, channel))


def _spot(  # noqa: PLR0917  the order of arguments is that of the caller's
    original: _Original, key: str, epsilon: float, order: SweepOrder, begun: int, progress: Progress
) -> Spot:
    kind, private = MECHANISMS[key], original.private
    values: dict[str, list[float]] = {}
    kept = None
    try:
        mechanism = kind.suggest(private.schema, private.n, epsilon)
        for again in range(order.repetitions):
            run = begun + again
            progress(f"Run {run + 1} of {order.runs}: {kind.title} at ε {epsilon:g}", run / order.runs)
            seeds = _seeds(order.seed, key, epsilon, again)
            release = synthesize(
                private, mechanism, epsilon=epsilon, delta=order.delta if kind.needs_delta else 0, seed=int(seeds[0])
            )
            made = release.sample(private.n)
            kept = made.head(KEPT_ROWS) if kept is None else kept
            for aspect, value in original.measure(made, np.random.default_rng(seeds[1])).items():
                values.setdefault(aspect, []).append(value)
        bands = {aspect: Band.over(found) for aspect, found in values.items()}
        if order.discoveries:
            progress(f"Simulating analysts: {kind.title} at ε {epsilon:g}", (begun + order.repetitions) / order.runs)
            bands |= _discoveries(key, private.n, epsilon, order.seed)
    except DPSynthError as error:
        return Spot(mechanism=key, epsilon=epsilon, bands={}, table=None, problem=str(error))
    return Spot(mechanism=key, epsilon=epsilon, bands=bands, table=kept)


def _seeds(seed: int, key: str, epsilon: float, again: int) -> IntArray:
    """Of one run: the same whichever other mechanisms and epsilons are swept with it."""
    name = [seed, zlib.crc32(f"{key} {epsilon!r}".encode()), again]
    return (np.random.SeedSequence(name).generate_state(2, np.uint64) >> np.uint64(2)).astype(np.int64)


def _discoveries(key: str, n: int, epsilon: float, seed: int) -> dict[str, Band]:
    """Rates of wrong conclusions from a table of two groups; only where a release is array arithmetic."""
    if n < 4:
        return {}
    groups, _ = populations(n1=n // 2, n2=n - n // 2, effect=1.0)
    mechanism = MECHANISMS[key].suggest(groups.schema(VALUE_CELLS), n, epsilon)
    if not isinstance(mechanism, HISTOGRAMS):
        return {}
    analysts = min(max(ANALYSED_ROWS // n, FEWEST_ANALYSTS), MOST_ANALYSTS)
    rates = error_rates(mechanism, epsilon=epsilon, n=n, bins=VALUE_CELLS, reps=analysts, seed=seed)
    return {"type_one": Band.of_rate(rates.type_one), "type_two": Band.of_rate(rates.type_two)}


@dataclass(frozen=True, kw_only=True)
class _Original:
    """The original with everything that is the same for every comparison."""

    private: PrivateTable
    kept: dict[str, list[int]]
    """Labels with a coefficient of their own."""
    rows: FloatArray
    """Of the regression, as coordinates."""
    points: FloatArray
    """Of the distance, a random part of these."""
    gamma: float
    seed: int

    @classmethod
    def of(cls, private: PrivateTable, seed: int) -> _Original:
        rng = np.random.default_rng([seed, 1])
        kept = frequent_labels(private, LABELS)
        rows = _some(features(private, kept).values, REGRESSION_ROWS, rng)
        points = _some(rows, DISTANCE_ROWS, rng)
        gamma = median_gamma(points, rng) if len(points) > 1 else 1.0
        return cls(private=private, kept=kept, rows=rows, points=points, gamma=gamma, seed=seed)

    def measure(self, made: pd.DataFrame, rng: np.random.Generator) -> dict[str, float]:
        """Every aspect of a synthetic table that can be measured."""
        synthetic = PrivateTable(made, self.private.schema)
        found = _variation(_cells(self.private), _cells(synthetic))
        other = features(synthetic, self.kept)
        coordinates = _some(other.values, REGRESSION_ROWS, rng)
        score = logistic_pmse(
            type(other)(values=self.rows, owner=other.owner, labels=other.labels),
            type(other)(values=coordinates, owner=other.owner, labels=other.labels),
        )
        if score is not None:
            found["pmse"] = score.ratio
        found["mmd"] = mmd(self.points, _some(coordinates, DISTANCE_ROWS, rng), self.gamma)
        return found

    def references(self) -> dict[str, float]:
        """What a fresh sample would show: two samples, with replacement, of the original; or what theory says."""
        rng = np.random.default_rng([self.seed, 2])
        n, cells = self.private.n, _cells(self.private)
        draws = [
            _variation(*(_taken(cells, rng.integers(n, size=n)) for _ in range(2))) for _ in range(FRESH_SAMPLES)
        ]  # fmt: skip
        found = {aspect: float(np.mean([draw[aspect] for draw in draws])) for aspect in draws[0]}
        if len(self.points) > 3:
            found["mmd"] = halves_distance(self.points, len(self.points), self.gamma, rng)
        # A regression's ratio is one by definition; a valid test at the 5% level is wrong 5% of the time.
        return {**found, "pmse": 1.0, "type_one": 0.05}


_Cells = tuple[dict[str, IntArray], dict[str, IntArray]]
"""Each row's cell in every column: fine for one column, coarse for pairs."""


def _cells(table: PrivateTable) -> _Cells:
    fine, rough = (
        {c.name: codec_for(coarse(c, most)).codes(table.positions(c.name)) for c in table.schema}
        for most in (COLUMN_CELLS, PAIR_CELLS)
    )
    return fine, rough


def _taken(cells: _Cells, places: IntArray) -> _Cells:
    fine, rough = ({name: codes[places] for name, codes in part.items()} for part in cells)
    return fine, rough


def _variation(first: _Cells, second: _Cells) -> dict[str, float]:
    """Total variation of the worst column, and of a pair of columns on average."""
    found = {"column": max(_apart(codes, second[0][name]) for name, codes in first[0].items())}
    pairs = []
    for a, b in combinations(first[1], 2):
        width = 1 + max(int(part[1][b].max()) for part in (first, second))
        pairs.append(_apart(*(part[1][a] * width + part[1][b] for part in (first, second))))
    if pairs:
        found["pairs"] = float(np.mean(pairs))
    return found


def _apart(first: IntArray, second: IntArray) -> float:
    cells = 1 + int(max(first.max(), second.max()))
    return float(total_variation(*(np.bincount(codes, minlength=cells) for codes in (first, second))))


def _some(points: FloatArray, most: int, rng: np.random.Generator) -> FloatArray:
    return points if len(points) <= most else points[rng.choice(len(points), most, replace=False)]


def needed(found: Sweep, aspect: str, target: float) -> tuple[Needed, ...]:
    """For every mechanism, the smallest epsilon on the grid from which on the whole band stays within a target.

    A single lucky epsilon below one that misses does not count.
    """
    if aspect not in ASPECTS:
        raise ParameterError("aspect", aspect, allowed=", ".join(ASPECTS))
    return tuple(_needed(found, key, aspect, target) for key in found.order.mechanisms)


def _needed(found: Sweep, key: str, aspect: str, target: float) -> Needed:
    kind, title = ASPECTS[aspect], MECHANISMS[key].title
    line = found.line(key, aspect)
    reached: Spot | None = None
    for spot in reversed(line):
        if spot.bands[aspect].high > target:
            break
        reached = spot
    if not line:
        said = f"{title}: not measured here."
    elif reached is not None:
        least = reached is line[0]
        worst = kind.say(reached.bands[aspect].high)
        said = f"{title}: ε {reached.epsilon:g} is enough (at worst {worst})" + (
            ", the smallest that was tried." if least else f"; ε {line[line.index(reached) - 1].epsilon:g} is not."
        )
    else:
        last = line[-1]
        said = (
            f"{title}: no ε up to {last.epsilon:g} is enough; there it is {kind.say(last.bands[aspect].middle)}, "
            f"at worst {kind.say(last.bands[aspect].high)}."
        )
    return Needed(mechanism=key, epsilon=None if reached is None else reached.epsilon, sentence=said)
