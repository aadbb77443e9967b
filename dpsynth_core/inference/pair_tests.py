"""Every ordered column against one group, read with the number of tests in mind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpsynth_core.errors import ParameterError
from dpsynth_core.inference.calibrated import CalibratedMannWhitney, calibrate
from dpsynth_core.inference.group_comparison import GroupComparison, ordered
from dpsynth_core.inference.mann_whitney import GroupsError, MannWhitney
from dpsynth_core.inference.multiplicity import benjamini_hochberg, holm
from dpsynth_core.inference.simulated_pvalues import ALPHA
from dpsynth_core.inference.stated_risk import TOO_FEW_TO_CALIBRATE
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.private_table import PrivateTable


@dataclass(frozen=True, kw_only=True)
class PairTest:
    """One value column against the group."""

    value: str
    synthetic: MannWhitney | None
    """The ordinary test on the synthetic table; None where there is nothing to test."""
    calibrated: CalibratedMannWhitney | None
    """If it was asked for."""
    original: MannWhitney | None
    """The ordinary test on the original, if given: private, for internal review."""
    holm: float | None
    """p-value after Holm's correction: below alpha, no false discovery among all with chance 1 - alpha."""
    bh: float | None
    """p-value after Benjamini and Hochberg's: below alpha, at most that share of false ones among the discoveries."""
    problem: str
    """Why there is no test; empty where there is one."""

    @property
    def pvalue(self) -> float | None:
        """The one that counts: calibrated where that was asked for, else ordinary."""
        test = self.calibrated or self.synthetic
        return None if test is None or self.problem else test.pvalue

    def row(self) -> dict[str, Any]:
        ordinary = self.synthetic
        return {
            "column": self.value,
            "effect": ordinary and ordinary.effect,
            "U": ordinary and ordinary.statistic,
            "p, ordinary": ordinary and ordinary.pvalue,
            "p, calibrated": self.calibrated and self.calibrated.pvalue,
            "p, Holm": self.holm,
            "p, Benjamini-Hochberg": self.bh,
            "p, original": self.original and self.original.pvalue,
            "problem": self.problem,
        }


@dataclass(frozen=True, kw_only=True)
class AllPairTests:
    """All tests against one group."""

    group: str
    pairs: tuple[PairTest, ...]
    """One for each ordered column, the smallest p-value first."""
    releasable: bool
    """False where the original was looked at."""

    @property
    def tested(self) -> int:
        return sum(pair.pvalue is not None for pair in self.pairs)

    @property
    def by_chance(self) -> float:
        """Low p-values to expect if no column differed and the test were valid."""
        return ALPHA * self.tested

    @property
    def sentence(self) -> str:
        pvalues = ([getattr(pair, name) for pair in self.pairs] for name in ("pvalue", "holm", "bh"))
        low, holm, bh = (sum(p is not None and p <= ALPHA for p in each) for each in pvalues)
        calibrated = any(pair.calibrated is not None for pair in self.pairs)
        kind = "calibrated" if calibrated else "ordinary"
        warning = "" if calibrated else " The ordinary test may mistake the noise for a difference: calibrate it first."
        return (
            f"{self.tested} {kind} tests at level {ALPHA:g}: {low} with a low p-value, where about "
            f"{self.by_chance:.2g} would be expected by chance alone if nothing differed and the test were valid. "
            f"After correction for the number of tests {holm} (Holm) or {bh} (Benjamini-Hochberg) remain.{warning}"
        )

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame([pair.row() for pair in self.pairs])


def all_pairs(
    release: Release,
    *,
    group: str,
    levels: Sequence[Any] | None = None,
    table: pd.DataFrame | None = None,
    original: PrivateTable | None = None,
    calibrated: bool = False,
    simulations: int | None = None,
    seed: int | None = None,
    progress: Progress = no_progress,
    workers: int | None = None,
) -> AllPairTests:
    """Test every column with an order against a group, on a release.

    Args:
        release: The release.
        group: Column of the two groups.
        levels: The two groups, if the column has more.
        table: The synthetic table that was published; None: a fresh sample of the release.
        original: To test beside it, for internal review: its p-values are private.
        calibrated: Whether to calibrate, which simulates releases for every column.
        simulations: Null releases to simulate.
        seed: For a result that can be repeated.
        progress: Told the share that is done; raises to cancel.
        workers: Processes to use where the mechanism itself must run.
    """
    synthetic = release.sample() if table is None else table
    schema = release.schema
    names = [column.name for column in schema if column.name != group and ordered(column)]
    if not names:
        raise ParameterError("group", group, allowed="a column beside others with an order")
    comparisons = [GroupComparison.of(schema, value=name, group=group, levels=levels) for name in names]
    tests = [_test(comparison, synthetic) for comparison in comparisons]
    possible = [i for i, (test, _) in enumerate(tests) if test is not None]
    chosen = [comparisons[i] for i in possible]
    found: dict[int, CalibratedMannWhitney] = {}
    if calibrated and chosen:
        outcomes = calibrate(
            release, chosen, synthetic, simulations=simulations, seed=seed, progress=progress, workers=workers
        )
        found = {i: outcome for i, outcome in zip(possible, outcomes, strict=True) if outcome is not None}
        tests = [
            (test, problem or ("" if i in found else TOO_FEW_TO_CALIBRATE)) for i, (test, problem) in enumerate(tests)
        ]
    counting: dict[int, MannWhitney | CalibratedMannWhitney] = {**found}
    if not calibrated:
        counting = {i: test for i, (test, _) in enumerate(tests) if test is not None}
    pvalues = [test.pvalue for test in counting.values()]
    by_holm = dict(zip(counting, holm(pvalues), strict=True))
    by_bh = dict(zip(counting, benjamini_hochberg(pvalues), strict=True))
    rows = None if original is None else original.rows()
    pairs = [
        PairTest(
            value=names[i],
            synthetic=test,
            calibrated=found.get(i),
            original=None if rows is None else _test(comparisons[i], rows)[0],
            holm=by_holm.get(i),
            bh=by_bh.get(i),
            problem=problem,
        )
        for i, (test, problem) in enumerate(tests)
    ]
    pairs.sort(key=lambda pair: 2.0 if pair.pvalue is None else pair.pvalue)
    return AllPairTests(group=group, pairs=tuple(pairs), releasable=original is None)


def _test(comparison: GroupComparison, table: pd.DataFrame) -> tuple[MannWhitney | None, str]:
    """The test, or why there is none: one column must not sink the rest."""
    try:
        return comparison.test(table), ""
    except GroupsError as error:
        return None, str(error)
