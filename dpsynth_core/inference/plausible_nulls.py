"""How often a test reports what is not there, for every null that a release leaves plausible.

A release does not say exactly how large the groups were and how the values were distributed, and the rate of false
discoveries depends on both. So many nulls are tried: the estimate, what would be estimated from other releases of the
same null, and shapes that are smoother, rougher or shifted, with groups of all sizes. A null is plausible if its
simulated releases look like the real one in the group's and the value's own distribution. The range is that of the
rate over all plausible nulls, with its Monte-Carlo error (Berger & Boos 1994; see ``docs/proofs.md``, section 19).
Where some releases leave nothing to test, all of it is about those that do, as the real one does: a null's releases
that do not are left out of the comparison and of the rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth_core.arrays import BoolArray, FloatArray, IntArray
from dpsynth_core.inference.candidate_nulls import candidates
from dpsynth_core.inference.efforts import MIN_USUAL, Effort
from dpsynth_core.inference.multiplicity import holm_reports
from dpsynth_core.inference.nuisance import Nuisance
from dpsynth_core.inference.null_simulation import Findings, NullReleases, NullSimulator, shares_of
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.simulated_pvalues import least_favourable, simulated_pvalues
from dpsynth_core.inference.stated_risk import verdict_of
from dpsynth_core.progress import Progress, no_progress, share_of

MAX_Z = 3.0
"""A null is plausible if no summary of the release is further off, in standard deviations over its releases."""
MAX_GROUPS = 16
"""Cells of the group column up to which each one's share is compared; beyond, it is a number cut into cells."""
CUTS = 8
"""Parts of the values' order whose shares are compared."""
MIN_STD = 1e-3
"""Differences below this are not told apart."""
MIN_ALIKE = 4
"""Releases of a null that can be tested, as the real one can, below which more are drawn."""


@dataclass(frozen=True, kw_only=True)
class PlausibleNulls:
    """The nulls at the ends of the range, and what the test does under them."""

    nulls: tuple[Nuisance, ...]
    """The estimate first."""
    reported: IntArray
    """False reports, of shape (nulls, questions); with several questions, one more column for any of them after
    Holm's correction."""
    tested: IntArray
    """Simulated releases that left something to test, out of which they are."""
    pvalues: FloatArray
    """Calibrated p-values of the real release, one for each question: the largest over the nulls. Not a number where
    there is nothing to test, or where it would be low and a null leaves too few releases to test to say so."""
    centres: FloatArray
    """Mean of the statistic over releases of the null that gave the p-value, for each question."""
    spreads: FloatArray
    """Its standard deviation."""
    drawn: tuple[Findings, ...]
    """In simulated releases of each null."""
    releases: int
    """Simulated for each of the nulls, or more where few leave something to test or the verdict was open."""
    tried: int
    plausible: int

    @property
    def questions(self) -> int:
        return len(self.pvalues)

    def rates(self, question: int = 0) -> list[Proportion]:
        """Of false reports under each null; -1 for any question after Holm's correction."""
        pairs = zip(self.reported[:, question], self.tested[:, question], strict=True)
        return [Proportion(count=int(reported), reps=int(tested)) for reported, tested in pairs]

    def calibrated_rates(self, alpha: float) -> list[Proportion]:
        """How often the calibrated test itself would report something under each null, for one question: its releases
        are held against those of all nulls in turn, as the real one is."""
        each = [found.tested_statistics(0) for found in self.drawn]
        out = []
        for own, statistics in enumerate(each):
            largest = np.zeros(len(statistics))
            for other, simulated in enumerate(each):
                against = np.tile(simulated, (len(statistics), 1))
                if other == own:
                    np.fill_diagonal(against, np.nan)  # not against itself
                largest = np.maximum(largest, simulated_pvalues(statistics, against))
            out.append(Proportion(count=int((largest <= alpha).sum()), reps=len(statistics)))
        return out

    def extreme(self, question: int = 0) -> tuple[Nuisance, ...]:
        """The estimate, and the nulls with the lowest and the highest rate."""
        rates = _shrunk(self.reported[:, question], self.tested[:, question])
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
    rates = np.array([_shrunk(*false_reports(found, alpha)) for _, found in screened.plausible])
    least = screened.least_unusual(simulator.statistics, effort.closest) if effort.calibrates else []
    chosen = dict.fromkeys([*_ends(rates, effort.ends), *least])
    nulls = [screened.plausible[i][0] for i in chosen]
    first: list[tuple[Nuisance, Findings]] = []
    for i, null in enumerate(nulls):
        part = share_of(progress, 0.6 + 0.25 * i / len(nulls), 0.6 + 0.25 * (i + 1) / len(nulls))
        first.append((null, simulator.run_tested(null, effort.releases, rng, part).found))
    drawn = [
        found
        for _, found in settled(simulator, first, effort, alpha=alpha, rng=rng, progress=share_of(progress, 0.85, 1.0))
    ]
    reported, tested = zip(*(false_reports(found, alpha) for found in drawn), strict=True)
    pvalues, centres, spreads = zip(
        *(_calibrated(simulator.found, drawn, question) for question in range(len(simulator.statistics))), strict=True
    )
    return PlausibleNulls(
        nulls=tuple(nulls),
        reported=np.array(reported),
        tested=np.array(tested),
        pvalues=np.array(pvalues),
        centres=np.array(centres),
        spreads=np.array(spreads),
        drawn=tuple(drawn),
        releases=effort.releases,
        tried=screened.tried,
        plausible=len(screened.plausible),
    )


