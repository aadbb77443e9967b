"""An attacker who knows every row but one looks at whole runs, with and without that row."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dpsynth_core.arrays import FloatArray
from dpsynth_core.audit.checks import AuditCheck, Size, not_applicable, seed_for
from dpsynth_core.audit.lower_bound import bound_check, lower_bound
from dpsynth_core.audit.neighbours import ATTACKED, NeighbourPair
from dpsynth_core.audit.subject import EPSILONS, Source, Subject
from dpsynth_core.mechanisms.base import Mechanism, Model
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise
from dpsynth_core.table.encoding import codec_for
from dpsynth_core.table.private_table import PrivateTable

SAMPLED_ROWS = 60
"""Looked at where a model cannot be looked into."""


def presence(model: Model, table: PrivateTable, row: int, noise: Noise) -> float:
    """What an attacker looks at: how densely the release fills the cell where a row would be.

    Boxes with weights are looked into; of any other model some rows are drawn, and those that fall into the row's cell
    are counted.
    """
    if isinstance(model, PartitionModel):
        cell = np.array([axis.locate(table)[row] for axis in model.axes])
        inside = ((model.low <= cell) & (cell < model.high)).all(axis=1)
        volume = np.prod((model.high - model.low)[inside].astype(np.float64), axis=1)
        return float((model.weights[inside] / volume).sum())
    rows = PrivateTable(model.sample(SAMPLED_ROWS, noise), table.schema)
    equal = np.ones(SAMPLED_ROWS, dtype=np.bool_)
    for column in table.schema:
        codec = codec_for(column)
        equal &= codec.codes(rows.positions(column.name)) == codec.codes(table.positions(column.name))[row]
    return float(np.count_nonzero(equal))


def end_to_end_checks(
    subject: Subject, size: Size, root: int, pairs: tuple[NeighbourPair, ...] = ATTACKED
) -> Iterator[AuditCheck]:
    """The setting that is suggested at both epsilons on the first pair, every other setting at the small one."""
    runs = int(subject.runs * size.run_share)
    if runs < 2:
        reason = "one run takes too long; its draws are attacked one by one"
        yield not_applicable("end-to-end attack", subject.name, "all", reason)
        return
    for epsilon in EPSILONS:
        settings = subject.settings_for(pairs[0].schema, pairs[0].n, epsilon)
        for i, (setting, mechanism) in enumerate(settings.items()):
            if i and epsilon != EPSILONS[0]:
                continue
            # Settings take turns with the pairs, so that every pair meets some of them.
            pair = pairs[i % len(pairs)]
            case = f"{setting}; {pair.name}; epsilon {epsilon}"
            seed = seed_for(root, "whole", subject.name, case)
            samples = attack(mechanism, pair, subject.source, subject.budget(epsilon), runs=runs, seed=seed)
            bound = lower_bound(*samples, alpha=size.level, delta=float(subject.delta))
            yield bound_check("end-to-end attack", subject.name, case, bound, claim=float(epsilon), level=size.level)


def attack(
    mechanism: Mechanism,
    pair: NeighbourPair,
    source: Source,
    budget: Budget,
    *,
    runs: int,
    seed: np.random.SeedSequence,
    report: Callable[[float], None] = lambda _: None,
) -> tuple[FloatArray, FloatArray]:
    """What the attacker sees in many runs on either table; looked at is the row of the second one."""
    samples = np.empty((2, runs))
    for which, (table, seeds) in enumerate(zip(pair.tables, seed.spawn(2), strict=True)):
        for i, own in enumerate(seeds.spawn(runs)):
            noise = source(budget, own)
            samples[which, i] = presence(mechanism.fit(table, noise), pair.tables[1], pair.row, noise)
            report((which * runs + i + 1) / (2 * runs))
    return samples[0], samples[1]
