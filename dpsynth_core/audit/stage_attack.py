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
from typing import Any

import numpy as np

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.audit.checks import AuditCheck, Size, seed_for
from dpsynth_core.audit.lower_bound import LowerBound, bound_check, lower_bound
from dpsynth_core.audit.neighbours import ATTACKED, NeighbourPair
from dpsynth_core.audit.subject import Subject
from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import Noise, SeededNoise
from dpsynth_core.privacy.primitives import Call, Charge
from dpsynth_core.privacy.recording import Recorder, Replay, ReplayMismatchError
from dpsynth_core.privacy.samplers import NORMAL

EPSILONS = (1, 4)
MAX_EMPTY = 4_096
"""Empty cells of a draw that are listed to attack it."""
ATTACKABLE = (
    "laplace", "gaussian", "sampled_gaussian", "sparse_laplace", "decisions", "smoothed", "exponential",
    "permute_and_flip",
)  # fmt: skip
"""Samplers whose outcome has a direction that speaks for one table."""
SINGLE = ("exponential", "permute_and_flip")
"""Samplers that are called once for every draw."""


@dataclass(frozen=True, kw_only=True)
class StageAttack:
    """The same paid draw on two tables, after an equal past."""

    first: Call
    """On one table."""
    second: Call
    """On the other."""

    @property
    def charge(self) -> Charge:
        """What it claims to cost."""
        assert self.first.charge is not None  # noqa: S101
        return self.first.charge

    @property
    def mu(self) -> float | None:
        """Of a Gaussian draw: the distance that a row may move its input, in units of the noise."""
        if self.first.primitive == "sampled_gaussian":
            scale, squared, *_ = self.first.parameters
            return float(squared**0.5 / scale)
        if self.first.primitive != "gaussian":
            return None
        scale, shift, values = self.first.parameters
        return float(shift * values**0.5 / scale)

    @property
    def claim(self) -> float:
        """The epsilon that the draw must keep; none of its own where it stands for a choice that nobody learns.

        There the attacked draw is the one that did look at the row. Its charge is for not knowing that; what remains to
        be refuted is mu.
        """
        chosen, parts = self.first.parameters[2:] if self.first.primitive == "sampled_gaussian" else (1, 1)
        return math.inf if chosen < parts else float(self.charge.budget.epsilon)

    @property
    def single(self) -> bool:
        """Whether its sampler is called once for every draw."""
        return self.first.primitive in SINGLE


class _Frozen:
    """Makes a draw repeatable after its run: empty cells are named from a list, not by a run that has gone on."""

    def __init__(self, seed: np.random.SeedSequence) -> None:
        self._source = SeededNoise(Budget.of(1), seed)
        self.naming = False

    def free(self, call: Call) -> Any:
        """What is drawn while cells are named."""
        return self._source._perform(call)

    def freeze(self, call: Call) -> Call:
        """The same draw with its own list of empty cells."""
        if call.pick is None or not 0 < int(call.parameters[1]) <= MAX_EMPTY:
            return call
        self.naming = True
        try:
            hidden = call.pick(int(call.parameters[1]))
        finally:
            self.naming = False
        generator = self._source._generator
        return replace(call, pick=lambda size: generator.choice(hidden, size=size, replace=False))


class _Capturing(Recorder):
    """A recorder that keeps its paid draws repeatable."""

    def __init__(self, source: Noise, frozen: _Frozen) -> None:
        super().__init__(source)
        self._frozen = frozen
        self.calls: list[Call] = []

    def _perform(self, call: Call) -> Any:
        if self._frozen.naming:
            return self._frozen.free(call)
        if not self._inside:
            self.calls.append(self._frozen.freeze(call))
        return super()._perform(call)


class _Listening(Replay):
    """A replay that does the same."""

    def __init__(self, recorder: Recorder, frozen: _Frozen) -> None:
        super().__init__(recorder)
        self._frozen = frozen
        self.calls: list[Call] = []

    def _perform(self, call: Call) -> Any:
        if self._frozen.naming:
            return self._frozen.free(call)
        self.calls.append(self._frozen.freeze(call))
        return super()._perform(call)


def stages(
    subject: Subject, mechanism: Mechanism, pair: NeighbourPair, epsilon: Amount, seed: np.random.SeedSequence
) -> list[StageAttack]:
    """For every label the first draw whose input the row moves, frozen up to there."""
    own, naming = seed.spawn(2)
    frozen = _Frozen(naming)
    recorder = _Capturing(subject.source(subject.budget(epsilon), own), frozen)
    mechanism.fit(pair.tables[0], recorder)
    replay = _Listening(recorder, frozen)
    # What comes before a difference can be attacked; the difference itself is the replay's finding.
    with suppress(ReplayMismatchError):
        mechanism.fit(pair.tables[1], replay)
    found: dict[str, StageAttack] = {}
    for first, second, moved in zip(recorder.calls, replay.calls, replay.distances, strict=False):
        if first.charge is not None and moved > 0:
            found.setdefault(first.charge.label, StageAttack(first=first, second=second))
    return list(found.values())


def attack_stage(stage: StageAttack, source: Noise, draws: int, *, alpha: float) -> LowerBound:
    """Draw many times from the same sampler with either input, and look along the direction that they differ in."""
    samples = [projected(stage, call, source, draws) for call in (stage.first, stage.second)]
    return lower_bound(samples[0], samples[1], alpha=alpha, delta=float(stage.charge.budget.delta))


