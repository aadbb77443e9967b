"""What error to expect before anything is spent: the mechanism at work on simulated rows with the same public facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import fmean
from typing import Literal, TypeAlias, TypeVar

from dpsynth_core.errors import DPSynthError
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.progress import Progress, RunProgress, no_progress
from dpsynth_core.runs.expected_error import ExpectedError, expected_error, seconds_to_compare
from dpsynth_core.table.column import Column
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.table.simulate import simulate_related

RELATIONS = (0.0, 0.3, 0.7)
"""How strongly simulated columns depend on each other: not at all, moderately, strongly."""
MAX_ROWS = 50_000
"""Simulated rows; a table that has more will have a smaller error than is forecast."""
COARSE_BINS = 8
"""Bins of a number that is declared coarser."""
MORE_EPSILON = 2
MIN_COLUMNS = 4
"""With fewer columns, leaving out half of them is no advice."""
COLUMN_LIMITS, PAIR_LIMITS = (0.05, 0.15), (0.1, 0.3)
"""Mean error up to which a release is expected to be close, and beyond which it is expected to be far off. Those of
single columns are the limits of Diagnostics; pairs, which have more cells, may have twice as much."""
Light: TypeAlias = Literal["green", "amber", "red"]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One way to release a table, from public facts."""

    mechanism: Mechanism
    schema: Schema
    n: int
    """Rows of the original."""
    budget: Budget

    @property
    def rows(self) -> int:
        """Rows that are simulated."""
        return min(self.n, MAX_ROWS)

    @property
    def seconds(self) -> float:
        """Expected computing time of its forecast; raises where the mechanism does not fit."""
        per_row = self.budget.per_row(self.schema.rows_per_person)
        plan = self.mechanism.plan(self.schema, self.rows, per_row)
        again = plan.seconds_again + seconds_to_compare(plan, len(self.schema.names))
        return plan.starting + len(RELATIONS) * again


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Errors on simulated tables whose columns are unrelated, related moderately, and related strongly."""

    rows: int
    """Rows of each simulated table."""
    errors: tuple[ExpectedError, ...]
    """In the order of ``RELATIONS``."""

    @property
    def column_range(self) -> tuple[float, float]:
        """Mean error of single columns: the least and the most over the simulated tables."""
        means = [each.mean_column for each in self.errors]
        return min(means), max(means)

    @property
    def pair_range(self) -> tuple[float, float] | None:
        """The same for pairs; None where there is but one column."""
        means = [each.mean_pair for each in self.errors if each.mean_pair is not None]
        return (min(means), max(means)) if means else None

    @property
    def column_error(self) -> float:
        return fmean(each.mean_column for each in self.errors)

    @property
    def pair_error(self) -> float | None:
        means = [each.mean_pair for each in self.errors if each.mean_pair is not None]
        return fmean(means) if means else None

    @property
    def kept_pairs(self) -> tuple[int, int]:
        """Pairs whose error is not expected to be far off, and all pairs."""
        by_pair = zip(*([error for *_, error in each.pairs] for each in self.errors), strict=True)
        means = [fmean(errors) for errors in by_pair]
        return sum(mean <= PAIR_LIMITS[1] for mean in means), len(means)

    @property
    def light(self) -> Light:
        """Whether to go on."""
        return light_of(self.column_error, self.pair_error)


def light_of(column_error: float, pair_error: float | None) -> Light:
    """The worse of what single columns and what pairs say, where there are any.

    Example:
        >>> light_of(0.04, 0.09), light_of(0.04, 0.2), light_of(0.16, None)
        ('green', 'amber', 'red')
    """
    judged = [(column_error, COLUMN_LIMITS), (pair_error, PAIR_LIMITS)]
    if any(error is not None and error > far for error, (_, far) in judged):
        return "red"
    return "amber" if any(error is not None and error > close for error, (close, _) in judged) else "green"


Name = TypeVar("Name")
Known: TypeAlias = Mapping[Scenario, Forecast]
"""Forecasts that were made before."""


def forecast(scenario: Scenario, progress: Progress = no_progress) -> Forecast:
    """Release simulated tables and see how far the releases are from them. No private row is looked at."""
    errors = []
    for index, relation in enumerate(RELATIONS):
        progress("Releasing simulated tables", index / len(RELATIONS))
        rows = simulate_related(scenario.schema, scenario.rows, relation=relation, seed=index)
        table = PrivateTable(rows, scenario.schema)
        errors.append(expected_error(scenario.mechanism, table, scenario.budget, repetitions=1))
    return Forecast(rows=scenario.rows, errors=tuple(errors))


def forecast_each(
    scenarios: Mapping[Name, Scenario], known: Known | None = None, *, progress: Progress = no_progress
) -> dict[Name, Forecast]:
    """A forecast for each of several ways; one that the mechanism refuses is left out.

    Args:
        scenarios: The ways, by any name.
        known: Forecasts that were made before; they are not made again.
        progress: Receives the stages; raises to cancel.
    """
    found = {}
    for index, (name, scenario) in enumerate(scenarios.items()):
        if known is not None and scenario in known:
            found[name] = known[scenario]
            continue
        try:
            found[name] = forecast(scenario, _part_of(progress, index, len(scenarios)))
        except DPSynthError:
            continue
    return found


def forecast_in_parts(scenarios: Sequence[Scenario], *, progress: RunProgress) -> dict[Scenario, Forecast]:
    """The same, with each forecast handed over as a part as soon as it is there.

    Args:
        scenarios: The ways.
        progress: Receives the stages and the parts.
    """
    found: dict[Scenario, Forecast] = {}
    for index, scenario in enumerate(scenarios):
        one = forecast_each({scenario: scenario}, progress=_part_of(progress, index, len(scenarios)))
        progress.part(one)
        found |= one
    return found


def _part_of(progress: Progress, index: int, parts: int) -> Progress:
    """Progress of one of several equal parts."""

    def report(stage: str, done: float, /, *_: object) -> None:
        progress(stage, (index + done) / parts)

    return report


AS_IT_IS, WITH_DELTA = "as it is", "delta"
WITH_MORE, FEWER_COLUMNS, FEWER_BINS = "more epsilon", "fewer columns", "fewer bins"


def alternatives(scenario: Scenario, delta: Fraction) -> dict[str, Scenario]:
    """The same release and what could be changed about it: a delta, more epsilon, fewer columns or fewer bins.

    Args:
        scenario: The release as it is.
        delta: What would be granted if it has none.
    """
    kind, schema, budget = type(scenario.mechanism), scenario.schema, scenario.budget
    ways = {AS_IT_IS: scenario}
    if kind.takes_delta and not budget.delta and delta:
        ways[WITH_DELTA] = replace(scenario, budget=Budget(epsilon=budget.epsilon, delta=delta))
    more = Budget(epsilon=budget.epsilon * MORE_EPSILON, delta=budget.delta)
    ways[WITH_MORE] = replace(scenario, budget=more)
    if len(schema.names) >= MIN_COLUMNS:
        ways[FEWER_COLUMNS] = replace(scenario, schema=schema.select(_every_other(schema)))
    coarse = tuple(_coarser(column) for column in schema)
    if coarse != schema.columns:
        ways[FEWER_BINS] = replace(scenario, schema=replace(schema, columns=coarse))
    return {way: _suited(changed) for way, changed in ways.items()} if _suited(scenario) == scenario else ways


def _suited(scenario: Scenario) -> Scenario:
    """With the parameters that the pages would suggest, so that a change, once made, gives what was forecast for it."""
    mechanism, budget = scenario.mechanism, scenario.budget
    try:
        suggested = type(mechanism).suggest(scenario.schema, scenario.n, budget.epsilon, budget.delta)
    except DPSynthError:
        return scenario  # its forecast is refused in turn
    return replace(scenario, mechanism=replace(suggested, rows=mechanism.rows))


def _every_other(schema: Schema) -> list[str]:
    """Half of the columns, as fine and as coarse as all of them: the error of others could not be compared with it."""
    by_levels = sorted(schema.names, key=lambda name: schema[name].levels)
    kept = set(by_levels[1::2])
    return [name for name in schema.names if name in kept]


def forecast_with_remedies(
    scenario: Scenario, delta: Fraction, known: Known | None = None, *, progress: Progress = no_progress
) -> dict[str, Forecast]:
    """A forecast, and where it is red what each change would do: a plan that is good needs no advice."""
    found = forecast_each({AS_IT_IS: scenario}, known, progress=progress)
    if AS_IT_IS not in found or found[AS_IT_IS].light != "red":
        return found
    return found | forecast_each(
        {way: changed for way, changed in alternatives(scenario, delta).items() if way != AS_IT_IS},
        known,
        progress=progress,
    )


def _coarser(column: Column) -> Column:
    """A number with fewer bins, as they can be typed on the Data page. Nobody can merge labels without the codebook."""
    return replace(column, bins=COARSE_BINS) if column.is_numeric and column.levels > COARSE_BINS else column
