"""The best of several runs: the exact loss of the whole on toy tables, and replays on hurtful ones.

One run is followed through every outcome of its paid draws on both tables, with the score that it would get on each.
From that the law of the release follows in closed form (docs/proofs.md, section 22), and with it the largest loss:
exactly, for what the runs actually draw and at the budgets that they are actually given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.audit.checks import AuditCheck, Size, seed_for, verdict
from dpsynth_core.audit.claims import claim_checks
from dpsynth_core.audit.enumeration import SLACK, OpenDrawError, Scripted
from dpsynth_core.audit.neighbours import HURTFUL, TOYS, NeighbourPair
from dpsynth_core.audit.outcomes import options
from dpsynth_core.audit.probes import DenseCounts, LargestCells
from dpsynth_core.audit.replay import same
from dpsynth_core.audit.subject import EPSILONS
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise, SeededNoise
from dpsynth_core.privacy.primitives import Laplace
from dpsynth_core.privacy.recording import Recorder, Replay, ReplayMismatchError
from dpsynth_core.runs.selection import PrivateSelection, best_run, scored_run, select_release
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.private_table import PrivateTable

SUBJECT = "private selection"
CANDIDATES: tuple[Mechanism, ...] = (DenseCounts(), LargestCells())
"""Few outcomes each, so that every one can be followed."""
MAX_RUNS = (2, 5, 40)
SCALES = 60
"""Scores that are further from the true one than this many scales of the noise are left out: they never happen."""


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """One outcome of a run, on two tables."""

    logs: tuple[float, float]
    """Its log-probability on each."""
    scores: tuple[Laplace, Laplace]
    """The draw of its score on each."""


def selection_checks(
    size: Size, root: int, kind: type[PrivateSelection] = PrivateSelection, *, subject: str = SUBJECT
) -> Iterator[AuditCheck]:
    """Every toy table at a small and a large epsilon, replays on hurtful neighbours, and what a release says."""
    yield from selection_losses(kind, subject=subject)
    yield from selection_replays(size, root, kind, subject=subject)
    yield from claim_checks(_selected, {PerturbedHistogram.key: PerturbedHistogram}, subject=subject)


def _selected(private: PrivateTable, mechanism: Mechanism, *, delta: Amount = 0, **options: Any) -> Release:
    assert not delta  # noqa: S101  the mechanism needs none
    return select_release(private, [mechanism], max_runs=2, **options)


# ---------------------------------------------------------------------------------------------------------- enumeration


def selection_losses(
    kind: type[PrivateSelection] = PrivateSelection, *, subject: str = SUBJECT
) -> Iterator[AuditCheck]:
    """The largest loss of the whole, exactly."""
    for pair in TOYS:
        for epsilon in EPSILONS:
            budget = Budget.of(epsilon)
            for max_runs in MAX_RUNS:
                selection = kind.of(CANDIDATES, max_runs)
                run = list(run_outcomes(selection, pair, budget))
                loss = selected_loss(run, max_runs)
                yield AuditCheck(
                    layer="enumeration",
                    subject=subject,
                    case=f"up to {max_runs} runs; {pair.name}; epsilon {epsilon}",
                    verdict=verdict(loss <= epsilon + SLACK),
                    detail=f"largest loss {loss:.4g} over {len(run):,} outcomes of a run, each with every score",
                    measured=loss,
                    claimed=float(epsilon),
                )


def run_outcomes(selection: PrivateSelection, pair: NeighbourPair, budget: Budget) -> Iterator[RunOutcome]:
    """Every outcome of one run, whichever candidate it takes."""
    chance = -math.log(len(selection.candidates))
    for candidate in selection.candidates:
        yield from _follow(selection, candidate, pair, budget, script=[], logs=(chance, chance))


def _follow(
    selection: PrivateSelection,
    candidate: Mechanism,
    pair: NeighbourPair,
    budget: Budget,
    *,
    script: list[Any],
    logs: tuple[float, float],
) -> Iterator[RunOutcome]:
    """Every outcome of a candidate that begins with these draws."""
    calls = [_next_draw(selection, candidate, table, budget, script) for table in pair.tables]
    (first, scored), (second, _) = calls
    if scored:
        yield RunOutcome(logs=logs, scores=(first, second))
        return
    for option in options(first, second):
        grown = logs[0] + option.first, logs[1] + option.second
        yield from _follow(selection, candidate, pair, budget, script=[*script, option.value], logs=grown)


def _next_draw(
    selection: PrivateSelection, candidate: Mechanism, table: PrivateTable, budget: Budget, script: list[Any]
) -> tuple[Any, bool]:
    """The first open draw of a run, and whether it is that of the score, which comes last."""
    sources: list[Noise] = []

    def source(granted: Budget) -> Noise:
        quiet = SeededNoise(granted, np.random.SeedSequence(0))
        sources.append(Scripted(quiet, [] if sources else script))
        return sources[-1]

    try:
        scored_run(selection.score_on(table), candidate, selection.shares(budget), source)
    except OpenDrawError as reached:
        return reached.call, bool(sources[-1].charges)
    raise AssertionError("a run ended without a score")


def selected_loss(run: list[RunOutcome], max_runs: int) -> float:
    """The largest |ln P(y, s) - ln P'(y, s)| over all outcomes and scores of the run that is released."""
    laws = [_selected_law(run, table, max_runs, _score_range(run)) for table in (0, 1)]
    return float(np.abs(laws[0] - laws[1]).max())


