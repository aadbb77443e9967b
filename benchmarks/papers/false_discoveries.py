"""False and missed discoveries: Montoya Perez et al. (2024), Figures 4 and 5, with the calibrated test beside them.

Two groups of equal size from Gaussians, 100 bins from 1 to 100, rows at the bins' centres, significance level 0.05.
A new curve is one line in ``ORIGINAL_SIZES`` or ``SYNTHETIC_SIZES``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from benchmarks.papers.base import CellValue, Estimate, ResultTable, RunOptions
from dpsynth_core.inference.experiments import ALPHA, ErrorRates, TestKind, error_rates
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.dp_gan.mechanism import DPGAN
from dpsynth_core.mechanisms.mwem.mechanism import MWEM
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.mechanisms.private_pgm.mechanism import PrivatePGM
from dpsynth_core.mechanisms.smoothed_histogram import SmoothedHistogram

EPSILONS = (0.01, 0.1, 1.0, 5.0, 10.0)
SIZES = (50, 100, 500, 1000, 20_000)
LARGE = 20_000
BINS = 100


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One line of a figure for each size."""

    title: str
    mechanism: Mechanism | None = None
    """What releases the table; None for the private test on the original."""
    test: TestKind = "ordinary"
    one_in: int = 1
    """Divide the repetitions by this, for mechanisms that must run table by table."""
    delta: float | None = None
    sizes: tuple[int, ...] = SIZES
    """Only these, for mechanisms that take seconds for a table."""


PERTURBED = PerturbedHistogram(placement="centre")
SMOOTHED = SmoothedHistogram(placement="centre")
PGM = PrivatePGM(kind_of_noise="laplace", placement="centre")
PAPER_MWEM = MWEM(**MWEM.presets["Montoya Perez et al. (2024)"])
PAPER_SMOOTHED = replace(SMOOTHED, smoothing="paper")

ORIGINAL_SIZES: tuple[Curve, ...] = (
    Curve(title="DP-MW on the original", test="dp"),
    Curve(title="perturbed histogram", mechanism=PERTURBED),
    Curve(title="perturbed histogram, calibrated", mechanism=PERTURBED, test="calibrated"),
    Curve(title="MWEM, the paper's settings", mechanism=PAPER_MWEM, one_in=10),
    Curve(title="Private-PGM, given marginals as in the paper", mechanism=replace(PGM, strategy="given"), one_in=5),
    Curve(title="Private-PGM, as suggested", mechanism=PGM, one_in=5),
    Curve(title="DP GAN, delta 1e-6", mechanism=DPGAN(), one_in=20, delta=1e-6, sizes=(100, 1000)),
)
"""Figure 4: as many synthetic rows as original ones."""
SYNTHETIC_SIZES: tuple[Curve, ...] = (
    Curve(title="smoothed histogram, paper's constant", mechanism=PAPER_SMOOTHED),
    Curve(title="smoothed histogram", mechanism=SMOOTHED),
    Curve(title="smoothed histogram, calibrated", mechanism=SMOOTHED, test="calibrated"),
)
"""Figure 5: few synthetic rows from 20,000."""


