"""A run as plain values that can be saved, loaded and sent to a worker: what to run, and what came out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from statistics import fmean
from typing import Any

import pandas as pd

from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.mechanisms import MECHANISMS, Mechanism
from dpsynth_core.privacy.budget import Budget, Cost, Guarantee, compose, format_amount
from dpsynth_core.privacy.noise import Noise, SeededNoise
from dpsynth_core.privacy.primitives import Charge
from dpsynth_core.progress import Point, Progress, RunProgress, share_of
from dpsynth_core.runs.expected_error import ExpectedError, error_of_release, seconds_to_estimate
from dpsynth_core.runs.originals import OriginalRows, opened
from dpsynth_core.runs.selection import PrivateSelection, run_selection
from dpsynth_core.runs.synthesize import ROWS, Release, run_mechanism
from dpsynth_core.table.engines.streamed_table import StreamedTable
from dpsynth_core.table.json_text import read_json
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MAX_COPIES = 20
FIELDS = ("mechanism", "parameters", "epsilon", "delta", "copies", "selection")
"""Of a saved configuration."""
NO_PROGRESS = RunProgress()
MAX_ROWS_HELD = 10_000_000
"""Synthetic rows that a run makes at a time, at most: they are held in memory."""

RENAMED: dict[str, dict[str, str]] = {
    "pmse": {"trees": "criterion"},
    "noisy_bayes": {"ties_share": "relations_share"},
    "bayes": {"ties_share": "relations_share"},
    "private_pgm": {"pairs": "rounds"},
}
"""Parameters that had another name when a configuration was saved, by mechanism."""
RENAMED_VALUES: dict[str, dict[str, dict[Any, Any]]] = {
    "private_pgm": {"strategy": {"tree": "rounds", "adaptive": "rounds"}},
}
"""Values of parameters that are called otherwise now, by mechanism and parameter."""
WITHDRAWN: dict[str, dict[str, Any]] = {
    "pmse": {"bound": "tight", "prior": "bounds", "over_pairs": "mean", "joint": 8, "cp": 0.01, "tree_depth": 30},
}
"""Parameters that are no choice any more, with the only value that they have now."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """What to run, and with how much privacy. Epsilon and delta are for each synthetic table, as they were typed."""

    mechanism: Mechanism
    epsilon: str
    delta: str = "0"
    copies: int = 1
    """How many synthetic tables; their losses add up."""
    seed: int | None = None
    """For simulation in teaching mode only; None draws real noise."""
    selection: PrivateSelection | None = None
    """Where the best of several runs is chosen privately: among which. ``mechanism`` is the first of them before the
    run, and the chosen one afterwards."""

    def __post_init__(self) -> None:
        Budget.of(self.epsilon, self.delta)
        if self.selection is not None:
            self.selection.shares(self.each)
            if self.mechanism not in self.selection.candidates:
                raise ParameterError("mechanism", self.mechanism.key, allowed="one of the candidates of the selection")
            if self.copies != 1:
                remedy = "A private selection chooses one table."
                raise ParameterError("copies", self.copies, allowed="1", remedy=remedy)
        if not isinstance(self.copies, int) or isinstance(self.copies, bool) or not 1 <= self.copies <= MAX_COPIES:
            raise ParameterError("copies", self.copies, allowed=f"a whole number from 1 to {MAX_COPIES}")

    @property
    def each(self) -> Budget:
        """The loss of one table."""
        return Budget.of(self.epsilon, self.delta)

    def is_long(self, n: int) -> bool:
        """Whether the synthetic table is too long to be held."""
        return (self.mechanism.rows or n) > MAX_ROWS_HELD

    def check_length(self, n: int) -> None:
        """Refuse a synthetic table that is too long to be held, before anything is charged."""
        rows = self.mechanism.rows or n
        if self.is_long(n):
            raise ParameterError(
                "rows",
                f"{rows:,}",
                allowed=f"at most {MAX_ROWS_HELD:,} synthetic rows",
                remedy="Set the mechanism's parameter 'rows'; the guarantee and what is learned are the same.",
            )

    @property
    def total(self) -> Budget:
        """The loss of all tables together: what is charged."""
        return self.each.times(self.copies)

    @property
    def cost(self) -> Cost:
        """The total as a part of a guarantee, which says what it is for."""
        label = ROWS
        if self.copies > 1:
            label += f", {self.copies} tables at epsilon {format_amount(self.each.epsilon)} each"
        if self.selection is not None:
            label += f", chosen privately from up to {self.selection.max_runs} runs"
        return Cost(label=label, budget=self.total)

    @property
    def fitted(self) -> Budget:
        """What the mechanism itself gets for one table: less than its loss where a selection takes the rest."""
        return self.each if self.selection is None else self.selection.shares(self.each)[0]

    @property
    def runs(self) -> int:
        """How often a mechanism is run."""
        return self.copies if self.selection is None else self.selection.max_runs

    def seconds(self, schema: Schema, n: int) -> float:
        """How long a run should take, roughly, its estimate of error included; raises where nothing fits."""
        candidates = (self.mechanism,) if self.selection is None else self.selection.candidates
        plans = [one.plan(schema, n, self.fitted.per_row(schema.rows_per_person)) for one in candidates]
        making = fmean(plan.seconds_of(self.runs) for plan in plans)
        if n > MAX_ROWS_HELD:
            return making
        return making + fmean(seconds_to_estimate(plan, len(schema.columns)) for plan in plans)

    def to_json(self) -> str:
        """JSON text, readable by people; without the seed, which no release has."""
        saved = {**_saved(self.mechanism), "epsilon": self.epsilon, "delta": self.delta, "copies": self.copies}
        if self.selection is not None:
            candidates = [_saved(candidate) for candidate in self.selection.candidates]
            saved["selection"] = {"candidates": candidates, "max_runs": self.selection.max_runs}
        return json.dumps(saved, indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> RunConfig:
        """A configuration from JSON text; unknown names are refused rather than ignored."""
        try:
            saved = read_json(text)
        except ValueError:
            raise DPSynthError("This file is not JSON. Load a configuration that was saved here.") from None
        if not isinstance(saved, Mapping) or not isinstance(saved.get("parameters", {}), Mapping):
            raise DPSynthError("This file is not a configuration. Load one that was saved here.")
        if unknown := set(saved) - set(FIELDS):
            raise ParameterError("field", min(unknown), allowed=", ".join(FIELDS))
        return cls(
            mechanism=_mechanism(str(saved.get("mechanism")), saved.get("parameters", {})),
            epsilon=str(saved.get("epsilon", "1")),
            delta=str(saved.get("delta", "0")),
            copies=saved.get("copies", 1),
            selection=_selection(saved.get("selection")),
        )


def _saved(mechanism: Mechanism) -> dict[str, Any]:
    parameters = {name: value for name, value in asdict(mechanism).items() if name != "reason"}
    return {"mechanism": mechanism.key, "parameters": parameters}


def _selection(saved: Any) -> PrivateSelection | None:
    if saved is None:
        return None
    try:
        candidates = [_mechanism(str(one["mechanism"]), dict(one["parameters"])) for one in saved["candidates"]]
        return PrivateSelection.of(candidates, saved["max_runs"])
    except (KeyError, TypeError, ValueError):
        allowed = "candidates (each with mechanism and parameters) and max_runs"
        raise ParameterError("selection", type(saved).__name__, allowed=allowed) from None


def _mechanism(key: str, saved: Mapping[str, Any]) -> Mechanism:
    if key not in MECHANISMS:
        raise ParameterError("mechanism", key, allowed=", ".join(MECHANISMS))
    kind = MECHANISMS[key]
    known = {field.name for field in fields(kind)} - {"reason"}  # without class variables such as the title
    parameters = {}
    for name, value in saved.items():
        current = RENAMED.get(key, {}).get(name, name)
        if current in known:
            renamed = RENAMED_VALUES.get(key, {}).get(current, {})
            parameters[current] = renamed.get(value, value) if isinstance(value, str) else value
        elif name not in WITHDRAWN.get(key, {}):
            raise ParameterError("parameter", name, allowed=", ".join(sorted(known)))
        elif value != WITHDRAWN[key][name]:
            raise ParameterError(name, value, allowed=repr(WITHDRAWN[key][name]), remedy="Other values were withdrawn.")
    return kind(**parameters)


@dataclass(frozen=True, kw_only=True)
class SampledRows:
    """A model of which only the rows it has drawn are left."""

    table: pd.DataFrame

    def sample(self, rows: int, noise: Noise) -> pd.DataFrame:
        """The same rows again, or a resample of them if another number is wanted."""
        if rows == len(self.table):
            return self.table
        return self.table.iloc[noise.integers(len(self.table), rows)].reset_index(drop=True)


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What a run has made; nothing in it is private."""

    config: RunConfig
    schema: Schema
    tables: tuple[pd.DataFrame, ...]
    guarantee: Guarantee
    """For all tables together, with the private estimates behind the public facts."""
    estimates: tuple[PaidEstimate, ...] = ()
    """The private estimates of its columns that were on record."""
    comparisons: tuple[PaidComparison, ...] = ()
    """Private tests that are published with the tables; their cost is part of the guarantee."""
    charges: tuple[Charge, ...]
    """What each stage of the first table spent, per row."""
    leaves: pd.DataFrame | None
    """The partition behind the first table, where there is one."""
    seconds: float
    expected_error: ExpectedError | None = None
    """What each table's error is likely to be, from its own rows and public facts; None where nobody knows."""

    def with_comparisons(self, comparisons: Iterable[PaidComparison]) -> RunResult:
        """The same tables published together with private tests, in one statement (docs/proofs.md, section 21).

        A test must have been made with the same facts about its two columns: then the private estimates behind them
        are part of the tables' statement already.
        """
        added = tuple(comparisons)
        for test in added:
            names = test.schema.names
            if any(name not in self.schema.names for name in names) or (
                self.schema.select(names).unsigned() != test.schema
            ):
                raise DPSynthError(
                    f"The private test of {test.value!r} by {test.group!r} was made with other public facts than this "
                    "release, so the two cannot share one statement. Test again with the facts of the release."
                )
        own = [test.guarantee.limited_to(test.cost) for test in added]
        return replace(self, comparisons=(*self.comparisons, *added), guarantee=compose([self.guarantee, *own]))

    def release(self, n: int) -> Release:
        """The first table as a release of ``n`` original rows, to run its mechanism again on simulated rows."""
        each = self.config.each
        cost = () if self.guarantee.budget is None else (Cost(label=ROWS, budget=each),)
        return Release(
            mechanism=self.config.mechanism,
            schema=self.schema,
            n=n,
            charges=self.charges,
            guarantee=self.guarantee.limited_to(*cost),
            budget=self.config.fitted if cost else None,
            model=SampledRows(table=self.tables[0]),
            noise=SeededNoise(each, seed=0),
        )


