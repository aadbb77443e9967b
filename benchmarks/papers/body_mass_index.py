"""Body mass index by cardiovascular disease: Montoya Perez et al. (2024), Figures 3b, 7b and 8.

The table (70,000 people) is read from ``cardio/cardio_train.csv.gz`` in the folder of published data. Every repetition
draws an original table with two groups of equal size from it, as the paper does: 24 bins, the first below 18 and the
last from 40 on. Without the file, two groups of roughly that shape are simulated, and the output says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from benchmarks.papers.base import CellValue, ResultTable, RunOptions
from benchmarks.papers.false_discoveries import (
    EPSILONS,
    LARGE,
    PAPER_MWEM,
    PAPER_SMOOTHED,
    PERTURBED,
    PGM,
    SIZES,
    SMOOTHED,
    rate_cell,
    stored_rates,
)
from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.experiments import ALPHA, ErrorRates, Experiment, TestKind
from dpsynth_core.inference.populations import HistogramDistribution, Population
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Budget

BINS, LOWER, UPPER = 24, 17.0, 41.0
"""One unit each; values beyond are moved to the ends, so the first bin is below 18 and the last from 40 on."""
FINE = 240
"""Cells in which the groups' distributions are kept: a tenth of a unit."""
SLOW = 20
"""Repetitions are divided by this for mechanisms that run table by table."""