def false_discoveries(options: RunOptions) -> Iterator[ResultTable]:
    """How often tests on private releases report what is not there, and miss what is."""
    sizes = [n for n in SIZES if n <= LARGE // options.shrink] or [SIZES[0]]
    large = max(sizes)
    few = [m for m in sizes if m < large] or sizes
    figure4 = _run(ORIGINAL_SIZES, [(n, None) for n in sizes], options)
    yield _table(figure4, "type_one", "Type I error by original rows: Figure 4(a)", "n")
    yield _table(figure4, "type_two", "Type II error by original rows: Figure 4(b)", "n")
    figure5 = _run(SYNTHETIC_SIZES, [(large, m) for m in few], options)
    yield _table(figure5, "type_one", f"Type I error by synthetic rows, {large:,} original: Figure 5(a)", "m")
    yield _table(figure5, "type_two", f"Type II error by synthetic rows, {large:,} original: Figure 5(b)", "m")
    yield _findings({**figure4, **figure5})
    yield _unequal(large, options)


Grid = dict[tuple[str, int], list[ErrorRates]]


def stored_rates(options: RunOptions, key: str, compute: Callable[[], Sequence[ErrorRates]]) -> list[ErrorRates]:
    """Error rates from the store if they are there."""
    stored = options.once(f"{key}, {options.reps} repetitions", lambda: [asdict(rates) for rates in compute()])
    shares = ("type_one", "type_two")
    return [ErrorRates(**{**each, **{name: Proportion(**each[name]) for name in shares}}) for each in stored]


def _run(curves: Sequence[Curve], sizes: Sequence[tuple[int, int | None]], options: RunOptions) -> Grid:
    """For each curve and each number of original (and synthetic) rows, one result for each epsilon."""
    grid: Grid = {}
    for curve in curves:
        for n, rows in sizes:
            if n not in curve.sizes:
                continue
            options.report(f"Running {curve.title}, {rows or n:,} rows")
            mechanism = curve.mechanism
            if mechanism is not None and rows is not None:
                mechanism = replace(mechanism, rows=rows)
            first = len(grid) * len(EPSILONS)  # no two results share a seed
            work = partial(
                error_rates,
                mechanism,
                n=n,
                bins=BINS,
                reps=max(1, options.reps // curve.one_in),
                test=curve.test,
                delta=curve.delta,
            )
            key = f"{curve.title}, {n} original rows, {rows or n} synthetic"
            grid[curve.title, rows or n] = stored_rates(options, key, partial(_by_epsilon, work, first, curve.one_in))
    return grid


def _by_epsilon(work: Callable[..., ErrorRates], first: int, one_in: int) -> list[ErrorRates]:
    # What is vectorised runs outside the interpreter's lock; the rest starts processes of its own.
    with ThreadPoolExecutor(os.cpu_count() if one_in == 1 else 1) as pool:
        waiting = [pool.submit(work, epsilon=e, seed=first + i) for i, e in enumerate(EPSILONS)]
        return [rates.result() for rates in waiting]


def _table(grid: Grid, error: str, title: str, letter: str) -> ResultTable:
    rows: list[tuple[CellValue, ...]] = [
        (name, f"{letter} = {size:,}", *(rate_cell(getattr(rates, error)) for rates in line))
        for (name, size), line in grid.items()
    ]
    aim = "a valid test stays at 0.05 or below" if error == "type_one" else "smaller is better, if Type I is valid"
    return ResultTable(
        title=title,
        notes=(
            f"Share of {_repetitions(grid)} simulated tables ± standard error; {aim}. "
            + ("Both groups N(50, 2)." if error == "type_one" else "Groups N(51, 1) and N(50, 1)."),
        ),
        columns=("test", "rows", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
        rows=tuple(rows),
    )


def _repetitions(grid: Grid) -> str:
    """How many there were; fewer for mechanisms that run table by table."""
    numbers = sorted({rates.type_one.reps for line in grid.values() for rates in line}, reverse=True)
    return " or ".join(f"{number:,}" for number in numbers)


def rate_cell(share: Proportion) -> Estimate:
    """A share with its standard error."""
    # A quarter of Wilson's interval is about a standard error, and not zero where nothing happened.
    return Estimate(mean=share.estimate, error=(share.high - share.low) / 4, reps=share.reps)


def _findings(grid: Grid) -> ResultTable:
    """What the paper found, and what is promised of the calibrated test."""
    rows: list[tuple[CellValue, ...]] = []
    for name in dict.fromkeys(name for name, _ in grid):
        lines = {size: line for (title, size), line in grid.items() if title == name}
        worst = max(rates.type_one.estimate for line in lines.values() for rates in line)
        at = next(r for line in lines.values() for r in line if r.type_one.estimate == worst)
        power = lines[500][EPSILONS.index(1.0)].power if 500 in lines else None
        rows.append(
            (
                name,
                rate_cell(at.type_one),
                f"eps {at.epsilon:g}, {at.n1 + at.n2:,} original rows",
                None if power is None else rate_cell(power),
            )
        )
    return ResultTable(
        title="The worst Type I error of each test over its grid, and power for 500 rows at epsilon 1",
        notes=(
            f"{_repetitions(grid)} repetitions. The largest of many shares lies above the level even for a valid test.",
            "Power of an invalid test means little: it also reports differences that are not there.",
        ),
        columns=("test", "worst Type I", "where", "power, 500 rows, eps 1"),
        rows=tuple(rows),
    )


def _unequal(large: int, options: RunOptions) -> ResultTable:
    """Beyond the paper, whose groups were all of equal size."""
    shape = np.exp2(-np.arange(BINS) / 10)
    cases = (
        ("perturbed histogram", PERTURBED, 1000, 1.0),
        ("perturbed histogram", PERTURBED, large, 0.1),
        ("smoothed histogram, 100 rows", replace(SMOOTHED, rows=100), large, 1.0),
        ("smoothed histogram, 500 rows", replace(SMOOTHED, rows=500), large, 5.0),
    )
    rows: list[tuple[CellValue, ...]] = []
    for title, mechanism, n, epsilon in cases:
        options.report(f"Running {title} with unequal groups")
        cells: list[CellValue] = []
        for test in ("ordinary", "calibrated"):
            work = partial(
                error_rates,
                mechanism,
                epsilon=epsilon,
                n=min(n, large),
                bins=BINS,
                reps=options.reps,
                test=test,
                shape=shape,
            )
            key = f"unequal groups: {title}, {n} rows, {test}"
            both = stored_rates(options, key, lambda work=work: [work(ratio=ratio) for ratio in (0.5, 0.1)])
            cells += [rate_cell(rates.type_one) for rates in both]
        rows.append((title, f"n = {min(n, large):,}, eps {epsilon:g}", *cells))
    return ResultTable(
        title="Type I error with unequal groups and a skewed value (not in the paper)",
        notes=(
            f"Shares that halve every ten bins, for both groups alike; level {ALPHA}. Noise draws the smaller group "
            "closer to the uniform law, which an ordinary test takes for a difference.",
        ),
        columns=(
            "release",
            "setting",
            "ordinary, 50:50",
            "ordinary, 10:90",
            "calibrated, 50:50",
            "calibrated, 10:90",
        ),
        rows=tuple(rows),
    )