def _score_range(run: list[RunOutcome]) -> FloatArray:
    values = [int(call.values[0]) for outcome in run for call in outcome.scores]
    reach = math.ceil(SCALES * max(call.scale for outcome in run for call in outcome.scores))
    return np.arange(min(values) - reach, max(values) + reach + 1, dtype=np.float64)


def _selected_law(run: list[RunOutcome], table: int, max_runs: int, scores: FloatArray) -> FloatArray:
    """Ln P(y, s) = ln Q(y, s) + ln((f(B + q) - f(B)) / q), one row for each outcome of a run."""
    rows = []
    for outcome in run:
        call = outcome.scores[table]
        a = math.exp(-1 / call.scale)
        rows.append(outcome.logs[table] + math.log((1 - a) / (1 + a)) - np.abs(scores - call.values[0]) / call.scale)
    joint = np.array(rows)
    q = np.exp(joint).sum(axis=0)
    upto = np.cumsum(q)
    return np.asarray(joint + np.log(mean_slope(upto - q, upto, max_runs)))


def mean_slope(below: FloatArray, upto: FloatArray, max_runs: int) -> FloatArray:
    """(f(b) - f(a)) / (b - a) for f(t) = (t + ... + t^T) / T, as b^k - a^k = (b - a) Σ b^j a^(k-1-j)."""
    total = inner = np.ones_like(below)
    power = np.ones_like(below)
    for _ in range(max_runs - 1):
        power = power * upto
        inner = inner * below + power
        total = total + inner
    return np.asarray(total / max_runs)


# --------------------------------------------------------------------------------------------------------------- replay


def selection_replays(
    size: Size, root: int, kind: type[PrivateSelection] = PrivateSelection, *, subject: str = SUBJECT
) -> Iterator[AuditCheck]:
    """Recorded on one table and replayed on its neighbour: same calls, same choice, no score moved too far."""
    for pair in HURTFUL:
        selection = kind.of((DenseCounts(), PerturbedHistogram()), 3)
        problems: dict[str, str] = {}
        for repetition in range(size.seeds):
            seed = seed_for(root, "replay", subject, pair.name, repetition)
            problems |= _replayed(selection, pair, seed)
        yield AuditCheck(
            layer="replay",
            subject=subject,
            case=pair.name,
            verdict=verdict(not problems),
            detail="; ".join(f"{name}: {words}" for name, words in problems.items()),
        )


def _replayed(selection: PrivateSelection, pair: NeighbourPair, seed: np.random.SeedSequence) -> dict[str, str]:
    recorders: list[Recorder] = []
    replays: list[Replay] = []

    def record(granted: Budget) -> Noise:
        recorders.append(Recorder(SeededNoise(granted, seed.spawn(1)[0])))
        return recorders[-1]

    def replay(_: Budget) -> Noise:
        replays.append(Replay(recorders[len(replays)]))
        return replays[-1]

    budget = Budget.of(1)
    recorded = best_run(pair.tables[0], selection, budget, record)
    try:
        replayed = best_run(pair.tables[1], selection, budget, replay)
    except ReplayMismatchError as error:
        return {"calls": str(error)}
    problems = {}
    if (recorded.mechanism, recorded.score) != (replayed.mechanism, replayed.score):
        problems["choice"] = "the same draws do not lead to the same choice"
    if not same(recorded.model, replayed.model):
        problems["release"] = "the same draws do not lead to the same model"
    if (excess := max(one.excess for one in replays)) > 1:
        problems["sensitivity"] = f"{excess:g} times what was declared"
    return problems
