"""Figure 6 of Montoya Perez et al. again: data without a signal, released twice, tested three times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dpsynth_core.errors import check_int
from dpsynth_core.inference.calibrated import CalibratedMannWhitney, calibrated_mann_whitney
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.mann_whitney import MannWhitney
from dpsynth_core.inference.populations import GROUP, VALUE, populations
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.mechanisms.smoothed_histogram import SmoothedHistogram
from dpsynth_core.privacy.budget import Amount
from dpsynth_core.runs.synthesize import Release, synthesize
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

FALSE_DISCOVERY = 0.05
"""P-value up to which an analyst reports a difference."""


def p_value(p: float) -> str:
    """A p-value for people.

    Example:
        >>> p_value(0.0312), p_value(1e-7)
        ('p = 0.031', 'p < 0.0001')
    """
    return f"p = {p:.2g}" if p >= 0.0001 else "p < 0.0001"


@dataclass(frozen=True, kw_only=True)
class FalseDiscoveryTable:
    """One of the three tables, and the tests on it."""

    title: str
    table: pd.DataFrame
    """Its rows: a group (False, True) and a value."""
    ordinary: MannWhitney
    calibrated: CalibratedMannWhitney | None
    """None for the original."""


@dataclass(frozen=True, kw_only=True)
class FalseDiscoveryReplay:
    """The original without a difference, and what two mechanisms made of it."""

    schema: Schema
    epsilon: float
    original: FalseDiscoveryTable
    """Both groups from one Gaussian."""
    perturbed: FalseDiscoveryTable
    smoothed: FalseDiscoveryTable
    """Released by the smoothed histogram, with the paper's constant."""

    @property
    def sentence(self) -> str:
        original, perturbed, smoothed = (
            p_value(one.ordinary.pvalue) for one in (self.original, self.perturbed, self.smoothed)
        )
        false = (
            "a false discovery" if self.perturbed.ordinary.pvalue <= FALSE_DISCOVERY else "no false discovery this time"
        )
        return (
            f"There is no difference between the groups (original: {original}). On the perturbed histogram's table "
            f"an analyst finds {perturbed}: {false}. On the smoothed histogram's table: {smoothed}."
        )


def replay_false_discovery(
    *, n: int = 500, epsilon: Amount = "0.1", bins: int = 100, seed: int | None = None, simulations: int = 499
) -> FalseDiscoveryReplay:
    """Draw data without a signal, release it with the perturbed and the smoothed histogram, and test all three tables.

    Simulated data and simulation noise: nothing is private, and a seed repeats it.
    """
    check_int("n", n, 4, 10**6)
    check_int("bins", bins, 2, 10_000)
    rng = np.random.default_rng(seed)
    null, _ = populations(n1=n // 2, n2=n - n // 2, effect=1.0)
    schema = null.schema(bins)
    rows = pd.DataFrame({GROUP: np.arange(n) >= null.n1, VALUE: null.rows(1, rng)[0]})
    comparison = GroupComparison.of(schema, value=VALUE, group=GROUP)
    private = PrivateTable(rows, schema)

    def released(title: str, mechanism: PerturbedHistogram | SmoothedHistogram) -> tuple[Release, FalseDiscoveryTable]:
        release = synthesize(private, mechanism, epsilon=epsilon, seed=int(rng.integers(2**62)))
        table = release.sample()
        test = calibrated_mann_whitney(
            release, value=VALUE, group=GROUP, table=table, simulations=simulations, seed=int(rng.integers(2**62))
        )
        return release, FalseDiscoveryTable(title=title, table=table, ordinary=test.ordinary, calibrated=test)

    first, perturbed = released("perturbed histogram", PerturbedHistogram(placement="centre"))
    _, smoothed = released("smoothed histogram", SmoothedHistogram(placement="centre", smoothing="paper"))
    original = FalseDiscoveryTable(title="original", table=rows, ordinary=comparison.test(rows), calibrated=None)
    spent = first.guarantee.epsilon or 0.0
    return FalseDiscoveryReplay(schema=schema, epsilon=spent, original=original, perturbed=perturbed, smoothed=smoothed)
