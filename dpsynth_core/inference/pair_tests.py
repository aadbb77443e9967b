"""Every ordered column against one group, read with the number of tests in mind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dpsynth_core.arrays import FloatArray
from dpsynth_core.errors import ParameterError, check_between
from dpsynth_core.inference.calibrated import CalibratedMannWhitney, calibrate
from dpsynth_core.inference.experiments import ALPHA
from dpsynth_core.inference.group_comparison import GroupComparison, ordered
from dpsynth_core.inference.mann_whitney import GroupsError, MannWhitney
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.synthesize import Release
from dpsynth_core.table.private_table import PrivateTable


@dataclass(frozen=True, kw_only=True)
class PairTest:
    """One value column against the group."""

    value: str
    """The column."""
    synthetic: MannWhitney | None
    """The ordinary test on the synthetic table; None where there is nothing to test."""
    calibrated: CalibratedMannWhitney | None
    """The calibrated test, if asked for."""
    original: MannWhitney | None
    """The ordinary test on the original, if given: private, for internal review."""
    holm: float | None
    """p-value after Holm's correction: below alpha, no false discovery among all with chance 1 - alpha."""
    bh: float | None
    """p-value after Benjamini and Hochberg's: below alpha, at most that share of false ones among the discoveries."""
    problem: str
    """Why there is no test, in words; empty where there is one."""

    @property
    def pvalue(self) -> float | None:
        """The one that counts: calibrated where there is one, else ordinary."""
        if self.calibrated is not None:
            return self.calibrated.pvalue
        return None if self.synthetic is None else self.synthetic.pvalue


@dataclass(frozen=True, kw_only=True)
class AllPairTests:
    """All tests against one group."""

    group: str
    """The column of the groups."""
    levels: tuple[Any, Any]
    """The two groups."""
    alpha: float
    """Significance level."""
    pairs: tuple[PairTest, ...]
    """One for each ordered column, the smallest p-value first."""
    releasable: bool
    """False where the original was looked at."""

    @property
    def tested(self) -> int:
        """How many tests were made."""
        return sum(pair.pvalue is not None for pair in self.pairs)

    @property
    def by_chance(self) -> float:
        """Low p-values to expect if no column differed and the test were valid."""
        return self.alpha * self.tested

    def _below(self, pvalues: Sequence[float | None]) -> int:
        return sum(p is not None and p <= self.alpha for p in pvalues)

    @property
    def sentence(self) -> str:
        """How to read the table."""
        low = self._below([pair.pvalue for pair in self.pairs])
        holm, bh = self._below([pair.holm for pair in self.pairs]), self._below([pair.bh for pair in self.pairs])
        calibrated = any(pair.calibrated is not None for pair in self.pairs)
        kind = "calibrated" if calibrated else "ordinary"
        warning = "" if calibrated else " The ordinary test takes noise for difference: calibrate before believing any."
        return (
            f"{self.tested} {kind} tests at level {self.alpha:g}: {low} with a low p-value, where about "
            f"{self.by_chance:.2g} would be expected by chance alone if nothing differed and the test were valid. "
            f"After correction for the number of tests {holm} (Holm) or {bh} (Benjamini-Hochberg) remain.{warning}"
        )

    def frame(self) -> pd.DataFrame:
        """As a table."""
        return pd.DataFrame(
            {
                "column": [pair.value for pair in self.pairs],
                "effect": [pair.synthetic.effect if pair.synthetic else None for pair in self.pairs],
                "U": [pair.synthetic.statistic if pair.synthetic else None for pair in self.pairs],
                "p, ordinary": [pair.synthetic.pvalue if pair.synthetic else None for pair in self.pairs],
                "p, calibrated": [pair.calibrated.pvalue if pair.calibrated else None for pair in self.pairs],
                "p, Holm": [pair.holm for pair in self.pairs],
                "p, Benjamini-Hochberg": [pair.bh for pair in self.pairs],
                "p, original": [pair.original.pvalue if pair.original else None for pair in self.pairs],
                "problem": [pair.problem for pair in self.pairs],
            }
        )


