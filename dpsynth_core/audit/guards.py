"""What a source of noise must refuse, and whether its prices hold when they are worked out by another road.

Sound mechanisms never ask for more than they were given, so nothing else in an audit would notice a source that no
longer refuses, or an account that charges too little for what it allows: the account would believe itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from scipy import stats

from dpsynth_core.audit.checks import AuditCheck, audit_check
from dpsynth_core.errors import DPSynthError
from dpsynth_core.privacy.accounting import (
    GaussianDraw,
    SampledDraw,
    SelectionDraw,
    affordable_cost,
    sampled_delta,
)
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import Noise, SeededNoise
from dpsynth_core.privacy.primitives import Charge

COUNTS = np.array([3, 5])
ONE = Budget.of(1)
WITH_DELTA = Budget.of(1, "1e-6")
PRICED = ((1, "1e-6"), ("0.1", "1e-9"), (5, "1e-3"))
SOURCE = "sources"
ACCOUNT = "accounts"


def _laplace(noise: Noise, epsilon: str, delta: str = "0") -> None:
    noise.laplace(COUNTS, sensitivity=2, epsilon=epsilon, delta=delta, label="counts")


def _beyond_epsilon(noise: Noise) -> None:
    _laplace(noise, "0.6")
    _laplace(noise, "0.41")


def _beyond_delta(noise: Noise) -> None:
    _laplace(noise, "0.5", "1e-6")
    _laplace(noise, "0.5", "1e-9")


def _twice(noise: Noise) -> None:
    _laplace(noise, "1")
    _laplace(noise, "1")


def _of_nothing(noise: Noise) -> None:
    noise.laplace(COUNTS, sensitivity=0, epsilon=1, label="counts")


def _person_of_many_rows(noise: Noise) -> None:
    """Whose delta would have to be smaller than any number that a program holds."""
    Budget.of(2_000, noise.budget.delta).per_row(3)


def _rows_alone(noise: Noise) -> None:
    """Drawn with no other cell mixed in: they are the rows themselves."""
    noise.smoothed(COUNTS[:, None], COUNTS, shape=(9,), draws=1, alpha=Fraction(0), epsilon=1, label="rows")


def _selected_beyond(noise: Noise) -> None:
    for _ in range(2):
        noise.exponential(COUNTS.astype(np.float64), sensitivity=1, epsilon="0.51", label="which")


def _foreign_charge(noise: Noise) -> Charge:
    """From another run of the same budget: paid there."""
    return SeededNoise(noise.budget, 0).open_charge("elsewhere", sensitivity=2, epsilon="0.5")


def _unpaid_decisions(noise: Noise) -> None:
    noise.decisions(
        COUNTS, COUNTS, zeros=0, threshold=2, pick=lambda _: COUNTS[:0], scale=9.0, charge=_foreign_charge(noise)
    )


def _unpaid_gaussian(noise: Noise) -> None:
    noise.gaussian(COUNTS, GaussianDraw(scale=1e6, values=2), _foreign_charge(noise))


def _one_gaussian_too_many(noise: Noise) -> None:
    charge = noise.open_gaussian(epsilon=1, delta="1e-6", label="counts")
    half = GaussianDraw.costing(affordable_cost(Fraction(1), Fraction(1, 10**6)) * 0.51, values=2)
    for _ in range(2):
        noise.gaussian(COUNTS, half, charge)


def _one_selection_too_many(noise: Noise) -> None:
    charge = noise.open_gaussian(epsilon=1, delta="1e-6", label="counts")
    half = SelectionDraw.costing(affordable_cost(Fraction(1), Fraction(1, 10**6)) * 0.51, sensitivity=1)
    for _ in range(2):
        noise.shared_exponential(COUNTS.astype(np.float64), half, charge)


def _sampled(noise: Noise, scale: float, times: int, drawn: int) -> None:
    draw = SampledDraw(scale=scale, squared=100**2, chosen=1, parts=1)
    charge = noise.open_sampled(draw, times, epsilon=1, delta="1e-6", label="sums")
    for _ in range(drawn):
        noise.gaussian(COUNTS, draw, charge)


REFUSED: dict[str, tuple[Budget, Callable[[Noise], None]]] = {
    "more epsilon than there is": (ONE, _beyond_epsilon),
    "more delta than there is": (WITH_DELTA, _beyond_delta),
    "a second selection beyond the budget": (ONE, _selected_beyond),
    "all of it once more": (ONE, _twice),
    "decisions under a charge of another run": (ONE, _unpaid_decisions),
    "Gaussian noise under a charge of another run": (WITH_DELTA, _unpaid_gaussian),
    "one Gaussian draw too many": (WITH_DELTA, _one_gaussian_too_many),
    "one selection too many under a Gaussian charge": (WITH_DELTA, _one_selection_too_many),
    "too little noise on a hidden part": (WITH_DELTA, lambda noise: _sampled(noise, 100.0, 1, 0)),
    "one draw more than planned": (WITH_DELTA, lambda noise: _sampled(noise, 2_000.0, 1, 2)),
    "a charge for nothing": (WITH_DELTA, lambda noise: _sampled(noise, 2_000.0, 0, 0)),
    "a sensitivity of nothing": (ONE, _of_nothing),
    "rows drawn with nothing mixed in": (ONE, _rows_alone),
    "a person with rows that no delta covers": (WITH_DELTA, _person_of_many_rows),
}
"""What a source must refuse in words, by what is asked of it."""


def guard_checks(source: Callable[[Budget], Noise] | None = None, *, subject: str = SOURCE) -> Iterator[AuditCheck]:
    """Everything that must be refused is refused, and all that was granted can be spent."""
    make = source or (lambda budget: SeededNoise(budget, 1))
    for case, (budget, ask) in REFUSED.items():
        noise = make(budget)
        try:
            ask(noise)
            problem = "was not refused"
        except DPSynthError:
            spent = noise.spent
            problem = "" if spent is None or budget.covers(spent) else "was refused and charged"
        yield audit_check("claims", subject, case, not problem, problem)
    noise = make(ONE)
    for share in ONE.split(1, 2, 4):
        noise.laplace(COUNTS, sensitivity=2, epsilon=share.epsilon, label="a share")
    good = noise.spent == ONE and len(noise.charges) == 3
    yield audit_check("claims", subject, "all of it in three shares", good, "" if good else "is not what was charged")


# ---------------------------------------------------------------------------------------- prices, by another road


def price_checks(*, subject: str = ACCOUNT) -> Iterator[AuditCheck]:
    """What draws are said to cost together is no less than the laws themselves say."""
    for epsilon, delta in PRICED:
        budget = Budget.of(epsilon, delta)
        mu = math.sqrt(affordable_cost(budget.epsilon, budget.delta))
        yield _price("Gaussian draws", budget, exact_delta(float(budget.epsilon), mu), subject)
        for times, parts in ((1, 1), (5, 1), (1, 4)):
            scale = _least_scale(times, parts, budget)
            needed = mixed_delta(float(budget.epsilon), 100 * math.sqrt(times) / scale, 1 / parts)
            yield _price(f"{times} draw(s) on one of {parts} part(s)", budget, needed, subject)
    for scale in (1.3, 2.0, 7.5, 80.0):
        stated = exact_delta(1 / scale, math.sqrt(GaussianDraw(scale=scale, values=1).cost))
        loss = discrete_delta(scale, 1 / scale)
        detail = f"delta {loss:.4g} at epsilon {1 / scale:.3g}, stated {stated:.4g}"
        yield audit_check("claims", subject, f"discrete Gaussian of scale {scale:g}", loss <= stated, detail)
    for scale in (0.5, 2.0, 20.0):
        mu = math.sqrt(SelectionDraw(scale=scale, sensitivity=1).cost)
        beyond = max(_flipped(scale, e) - (1 + 1e-5) * exact_delta(e, mu) for e in np.linspace(0, 1 / scale, 9))
        detail = f"delta {beyond:.3g} beyond what is stated"
        yield audit_check("claims", subject, f"selection of scale {scale:g}", beyond <= 0, detail)


def _least_scale(times: int, parts: int, budget: Budget) -> float:
    """The least noise on a sum that moves by 100 at which the account says that the budget is kept."""
    low, high = 10.0, 1e6
    for _ in range(14):
        middle = math.sqrt(low * high)
        draw = SampledDraw(scale=middle, squared=100**2, chosen=1, parts=parts)
        low, high = (low, middle) if sampled_delta(draw, times, budget.epsilon) <= budget.delta else (middle, high)
    return high


def _price(case: str, budget: Budget, needed: float, subject: str) -> AuditCheck:
    claimed = float(budget.delta)
    detail = f"delta {needed:.6g} of {claimed:g} at epsilon {float(budget.epsilon):g}"
    name = f"{case}, epsilon {float(budget.epsilon):g}, delta {claimed:g}"
    return audit_check("claims", subject, name, needed <= claimed, detail, measured=needed, claimed=claimed)


def exact_delta(epsilon: float, mu: float) -> float:
    """The delta of a Gaussian draw that moves by mu."""
    return mixed_delta(epsilon, mu, 1.0)


def mixed_delta(epsilon: float, mu: float, rate: float) -> float:
    """The same where the draw moves with this probability only, and nobody learns whether it did.

    By summing max(0, p - exp(epsilon) q) over a fine grid, both ways round, and not by any closed form.
    """
    x = np.linspace(-12, 12 + mu, 100_001)
    still = stats.norm.pdf(x)
    moved = (1 - rate) * still + rate * stats.norm.pdf(x, loc=mu)
    both = (np.maximum(0.0, p - math.exp(epsilon) * q) for p, q in ((moved, still), (still, moved)))
    return max(float(np.trapezoid(each, x)) for each in both) * (1 - 1e-6)


def discrete_delta(scale: float, epsilon: float) -> float:
    """The delta of discrete Gaussian noise on one value that moves by one, summed over all outcomes."""
    reach = math.ceil(40 * scale)
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-0.5 * (k / scale) ** 2)
    p = weights / weights.sum()
    return float(np.maximum(0.0, p[:-1] - math.exp(epsilon) * p[1:]).sum())


def _flipped(scale: float, epsilon: float) -> float:
    """The delta of the worst selection from two: one score falls by the sensitivity, the other rises by it."""
    heads, tails = 1 / (1 + math.exp(-1 / scale)), 1 / (1 + math.exp(1 / scale))
    return max(0.0, heads - math.exp(epsilon) * tails)
