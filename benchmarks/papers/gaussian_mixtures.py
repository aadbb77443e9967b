"""Mixtures of Gaussians: Kreačić et al. (2023), Figures 3, 4, 9 and 10, and the figures of Balog et al. (2018).

Distances are between the rows and the weighted centres of the boxes that a mechanism releases. Parameters come from
``suggest``, that is, from the declared bounds, the number of rows and epsilon alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from benchmarks.papers.base import CellValue, Estimate, MechanismFactory, ResultTable, RunOptions
from benchmarks.papers.published_kd_tree import PublishedKDTree
from dpsynth_core.arrays import FloatArray
from dpsynth_core.diagnostics.mmd.distance import kernel_density, kernel_mean
from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.mechanisms.kd_tree.interleaving import MAX_BITS
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.mechanisms.partition.model import PartitionModel
from dpsynth_core.mechanisms.partition.theorem_bounds import filtering_threshold, largest_noise, theorem_bound
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.mechanisms.smoothed_histogram import SmoothedHistogram
from dpsynth_core.privacy.budget import Amount, Budget
from dpsynth_core.privacy.noise import SeededNoise
from dpsynth_core.runs.synthesize import synthesize
from dpsynth_core.table.examples.base import numeric
from dpsynth_core.table.examples.mixture import MIXTURE, simulate_mixture
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

EPSILONS = (0.01, 0.1, 1.0)
BEST_PUBLISHED = {2: (0.133, 0.0184, 0.00251), 5: (0.361, 0.0678, 0.0341)}
"""By dimension and epsilon: the smallest distance published without leaked rows, all by Balog's algorithm 2."""
PUBLISHED: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("Balog alg. 1, random public points", "(epsilon, 1e-6)", (0.154, 0.0237, 0.00257, 0.409, 0.232, 0.208)),
    ("Balog alg. 2", "(epsilon, 1e-6)", (0.133, 0.0184, 0.00251, 0.361, 0.0678, 0.0341)),
    ("Balog alg. 1, real rows leaked", "not private", (0.0564, 0.00934, 0.00086, 0.0789, 0.0149, 0.00254)),
    ("KD tree, naive, bounds [-700, 800]", "not stated", (0.052, 0.0125, 0.0039, 0.346, 0.106, 0.0355)),
)
"""Figures that come with the data, D = 2 first: Balog's as published, and a hardly tuned KD tree."""

FULL = 100_000
"""Rows of the published data, and of simulated data."""
SYNTHETIC_SIZES = (100, 1_000, 10_000)
PRIVACY_LEVELS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SIMULATION_SEED = 2018
HALVINGS = 5
"""Of every column under the paper's split rule, the first of them free: boxes of a thirty-second of the range."""
FAILURE = 1e-4
"""Probability that a theorem's bound may fail (delta)."""


def paper_rule(schema: Schema, n: int, epsilon: Amount) -> KDTree:
    """The suggestion, but deciding splits as the paper does, with five halvings of every column at most."""
    depth = min(HALVINGS * len(schema.columns), MAX_BITS)
    return replace(KDTree.suggest(schema, n, epsilon), rule="levels", max_levels=depth)


def as_printed(schema: Schema, n: int, epsilon: Amount) -> PublishedKDTree:  # noqa: ARG001  the same for all
    """Algorithms 3 and 1 as printed: one decision for each column, after four free halvings of each (three from D = 3).

    These depths were the best of a few on 20,000 simulated rows. With more decisions, their noise drowns the counts.
    """
    columns = len(schema.columns)
    free = columns * (4 if columns <= 2 else 3)
    return PublishedKDTree(free_levels=free, max_levels=free + columns)


METHODS: dict[str, MechanismFactory] = {
    "kd_tree, suggested": KDTree.suggest,
    "kd_tree, paper's split rule": paper_rule,
    "kd_tree, as printed": as_printed,
    "kd_grid, suggested": KDGrid.suggest,
    "perturbed_histogram, suggested": PerturbedHistogram.suggest,
    "smoothed_histogram, suggested": SmoothedHistogram.suggest,
}
"""What is compared with the published figures; the first is the one that counts."""


