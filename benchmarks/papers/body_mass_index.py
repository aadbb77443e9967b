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

from benchmarks.papers.base import ResultTable, RunOptions
from benchmarks.papers.false_discoveries import LARGE, PAPER_SMOOTHED, SIZES, SMOOTHED
from benchmarks.papers.two_groups import REAL_CURVES, TestedGroups, errors_table
from dpsynth_core.arrays import FloatArray
from dpsynth_core.inference.experiments import TestKind
from dpsynth_core.inference.populations import HistogramDistribution, Population
from dpsynth_core.mechanisms.base import Mechanism

BINS, LOWER, UPPER = 24, 17.0, 41.0
"""One unit each; values beyond are moved to the ends, so the first bin is below 18 and the last from 40 on."""
FINE = 240
"""Cells in which the groups' distributions are kept: a tenth of a unit."""


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
    lines = [
        (title, f"n = {n:,}", _tested(people, n).by_epsilon(mechanism, test, one_in, options))
        for title, mechanism, test, one_in in REAL_CURVES
        for n in sizes
    ]
    yield errors_table("Errors by original rows, body mass index: Figure 7b", lines, _about(people), bins=BINS)
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
            _tested(people, large).by_epsilon(replace(mechanism, rows=m), test, one_in, options),
        )
        for title, mechanism, test, one_in in few
        for m in (50, 100, 500, 1000)
        if m < large
    ]
    title = f"Errors by synthetic rows out of {large:,}, body mass index: Figure 8"
    yield errors_table(title, lines, _about(people), bins=BINS)


def _tested(people: BodyMass, n: int) -> TestedGroups:
    return TestedGroups(name=f"body mass index, {n} of {people.origin}", both=people.populations(n), bins=BINS)


def _about(people: BodyMass) -> str:
    return f"Groups of equal size drawn from {people.origin}"


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
