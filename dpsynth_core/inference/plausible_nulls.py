"""How often a test reports what is not there, for every null that a release leaves plausible.

A release does not say exactly how large the groups were and how the values were distributed, and the rate of false
discoveries depends on both. So many nulls are tried: the estimate, what would be estimated from other releases of the
same null, and shapes that are smoother, rougher or shifted, with groups of all sizes. A null is plausible if its
simulated releases look like the real one in the group's and the value's own distribution. The range is that of the
rate over all plausible nulls, with its Monte-Carlo error (Berger & Boos 1994; see ``docs/proofs.md``, section 19).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.inference.multiplicity import holm_reports
from dpsynth_core.inference.nuisance import Nuisance, rounded_sizes
from dpsynth_core.inference.null_simulation import ESTIMATION_ROUNDS, ESTIMATION_RUNS, NullReleases, NullSimulator
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.progress import Progress, no_progress, share_of

MAX_Z = 3.0
"""A null is plausible if no summary of the release is further off, in standard deviations over its releases."""
MAX_GROUPS = 16
"""Cells of the group column up to which each one's share is compared; beyond, it is a number cut into cells."""
CUTS = 8
"""Parts of the values' order whose shares are compared."""
MIN_STD = 1e-3
"""Differences below this are not told apart."""
ROUNDING = 1e-9
"""Statistics closer than this are equal."""
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
    """Releases of each null that decide whether it is plausible."""
    releases: int
    """Releases of each null at the ends of the range."""
    ends: int
    """Nulls looked at more closely at either end."""
    neighbours: tuple[int, ...] = ()
    """Numbers of cells that one kept cell may stand for, where others around it can have been emptied."""
    estimating: int = ESTIMATION_RUNS
    """Releases in each round of the estimation, where the mechanism itself must run."""

    @property
    def calibrates(self) -> bool:
        """Whether there are releases enough for a calibrated p-value."""
        return self.releases >= FEWEST

    @property
    def runs(self) -> int:
        """Releases to be simulated, for two groups and no more of them than that."""
        shapes, sizes = 3 + len(self.widths) + 2 * len(self.tilts), 1 + len(self.fractions)
        tried = 2 * self.repeats + shapes * sizes
        closely = (1 + (2 + self.calibrates) * self.ends) * self.releases
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
        screening=20,
        releases=400,
        ends=2,
    ),
    Effort(
        fractions=_MIRRORED,
        tilts=(-12, -5, -2, 2, 5, 12),
        widths=(0.03, 0.1, 0.3),
        repeats=12,
        neighbours=(2, 3, 4, 6),
        screening=40,
        releases=2_000,
        ends=3,
    ),
)
"""Where a release is array arithmetic: a first figure, and the full one."""
ROW_EFFORTS = (
    Effort(fractions=(0.5,), tilts=(), widths=(0.1,), repeats=2, screening=1, releases=8, ends=1, estimating=3),
    Effort(fractions=(0.02, 0.1, 0.5, 0.9), tilts=(-5, 5), widths=(0.1,), repeats=6, screening=3, releases=60, ends=2),
    Effort(
        fractions=(0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98),
        tilts=(-5, 5),
        widths=(0.1,),
        repeats=10,
        screening=6,
        releases=300,
        ends=2,
    ),
)
"""Where the mechanism itself must run: the first figure takes fifty-five runs, so that it comes within seconds. It is
rough, and never calls a test sound."""
ROW_SCREENING = Effort(fractions=(0.5,), tilts=(), widths=(0.1,), repeats=4, screening=2, releases=99, ends=1)
"""The nulls that a calibrated test by itself is held against."""


