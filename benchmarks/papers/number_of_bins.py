"""How many bins to declare: the question that Montoya Perez et al. (2024) leave open in their discussion.

Their simulations have 100 bins, their real tables 24 and 40. Here the same two groups are released with 5 to 200.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import norm

from benchmarks.papers.base import CellValue, ResultTable, RunOptions
from benchmarks.papers.false_discoveries import PAPER_MWEM, PERTURBED, PGM, SMOOTHED, rate_cell, stored_rates
from dpsynth_core.inference.experiments import ALPHA, TestKind, error_rates
from dpsynth_core.mechanisms.base import Mechanism

BINS = (5, 10, 24, 50, 100, 200)
SETTINGS: tuple[tuple[str, Mechanism, TestKind, int, float, int], ...] = (
    ("perturbed histogram", PERTURBED, "ordinary", 500, 1.0, 1),
    ("perturbed histogram, calibrated", PERTURBED, "calibrated", 500, 1.0, 5),
    ("perturbed histogram", PERTURBED, "ordinary", 20_000, 0.1, 1),
    ("perturbed histogram, calibrated", PERTURBED, "calibrated", 20_000, 0.1, 5),
    ("smoothed histogram, 500 rows", replace(SMOOTHED, rows=500), "ordinary", 20_000, 5.0, 1),
    ("smoothed histogram, 500 rows, calibrated", replace(SMOOTHED, rows=500), "calibrated", 20_000, 5.0, 5),
    ("MWEM, the paper's settings", PAPER_MWEM, "ordinary", 500, 1.0, 25),
    ("Private-PGM, given marginals", replace(PGM, strategy="given"), "ordinary", 500, 1.0, 25),
)
"""Release, test, original rows, epsilon, and by what repetitions are divided."""
NARROW = (40.0, 60.0)
"""Bounds that fit the values (all within five standard deviations); the paper's are 1 to 100."""


def number_of_bins(options: RunOptions) -> Iterator[ResultTable]:
    """Type I and Type II errors by the number of bins, with the paper's bounds and with bounds that fit."""
    for lower, upper in ((1.0, 100.0), NARROW):
        rows: list[tuple[CellValue, ...]] = []
        for title, mechanism, test, n, epsilon, one_in in SETTINGS:
            lines: dict[str, list[CellValue]] = {"Type I": [], "Type II": []}
            for bins in BINS:
                options.report(f"Running {title}, {bins} bins from {lower:g} to {upper:g}")
                work = partial(
                    error_rates,
                    mechanism,
                    epsilon=str(epsilon),
                    n=options.rows(n),
                    bins=bins,
                    reps=max(1, options.reps // one_in),
                    test=test,
                    shape=None if lower == 1.0 else _gaussian(lower, upper),
                    lower=lower,
                    upper=upper,
                    workers=1,
                )
                key = f"{title}, {options.rows(n)} rows, epsilon {epsilon:g}, {bins} bins from {lower:g} to {upper:g}"
                (rates,) = stored_rates(options, key, lambda work=work: [work()])
                lines["Type I"].append(rate_cell(rates.type_one))
                lines["Type II"].append(rate_cell(rates.type_two))
            setting = f"n = {options.rows(n):,}, eps {epsilon:g}"
            rows += [(title, setting, error, *cells) for error, cells in lines.items()]
        yield ResultTable(
            title=f"Errors by the number of bins, bounds {lower:g} to {upper:g} (an open question of the paper)",
            notes=(
                f"{_said(lower)}; level {ALPHA}; {options.reps} repetitions, fewer for tests that are calibrated "
                "(a fifth) and for mechanisms that run table by table (a twenty-fifth).",
            ),
            columns=("release", "setting", "error", *(f"{bins} bins" for bins in BINS)),
            rows=tuple(rows),
        )


def _said(lower: float) -> str:
    signal = "N(51, 1) and N(50, 1) with one" if lower == 1.0 else "N(52, 2) and N(50, 2) with one"
    return f"Groups of equal size, N(50, 2) without a difference, {signal}"


def _gaussian(lower: float, upper: float, cells: int = 400) -> list[float]:
    """N(50, 2) in fine cells over other bounds, which the simulation would otherwise stretch with the range."""

    edges = np.linspace(lower, upper, cells + 1)
    shares = np.diff(norm.cdf(edges, 50.0, 2.0))
    return [float(share) for share in shares / shares.sum()]