@dataclass(frozen=True, kw_only=True)
class BodyMass:
    """The two groups' distributions."""

    healthy: FloatArray
    ill: FloatArray
    origin: str
    """Published or simulated."""

    @classmethod
    def of(cls, options: RunOptions) -> BodyMass:
        """From the file if it is there."""
        path = None if options.data is None else options.data / "cardio" / "cardio_train.csv.gz"
        if path is None or not path.exists():
            rng = np.random.default_rng(2024)
            groups = [np.exp(rng.normal(mean, 0.17, 35_000)) for mean in (3.26, 3.33)]
            return cls(healthy=groups[0], ill=groups[1], origin="simulated people")
        people = pd.read_csv(path, sep=";", usecols=["height", "weight", "cardio"])
        index = people["weight"] / (people["height"] / 100) ** 2
        groups = [index[people["cardio"] == label].to_numpy(dtype=np.float64) for label in (0, 1)]
        return cls(healthy=groups[0], ill=groups[1], origin="the published 70,000 people")

    def populations(self, n: int) -> tuple[Population, Population]:
        """Two groups of equal size, without a difference (both from all people) and with the real one."""
        everybody = _distribution(np.concatenate([self.healthy, self.ill]))
        laws = ((everybody, everybody), (_distribution(self.healthy), _distribution(self.ill)))
        null, signal = (
            Population(n1=n // 2, n2=n - n // 2, first=first, second=second, lower=LOWER, upper=UPPER)
            for first, second in laws
        )
        return null, signal


def _distribution(values: FloatArray) -> HistogramDistribution:
    counts, _ = np.histogram(np.clip(values, LOWER, UPPER), FINE, (LOWER, UPPER))
    return HistogramDistribution(shares=tuple((counts / counts.sum()).tolist()), lower=LOWER, upper=UPPER)


def body_mass_index(options: RunOptions) -> Iterator[ResultTable]:
    """Type I and Type II errors on body mass index by cardiovascular disease: Figures 3b, 7b and 8."""
    people = BodyMass.of(options)
    yield _groups(people)
    sizes = [n for n in SIZES if n <= LARGE // options.shrink] or [SIZES[0]]
    curves: tuple[tuple[str, Mechanism | None, TestKind, int], ...] = (
        ("DP-MW on the original", None, "dp", 1),
        ("perturbed histogram", PERTURBED, "ordinary", 1),
        ("perturbed histogram, calibrated", PERTURBED, "calibrated", 5),
        ("MWEM, the paper's settings", PAPER_MWEM, "ordinary", SLOW),
        ("Private-PGM, given marginals as in the paper", replace(PGM, strategy="given"), "ordinary", SLOW),
    )
    lines = [
        (title, f"n = {n:,}", [_rates(people, n, mechanism, test, epsilon, one_in, options) for epsilon in EPSILONS])
        for title, mechanism, test, one_in in curves
        for n in sizes
    ]
    yield _table("Errors by original rows, body mass index: Figure 7b", lines, people)
    large = max(sizes)
    few: tuple[tuple[str, Mechanism, TestKind, int], ...] = (
        ("smoothed histogram, paper's constant", PAPER_SMOOTHED, "ordinary", 1),
        ("smoothed histogram", SMOOTHED, "ordinary", 1),
        ("smoothed histogram, calibrated", SMOOTHED, "calibrated", 5),
    )
    lines = [
        (
            title,
            f"m = {m:,}",
            [_rates(people, large, replace(mechanism, rows=m), test, e, one_in, options) for e in EPSILONS],
        )
        for title, mechanism, test, one_in in few
        for m in (50, 100, 500, 1000)
        if m < large
    ]
    yield _table(f"Errors by synthetic rows out of {large:,}, body mass index: Figure 8", lines, people)


def _groups(people: BodyMass) -> ResultTable:
    """Figure 3b: the two distributions in the paper's bins."""
    edges = np.linspace(LOWER, UPPER, BINS + 1)
    shares = [
        np.histogram(np.clip(group, LOWER, UPPER), edges)[0] / len(group) for group in (people.healthy, people.ill)
    ]
    rows = [(f"{edge:g}", float(a), float(b)) for edge, a, b in zip(edges[:-1], *shares, strict=True)]
    return ResultTable(
        title="Shares of people by body mass index: Figure 3b",
        notes=(f"{people.origin}: {len(people.healthy):,} without and {len(people.ill):,} with the disease.",),
        columns=("from", "without", "with"),
        rows=tuple(rows),
    )


def _rates(  # noqa: PLR0917  one curve's four facts, at one size and one epsilon
    people: BodyMass,
    n: int,
    mechanism: Mechanism | None,
    test: TestKind,
    epsilon: float,
    one_in: int,
    options: RunOptions,
) -> ErrorRates:
    reps = max(1, options.reps // one_in)
    both = people.populations(n)

    def compute() -> list[ErrorRates]:
        options.report(f"Running {type(mechanism).__name__ if mechanism else 'DP-MW'} ({test}), {n:,} rows")
        budget = Budget.of(str(epsilon), "1e-6" if test == "dp" else 0)
        experiment = Experiment(mechanism=mechanism, budget=budget, bins=BINS, test=test, simulations=99)
        found = experiment.pvalues(both, reps, np.random.SeedSequence([7, n, round(100 * epsilon)]), workers=1)
        return [ErrorRates.of(found, test=test, epsilon=epsilon, groups=both[0], effect=1.0, alpha=ALPHA)]

    key = f"body mass index: {mechanism}, {test}, {n} of {people.origin}, epsilon {epsilon:g}"
    (rates,) = stored_rates(options, key, compute)
    return rates


def _table(title: str, lines: list[tuple[str, str, list[ErrorRates]]], people: BodyMass) -> ResultTable:
    rows: list[tuple[CellValue, ...]] = []
    for name, size, rates in lines:
        for label, error in (("Type I", "type_one"), ("Type II", "type_two")):
            rows.append((name, size, label, *(rate_cell(getattr(each, error)) for each in rates)))
    reps = sorted({rates.type_one.reps for _, _, line in lines for rates in line}, reverse=True)
    return ResultTable(
        title=title,
        notes=(
            f"Groups of equal size drawn from {people.origin}; {BINS} bins; level {ALPHA}; "
            f"{' or '.join(map(str, reps))} repetitions. Without a difference (Type I), both groups are drawn from "
            "everybody; the paper shows Type II only.",
        ),
        columns=("test", "rows", "error", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
        rows=tuple(rows),
    )
