"""Everything that leaves the program, through the entry points that people use.

Other layers hand a mechanism a source of noise. Here an entry point makes its own, of release noise, as it does for a
user; only that the sources it gets keep what they draw, and hand it out again when the same is done to another table.
Then whatever comes out must be the same to the last byte: tables and what is attached to them, the guarantee, charges,
estimates of the error, reports, warnings, errors, and every file that is made from them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpsynth_core.audit.checks import AuditCheck, Size, audit_check, not_applicable
from dpsynth_core.audit.neighbours import NeighbourPair
from dpsynth_core.audit.overheard import Overheard, overheard
from dpsynth_core.audit.replay import same
from dpsynth_core.audit.shapes import Shape
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.dp_mann_whitney import dp_mann_whitney
from dpsynth_core.inference.private_comparison import ComparisonRequest, compare_privately
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy import noise as sources
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise, SecureNoise
from dpsynth_core.privacy.recording import Recorder, Replay, ReplayMismatchError
from dpsynth_core.progress import Point, RunProgress
from dpsynth_core.runs.configuration import RunConfig, RunResult, execute
from dpsynth_core.runs.selection import PrivateSelection
from dpsynth_core.table.estimate import estimate_bounds
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

Outgoing: TypeAlias = Mapping[str, Any]
"""What left, by name."""
Files: TypeAlias = Callable[[RunResult], Mapping[str, bytes]]
"""Makes the files that are published of a run."""
Execute: TypeAlias = Callable[..., RunResult]
MIXED = Shape(columns=("continuous", "categorical", "date", "may be missing"), rows=24, epsilon="1")
LABELS = Shape(columns=("boolean", "with other", "ordinal"), rows=30, epsilon="4", rows_per_person=2)
MANY = Shape(columns=("continuous", "categorical"), rows=400, epsilon="3")
"""Enough rows for an estimate to find something."""
DELTA = "1e-6"
OTHER_ENTRIES = (
    *("three tables", "the best of several runs", "with a private test", "with private estimates"),
    "private test of two columns",
)
"""Besides a run of every mechanism."""


@dataclass(frozen=True, kw_only=True)
class EntryPoint:
    """Something that people call on a private table, and what they get for it."""

    name: str
    leave: Callable[[pd.DataFrame, Schema, RunProgress], Outgoing]
    shape: Shape
    slow: bool = False
    """Whether a run takes so long that only a deep audit makes it."""


class _Reporting(RunProgress):
    """Passes reports on."""

    def __init__(self, said: Overheard) -> None:
        self._said = said

    def __call__(self, stage: str, done: float, /, *points: Point) -> None:
        self._said.progress(stage, done, *points)


class _Replayed(Replay):
    """Counts as release noise, so that what is claimed stays as it was; nothing of it is published."""

    secure = True


@contextmanager
def release_noise(make: Callable[[Budget], Noise]) -> Iterator[None]:
    """Whoever asks for release noise inside gets these sources."""
    inside = [m for name, m in list(sys.modules.items()) if name.startswith("dpsynth_core.") and name != __name__]
    holders = [module for module in inside if vars(module).get("SecureNoise") is SecureNoise]
    for module in holders:
        module.SecureNoise = make  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in holders:
            module.SecureNoise = SecureNoise  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------------------------------- entry points


def no_files(_: RunResult) -> Mapping[str, bytes]:
    return {}


def parts_of(result: RunResult) -> Outgoing:
    """A run's result but for how long it took, which depends on the machine and is never published."""
    attached = [(table.attrs, table.index, table.columns) for table in result.tables]
    return {
        "tables": result.tables,
        "attached to the tables": attached,
        "types": [[str(kind) for kind in table.dtypes] for table in result.tables],
        "guarantee": result.guarantee,
        "configuration": result.config.to_json(),
        "schema": result.schema.to_json(),
        "charges": result.charges,
        "boxes": result.leaves,
        "expected error": result.expected_error,
        "private tests": result.comparisons,
    }


def entry_points(run: Execute = execute, files: Files = no_files) -> Iterator[EntryPoint]:
    """A run of every mechanism; runs of several tables, with a choice, a test and estimates; the private tests."""

    def left(result: RunResult) -> Outgoing:
        return {**parts_of(result), **files(result)}

    for key, kind in MECHANISMS.items():
        if kind.status != "none":
            delta = DELTA if kind.needs_delta else "0"
            leave = _running(run, left, key, delta=delta)
            yield EntryPoint(name=key, shape=MIXED, leave=leave, slow=not kind.audit_runs)
            if kind.takes_delta:
                yield EntryPoint(name=f"{key} with delta", shape=MIXED, leave=_running(run, left, key, delta=DELTA))
    others = (
        (LABELS, _running(run, left, "perturbed_histogram", copies=3)),
        (MIXED, _choosing(run, left)),
        (LABELS, _testing(run, left)),
        (MANY, _estimating(run, left)),
        (replace(LABELS, rows=60), _two_columns),
    )
    for name, (shape, leave) in zip(OTHER_ENTRIES, others, strict=True):
        yield EntryPoint(name=name, shape=shape, leave=leave)


def _running(
    run: Execute, left: Callable[[RunResult], Outgoing], key: str, *, delta: str = "0", copies: int = 1
) -> Callable[[pd.DataFrame, Schema, RunProgress], Outgoing]:
    def leave(frame: pd.DataFrame, schema: Schema, progress: RunProgress) -> Outgoing:
        mechanism = MECHANISMS[key].suggest(schema, len(frame), "1", delta)
        config = RunConfig(mechanism=mechanism, epsilon="1", delta=delta, copies=copies)
        return left(run(frame, schema, config, progress=progress))

    return leave