def all_pairs(
    release: Release,
    *,
    group: str,
    levels: Sequence[Any] | None = None,
    table: pd.DataFrame | None = None,
    original: PrivateTable | None = None,
    calibrated: bool = False,
    alpha: float = ALPHA,
    simulations: int | None = None,
    seed: int | None = None,
    progress: Progress = no_progress,
    workers: int | None = None,
) -> AllPairTests:
    """Test every column with an order against a group, on a release.

    Args:
        release: The release.
        group: Column of the groups.
        levels: The two groups, if the column has more.
        table: The synthetic table that was published; None: a fresh sample of the release.
        original: To test beside it, for internal review: its p-values are private.
        calibrated: Whether to calibrate, by one set of simulated releases for all columns.
        alpha: Significance level.
        simulations: Null releases to simulate.
        seed: For a result that can be repeated.
        progress: Told the share that is done; raises to cancel.
        workers: Processes to use where the mechanism itself must run.
    """
    check_between("alpha", alpha, 0, 1)
    synthetic = release.sample() if table is None else table
    schema = release.schema
    names = [column.name for column in schema if column.name != group and ordered(column)]
    if not names:
        raise ParameterError("group", group, allowed="a column beside others with an order")
    comparisons = [GroupComparison.of(schema, value=name, group=group, levels=levels) for name in names]
    tests = [_test(comparison, synthetic) for comparison in comparisons]
    possible = [i for i, (test, _) in enumerate(tests) if test is not None]
    found: dict[int, CalibratedMannWhitney] = {}
    if calibrated and possible:
        outcomes = calibrate(
            release,
            [comparisons[i] for i in possible],
            synthetic,
            simulations=simulations,
            seed=seed,
            progress=progress,
            workers=workers,
        )
        found = dict(zip(possible, outcomes, strict=True))
    rows = None if original is None else original.rows()
    pvalues = [found[i].pvalue if i in found else _pvalue(tests[i][0]) for i in possible]
    adjusted = dict(zip(possible, zip(holm(pvalues), benjamini_hochberg(pvalues), strict=True), strict=True))
    pairs = []
    for i, (test, problem) in enumerate(tests):
        by_holm, by_bh = adjusted.get(i, (None, None))
        pairs.append(
            PairTest(
                value=names[i],
                synthetic=test,
                calibrated=found.get(i),
                problem=problem,
                holm=by_holm,
                bh=by_bh,
                original=None if rows is None else _test(comparisons[i], rows)[0],
            )
        )
    pairs.sort(key=lambda pair: 2.0 if pair.pvalue is None else pair.pvalue)
    return AllPairTests(
        group=group, levels=comparisons[0].levels, alpha=alpha, pairs=tuple(pairs), releasable=original is None
    )


def _test(comparison: GroupComparison, table: pd.DataFrame) -> tuple[MannWhitney | None, str]:
    """The test, or why there is none: one column must not sink the rest."""
    try:
        return comparison.test(table), ""
    except GroupsError as error:
        return None, str(error)


def _pvalue(test: MannWhitney | None) -> float:
    return 1.0 if test is None else test.pvalue


def holm(pvalues: ArrayLike) -> list[float]:
    """p-values after Holm's step-down correction (1979).

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    p, order = _ordered(pvalues)
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    return _restored(stepped, order)


def benjamini_hochberg(pvalues: ArrayLike) -> list[float]:
    """p-values after Benjamini and Hochberg's step-up correction (1995).

    Example:
        >>> benjamini_hochberg([0.01, 0.04, 0.03])
        [0.03, 0.04, 0.04]
    """
    p, order = _ordered(pvalues)
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    return _restored(np.minimum.accumulate(scaled[::-1])[::-1], order)


def _ordered(pvalues: ArrayLike) -> tuple[FloatArray, Any]:
    p = np.asarray(pvalues, dtype=np.float64)
    return p, np.argsort(p, kind="stable")


def _restored(values: FloatArray, order: Any) -> list[float]:
    out = np.empty(len(values))
    out[order] = np.minimum(values, 1.0)
    return [float(value) for value in out]
