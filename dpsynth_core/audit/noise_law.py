"""Whether samplers follow the laws they are named for, and whether this would be noticed if they did not.

Every sample is compared with its law by a chi-square test over cells that expect enough draws. The same sample must not
pass for noise whose scale is ten percent off: a test that could not tell would prove nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.audit.checks import SUITE_LEVEL, AuditCheck, Size, audit_check, seed_for
from dpsynth_core.audit.outcomes import exponential_law, log_interval, log_tail, permute_and_flip_law
from dpsynth_core.audit.subject import Source
from dpsynth_core.privacy.accounting import GaussianDraw
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY
from dpsynth_core.privacy.noise import Noise, SecureNoise, SeededNoise
from dpsynth_core.privacy.primitives import Gaussian

PLENTY = Budget.of(10**12)
OFF = 1.1
"""A factor by which the scale must not be off unnoticed."""
MIN_EXPECTED = 10.0
POWER_DRAWS = 50_000
"""From this many draws on, a wrong scale must be noticed."""
SOURCES: dict[str, Source] = {"secure": lambda budget, _: SecureNoise(budget), "seeded": SeededNoise}


@dataclass(frozen=True, kw_only=True)
class SamplerLaw:
    name: str
    sample: Callable[[Noise, int], IntArray]
    """That many draws, each as the number of a cell."""
    expected: Callable[[float], FloatArray]
    """Probability of every cell, were the scale this many times what was asked for."""
    selects: bool = False
    """Whether one call is needed for every draw, which takes long."""
    scaled: bool = True


def p_value(observed: IntArray, law: FloatArray) -> float:
    """Of a chi-square test, rare cells taken together."""
    order = np.argsort(law)[::-1]
    expected, counts = law[order] * observed.sum(), observed[order]
    few = expected < MIN_EXPECTED
    if few.any():
        expected = np.append(expected[~few], expected[few].sum())
        counts = np.append(counts[~few], counts[few].sum())
        if expected[-1] < MIN_EXPECTED and len(expected) > 1:
            expected = np.append(expected[:-2], expected[-2:].sum())
            counts = np.append(counts[:-2], counts[-2:].sum())
    if len(expected) < 2:
        return 1.0
    return float(stats.chisquare(counts, expected / expected.sum() * counts.sum()).pvalue)


# -------------------------------------------------------------------------------------------------- laws of samplers


HISTOGRAM_PRICE: dict[str, Any] = {"sensitivity": HISTOGRAM_SENSITIVITY, "label": "law"}


def _no_cells(size: int) -> IntArray:
    return np.zeros(size, dtype=np.int64)


def _edges(scale: float) -> IntArray:
    """Ends of cells for noise of this scale: single numbers where there are few, wider ones where there are many."""
    reach = max(3, math.ceil(6 * scale))
    return np.unique(np.linspace(-reach, reach, min(2 * reach + 1, 61)).astype(np.int64))


def _laplace_law(scale: float, edges: IntArray) -> FloatArray:
    ends = [-math.inf, *edges.tolist(), math.inf]
    return np.exp([log_interval(scale, a, b - 1) for a, b in pairwise(ends)])


def _laplace_noise(name: str, scale: float, draw: Callable[[Noise, int], IntArray]) -> SamplerLaw:
    edges = _edges(scale)
    return SamplerLaw(
        name=f"{name}, scale {scale:g}",
        sample=lambda noise, draws: np.searchsorted(edges, draw(noise, draws), side="right"),
        expected=lambda factor: _laplace_law(scale * factor, edges),
    )


def _laplace(sensitivity: int, epsilon: Fraction) -> SamplerLaw:
    def draw(noise: Noise, draws: int) -> IntArray:
        zeros = np.zeros(draws, dtype=np.int64)
        return noise.laplace(zeros, sensitivity=sensitivity, epsilon=epsilon, label="law")

    return _laplace_noise("laplace", float(sensitivity / epsilon), draw)


def _gaussian(scale: float) -> SamplerLaw:
    """Directly from the sampler: a charge for Gaussian draws is opened for a composition, which takes long."""
    edges, draw = _edges(scale), GaussianDraw(scale=scale, values=1)

    def sample(noise: Noise, draws: int) -> IntArray:
        charge = noise.open_charge("law", sensitivity=1, epsilon=1)
        call = Gaussian(values=np.zeros(draws, dtype=np.int64), draw=draw, charge=charge)
        return np.asarray(np.searchsorted(edges, noise._perform(call), side="right"))

    def expected(factor: float) -> FloatArray:
        reach = math.ceil(12 * scale * factor)
        values = np.arange(-reach, reach + 1)
        weights = np.exp(-0.5 * (values / (scale * factor)) ** 2)
        cells = np.searchsorted(edges, values, side="right")
        return np.asarray(np.bincount(cells, weights / weights.sum(), minlength=len(edges) + 1))

    return SamplerLaw(name=f"gaussian, scale {scale:g}", sample=sample, expected=expected)


def _sparse(epsilon: Fraction, threshold: int) -> SamplerLaw:
    """Of a domain of empty cells: whether each passes, by how much, and whether it lies in the first or second half."""
    scale = float(HISTOGRAM_SENSITIVITY / epsilon)
    steps = max(1, math.ceil(scale / 2))

    def sample(noise: Noise, draws: int) -> IntArray:
        nothing, pick = np.zeros(0, dtype=np.int64), partial(noise.distinct, draws)
        drawn = noise.sparse_laplace(
            nothing, nothing, zeros=draws, threshold=threshold, pick=pick, **HISTOGRAM_PRICE, epsilon=epsilon
        )
        beyond = np.minimum((drawn.extra_values - threshold) // steps, 7)
        cells = 1 + 2 * beyond + (drawn.extra_keys < draws // 2)
        return np.append(cells, np.zeros(draws - len(cells), dtype=np.int64))

    def expected(factor: float) -> FloatArray:
        reach = [math.exp(log_tail(scale * factor, threshold + k * steps)) for k in range(8)]
        beyond = [*(a - b for a, b in pairwise(reach)), reach[-1]]
        return np.array([1 - reach[0], *(p / 2 for p in beyond for _ in range(2))])

    return SamplerLaw(name=f"sparse_laplace, scale {scale:g}, threshold {threshold}", sample=sample, expected=expected)


def _listed(epsilon: Fraction) -> SamplerLaw:
    """The cells of a sparse draw that are listed get the same noise."""

    def draw(noise: Noise, draws: int) -> IntArray:
        keys, values = np.arange(draws), np.full(draws, 7)
        drawn = noise.sparse_laplace(
            keys, values, zeros=0, threshold=1, pick=_no_cells, **HISTOGRAM_PRICE, epsilon=epsilon
        )
        return drawn.values - 7

    return _laplace_noise("sparse_laplace listed", float(HISTOGRAM_SENSITIVITY / epsilon), draw)


def _decisions(scale: float, gap: int) -> SamplerLaw:
    threshold = 5

    def sample(noise: Noise, draws: int) -> IntArray:
        charge = noise.open_charge("law", sensitivity=1, epsilon=1)
        keys, values = np.arange(draws), np.full(draws, threshold - gap)
        passed, _ = noise.decisions(
            keys, values, zeros=0, threshold=threshold, pick=_no_cells, scale=scale, charge=charge
        )
        return passed.astype(np.int64)

    def expected(factor: float) -> FloatArray:
        p = math.exp(log_tail(scale * factor, gap))
        return np.array([1 - p, p])

    return SamplerLaw(name=f"decisions, scale {scale:g}, gap {gap}", sample=sample, expected=expected)


def _selection(sampler: str) -> SamplerLaw:
    """One good candidate among twenty, about as likely as all the others together: most sensitive to the scale."""
    scores = np.array([3.0, *np.zeros(20)])
    law = exponential_law if sampler == "exponential" else permute_and_flip_law

    def sample(noise: Noise, draws: int) -> IntArray:
        select = getattr(noise, sampler)
        return np.array([select(scores, sensitivity=1, epsilon=2, label="law") for _ in range(draws)], dtype=np.int64)

    return SamplerLaw(name=sampler, sample=sample, expected=lambda f: law(scores, f), selects=True)


def _smoothed() -> SamplerLaw:
    """About half of the rows come from the one occupied cell: most sensitive to the constant."""
    cells, counts, alpha, domain = np.array([[3]]), np.array([9]), Fraction(1, 4), 40

    def sample(noise: Noise, draws: int) -> IntArray:
        # Ten percent of the constant shift one cell by a fortieth: with fewer draws they would sometimes go unnoticed.
        drawn = noise.smoothed(cells, counts, shape=(domain,), draws=4 * draws, alpha=alpha, epsilon=1, label="law")
        return drawn[:, 0]

    def expected(factor: float) -> FloatArray:
        weights = np.full(domain, float(alpha) * factor)
        weights[3] += 9
        return np.asarray(weights / weights.sum())

    return SamplerLaw(name="smoothed", sample=sample, expected=expected)


def _uniform(name: str, cells: int, sample: Callable[[Noise, int], IntArray]) -> SamplerLaw:
    """Randomness that no private value touches."""
    return SamplerLaw(name=name, sample=sample, expected=lambda _: np.full(cells, 1 / cells), scaled=False)


def _beyond_63_bits(noise: Noise, draws: int) -> IntArray:
    return np.array([int(value) * 16 >> 80 for value in noise.integers(2**80, draws // 10)])


def laws() -> list[SamplerLaw]:
    """Every sampler, at scales from very little noise to much."""
    epsilons = [Fraction(8), Fraction(4), Fraction(1), Fraction(1, 10), Fraction(1, 200)]
    return [
        *(_laplace(2, epsilon) for epsilon in epsilons),
        _laplace(1, Fraction(2)),
        *(_gaussian(scale) for scale in (0.7, 3.0, 40.0)),
        *(_listed(epsilon) for epsilon in (Fraction(4), Fraction(1))),
        *(_sparse(epsilon, t) for epsilon, t in ((Fraction(4), 1), (Fraction(1), 3), (Fraction(1, 10), 20))),
        *(_decisions(scale, gap) for scale, gap in ((4.0, 6), (64.0, 90), (4.0, -5))),
        *(_selection(sampler) for sampler in ("exponential", "permute_and_flip")),
        _smoothed(),
        _uniform("uniform", 40, lambda noise, n: (noise.uniform(n) * 40).astype(np.int64)),
        _uniform("integers", 37, lambda noise, n: noise.integers(37, n).astype(np.int64)),
        _uniform("integers beyond 63 bits", 16, _beyond_63_bits),
        _uniform("distinct", 8, lambda noise, n: noise.distinct(8 * n, n).astype(np.int64) // n),
    ]


def law_checks(
    size: Size, root: int, sources: dict[str, Source] | None = None, *, subject: str = "samplers"
) -> Iterator[AuditCheck]:
    for source_name, source in (sources or SOURCES).items():
        for law in laws():
            seed = seed_for(root, "law", source_name, law.name)
            yield _check(law, source_name, source(PLENTY, seed), size, subject)


def _check(law: SamplerLaw, source_name: str, noise: Noise, size: Size, subject: str) -> AuditCheck:
    draws = size.selections if law.selects else size.draws
    cells = law.sample(noise, draws)
    observed = np.bincount(cells, minlength=len(law.expected(1.0)))
    right = p_value(observed, law.expected(1.0))
    good, detail = right > size.level, f"p = {right:.2g} over {len(cells):,} draws"
    if law.scaled and (size.draws >= POWER_DRAWS):
        wrong = max(p_value(observed, law.expected(factor)) for factor in (OFF, 1 / OFF))
        good = good and wrong < SUITE_LEVEL
        detail += f"; ten percent off: p = {wrong:.1g}"
    return audit_check("noise law", subject, f"{law.name}, {source_name}", good, detail)