def execute(
    table: OriginalRows,
    schema: Schema,
    config: RunConfig,
    estimates: Iterable[PaidEstimate] = (),
    *,
    progress: RunProgress = NO_PROGRESS,
) -> RunResult:
    """Make the synthetic tables; ``progress.drawn()`` is called before anything is drawn.

    Args:
        table: The private rows, in memory or where they are.
        schema: The public facts.
        config: What to run.
        estimates: Private estimates that were paid for on this table.
        progress: Receives the stages; raises to cancel.
    """
    progress("Reading the table", 0.0)
    with opened(table, schema) as private:
        return _execute(private, config, estimates, progress)


def _execute(
    private: PrivateTable | StreamedTable,
    config: RunConfig,
    estimates: Iterable[PaidEstimate],
    progress: RunProgress,
) -> RunResult:
    began = time.monotonic()
    config.check_length(private.n)
    tables, guarantees = [], []
    for copy in range(config.copies):

        def report(stage: str, done: float, /, *points: Point, copy: int = copy) -> None:
            name = stage if config.copies == 1 else f"{stage} (table {copy + 1} of {config.copies})"
            progress(name, (copy + done) / config.copies, *points)

        if copy:
            progress.restart()
        release = released(private, config, copy, report, lambda _: progress.drawn())
        report("Drawing rows", 0.95)
        tables.append(release.sample())
        guarantees.append(release.guarantee)
        if not copy:
            first = release  # the others' models need not stay in memory
    result = result_of(
        private,
        config,
        first=first,
        tables=tables,
        guarantee=compose(guarantees),
        estimates=estimates,
        progress=progress,
    )
    return replace(result, seconds=time.monotonic() - began)