@dataclass(frozen=True, kw_only=True)
class PointCloud:
    """Points to be synthesized, and what their distances need."""

    points: FloatArray
    table: PrivateTable
    """The same rows within their declared bounds."""
    gamma: float
    """Of the kernel: 1 / (10^4 D), as Balog et al. have it."""
    xx: float
    """The rows' own inner product."""
    origin: str
    """Published or simulated."""

    @classmethod
    def of(cls, points: FloatArray, *, origin: str, xx: float | None = None) -> PointCloud:
        """With bounds of the mixture example on every column."""
        dimensions = points.shape[1]
        gamma = 1 / (1e4 * dimensions)
        fact = MIXTURE.facts["columns"][0]
        names = [f"x{i + 1}" for i in range(dimensions)]
        schema = Schema.from_dict({"columns": [{**fact, "name": name} for name in names]})
        return cls(
            points=points,
            table=PrivateTable(pd.DataFrame(points, columns=names), schema),
            gamma=gamma,
            xx=kernel_mean(points, points, gamma) if xx is None else xx,
            origin=origin,
        )

    @classmethod
    def published(cls, dimensions: int, options: RunOptions) -> PointCloud:
        """The rows of Balog et al. if their files are given, else as many from the same distribution."""
        stem = (options.data or Path()) / "balog2018" / f"mixture_of_Gaussians_N100000_D{dimensions}"
        if options.data is None or options.shrink > 1 or not stem.with_suffix(".npz").exists():
            return cls.simulated(options.rows(FULL), dimensions, options=options)
        with np.load(stem.with_suffix(".npz")) as file:
            points = np.asarray(file["X_private"], dtype=np.float64)
        facts = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
        xx = next(value for key, value in facts.items() if key.startswith("kernel_mean"))
        return cls.of(points, origin="published rows", xx=float(xx))

    @classmethod
    def simulated(cls, rows: int, dimensions: int, std: float = 30.0, *, options: RunOptions) -> PointCloud:
        """Rows from the same distribution; equal dimensions share their centres."""
        rng = np.random.default_rng(SIMULATION_SEED)
        points = simulate_mixture(rows, rng, dimensions=dimensions, std=std).to_numpy(dtype=np.float64)
        # Every pair of rows: half a minute of processor time and more, so it is stored.
        key = f"rows' own inner product: mixture, {rows} rows, D {dimensions}, std {std:g}"
        xx = options.once(key, lambda: kernel_mean(points, points, 1 / (1e4 * dimensions)))
        return cls.of(points, origin="simulated rows", xx=xx)

    def part(self, rows: int) -> PointCloud:
        """Some of the rows, chosen at random."""
        if rows >= len(self.points):
            return self
        chosen = np.random.default_rng(SIMULATION_SEED).choice(len(self.points), rows, replace=False)
        return PointCloud.of(self.points[chosen], origin=self.origin)

    def sampled_distance(self, choose: MechanismFactory, epsilon: float, size: int, options: RunOptions) -> Estimate:
        """MMD between the rows and a synthetic table of that many rows, over repetitions."""
        found = []
        for index, seed in enumerate(options.seeds):
            model = _fit(self.table, choose(self.table.schema, self.table.n, epsilon), epsilon, seed)
            drawn = model.sample(size, SeededNoise(Budget.of(1), index)).to_numpy(dtype=np.float64)
            weights = np.full(size, 1 / size)
            cross = float(weights @ kernel_density(self.points, self.gamma, drawn))
            yy = kernel_mean(drawn, drawn, self.gamma, weights, weights)
            found.append(math.sqrt(max(0.0, self.xx - 2 * cross + yy)))
        return Estimate.of(found)

    def distance(self, choose: MechanismFactory, epsilon: float, options: RunOptions) -> Estimate:
        """MMD between the rows and the weighted centres that a mechanism releases, over repetitions."""
        mechanism = choose(self.table.schema, self.table.n, epsilon)
        models = [_fit(self.table, mechanism, epsilon, seed) for seed in options.seeds]
        centres = [model.centres() for model in models]
        # Repetitions share most of their boxes, so the density of the rows is computed once for each centre.
        distinct, which = np.unique(np.concatenate(centres), axis=0, return_inverse=True)
        density = np.split(
            kernel_density(self.points, self.gamma, distinct)[which], np.cumsum([len(c) for c in centres])[:-1]
        )
        return Estimate.of([self._mmd(*parts) for parts in zip(models, centres, density, strict=True)])

    def _mmd(self, model: PartitionModel, centres: FloatArray, density: FloatArray) -> float:
        """Equation 1 from the density of the rows at the centres."""
        weights = model.weights / model.weights.sum()
        yy = kernel_mean(centres, centres, self.gamma, weights, weights)
        return math.sqrt(max(0.0, self.xx - 2 * float(weights @ density) + yy))


