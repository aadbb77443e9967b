"""The best of several releases, chosen privately: only the chosen one is ever seen.

Every run takes one of the candidates at random, fits it and gets a noisy score. How many runs count is drawn uniformly
from 1 to ``max_runs`` and nobody learns it; released is the run with the best score among those. If one run, score
included, is e-private, the whole is 3e-private, however many runs there are (Liu & Talwar 2019, "Private selection from
private candidates"; docs/proofs.md, section 22).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

import numpy as np

from dpsynth_core.arrays import IntArray
from dpsynth_core.errors import ParameterError, check_int
from dpsynth_core.mechanisms.base import Mechanism, Model
from dpsynth_core.privacy.budget import STATUS_ORDER, Amount, Budget, Cost, Guarantee, format_amount
from dpsynth_core.privacy.noise import Noise, SecureNoise, SeededNoise
from dpsynth_core.privacy.primitives import Charge
from dpsynth_core.progress import Point, Progress, no_progress
from dpsynth_core.runs.synthesize import ROWS, Release, check_granted
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.private_table import PrivateTable

COST = 3
"""The whole costs this many times what one run costs."""
SCORE_SHARE = Fraction(1, 5)
"""Of what a run gets, for its score."""
RUNS_PER_CANDIDATE = 8
"""Most runs by default. Each of k candidates is missed with probability at most (k - 1) / max_runs."""
MAX_CANDIDATES = 20
MAX_RUNS = 1_000
MAX_BINS = 8
"""Ranges that a numeric column is divided into for the score."""

NoiseSource: TypeAlias = Callable[[Budget], Noise]
"""Makes a fresh source of noise with a budget of its own."""


@dataclass(frozen=True, kw_only=True)
class PrivateSelection:
    """What to choose from, and with how many runs at most.

    Example:
        >>> from dpsynth_core.mechanisms import MECHANISMS
        >>> selection = PrivateSelection.of([MECHANISMS["kd_grid"](), MECHANISMS["kd_tree"]()])
        >>> fit, score = selection.shares(Budget.of(3))
        >>> str(fit.epsilon), str(score.epsilon), selection.max_runs
        ('4/5', '1/5', 16)
    """

    candidates: tuple[Mechanism, ...]
    max_runs: int

    def __post_init__(self) -> None:
        check_int("max_runs", self.max_runs, 2, MAX_RUNS)
        if not 1 <= len(self.candidates) <= MAX_CANDIDATES:
            raise ParameterError("candidates", len(self.candidates), allowed=f"from 1 to {MAX_CANDIDATES} mechanisms")
        for candidate in self.candidates:
            if candidate.needs_delta or candidate.status == "none":
                raise ParameterError(
                    "candidates",
                    candidate.key,
                    allowed="mechanisms with pure differential privacy (delta zero)",
                    remedy="Leave this one out.",
                )

    @classmethod
    def of(cls, candidates: Sequence[Mechanism], max_runs: int | None = None) -> PrivateSelection:
        """A selection among these, by default with eight runs for each at most."""
        runs = min(MAX_RUNS, RUNS_PER_CANDIDATE * len(candidates)) if max_runs is None else max_runs
        return cls(candidates=tuple(candidates), max_runs=runs)

    def shares(self, total: Budget) -> tuple[Budget, Budget]:
        """What each run gets to fit a candidate, and for its score."""
        if total.delta:
            remedy = "The proof behind a private selection is for pure epsilon."
            raise ParameterError("delta", str(total.delta), allowed="0", remedy=remedy)
        run = Budget(epsilon=total.epsilon / COST)
        fit, score = run.split(1 - SCORE_SHARE, SCORE_SHARE)
        return fit, score

    def score_on(self, private: PrivateTable) -> PairScore:
        """How runs on this table are scored."""
        return PairScore(private)

    def check(self, private: PrivateTable, per_row: Budget) -> None:
        """Refuse, from public facts only, what a candidate would refuse when its turn comes."""
        fit, _ = self.shares(per_row)
        for candidate in self.candidates:
            candidate.plan(private.schema, private.n, fit)

    def caveat(self, total: Budget) -> str:
        """What was done, for whoever reads the guarantee."""
        names = ", ".join(dict.fromkeys(candidate.title for candidate in self.candidates))
        fit, score = (format_amount(share.epsilon) for share in self.shares(total))
        return (
            f"Chosen privately as the best of up to {self.max_runs} runs ({names}), each with epsilon {fit} for the "
            f"table and {score} for a noisy score of its two-way counts. The stated epsilon covers every run; how many "
            "there were stays secret (Liu & Talwar 2019)."
        )


@dataclass(frozen=True, kw_only=True)
class ScoredRun:
    """One run: a candidate, what it made, and its noisy score. Secret, unless it is the one that is released."""

    mechanism: Mechanism
    model: Model
    score: int
    charges: tuple[Charge, ...]
    noise: Noise


def select_release(
    private: PrivateTable,
    candidates: Sequence[Mechanism],
    *,
    epsilon: Amount,
    max_runs: int | None = None,
    seed: int | None = None,
    estimates: Iterable[PaidEstimate] = (),
    progress: Progress = no_progress,
    watch: Callable[[Charge], None] | None = None,
) -> Release:
    """Release the best of several runs; epsilon covers all of them together.

    Args:
        private: The table and its public facts.
        candidates: Mechanisms to choose from; one alone is run several times.
        epsilon: The loss granted for everything, for the unit of protection that the schema declares. Every run gets a
            third of it: four fifths to fit the candidate, one fifth for its score.
        max_runs: Most runs that count. How many do is drawn uniformly from 1 to this number and stays secret, so that
            all of them are made. None: eight for each candidate.
        seed: For simulation and teaching only: the release can be repeated, and is therefore not private.
        estimates: Private estimates that were paid for on this table, as for ``synthesize``.
        progress: Receives the stages; raises to cancel.
        watch: Called with every charge before anything is drawn under it.

    Example:
        >>> import dpsynth_core as dp
        >>> example = dp.EXAMPLES["breast_cancer"]
        >>> private = dp.PrivateTable(example.load(), example.schema)
        >>> candidates = [dp.MECHANISMS["kd_grid"](), dp.MECHANISMS["kd_tree"]()]
        >>> release = dp.select_release(private, candidates, epsilon=3, max_runs=4)
        >>> release.guarantee.status, release.guarantee.epsilon, release.mechanism in candidates
        ('proven', 3.0, True)
    """
    selection = PrivateSelection.of(candidates, max_runs)
    release = run_selection(private, selection, Budget.of(epsilon), seed=seed, progress=progress, watch=watch)
    return replace(release, guarantee=private.judge(release.guarantee, estimates))


def run_selection(
    private: PrivateTable,
    selection: PrivateSelection,
    granted: Budget,
    *,
    seed: int | None = None,
    progress: Progress = no_progress,
    watch: Callable[[Charge], None] | None = None,
) -> Release:
    """The same, with a claim for the rows alone: nobody has looked yet at where the public facts come from."""
    check_granted(granted)
    unit = private.schema.rows_per_person
    per_row = granted.per_row(unit)
    selection.check(private, per_row)
    fresh = noise_source(seed)

    def source(budget: Budget) -> Noise:
        noise = fresh(budget)
        noise.watch = watch
        return noise

    best = best_run(private, selection, per_row, source, progress)
    status = max((candidate.status for candidate in selection.candidates), key=STATUS_ORDER.index)
    claim = Guarantee(status=status, parts=(Cost(label=ROWS, budget=granted),), rows_per_person=unit)
    for candidate in selection.candidates:  # the claim is about whatever could have been chosen
        claim = candidate.state_sample(candidate.judge(claim), private.n)
    return Release(
        mechanism=best.mechanism,
        schema=private.schema,
        guarantee=best.noise.judge(claim).with_caveat(selection.caveat(granted)),
        budget=selection.shares(granted)[0],
        charges=(*best.charges, _surcharge(selection, per_row)),
        model=best.model,
        n=private.n,
        noise=best.noise,
    )


def best_run(
    private: PrivateTable,
    selection: PrivateSelection,
    per_row: Budget,
    source: NoiseSource,
    progress: Progress = no_progress,
) -> ScoredRun:
    """The first of the best-scored runs among those that count.

    All runs are made, so that neither progress nor duration tells how many count.
    """
    shares = selection.shares(per_row)
    judge = selection.score_on(private)
    coins = source(shares[0])  # for what no private value touches
    counted = 1 + int(coins.integers(selection.max_runs, 1)[0])
    best: ScoredRun | None = None
    for index in range(selection.max_runs):
        candidate = selection.candidates[int(coins.integers(len(selection.candidates), 1)[0])]
        reported = _run_progress(progress, index, selection.max_runs)
        run = scored_run(judge, candidate, shares, source, reported)
        if index < counted and (best is None or run.score > best.score):
            best = run
    assert best is not None  # noqa: S101  at least one run counts
    return best


def scored_run(
    judge: PairScore,
    candidate: Mechanism,
    shares: tuple[Budget, Budget],
    source: NoiseSource,
    progress: Progress = no_progress,
) -> ScoredRun:
    """One run, with sources of its own: one for the candidate, one for the score."""
    fit, for_score = shares
    noise, score_noise = source(fit), source(for_score)
    model = candidate.fit(judge.private, noise, progress)
    score = score_noise.laplace(
        np.array([judge.agreement(model, noise)]),
        sensitivity=judge.sensitivity,
        epsilon=for_score.epsilon,
        label="score of the run",
    )
    return ScoredRun(
        mechanism=candidate,
        model=model,
        score=int(score[0]),
        charges=(*noise.charges, *score_noise.charges),
        noise=noise,
    )


class PairScore:
    """How well synthetic rows agree with the original on every pair of columns: exact, hence private.

    For each pair of columns (or the only column) the rows that the two tables have in common, cell by cell: the sum of
    min(original, synthetic), for as many synthetic rows as the original has. That is n (1 - total variation). A
    replaced row takes one from one cell and adds one to another, so each pair's sum moves by at most one.
    """

    def __init__(self, private: PrivateTable) -> None:
        self.private = private
        names = private.schema.names
        self.pairs = tuple(combinations(names, 2)) or ((names[0],),)
        self._bins = {c.name: MAX_BINS for c in private.schema if c.is_numeric and c.levels > MAX_BINS}

    @property
    def sensitivity(self) -> int:
        """One for each pair."""
        return len(self.pairs)

    @cached_property
    def _original(self) -> list[tuple[IntArray, IntArray]]:
        return [self._counts(self.private, pair) for pair in self.pairs]

    def agreement(self, model: Model, noise: Noise) -> int:
        """Of a fresh sample from a model."""
        return self.overlap(PrivateTable(model.sample(self.private.n, noise), self.private.schema))

    def overlap(self, synthetic: PrivateTable) -> int:
        """Rows in common, summed over the pairs."""
        total = 0
        for pair, (keys, counts) in zip(self.pairs, self._original, strict=True):
            other_keys, other_counts = self._counts(synthetic, pair)
            _, first, second = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
            total += int(np.minimum(counts[first], other_counts[second]).sum())
        return total

    def _counts(self, table: PrivateTable, pair: tuple[str, ...]) -> tuple[IntArray, IntArray]:
        counted = table.counts(pair, bins=self._bins)
        return np.ravel_multi_index(tuple(counted.cells.T), counted.shape).astype(np.int64), counted.counts


def noise_source(seed: int | None) -> NoiseSource:
    """Fresh sources: of release noise, or of simulated noise that a seed repeats."""
    if seed is None:
        return SecureNoise
    seeds = np.random.SeedSequence(seed)
    return lambda budget: SeededNoise(budget, seeds.spawn(1)[0])


def _surcharge(selection: PrivateSelection, per_row: Budget) -> Charge:
    """What the choice costs on top of the chosen run."""
    fit, score = selection.shares(per_row)
    rest = Budget(epsilon=per_row.epsilon - fit.epsilon - score.epsilon)
    return Charge(label="choosing the best run", primitive="selection", sensitivity=Fraction(1), budget=rest)


def _run_progress(progress: Progress, index: int, runs: int) -> Progress:
    """One of many runs. Its points are dropped: a line would show a run that is never released."""

    def report(stage: str, done: float, /, *_: Point) -> None:
        progress(f"{stage} (run {index + 1} of {runs})", (index + done) / runs)

    return report
