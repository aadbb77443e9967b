"""Which simulator suits a release and a question: array arithmetic where it can, else the mechanism itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.count_simulator import CountSimulator, count_cells_of
from dpsynth_core.inference.null_simulation import NullSimulator, NullTest, counts_of
from dpsynth_core.inference.row_simulator import RowSimulator
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.partition.axis import Axis
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.private_table import PrivateTable


class NotSimulatedError(DPSynthError):
    """The null cannot be simulated for this release; the text says why."""


def simulator_of(
    release: Release, test: NullTest, synthetic: pd.DataFrame, *, workers: int | None = None
) -> NullSimulator:
    """The quickest simulator that draws what the release's mechanism would."""
    by_counts = count_simulator(release, test, synthetic)
    return by_counts or replace(row_simulator(release, test, synthetic), workers=workers)


def count_simulator(release: Release, test: NullTest, synthetic: pd.DataFrame) -> CountSimulator | None:
    """None where counts do not suffice: another mechanism, other columns that share its noise, or another test."""
    mechanism, schema, budget = release.mechanism, release.schema, release.budget
    if budget is None or len(synthetic) != (mechanism.rows or release.n):
        return None
    epsilon = budget.per_row(schema.rows_per_person).epsilon
    cells = count_cells_of(mechanism, schema, test, release.n, epsilon)
    if cells is None:
        return None
    table = PrivateTable(synthetic, schema.select([test.group.name, test.value.name]))
    observed = counts_of(table, cells.group, cells.value)
    if test.on_counts(observed[None], cells, np.random.default_rng(0)) is None:
        return None
    return CountSimulator(
        test=test, mechanism=mechanism, schema=schema, epsilon=epsilon, n=release.n, observed=observed
    )


def original_simulator(
    private: PrivateTable, mechanism: Mechanism, budget: Budget, test: NullTest, *, rows: int | None = None
) -> NullSimulator:
    """Around the groups and the values of the original itself: what it gives is private.

    Args:
        private: The original; ``shares_of(simulator.counted(private)[None], private.n)`` is its null.
        mechanism: What makes the releases.
        budget: Granted to each.
        test: What is asked of them.
        rows: Of each release. None: as many as the mechanism makes.
    """
    schema, usual = private.schema, mechanism.rows or private.n
    epsilon = budget.per_row(schema.rows_per_person).epsilon
    cells = count_cells_of(mechanism, schema, test, private.n, epsilon)
    if cells is not None and rows in (None, usual):
        observed = counts_of(private, cells.group, cells.value)
        if test.on_counts(observed[None], cells, np.random.default_rng(0)) is not None:
            return CountSimulator(
                test=test, mechanism=mechanism, schema=schema, epsilon=epsilon, n=private.n, observed=observed
            )
    group, value = (Axis.coarse(column, test.max_cells) for column in (test.group, test.value))
    return RowSimulator(
        test=test,
        mechanism=mechanism,
        schema=schema,
        budget=budget,
        base=private,
        group=group,
        value=value,
        n=private.n,
        rows=rows or usual,
    )


def stated_budget(release: Release) -> Budget:
    """At which the mechanism is run again."""
    if release.budget is None:
        raise NotSimulatedError(
            "This release states no privacy loss, so its mechanism cannot be run again at the same one."
        )
    return release.budget


def row_simulator(
    release: Release, test: NullTest, synthetic: pd.DataFrame, *, axes: tuple[Axis, Axis] | None = None
) -> RowSimulator:
    """For any mechanism; its tables have all columns of the release."""
    budget = stated_budget(release)
    group, value = axes or tuple(Axis.coarse(column, test.max_cells) for column in (test.group, test.value))
    return RowSimulator(
        test=test,
        mechanism=release.mechanism,
        schema=release.schema,
        budget=budget,
        base=PrivateTable(synthetic, release.schema),
        group=group,
        value=value,
        n=release.n,
        rows=len(synthetic),
    )