def settled(
    simulator: NullSimulator,
    drawn: list[tuple[Nuisance, Findings]],
    effort: Effort,
    *,
    alpha: float,
    rng: np.random.Generator,
    progress: Progress = no_progress,
) -> list[tuple[Nuisance, Findings]]:
    """With more releases of whichever null comes worst, as long as its rate alone leaves the verdict open."""
    drawn, rounds = list(drawn), effort.settling // effort.releases
    for step in range(rounds):
        counts = [false_reports(found, alpha) for _, found in drawn]
        rates = [Proportion(count=int(reported[-1]), reps=int(tested[-1])) for reported, tested in counts]
        worst = int(np.argmax([rate.high for rate in rates]))
        if verdict_of([rates[worst]]) != "unknown":
            break
        null, found = drawn[worst]
        part = share_of(progress, step / rounds, (step + 1) / rounds)
        drawn[worst] = null, Findings.joined([found, simulator.run_tested(null, effort.releases, rng, part).found])
    return drawn


def _calibrated(real: Findings, drawn: list[Findings], question: int) -> tuple[float, float, float]:
    """The p-value of one question, and the mean and the deviation of the statistic under the null that gives it."""
    each = [found.tested_statistics(question) for found in drawn]
    pvalue, given_by = least_favourable(float(real.statistics[question]), each)
    simulated = each[given_by] if len(each[given_by]) else np.zeros(1)
    tested = bool(real.tested[question])
    return pvalue if tested else float("nan"), float(simulated.mean()), float(simulated.std())


@dataclass(frozen=True, kw_only=True)
class ScreenedNulls:
    """The plausible ones of the nulls that were tried, the estimate first, with what is found in a few releases."""

    plausible: tuple[tuple[Nuisance, Findings], ...]
    tried: int

    def least_unusual(self, statistics: FloatArray, each: int) -> list[int]:
        """For every question, the nulls under which the real release's statistic is the least surprising."""
        chosen: list[int] = []
        for question, statistic in enumerate(statistics):
            simulated = [found.tested_statistics(question) for _, found in self.plausible]
            usual = simulated[0].std() if len(simulated[0]) else 0.0
            off = [
                abs(statistic - drawn.mean()) / max(drawn.std(), usual, MIN_STD) if len(drawn) else np.inf
                for drawn in simulated
            ]
            chosen += np.argsort(off, kind="stable")[:each].tolist()
        return chosen