def gaussian_mixtures(options: RunOptions) -> Iterator[ResultTable]:
    """Distance between mixtures of Gaussians and their private releases, beside the published figures."""
    clouds = {}
    for dimensions in BEST_PUBLISHED:
        options.report(f"Reading the mixture in {dimensions} dimensions")
        clouds[dimensions] = PointCloud.published(dimensions, options)
    yield _against_published(clouds, options)
    yield _by_points(clouds, options)
    yield _by_rows(clouds[5], options)
    yield _against_theorems(options)
    yield _by_privacy(options)
    yield _by_std(options)
    yield _by_dimension(options)


def _against_published(clouds: dict[int, PointCloud], options: RunOptions) -> ResultTable:
    """Figures 3a and 3b."""
    ours = {title: _row(title, clouds.values(), choose, options) for title, choose in METHODS.items()}
    best = [value for dimensions in clouds for value in BEST_PUBLISHED[dimensions]]
    full = all(cloud.table.n == FULL for cloud in clouds.values())
    verdict: list[CellValue] = [
        ("yes" if own.mean < other else "no") if full else None
        for own, other in zip(next(iter(ours.values())), best, strict=True)
    ]
    rows: list[tuple[CellValue, ...]] = [(title, "epsilon", *cells) for title, cells in ours.items()]
    rows += [(title, guarantee, *cells) for title, guarantee, cells in PUBLISHED]
    sizes = ", ".join(f"D{d}: {cloud.table.n:,} {cloud.origin}" for d, cloud in clouds.items())
    return ResultTable(
        title="Distance (MMD) to the mixtures of Balog et al.: Figures 3a and 3b",
        notes=(
            f"{sizes}. Smaller is better. {_noise(options)}",
            "The others' figures come with the data (n = 100,000): their best over all sizes of the synthetic table.",
        ),
        columns=("method", "guarantee", *(f"D{d} eps {epsilon:g}" for d in clouds for epsilon in EPSILONS)),
        rows=(*rows, ("kd_tree below the best private one", "", *verdict)),
    )


def _by_rows(cloud: PointCloud, options: RunOptions) -> ResultTable:
    """Figure 9."""
    parts = [cloud.part(options.rows(rows)) for rows in (1_000, 10_000, FULL)]
    return _epsilon_table(
        "Distance (MMD) by number of rows, D = 5: Figure 9",
        f"kd_tree, suggested; {cloud.origin}, the smaller tables drawn from the largest.",
        {f"n = {part.table.n:,}": part for part in parts},
        options,
    )


def _by_std(options: RunOptions) -> ResultTable:
    """Figure 10."""
    rows = options.rows(FULL)
    return _epsilon_table(
        "Distance (MMD) by spread of the clusters, D = 10: Figure 10",
        f"kd_tree, suggested; {rows:,} simulated rows with the same cluster centres.",
        {f"sigma = {std:g}": PointCloud.simulated(rows, 10, std, options=options) for std in (30.0, 3.0)},
        options,
    )


def _by_dimension(options: RunOptions) -> ResultTable:
    """Figure 3c."""
    rows = options.rows(FULL)
    return _epsilon_table(
        "Distance (MMD) by dimension: Figure 3c",
        f"kd_tree, suggested; {rows:,} simulated rows.",
        {f"D = {d}": PointCloud.simulated(rows, d, options=options) for d in (2, 5, 10, 20, 30)},
        options,
    )