def projected(stage: StageAttack, call: Call, source: Noise, draws: int) -> FloatArray:
    """Many outcomes of a draw, each along the direction in which the row moves the input: what speaks for one table."""
    if call.primitive in ("sparse_laplace", "decisions"):
        return _projected_cells(stage, call, source, draws)
    if call.primitive == "smoothed":
        return _projected_rows(stage, call, source, draws)
    assert stage.first.private is not None  # noqa: S101
    assert stage.second.private is not None  # noqa: S101
    assert call.private is not None  # noqa: S101
    moved = stage.first.private.astype(np.float64) - stage.second.private.astype(np.float64)
    if call.primitive in SINGLE:
        return np.array([moved[source._perform(call)] for _ in range(draws)])
    if call.primitive in ("laplace", *NORMAL):  # independent from cell to cell: copies side by side are many draws
        noisy = source._perform(replace(call, private=np.tile(call.private.ravel(), (draws, 1))))
        return np.asarray(noisy @ moved.ravel())
    raise NotImplementedError(call.primitive)


def _projected_rows(stage: StageAttack, call: Call, source: Noise, draws: int) -> FloatArray:
    rows = int(call.parameters[0])
    drawn = source._perform(replace(call, parameters=(rows * draws, *call.parameters[1:])))
    total = np.zeros(rows * draws)
    for cell, (first, second) in _differing(stage).items():
        total += (first - second) * (drawn == np.array(cell)).all(axis=1)
    return np.asarray(total.reshape(draws, rows).sum(axis=1))


def _projected_cells(stage: StageAttack, call: Call, source: Noise, draws: int) -> FloatArray:
    """Copies of the domain side by side: one draw over all of them has the law of many draws."""
    assert call.keys is not None  # noqa: S101
    assert call.private is not None  # noqa: S101
    scale, zeros, threshold = call.parameters[0], int(call.parameters[1]), int(call.parameters[2])
    hidden = call.pick(zeros).tolist() if zeros and call.pick is not None else []
    place = {key: i for i, key in enumerate([*call.keys.tolist(), *hidden])}
    listed, cells = len(call.keys), len(place)
    copies = np.arange(draws)[:, None] * cells

    def pick(size: int) -> IntArray:
        copy, which = np.divmod(source.distinct(draws * zeros, size), zeros)
        return np.asarray(copy * cells + listed + which, dtype=np.int64)

    tiled = replace(
        call, private=np.tile(call.private, draws), keys=(copies + np.arange(listed)).ravel(), pick=pick,
        parameters=(scale, zeros * draws, threshold),
    )  # fmt: skip
    output = source._perform(tiled)
    # Of an empty cell nothing is known but that it stays below the threshold; of the others no more may be used.
    noisy = np.full(draws * cells, threshold - 1)
    noisy[tiled.keys] = np.maximum(output.values, threshold - 1)
    noisy[output.extra_keys] = threshold if call.primitive == "decisions" else output.extra_values
    seen_cells = noisy.reshape(draws, cells)
    total = np.zeros(draws)
    for key, (first, second) in _differing(stage).items():
        if key in place:
            total += (first - second) * (seen_cells[:, place[key]] - threshold + 1)
    return total


def _differing(stage: StageAttack) -> dict[Any, tuple[int, int]]:
    """The counts of cells that differ, on both tables; a cell that is not listed holds nothing."""
    known = []
    for call in (stage.first, stage.second):
        assert call.keys is not None  # noqa: S101
        assert call.private is not None  # noqa: S101
        keys = [tuple(key) if isinstance(key, list) else key for key in call.keys.tolist()]
        known.append(dict(zip(keys, call.private.tolist(), strict=True)))
    pairs = {key: (known[0].get(key, 0), known[1].get(key, 0)) for key in known[0].keys() | known[1].keys()}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def stage_checks(
    subject: Subject, size: Size, root: int, pairs: tuple[NeighbourPair, ...] = ATTACKED
) -> Iterator[AuditCheck]:
    """Every kind of draw of every setting."""
    for pair in pairs:
        for epsilon in EPSILONS:
            for setting, mechanism in subject.settings_for(pair.schema, pair.n, epsilon).items():
                case = f"{setting}; {pair.name}; epsilon {epsilon}"
                own, drawing = seed_for(root, "stage", subject.name, case).spawn(2)
                try:
                    found = stages(subject, mechanism, pair, epsilon, own)
                except DPSynthError as error:
                    yield AuditCheck(
                        layer="stage attack", subject=subject.name, case=case, verdict="not applicable",
                        detail=str(error),
                    )  # fmt: skip
                    continue
                source = subject.source(subject.budget(epsilon), drawing)
                for stage in found:
                    if stage.first.primitive not in ATTACKABLE:
                        yield AuditCheck(
                            layer="stage attack", subject=subject.name, case=case, verdict="not applicable",
                            detail=f"{stage.first.primitive} has no attack of its own",
                        )  # fmt: skip
                        continue
                    draws = min(size.stage_draws, size.selections // 2) if stage.single else size.stage_draws
                    bound = attack_stage(stage, source, draws, alpha=size.level)
                    yield bound_check(
                        "stage attack", subject.name, f"{stage.charge.label}; {case}", bound,
                        claim=stage.claim, level=size.level, mu=stage.mu,
                    )  # fmt: skip