@dataclass(frozen=True, kw_only=True)
class _Look:
    """A few releases of a null, as they are compared with the real one."""

    summaries: FloatArray
    found: Findings

    @classmethod
    def at(cls, releases: NullReleases) -> _Look:
        return cls(summaries=summaries(releases.counts), found=releases.found)

    def with_more(self, other: _Look) -> _Look:
        both = np.concatenate([self.summaries, other.summaries])
        return _Look(summaries=both, found=Findings.joined([self.found, other.found]))

    def fits(self, seen: FloatArray, tested: BoolArray, usual: FloatArray) -> bool:
        """Whether the real release could be one of them: among those that can be tested where it can, for any of the
        questions; among all of them where it cannot, or none of them can."""
        compared = [self.summaries]
        if tested.any() and not self.found.tested.all():
            alike = [self.summaries[self.found.tested[:, question]] for question in np.flatnonzero(tested)]
            compared = [one for one in alike if len(one)] or compared
        return any(is_plausible(seen, one, usual) for one in compared)


def screen(
    simulator: NullSimulator,
    effort: Effort,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    *,
    estimate: Nuisance | None = None,
) -> ScreenedNulls:
    """Try many nulls, and keep those whose releases look like the real one; the estimate may be known already."""
    if not effort.screening:
        released = shares_of(simulator.observed[None], simulator.n)
        return ScreenedNulls(plausible=((released, Findings.empty(len(simulator.statistics))),), tried=1)
    if estimate is None:
        estimate = simulator.estimate(rng, share_of(progress, 0.0, 0.2), releases=effort.estimating)
    tried = candidates(simulator, estimate, effort, rng)
    seen, tested = summaries(simulator.observed[None])[0], simulator.found.tested
    first = _Look.at(simulator.run_tested(estimate, max(MIN_USUAL, effort.screening), rng))
    looks = [_Look.at(each) for each in simulator.run_each(tried, effort.screening, rng, share_of(progress, 0.2, 0.7))]
    rare = [i for i, look in enumerate(looks) if effort.rare and _seldom_tested(look, tested)]
    nulls, times = [tried[i] for i in rare], effort.rare * effort.screening
    more = simulator.run_each(nulls, times, rng, share_of(progress, 0.7, 1.0))
    for i, releases in zip(rare, more, strict=True):
        looks[i] = looks[i].with_more(_Look.at(releases))
    usual = first.summaries.std(axis=0)
    fitting = [(null, look.found) for null, look in zip(tried, looks, strict=True) if look.fits(seen, tested, usual)]
    return ScreenedNulls(plausible=((estimate, first.found), *fitting), tried=1 + len(tried))


def _seldom_tested(look: _Look, tested: BoolArray) -> bool:
    return bool((look.found.tested[:, tested].sum(axis=0) < MIN_ALIKE).any())


def false_reports(found: Findings, alpha: float) -> tuple[IntArray, IntArray]:
    """How many releases report something, and how many leave something to test, for each question; with several
    questions, one more entry for any of them after Holm's correction."""
    reported, tested = found.pvalues <= alpha, found.tested
    if tested.shape[1] > 1:
        reported = np.column_stack([reported, holm_reports(found.pvalues, alpha)])
        tested = np.column_stack([tested, tested.any(axis=1)])
    return reported.sum(axis=0), tested.sum(axis=0)


def _shrunk(reported: IntArray, tested: IntArray) -> FloatArray:
    """Rates to choose by: few releases that can be tested say little."""
    return np.asarray((reported + 0.05) / (tested + 1))


def _ends(rates: FloatArray, each: int) -> list[int]:
    """The estimate, and for every question the nulls with the lowest and the highest rates."""
    order = np.argsort(rates, axis=0, kind="stable")
    return list(dict.fromkeys([0, *order[-each:].ravel().tolist(), *order[:each].ravel().tolist()]))


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
