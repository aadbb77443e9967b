"""False discoveries on perturbed histograms, everything included, against looping scipy's test over the same tables.

python -m benchmarks.mann_whitney [--reps 1000]
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
from scipy.stats import mannwhitneyu

from benchmarks.papers.false_discoveries import BINS, EPSILONS, SIZES
from benchmarks.timing import best_times, show
from dpsynth_core.inference.histograms import law_of
from dpsynth_core.inference.mann_whitney import mann_whitney_counts
from dpsynth_core.inference.populations import populations
from dpsynth_core.inference.u_statistics import ordinary_pvalues
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram


def main() -> None:
    """Measure and print: no-signal tables of every size of Figure 4, at every epsilon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reps", type=int, default=1000)
    chosen = parser.parse_args()
    settings = [(n, epsilon) for n in SIZES for epsilon in EPSILONS]
    tables = [released(n, epsilon, chosen.reps, seed) for seed, (n, epsilon) in enumerate(settings)]
    values = np.arange(BINS)
    rows = [[(np.repeat(values, a), np.repeat(values, b)) for a, b in part.astype(int)] for part in tables]

    def one(seed: int) -> np.ndarray:
        return ordinary_pvalues(released(*settings[seed], chosen.reps, seed), np.random.default_rng(0), centre=True)

    def whole() -> list[np.ndarray]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:  # as the reproduction does
            return list(pool.map(one, range(len(settings))))

    def tests() -> list[np.ndarray]:
        return [mann_whitney_counts(part[:, 0], part[:, 1]).pvalue for part in tables]

    def loop() -> list[np.ndarray]:
        return [np.array([mannwhitneyu(x, y, method="asymptotic").pvalue for x, y in part]) for part in rows]

    for own, other in zip(whole(), loop(), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-10)
    times = best_times({"scipy in a loop, tests only": loop, "tests from counts": tests, "whole experiment": whole}, 2)
    title = f"{len(settings)} settings x {chosen.reps} released tables"
    show(title, times, unit="whole experiment")


def released(n: int, epsilon: float, reps: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    null, _ = populations(n1=n // 2, n2=n - n // 2, effect=1.0)
    law = law_of(PerturbedHistogram(placement="centre"), (2, BINS), n, Fraction(str(epsilon)))
    assert law is not None
    return law.run(null.counts(reps, BINS, rng), rng)


if __name__ == "__main__":
    main()