@dataclass(frozen=True, kw_only=True)
class PlausibleNulls:
    """The nulls at the ends of the range, and what the test does under them."""

    nulls: tuple[Nuisance, ...]
    """The estimate first."""
    rates: FloatArray
    """Of false reports, of shape (nulls, questions); with several questions, one more column for any of them after
    Holm's correction."""
    pvalues: FloatArray
    """Calibrated p-values of the real release, one for each question: the largest over the nulls."""
    centres: FloatArray
    """Mean of the statistic over releases of the null that gave the p-value, for each question."""
    spreads: FloatArray
    """Its standard deviation."""
    releases: int
    """Simulated for each of the nulls."""
    tried: int
    plausible: int

    def ends(self, question: int = 0) -> tuple[Proportion, Proportion]:
        """The lowest and the highest rate, each with its Monte-Carlo interval."""
        counts = np.rint(self.rates[:, question] * self.releases).astype(int)
        low, high = (Proportion(count=int(count), reps=self.releases) for count in (counts.min(), counts.max()))
        return low, high

    def extreme(self, question: int = 0) -> tuple[Nuisance, ...]:
        """The estimate, and the nulls with the lowest and the highest rate."""
        rates = self.rates[:, question]
        chosen = dict.fromkeys([0, int(rates.argmin()), int(rates.argmax())])
        return tuple(self.nulls[i] for i in chosen)


def risk_range(
    simulator: NullSimulator,
    effort: Effort,
    *,
    alpha: float,
    rng: np.random.Generator,
    progress: Progress = no_progress,
) -> PlausibleNulls:
    """The nulls that the release leaves plausible, and how often the ordinary test is wrong under them."""
    screened = screen(simulator, effort, rng, share_of(progress, 0.0, 0.6))
    rates = np.array([_rates(releases, alpha) for _, releases in screened.plausible])
    least = screened.least_unusual(simulator.statistics, effort.ends) if effort.calibrates else []
    chosen = dict.fromkeys([*_ends(rates, effort.ends), *least])
    nulls = [screened.plausible[i][0] for i in chosen]
    drawn = []
    for i, null in enumerate(nulls):
        part = share_of(progress, 0.6 + 0.4 * i / len(nulls), 0.6 + 0.4 * (i + 1) / len(nulls))
        drawn.append(simulator.run(null, effort.releases, rng, part))
    statistics = np.stack([releases.found.statistics for releases in drawn])
    pvalues = np.stack([calibrated_pvalues(simulator.statistics, one) for one in statistics])
    highest, questions = pvalues.argmax(axis=0), np.arange(pvalues.shape[1])
    return PlausibleNulls(
        nulls=tuple(nulls),
        rates=np.array([_rates(releases, alpha) for releases in drawn]),
        pvalues=pvalues.max(axis=0),
        centres=statistics.mean(axis=1)[highest, questions],
        spreads=statistics.std(axis=1)[highest, questions],
        releases=effort.releases,
        tried=screened.tried,
        plausible=len(screened.plausible),
    )


@dataclass(frozen=True, kw_only=True)
class ScreenedNulls:
    """The plausible ones of the nulls that were tried, the estimate first, with a few releases of each."""

    plausible: tuple[tuple[Nuisance, NullReleases], ...]
    tried: int

    def least_unusual(self, statistics: FloatArray, each: int) -> list[int]:
        """For every question, the nulls under which the real release's statistic is the least surprising."""
        chosen: list[int] = []
        simulated = [releases.found.statistics for _, releases in self.plausible]
        usual = simulated[0].std(axis=0)
        for question, statistic in enumerate(statistics):
            off = [
                abs(statistic - drawn[:, question].mean()) / max(drawn[:, question].std(), usual[question], MIN_STD)
                for drawn in simulated
            ]
            chosen += np.argsort(off, kind="stable")[:each].tolist()
        return chosen


def screen(
    simulator: NullSimulator, effort: Effort, rng: np.random.Generator, progress: Progress = no_progress
) -> ScreenedNulls:
    """Try many nulls, and keep those whose releases look like the real one."""
    estimate = simulator.estimate(rng, share_of(progress, 0.0, 0.2), releases=effort.estimating)
    tried = candidates(simulator, estimate, effort, rng)
    seen = summaries(simulator.observed[None])[0]
    first = simulator.run(estimate, max(MIN_USUAL, effort.screening), rng)
    usual = summaries(first.counts).std(axis=0)
    plausible = [(estimate, first)]
    each = simulator.run_each(tried, effort.screening, rng, share_of(progress, 0.2, 1.0))
    for null, releases in zip(tried, each, strict=True):
        if is_plausible(seen, summaries(releases.counts), usual):
            plausible.append((null, releases))
    return ScreenedNulls(plausible=tuple(plausible), tried=1 + len(tried))