def _choosing(
    run: Execute, left: Callable[[RunResult], Outgoing]
) -> Callable[[pd.DataFrame, Schema, RunProgress], Outgoing]:
    def leave(frame: pd.DataFrame, schema: Schema, progress: RunProgress) -> Outgoing:
        kinds = (MECHANISMS["kd_tree"], MECHANISMS["perturbed_histogram"])
        selection = PrivateSelection.of([kind.suggest(schema, len(frame), "1") for kind in kinds], 3)
        config = RunConfig(mechanism=selection.candidates[0], epsilon="3", selection=selection)
        return left(run(frame, schema, config, progress=progress))

    return leave


def _testing(
    run: Execute, left: Callable[[RunResult], Outgoing]
) -> Callable[[pd.DataFrame, Schema, RunProgress], Outgoing]:
    def leave(frame: pd.DataFrame, schema: Schema, progress: RunProgress) -> Outgoing:
        facts = schema.to_dict()
        facts["columns"][2] |= {"kind": "integer", "lower": 1, "upper": 3, "categories": None}
        numbers = Schema.from_dict(facts)
        request = ComparisonRequest(value="c2", group="c0", epsilon="1", delta=DELTA)
        tested = compare_privately(PrivateTable(frame, numbers), request)
        config = RunConfig(mechanism=MECHANISMS["kd_grid"].suggest(numbers, len(frame), "1"), epsilon="1")
        return left(run(frame, numbers, config, progress=progress).with_comparisons([tested]))

    return leave


def _estimating(
    run: Execute, left: Callable[[RunResult], Outgoing]
) -> Callable[[pd.DataFrame, Schema, RunProgress], Outgoing]:
    def leave(frame: pd.DataFrame, schema: Schema, progress: RunProgress) -> Outgoing:
        number = estimate_bounds(frame["c0"], epsilon=3, noise=sources.SecureNoise(Budget.of(3)))
        columns = [number.declare(schema["c0"], others_public=True), schema["c1"]]
        declared = replace(schema, columns=tuple(columns))
        config = RunConfig(mechanism=MECHANISMS["kd_tree"].suggest(declared, len(frame), "1"), epsilon="1")
        return left(run(frame, declared, config, [number], progress=progress))

    return leave


def _two_columns(frame: pd.DataFrame, schema: Schema, progress: RunProgress) -> Outgoing:
    """As a notebook calls it: two columns as they are, with whatever is in them."""
    del schema, progress
    values = pd.to_numeric(frame["c2"], errors="coerce")
    return {"test": dp_mann_whitney(values, frame["c0"], 1, levels=(False, True))}


# -------------------------------------------------------------------------------------------------------------- checks


def leaving_checks(
    size: Size,
    root: int,
    *,
    run: Execute = execute,
    files: Files = no_files,
    subject: str | None = None,
    only: Collection[str] | None = None,
) -> Iterator[AuditCheck]:
    """Every entry point, or only some, on neighbours and on tables with nothing in common, both ways."""
    for entry in entry_points(run, files):
        if only is not None and entry.name not in only:
            continue
        if entry.slow and size.seeds == 1:
            yield not_applicable("leaving", subject or entry.name, entry.shape.name, "only in a deep audit")
            continue
        for repetition in range(size.seeds):
            seed = root + 31 * repetition
            for pair in (entry.shape.far(seed), entry.shape.near(seed)):
                problems = dict.fromkeys((*left_otherwise(entry, pair), *left_otherwise(entry, pair.turned)))
                yield audit_check("leaving", subject or entry.name, pair.name, not problems, "; ".join(problems))


def left_otherwise(entry: EntryPoint, pair: NeighbourPair) -> Iterator[str]:
    """In words what is different on the second table, with the draws of the first."""
    recorders: list[Recorder] = []
    replays: list[Replay] = []

    def record(budget: Budget) -> Noise:
        recorders.append(Recorder(SecureNoise(budget)))
        return recorders[-1]

    def replay(_: Budget) -> Noise:
        if len(replays) == len(recorders):
            raise ReplayMismatchError("More sources of noise are used on the second table.")
        replays.append(_Replayed(recorders[len(replays)]))
        return replays[-1]

    first = _left(entry, pair.first, pair.schema, record)
    try:
        second = _left(entry, pair.second, pair.schema, replay)
    except ReplayMismatchError as error:
        yield str(error)
        return
    for name in {**first, **second}:
        if name not in first or name not in second or not same(first[name], second[name]):
            yield f"{name} depends on the rows"
    if len(replays) < len(recorders) or not all(each.finished for each in replays):
        yield "fewer draws on the second table"
    if pair.close and any(each.excess > 1 for each in replays):
        yield f"an input moved by {max(each.excess for each in replays):g} times what was declared"


def _left(entry: EntryPoint, frame: pd.DataFrame, schema: Schema, make: Callable[[Budget], Noise]) -> dict[str, Any]:
    with overheard() as said, release_noise(make):
        np.random.seed(0)  # noqa: NPY002  what is drawn from the process's own stream must not look like chance
        try:
            leaves, error = dict(entry.leave(frame, schema, _Reporting(said))), ""
        except ReplayMismatchError:
            raise
        except DPSynthError as problem:
            leaves, error = {}, f"{type(problem).__name__}: {problem}"
    return {**leaves, "error": error, "said": said.lines}
