"""Whether the noise of a recorded draw is large enough for what the draw says it costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from dpsynth_core.privacy.accounting import GaussianDraw, SampledDraw, SelectionDraw, affordable_cost, sampled_delta
from dpsynth_core.privacy.primitives import (
    Charge,
    Decisions,
    Gaussian,
    Laplace,
    PaidCall,
    SampledGaussian,
    ScoredCall,
    SharedExponential,
    Smoothed,
    SparseLaplace,
)

SHARED = (Decisions, Gaussian, SampledGaussian, SharedExponential)
"""Draws of which several may be made under one charge."""


def underpriced(call: PaidCall[Any]) -> str | None:
    """In words how the draw costs more than its charge; None where it does not, or where only a proof could tell."""
    match call:
        case Laplace() | SparseLaplace():
            return _scale_too_small(call.scale, 1, call.charge)
        case SharedExponential():
            lower = call.scale < call.draw.scale
            return f"a selection of scale {call.scale:g} where {call.draw.scale:g} is declared" if lower else None
        case ScoredCall():
            return _scale_too_small(call.scale, 2, call.charge)
        case Smoothed():
            return _too_little_smoothing(call)
        case Decisions():
            # PrivTree: a scale of four steps per row over epsilon, a bias of at least scale ln 2 (docs/proofs.md,
            # section 9). The charge's sensitivity is two rows' steps, the threshold is one more than the bias.
            return _scale_too_small(call.scale, 2, call.charge) or _bias_too_small(call) or _below_an_empty_box(call)
    return None


def underpriced_together(calls: Sequence[PaidCall[Any]]) -> Iterator[str]:
    """Draws under one charge are priced together: Gaussian ones from the scales really used, decisions by depth."""
    yield from _bias_does_not_grow([call for call in calls if isinstance(call, Decisions)])
    shared: dict[Charge, list[GaussianDraw | SelectionDraw]] = {}
    sampled: Counter[tuple[Charge, SampledDraw]] = Counter()
    for call in calls:
        match call:
            case Gaussian() | SharedExponential():
                shared.setdefault(call.charge, []).append(call.draw)
            case SampledGaussian():
                sampled[call.charge, call.draw] += 1
    for (charge, draw), times in sampled.items():
        yield from _delta_too_small(times, sampled_delta(draw, times, charge.budget.epsilon), charge)
    for charge, draws in shared.items():
        cost, paid = math.fsum(draw.cost for draw in draws), affordable_cost(charge.budget.epsilon, charge.budget.delta)
        if cost > paid:
            yield f"{len(draws)} draws cost {cost:.3g} together, paid was {paid:.3g}"


def _delta_too_small(draws: int, needed: float, charge: Charge) -> Iterator[str]:
    if needed > charge.budget.delta:
        yield f"{draws} draws need delta {needed:.2g}, paid was {float(charge.budget.delta):.2g}"


def _scale_too_small(scale: float, times: int, charge: Charge) -> str | None:
    """The scale must reach ``times`` sensitivity / epsilon."""
    needed = times * charge.sensitivity / charge.budget.epsilon
    return None if Fraction(scale) >= needed else f"noise of scale {scale:g} where {float(needed):g} is needed"


def _bias_too_small(call: Decisions) -> str | None:
    bias = math.ceil(call.scale * math.log(2))
    return None if call.threshold - 1 >= bias else f"a bias of {call.threshold - 1} where {bias} is needed"


def _below_an_empty_box(call: Decisions) -> str | None:
    """A box that nobody has listed stands at zero; one that stood lower would pay again at every depth."""
    lowest = int(call.values.min(initial=0))
    return None if lowest >= 0 else f"a box stands at {lowest}, below one without rows"


def _bias_does_not_grow(calls: Sequence[Decisions]) -> Iterator[str]:
    """Every further decision on a path subtracts the bias: a box stands at least that much below the one it is half of.

    Keys are prefixes of bits, one bit more with every call; a box that cannot be halved is passed on undecided.
    """
    stands: list[dict[int, int]] = []
    for call in calls:
        bias, here = call.threshold - 1, call.counts()
        for key, value in here.items():
            above = (stood[key >> bits] for bits, stood in enumerate(reversed(stands), start=1) if key >> bits in stood)
            over = next(above, None)
            if over is not None and value > max(0, over - bias):
                yield f"a box stands at {value} where the one above it stood at {over} and the bias is {bias}"
                return
        stands.append(here)


def _too_little_smoothing(call: Smoothed) -> str | None:
    """Every draw costs at most ln(1 + 1/alpha): docs/proofs.md, section 7."""
    budget = call.charge.budget
    with localcontext(prec=60):
        cost = call.draws * (1 + Decimal(call.alpha.denominator) / Decimal(call.alpha.numerator)).ln()
        epsilon = Decimal(budget.epsilon.numerator) / Decimal(budget.epsilon.denominator)
    return None if cost <= epsilon else f"{call.draws} draws cost {float(cost):g}, paid was {float(epsilon):g}"