def calibrated_pvalues(statistics: FloatArray, simulated: FloatArray) -> FloatArray:
    """How unusual each question's statistic is among its simulations, on either side of their common mean.

    The mean is over all of them, the observed one included, so that under the null they are exchangeable.

    Args:
        statistics: Of the real release, one for each question.
        simulated: Of null releases, of shape (releases, questions).
    """
    releases = len(simulated)
    centre = (statistics + simulated.sum(axis=0)) / (1 + releases)
    as_far = (np.abs(simulated - centre) >= np.abs(statistics - centre) - ROUNDING).sum(axis=0)
    return np.asarray((1 + as_far) / (1 + releases), dtype=np.float64)


def false_reports(releases: NullReleases, alpha: float) -> BoolArray:
    """Which tests report something, for each release; with several questions, one more column for any of them after
    Holm's correction."""
    pvalues = releases.found.pvalues
    reported = pvalues <= alpha
    if pvalues.shape[1] > 1:
        reported = np.column_stack([reported, holm_reports(pvalues, alpha)])
    return np.asarray(reported, dtype=np.bool_)


def _rates(releases: NullReleases, alpha: float) -> FloatArray:
    return np.asarray(false_reports(releases, alpha).mean(axis=0), dtype=np.float64)


def _ends(rates: FloatArray, each: int) -> list[int]:
    """The estimate, and for every question the nulls with the lowest and the highest rates."""
    order = np.argsort(rates, axis=0, kind="stable")
    return list(dict.fromkeys([0, *order[-each:].ravel().tolist(), *order[:each].ravel().tolist()]))


def candidates(
    simulator: NullSimulator, estimate: Nuisance, effort: Effort, rng: np.random.Generator
) -> list[Nuisance]:
    """Nulls to be tried beside the estimate."""
    n = simulator.n
    again = simulator.again(estimate, effort.repeats, rng)
    # The estimate may be off as far as estimates from its own releases are, in their direction or in the opposite one.
    mirrored = Nuisance(
        sizes=rounded_sizes((2 * estimate.sizes - again.sizes).astype(np.float64), n),
        chances=_normalised(2 * estimate.chances - again.chances),
    )
    nulls = [*_each(again), *_each(mirrored)]
    hidden = effort.neighbours if simulator.hides_cells else ()
    if simulator.test.group.is_numeric:
        return nulls + _other_numbers(simulator, estimate, effort)
    for shape in _shapes(estimate.chances[0], effort, nullable=simulator.test.value.nullable, hidden=hidden):
        for sizes in _sizes(estimate.sizes[0], effort.fractions, n):
            nulls.append(Nuisance(sizes=sizes[None], chances=shape[None]))
    return nulls


def _other_numbers(simulator: NullSimulator, estimate: Nuisance, effort: Effort) -> list[Nuisance]:
    """Where both columns are numbers: other shapes of the one, then of the other."""
    sizes, chances, n = estimate.sizes[0], estimate.chances[0], simulator.n
    of_values = _shapes(chances, effort, nullable=simulator.test.value.nullable)
    of_group = _shapes(sizes / n, effort, nullable=simulator.test.group.nullable)
    nulls = [Nuisance(sizes=sizes[None], chances=shape[None]) for shape in of_values]
    return nulls + [Nuisance(sizes=rounded_sizes(n * shape[None], n), chances=chances[None]) for shape in of_group]


def _each(nuisance: Nuisance) -> list[Nuisance]:
    return [
        Nuisance(sizes=sizes[None], chances=chances[None])
        for sizes, chances in zip(nuisance.sizes, nuisance.chances, strict=True)
    ]


def _normalised(weights: FloatArray) -> FloatArray:
    kept = np.maximum(weights, 0.0)
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


