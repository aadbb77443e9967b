"""The comparators of Kreačić et al. (2023), Figures 3a and 3b: Balog's two algorithms, run here and as published."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.papers.base import CellValue, Estimate, ResultTable, RunOptions
from benchmarks.papers.gaussian_mixtures import EPSILONS, PUBLISHED, PointCloud
from dpsynth_core.diagnostics.mmd.distance import kernel_density
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.mean_embedding.balog_features import BalogFeatures
from dpsynth_core.mechanisms.mean_embedding.balog_points import BalogPoints
from dpsynth_core.mechanisms.mean_embedding.domain_points import WeightedPoints, gaussian_kernel
from dpsynth_core.runs.synthesize import synthesize

DELTA = "1e-6"
DIMENSIONS = (2, 5)
METHODS: dict[str, Mechanism] = {
    "balog_points, 200 points": BalogPoints(points=200),
    "balog_points, 1,000 points": BalogPoints(points=1_000),
    "balog_features, 100 points": BalogFeatures(points=100),
}


def mean_embeddings(options: RunOptions) -> Iterator[ResultTable]:
    """Balog's algorithms on Balog's mixtures: distances (MMD) beside the published ones."""
    clouds = {dimensions: PointCloud.published(dimensions, options) for dimensions in DIMENSIONS}
    rows: list[tuple[CellValue, ...]] = []
    for name, mechanism in METHODS.items():
        cells: list[CellValue] = []
        for dimensions, cloud in clouds.items():
            for epsilon in EPSILONS:
                options.report(f"Running {name} in {dimensions} dimensions at epsilon {epsilon:g}")
                wide = _wide(mechanism, cloud)
                where = f"mean_embeddings/{name}/{cloud.origin}/{cloud.table.n}/{dimensions}/{epsilon:g}"
                found = [
                    options.store.once(
                        f"{where}/{seed if seed is not None else f'secure {run}'}",
                        partial(_distance, cloud, wide, epsilon, seed),
                    )
                    for run, seed in enumerate(options.seeds)
                ]
                cells.append(Estimate.of(found))
        rows.append((name, "proven (epsilon, 1e-6)", *cells))
    rows += [(name, f"published; {privacy}", *values) for name, privacy, values in PUBLISHED if "Balog" in name]
    origin = " and ".join(dict.fromkeys(cloud.origin for cloud in clouds.values()))
    yield ResultTable(
        title="Distance (MMD) of Balog's algorithms: the comparators of Figures 3a and 3b",
        notes=(
            f"{next(iter(clouds.values())).table.n:,} {origin}; {options.reps} run(s), mean ± standard error. Kernel "
            "and delta as published; weights as released. Published values are the best over all numbers of points; "
            "bounds here are those of the other experiments, and public points are uniform within them.",
        ),
        columns=("method", "guarantee", *(f"D {d}, eps {e:g}" for d in DIMENSIONS for e in EPSILONS)),
        rows=tuple(rows),
    )


def _wide(mechanism: Mechanism, cloud: PointCloud) -> Mechanism:
    """With the published kernel: exp(-gamma |x - y|^2), where a declared range has length two."""
    low, high = next(iter(cloud.table.schema)).position_range
    return replace(mechanism, width=math.sqrt(1 / (2 * cloud.gamma)) / ((high - low) / 2))  # type: ignore[call-arg]


def _distance(cloud: PointCloud, mechanism: Mechanism, epsilon: float, seed: int | None) -> float:
    model = synthesize(cloud.table, mechanism, epsilon=epsilon, delta=DELTA, seed=seed).model
    assert isinstance(model, WeightedPoints)
    at, w = model.table.to_numpy(dtype=np.float64), model.weights
    own = float(w @ gaussian_kernel(model.points, model.points) @ w)  # the same kernel, in widths
    squared = cloud.xx - 2 * float(w @ kernel_density(cloud.points, cloud.gamma, at)) + own
    return math.sqrt(max(0.0, squared))
