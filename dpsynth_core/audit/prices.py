"""Whether the noise of a recorded draw is large enough for what the draw says it costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from dpsynth_core.privacy.accounting import GaussianDraw, SampledDraw, composed_delta, sampled_delta
from dpsynth_core.privacy.primitives import Call, Charge

SHARED = ("decisions", "gaussian", "sampled_gaussian")
"""Draws of which several may be made under one charge."""


def underpriced(call: Call) -> str | None:
    """In words how the draw costs more than its charge; None where it does not, or where only a proof could tell."""
    if call.charge is None:
        # Randomness that no private value touches is free, and only that.
        return None if call.private is None else "private values enter a draw that is not paid for"
    check = _CHECKS.get(call.primitive)
    return None if check is None else check(call, call.charge)


def underpriced_together(calls: Sequence[Call]) -> Iterator[str]:
    """Gaussian draws under one charge are priced by their composition, from the scales that were really used."""
    by_charge: dict[Charge, list[GaussianDraw]] = {}
    for call in calls:
        if call.primitive == "gaussian" and call.charge is not None:
            scale, shift, values = call.parameters
            draw = GaussianDraw(scale=scale, shift=int(shift), values=int(values))
            by_charge.setdefault(call.charge, []).append(draw)
    sampled: Counter[tuple[Charge, tuple[int | float, ...]]] = Counter(
        (call.charge, call.parameters)
        for call in calls
        if call.primitive == "sampled_gaussian" and call.charge is not None
    )
    for (charge, (scale, squared, chosen, parts)), times in sampled.items():
        sample = SampledDraw(scale=scale, squared=int(squared), chosen=int(chosen), parts=int(parts))
        needed = sampled_delta(sample, times, charge.budget.epsilon)
        if needed > charge.budget.delta:
            yield f"{times} draws need delta {needed:.2g}, paid was {float(charge.budget.delta):.2g}"
    for charge, draws in by_charge.items():
        needed = composed_delta(sorted(draws, key=lambda draw: draw.scale), charge.budget.epsilon)
        if needed > charge.budget.delta:
            yield f"{len(draws)} draws need delta {needed:.2g}, paid was {float(charge.budget.delta):.2g}"


def _scale(times: int) -> Callable[[Call, Charge], str | None]:
    """The scale must reach ``times`` sensitivity / epsilon."""

    def check(call: Call, charge: Charge) -> str | None:
        needed = times * charge.sensitivity / charge.budget.epsilon
        scale = Fraction(call.parameters[0])
        return None if scale >= needed else f"noise of scale {float(scale):g} where {float(needed):g} is needed"

    return check


def _smoothed(call: Call, charge: Charge) -> str | None:
    """Every draw costs at most ln(1 + 1/alpha): docs/proofs.md, section 7."""
    draws, p, q = (int(value) for value in call.parameters[:3])
    with localcontext(prec=60):
        cost = draws * (1 + Decimal(q) / Decimal(p)).ln()
        epsilon = Decimal(charge.budget.epsilon.numerator) / Decimal(charge.budget.epsilon.denominator)
    return None if cost <= epsilon else f"{draws} draws cost {float(cost):g}, paid was {float(epsilon):g}"


def _decisions(call: Call, charge: Charge) -> str | None:
    """PrivTree: a scale of four steps per row over epsilon, a bias of at least scale ln 2 (docs/proofs.md, section 9).

    The charge's sensitivity is two rows' worth of steps, the threshold is one more than the bias.
    """
    scale, threshold = call.parameters[0], int(call.parameters[2])
    needed = 2 * charge.sensitivity / charge.budget.epsilon
    if Fraction(scale) < needed:
        return f"noise of scale {scale:g} where {float(needed):g} is needed"
    bias = math.ceil(scale * math.log(2))
    return None if threshold - 1 >= bias else f"a bias of {threshold - 1} where {bias} is needed"


_CHECKS: dict[str, Callable[[Call, Charge], str | None]] = {
    "laplace": _scale(1),
    "sparse_laplace": _scale(1),
    "exponential": _scale(2),
    "permute_and_flip": _scale(2),
    "metropolis": _scale(2),
    "smoothed": _smoothed,
    "decisions": _decisions,
}