def _shapes(chances: FloatArray, effort: Effort, *, nullable: bool, hidden: tuple[int, ...] = ()) -> list[FloatArray]:
    """The estimated distribution as it is, smoothed, shifted, and mixed with a flat one; missing values keep their
    share. Where a kept cell may stand for several, also with its share dealt to so many cells around it."""
    known, missing = (chances[:-1], chances[-1:]) if nullable else (chances, chances[:0])
    total = known.sum()
    if not total > 0:
        return [chances]
    values = len(known)
    flat = np.full(values, 1 / values)
    smooth = [_smoothed(known / total, max(1, round(width * values / 2))) for width in effort.widths]
    shapes = [known / total, *smooth, flat, (known / total + flat) / 2]
    shapes += [_spread(known / total, cells) for cells in hidden]
    x = np.linspace(-0.5, 0.5, values)
    for base in (known / total, smooth[len(smooth) // 2]):
        shapes += [_normalised(base * np.exp(tilt * x)) for tilt in effort.tilts]
    return [np.concatenate([shape * total, missing]) for shape in shapes]


def _spread(chances: FloatArray, cells: int) -> FloatArray:
    """Each cell's share dealt evenly to so many cells around it; what would fall outside stays at the edge."""
    shifts = np.arange(cells) - (cells - 1) // 2
    to = np.clip(np.arange(len(chances))[:, None] + shifts, 0, len(chances) - 1)
    dealt = np.repeat(chances / cells, cells)
    return np.asarray(np.bincount(to.ravel(), weights=dealt, minlength=len(chances)), dtype=np.float64)


def _smoothed(chances: FloatArray, half: int) -> FloatArray:
    padded = np.pad(chances, half, mode="edge")
    return _normalised(np.convolve(padded, np.ones(2 * half + 1), "valid"))


def _sizes(sizes: IntArray, fractions: tuple[float, ...], n: int) -> list[IntArray]:
    """The estimated sizes, and each group in turn with other shares of the rows, the rest as they relate."""
    out = [sizes]
    for group in range(len(sizes) if len(sizes) > 2 else 1):
        rest = np.maximum(np.delete(sizes, group).astype(np.float64), 0.5)
        for share in fractions:
            others = rest / rest.sum() * (1 - share) * n
            out.append(rounded_sizes(np.insert(others, group, share * n)[None], n)[0])
    return out


def summaries(counts: FloatArray) -> FloatArray:
    """What is compared between the real release and simulated ones: nothing that a real difference would change.

    Shares of the groups, of parts of the values' order, of occupied cells, and how unevenly cells are filled; all of
    them from the group's and the value's own counts.
    """
    share = counts / counts.sum(axis=(1, 2), keepdims=True)
    groups, values = share.sum(axis=2), share.sum(axis=1)
    if groups.shape[1] > MAX_GROUPS:  # cells of a number rather than labels
        groups = np.column_stack([_cumulative(groups), groups[:, -1:]])
    cumulative = _cumulative(values)
    occupied = (values > 0).mean(axis=1, keepdims=True)
    uneven = np.log((values**2).sum(axis=1, keepdims=True))
    return np.concatenate([groups[:, :-1], cumulative, occupied, uneven], axis=1)


def _cumulative(shares: FloatArray) -> FloatArray:
    cuts = np.unique(np.linspace(0, shares.shape[1], CUTS + 1).astype(int)[1:-1])
    return np.asarray(np.cumsum(shares, axis=1)[:, cuts[cuts > 0] - 1])


def is_plausible(seen: FloatArray, simulated: FloatArray, usual: FloatArray) -> bool:
    """Whether no summary is further from the simulated ones than chance allows.

    Args:
        seen: Summaries of the real release.
        simulated: Of a null's releases, one line each.
        usual: Their standard deviations over releases of the estimate, which a few releases may miss.
    """
    std = np.maximum(np.maximum(simulated.std(axis=0), usual), MIN_STD) * np.sqrt(1 + 1 / len(simulated))
    return bool((np.abs(seen - simulated.mean(axis=0)) <= MAX_Z * std).all())