def _by_points(clouds: dict[int, PointCloud], options: RunOptions) -> ResultTable:
    """Figures 3a and 3b along their horizontal axis."""
    rows: list[tuple[CellValue, ...]] = []
    for title, choose in (("kd_tree, suggested", KDTree.suggest), ("kd_grid, suggested", KDGrid.suggest)):
        for size in SYNTHETIC_SIZES:
            options.report(f"Running {title}, {size:,} synthetic rows")
            cells = [
                cloud.sampled_distance(choose, epsilon, size, options)
                for cloud in clouds.values()
                for epsilon in EPSILONS
            ]
            rows.append((title, f"{size:,}", *cells))
    return ResultTable(
        title="Distance (MMD) by number of synthetic rows: Figures 3a and 3b",
        notes=(
            f"Rows drawn from the release, each with the same weight. {_noise(options)} m rows drawn from the original "
            "itself would be about sqrt((1 - ||mean||^2) / m) away: 0.1 with 100, 0.01 with 10,000.",
        ),
        columns=("method", "synthetic rows", *(f"D{d} eps {epsilon:g}" for d in clouds for epsilon in EPSILONS)),
        rows=tuple(rows),
    )


def _by_privacy(options: RunOptions) -> ResultTable:
    """Figure 4 as a rate: MMD against (epsilon n)^(-1/3), which Theorem 6 promises for a Gaussian."""
    rows: list[tuple[CellValue, ...]] = []
    n = options.rows(FULL)
    for dimensions, bins in ((1, 100), (2, 32), (3, 16)):
        points = np.random.default_rng(SIMULATION_SEED).normal(size=(n, dimensions)).clip(-5, 5)
        names = [f"x{i + 1}" for i in range(dimensions)]
        facts = [numeric(name, -5.0, 5.0, bins=bins, origin="public knowledge") for name in names]
        table = PrivateTable(pd.DataFrame(points, columns=names), Schema.from_dict({"columns": facts}))
        key = f"rows' own inner product: standard Gaussian, {n} rows, D {dimensions}"
        xx = options.once(key, lambda points=points: kernel_mean(points, points, 0.5))
        cloud = PointCloud(points=points, table=table, gamma=0.5, xx=xx, origin="simulated rows")
        for title, choose in (
            (f"{bins} bins a column", lambda *_, bins=bins: KDGrid(bins=bins, placement="centre")),
            ("suggested", KDGrid.suggest),
        ):
            options.report(f"Running kd_grid on a Gaussian in {dimensions} dimension(s), {title}")
            cells = [cloud.distance(choose, epsilon, options) for epsilon in PRIVACY_LEVELS]
            means = np.log([max(cell.mean, 1e-12) for cell in cells])
            slope = float(np.polyfit(np.log([epsilon * n for epsilon in PRIVACY_LEVELS]), means, 1)[0])
            rows.append((f"d = {dimensions}, {title}", *cells, slope))
    return ResultTable(
        title="Distance (MMD) of kd_grid on standard Gaussian rows by epsilon n, and its slope: Figure 4",
        notes=(
            f"{n:,} simulated rows in [-5, 5]^d; kernel bandwidth 1. {_noise(options)} The slope is of log MMD on log "
            "(epsilon n); Theorem 6 has -1/3 before rounding to centres takes over. On a fixed grid that error stays.",
        ),
        columns=("grid", *(f"eps {epsilon:g}" for epsilon in PRIVACY_LEVELS), "slope"),
        rows=tuple(rows),
    )


def _epsilon_table(title: str, note: str, clouds: dict[str, PointCloud], options: RunOptions) -> ResultTable:
    return ResultTable(
        title=title,
        notes=(f"{note} {_noise(options)}",),
        columns=("data", *(f"eps {epsilon:g}" for epsilon in EPSILONS)),
        rows=tuple((name, *_row(name, [cloud], KDTree.suggest, options)) for name, cloud in clouds.items()),
    )


def _row(title: str, clouds: Iterable[PointCloud], choose: MechanismFactory, options: RunOptions) -> list[Estimate]:
    options.report(f"Running {title}")
    return [cloud.distance(choose, epsilon, options) for cloud in clouds for epsilon in EPSILONS]


