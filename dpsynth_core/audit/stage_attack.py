"""Attacks on single draws, for what whole runs hide: a selection in the middle, a count that is averaged away.

A run is recorded on one table and replayed on the other, so that both come to the same draw with the same past. That
draw is then made many times from its own sampler with either table's input. Given the past, its outcome must not tell
the tables apart by more than the draw's own charge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.audit.checks import AuditCheck, Size, not_applicable, seed_for
from dpsynth_core.audit.lower_bound import LowerBound, bound_check, lower_bound
from dpsynth_core.audit.neighbours import ATTACKED, NeighbourPair
from dpsynth_core.audit.subject import EPSILONS, Subject
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise, SeededNoise
from dpsynth_core.privacy.primitives import (
    Call,
    Charge,
    Decisions,
    Exponential,
    Gaussian,
    Laplace,
    ListedCounts,
    PaidCall,
    PermuteAndFlip,
    SampledGaussian,
    SharedExponential,
    Smoothed,
    SparseLaplace,
    SparseNoisy,
    ThresholdedCounts,
)
from dpsynth_core.privacy.recording import Recorder, Replay, ReplayMismatchError

MAX_EMPTY = 4_096
"""Empty cells of a draw that are listed to attack it."""


@dataclass(frozen=True, kw_only=True)
class StageAttack:
    """The same paid draw on two tables, after an equal past."""

    first: PaidCall[Any]
    second: PaidCall[Any]

    @property
    def charge(self) -> Charge:
        return self.first.charge

    @property
    def mu(self) -> float | None:
        """Of a draw under a Gaussian charge: how far a row may move its input, in units of the noise."""
        match self.first:
            case SampledGaussian(draw=draw):
                return math.sqrt(draw.squared) / draw.scale
            case Gaussian(draw=draw):
                return draw.shift * math.sqrt(draw.values) / draw.scale
            case SharedExponential(draw=draw):
                return math.sqrt(draw.cost)
        return None

    @property
    def claim(self) -> float:
        """The epsilon that the draw must keep; none of its own where it stands for a choice that nobody learns.

        There the attacked draw is the one that did look at the row. Its charge is for not knowing that; what remains to
        be refuted is mu.
        """
        hidden = isinstance(self.first, SampledGaussian) and self.first.draw.rate < 1
        return math.inf if hidden else float(self.charge.budget.epsilon)

    @property
    def single(self) -> bool:
        return isinstance(self.first, Exponential | SharedExponential | PermuteAndFlip)


class _Capturing(Noise):
    """Keeps the draws of a run repeatable: empty cells are named from a list, not by a run that has gone on."""

    def __init__(self, source: Any, naming: SeededNoise) -> None:
        super().__init__(source)
        self._naming, self._is_naming, self._inside = naming, False, False
        self.calls: list[Call[Any]] = []

    def _perform(self, call: Call[Any]) -> Any:
        if self._is_naming:
            return self._naming._perform(call)
        if not self._inside:
            self.calls.append(self._frozen(call))
        return super()._perform(call)  # type: ignore[safe-super]  # the recorder or the replay that this is mixed into

    def _frozen(self, call: Call[Any]) -> Call[Any]:
        """The same draw with its own list of empty cells."""
        if not isinstance(call, ThresholdedCounts) or not 0 < call.zeros <= MAX_EMPTY:
            return call
        self._is_naming = True
        try:
            hidden = call.pick(call.zeros)
        finally:
            self._is_naming = False
        generator = self._naming._generator
        return replace(call, pick=lambda size: generator.choice(hidden, size=size, replace=False))


class _CapturingRecorder(_Capturing, Recorder):
    pass


class _CapturingReplay(_Capturing, Replay):
    pass


def stages(
    subject: Subject, mechanism: Mechanism, pair: NeighbourPair, epsilon: Amount, seed: np.random.SeedSequence
) -> list[StageAttack]:
    """For every label and kind of draw the first one whose input the row moves, frozen up to there."""
    own, naming = seed.spawn(2)
    names = SeededNoise(Budget.of(1), naming)
    recorder = _CapturingRecorder(subject.source(subject.budget(epsilon), own), names)
    mechanism.fit(pair.tables[0], recorder)
    replay = _CapturingReplay(recorder, names)
    # What comes before a difference can be attacked; the difference itself is the replay's finding.
    with suppress(ReplayMismatchError):
        mechanism.fit(pair.tables[1], replay)
    attacks: dict[tuple[str, str], StageAttack] = {}
    for first, second, moved in zip(recorder.calls, replay.calls, replay.distances, strict=False):
        if isinstance(first, PaidCall) and isinstance(second, PaidCall) and moved > 0:
            attacks.setdefault((first.charge.label, first.name), StageAttack(first=first, second=second))
    return list(attacks.values())


def attack_stage(stage: StageAttack, source: Noise, draws: int, *, alpha: float) -> LowerBound:
    """Draw many times from the same sampler with either input, and look along the direction that they differ in."""
    samples = [projected(stage, call, source, draws) for call in (stage.first, stage.second)]
    return lower_bound(samples[0], samples[1], alpha=alpha, delta=float(stage.charge.budget.delta))


def projected(stage: StageAttack, call: PaidCall[Any], source: Noise, draws: int) -> FloatArray:
    """Many outcomes of a draw, each along the direction in which the row moves the input: what speaks for one table."""
    match call:
        case SparseLaplace() | Decisions():
            return _projected_cells(stage, call, source, draws)
        case Smoothed():
            return _projected_rows(stage, call, source, draws)
        case Exponential() | SharedExponential() | PermuteAndFlip():
            moved = _difference(stage, "scores")
            return np.array([moved[source._perform(call)] for _ in range(draws)])
        case Laplace() | Gaussian() | SampledGaussian():
            # Independent from cell to cell: copies side by side are many draws.
            tiled = replace(call, values=np.tile(call.values.ravel(), (draws, 1)))
            return np.asarray(source._perform(tiled) @ _difference(stage, "values"))
    raise NotAttackableError(f"{call.name} has no attack of its own")


def _difference(stage: StageAttack, field: str) -> FloatArray:
    first, second = (np.asarray(getattr(call, field), dtype=np.float64) for call in (stage.first, stage.second))
    return (first - second).ravel()


def _projected_rows(stage: StageAttack, call: Smoothed, source: Noise, draws: int) -> FloatArray:
    drawn = source._perform(replace(call, draws=call.draws * draws))
    total = np.zeros(call.draws * draws)
    for cell, moved in _moved_counts(stage).items():
        total += moved * (drawn == np.array(cell)).all(axis=1)
    return np.asarray(total.reshape(draws, call.draws).sum(axis=1))


def _projected_cells(stage: StageAttack, call: SparseLaplace | Decisions, source: Noise, draws: int) -> FloatArray:
    """Copies of the domain side by side: one draw over all of them has the law of many draws."""
    zeros, threshold = call.zeros, call.threshold
    hidden = call.pick(zeros).tolist() if zeros else []
    index = {key: i for i, key in enumerate([*call.keys.tolist(), *hidden])}
    listed, cells = len(call.keys), len(index)
    keys = (np.arange(draws)[:, None] * cells + np.arange(listed)).ravel()

    def pick(size: int) -> IntArray:
        copy, which = np.divmod(source.distinct(draws * zeros, size), zeros)
        return np.asarray(copy * cells + listed + which, dtype=np.int64)

    output: SparseNoisy = source._perform(
        replace(call, keys=keys, values=np.tile(call.values, draws), zeros=zeros * draws, pick=pick)
    )
    # Of an empty cell nothing is known but that it stays below the threshold; of the others no more may be used.
    noisy = np.full(draws * cells, threshold - 1)
    noisy[keys] = np.maximum(output.values, threshold - 1)
    noisy[output.extra_keys] = threshold if isinstance(call, Decisions) else output.extra_values
    seen = noisy.reshape(draws, cells) - threshold + 1
    total = np.zeros(draws)
    for key, moved in _moved_counts(stage).items():
        if key in index:
            total += moved * seen[:, index[key]]
    return total


def _moved_counts(stage: StageAttack) -> dict[Any, int]:
    """By how much the counts of cells differ; a cell that is not listed holds nothing."""
    assert isinstance(stage.first, ListedCounts) and isinstance(stage.second, ListedCounts)  # noqa: S101, PT018
    first, second = stage.first.counts(), stage.second.counts()
    moved = {key: first.get(key, 0) - second.get(key, 0) for key in first.keys() | second.keys()}
    return {key: difference for key, difference in moved.items() if difference}


class NotAttackableError(Exception):
    """The outcome of the draw has no direction that speaks for one table."""


def stage_checks(
    subject: Subject, size: Size, root: int, pairs: tuple[NeighbourPair, ...] = ATTACKED
) -> Iterator[AuditCheck]:
    for pair, epsilon in product(pairs, EPSILONS):
        for setting, mechanism in subject.settings_for(pair.schema, pair.n, epsilon).items():
            case = f"{setting}; {pair.name}; epsilon {epsilon}"
            own, drawing = seed_for(root, "stage", subject.name, case).spawn(2)
            try:
                attacks = stages(subject, mechanism, pair, epsilon, own)
            except DPSynthError as error:
                yield not_applicable("stage attack", subject.name, case, error)
                continue
            source = subject.source(subject.budget(epsilon), drawing)
            for stage in attacks:
                yield _stage_check(stage, source, size, subject.name, case)


def _stage_check(stage: StageAttack, source: Noise, size: Size, subject: str, case: str) -> AuditCheck:
    draws = min(size.stage_draws, size.selections // 2) if stage.single else size.stage_draws
    try:
        bound = attack_stage(stage, source, draws, alpha=size.level)
    except NotAttackableError as reason:
        return not_applicable("stage attack", subject, case, reason)
    case = f"{stage.charge.label}; {case}"
    return bound_check("stage attack", subject, case, bound, claim=stage.claim, level=size.level, mu=stage.mu)
