"""A statistical lower bound on epsilon from runs on two neighbouring tables.

An epsilon-private mechanism keeps P(event | D) <= exp(epsilon) P(event | D') + delta for every event. One half of the
runs chooses the event and which table is which, the other half, which nobody has looked at, tests it: with exact
(Clopper-Pearson) ends of both probabilities, epsilon >= ln((p_low - delta) / p_high) except with probability alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.audit.checks import AuditCheck, Layer, audit_check

ROUNDED = 1.05
"""The noise is Gaussian on integers, whose trade-off is that of a Gaussian up to a few percent."""
MAX_CUTS = 200


@dataclass(frozen=True, kw_only=True)
class LowerBound:
    epsilon: float
    """Epsilon is at least this, with confidence 1 - alpha; zero if nothing is proven."""
    mu: float
    """The same as a trade-off of Gaussian kind: mu >= ndtri(p_low) - ndtri(p_high) (Dong, Roth & Su 2022)."""
    cut: float
    """The event: the statistic reaches this value, or stays below it."""
    above: bool
    swapped: bool
    """Whether it is likelier on the second table."""
    hits: tuple[int, int]
    """How often the event occurred, on the table where it is likelier and on the other."""
    runs: int
    """Of the testing half, on each table."""

    def refutes(self, epsilon: float) -> bool:
        return self.epsilon > epsilon


def ceiling(runs: int, *, alpha: float) -> float:
    """The largest bound that this many runs (both halves) could prove: an event that is certain on one table only."""
    half = runs - runs // 2
    low, _ = proportion(half, half, alpha / 2)
    _, high = proportion(0, half, alpha / 2)
    return max(0.0, math.log(low / high))


def proportion(hits: IntArray | int, runs: int, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Clopper-Pearson: one-sided lower and upper ends, each missed with probability at most alpha."""
    k = np.asarray(hits, dtype=np.float64)
    # The quantile is not a number where there is no hit, or nothing else.
    low, high = beta.ppf(alpha, k, runs - k + 1), beta.ppf(1 - alpha, k + 1, runs - k)
    return np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)


def lower_bound(first: FloatArray, second: FloatArray, *, alpha: float, delta: float = 0.0) -> LowerBound:
    """The bound from a statistic of equally many runs on two tables, in the order of running.

    It exceeds the true epsilon with probability at most ``alpha``; ``delta`` is claimed beside epsilon.
    """
    half = len(first) // 2
    cut, above, swapped = _chosen(first[:half], second[:half], alpha, delta)
    likely, other = (second, first) if swapped else (first, second)
    hits = [int(np.count_nonzero((sample[half:] >= cut) == above)) for sample in (likely, other)]
    runs = len(first) - half
    p_low, q_high = float(proportion(hits[0], runs, alpha / 2)[0]), float(proportion(hits[1], runs, alpha / 2)[1])
    return LowerBound(
        epsilon=max(0.0, math.log((p_low - delta) / q_high)) if p_low > delta else 0.0,
        mu=max(0.0, float(ndtri(p_low) - ndtri(q_high))),
        cut=cut,
        above=above,
        swapped=swapped,
        hits=(hits[0], hits[1]),
        runs=runs,
    )


def _chosen(first: FloatArray, second: FloatArray, alpha: float, delta: float) -> tuple[float, bool, bool]:
    """The event and direction with the largest bound on the half that may be looked at."""
    both = np.unique(np.append(first, second))
    cuts = both[np.unique(np.linspace(0, len(both) - 1, MAX_CUTS).astype(int))]
    reached = [len(s) - np.searchsorted(np.sort(s), cuts, side="left") for s in (first, second)]
    best, choice = -math.inf, (float(cuts[0]), True, False)
    for above in (True, False):
        hits = reached if above else [len(s) - r for s, r in zip((first, second), reached, strict=True)]
        for swapped in (False, True):
            likely, other = hits[::-1] if swapped else hits
            low, _ = proportion(likely, len(first), alpha / 2)
            _, high = proportion(other, len(first), alpha / 2)
            # The difference breaks ties where nothing is proven yet.
            gain = np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -50 + low - high)
            i = int(np.argmax(gain))
            if gain[i] > best:
                best, choice = float(gain[i]), (float(cuts[i]), above, swapped)
    return choice


def bound_check(
    layer: Layer, subject: str, case: str, bound: LowerBound, *, claim: float, level: float, mu: float | None = None
) -> AuditCheck:
    """Failed only if the runs prove more than is claimed, as epsilon or, for a Gaussian draw, as its own mu."""
    provable = ceiling(2 * bound.runs, alpha=level)
    good = not bound.refutes(claim)
    claimed = f"of {claim:.3f} claimed" if math.isfinite(claim) else "where only not knowing the choice is claimed"
    detail = f"at least {bound.epsilon:.3f} {claimed} ({2 * bound.runs:,} runs could show {provable:.2f})"
    if mu is not None:
        good = good and bound.mu <= mu * ROUNDED
        detail += f"; mu at least {bound.mu:.3f} of {mu:.3f}"
    measured, limit = (bound.epsilon, claim) if mu is None else (bound.mu, mu)
    return audit_check(layer, subject, case, good, detail, measured=measured, claimed=limit)