def _against_theorems(options: RunOptions) -> ResultTable:
    """Figure 4: how far the theory is from what happens."""
    rows: list[tuple[CellValue, ...]] = []
    for dimensions, bins in ((1, 100), (2, 32), (3, 16)):
        options.report(f"Running kd_grid on a Gaussian in {dimensions} dimension(s)")
        rows += _theorem_rows(dimensions, bins, options)
    return ResultTable(
        title="Largest difference of kernel densities on standard Gaussian rows, and its bounds: Figure 4",
        notes=(
            f"kd_grid with centres; {options.rows(FULL):,} simulated rows in [-5, 5]^d; kernel bandwidth 1; "
            f"bounds fail with probability at most {FAILURE:g}; measured at 2,200 query points. {_noise(options)}",
            "Theorem 3 is for t = 0, Theorems 5 and 6 for t = 8 ln(1/delta) / epsilon; Theorem 5 uses the rows' own M "
            "and m. A bound of one or more says nothing; '-' where a condition of the theorem fails.",
        ),
        columns=("data", "bins", "eps", "measured, t = 0", "Theorem 3", "measured, t > 0", "Theorem 5", "Theorem 6"),
        rows=tuple(rows),
    )


def _theorem_rows(dimensions: int, bins: int, options: RunOptions) -> Iterator[tuple[CellValue, ...]]:
    """For one Gaussian table and each epsilon: what was measured and what is promised, without and with a threshold."""
    rng = np.random.default_rng(SIMULATION_SEED)
    names = [f"x{i + 1}" for i in range(dimensions)]
    drawn = pd.DataFrame(rng.normal(size=(options.rows(FULL), dimensions)), columns=names)
    facts = [numeric(name, -5.0, 5.0, bins=bins, origin="public knowledge") for name in names]
    table = PrivateTable(drawn, Schema.from_dict({"columns": facts}))
    points = table.rows().to_numpy(dtype=np.float64)
    at = np.concatenate([points[:2000], rng.uniform(-5, 5, (200, dimensions))])
    density = kernel_density(points, 0.5, at)

    def largest_difference(epsilon: float, threshold: int) -> Estimate:
        grid = KDGrid(bins=bins, threshold=threshold, placement="centre")
        models = [_fit(table, grid, epsilon, seed) for seed in options.seeds]
        own = (kernel_density(model.centres(), 0.5, at, model.weights) for model in models)
        return Estimate.of([float(np.abs(density - other).max()) for other in own])

    for epsilon in (0.1, 1.0, 10.0):
        filtering = filtering_threshold(epsilon=epsilon, delta=FAILURE)
        yield (
            f"d = {dimensions}",
            str(bins),
            epsilon,
            largest_difference(epsilon, 1),
            _bound(3, table, bins, epsilon),
            largest_difference(epsilon, filtering),
            _bound(5, table, bins, epsilon),
            _bound(6, table, bins, epsilon),
        )


def _bound(theorem: Literal[3, 5, 6], table: PrivateTable, bins: int, epsilon: float) -> float | None:
    """What a theorem promises for standard Gaussian rows in [-5, 5]^d, if its conditions hold."""
    counts, b = table.counts().counts, largest_noise(epsilon=epsilon, delta=FAILURE)
    dimensions = len(table.schema.columns)
    try:
        return theorem_bound(
            theorem,
            n=table.n,
            epsilon=epsilon,
            delta=FAILURE,
            dimensions=dimensions,
            width=10 / bins,
            sigma=1.0,
            cells=bins**dimensions,
            heavy=int((counts >= b).sum()),
            light=int(counts[counts < 3 * b].sum()),
        )
    except ParameterError:
        return None


def _fit(table: PrivateTable, mechanism: Mechanism, epsilon: float, seed: int | None) -> PartitionModel:
    model = synthesize(table, mechanism, epsilon=epsilon, seed=seed).model
    assert isinstance(model, PartitionModel)
    return model


def _noise(options: RunOptions) -> str:
    source = "Release noise" if options.secure else f"Simulation noise, seeds 0 to {options.reps - 1}"
    return f"{source}; mean ± standard error of {options.reps} run(s)."