def result_of(
    private: PrivateTable | StreamedTable,
    config: RunConfig,
    *,
    first: Release,
    tables: Sequence[pd.DataFrame],
    guarantee: Guarantee,
    estimates: Iterable[PaidEstimate],
    progress: Progress,
) -> RunResult:
    """What a run has made, from its first release and the rows of all."""
    used = private.schema.estimates_used(estimates)
    long = private.n > MAX_ROWS_HELD
    rows = tables[0] if long or len(tables[0]) == private.n else first.sample(private.n)
    return RunResult(
        config=replace(config, mechanism=first.mechanism),
        schema=private.schema,
        tables=tuple(tables),
        # Each table is paid for; an estimate is paid for once, however many tables depend on it.
        guarantee=private.judge(_for_rows(guarantee, config), used),
        estimates=used,
        charges=first.charges,
        leaves=first.model.leaves() if hasattr(first.model, "leaves") else None,
        seconds=0.0,
        expected_error=None if long else _expected_error(first, rows, config, progress),
    )


def _expected_error(
    release: Release, rows: pd.DataFrame, config: RunConfig, progress: Progress
) -> ExpectedError | None:
    """What the release says about its own error. Its rows are paid for, so a problem here must not lose them."""
    if release.budget is None:
        return None
    last = share_of(progress, 0.95, 1.0)
    try:
        return error_of_release(release.mechanism, rows, release.schema, config.fitted, last)
    except (DPSynthError, ArithmeticError, MemoryError):
        return None


def _for_rows(guarantee: Guarantee, config: RunConfig) -> Guarantee:
    """The claim for the rows of all tables, as one part."""
    return guarantee if guarantee.budget is None else guarantee.limited_to(config.cost)


def released(
    private: PrivateTable | StreamedTable,
    config: RunConfig,
    copy: int,
    progress: Progress,
    watch: Callable[[Charge], None],
) -> Release:
    """One release: of the mechanism, or of the best of several runs."""
    seed = None if config.seed is None else config.seed + copy
    if config.selection is None:
        return run_mechanism(private, config.mechanism, config.each, seed=seed, progress=progress, watch=watch)
    if isinstance(private, StreamedTable):
        raise ParameterError(
            "engine", "a table that stays where it is", allowed="one mechanism, not the best of several"
        )
    return run_selection(private, config.selection, config.each, seed=seed, progress=progress, watch=watch)
