"""Whether a run paid what its plan says, stage by stage, and spent all that it was granted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction

from dpsynth_core.mechanisms.plan import Plan
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.primitives import Charge


def departures(charges: Iterable[Charge], plan: Plan, granted: Budget) -> Iterator[tuple[str, str]]:
    """Where the charges are not the plan's, in words; nothing if they are."""
    charges = tuple(charges)
    paid, planned = defaultdict[tuple[str, str], Fraction](Fraction), _planned(charges, plan)
    for charge in charges:
        paid[charge.label, "epsilon"] += charge.budget.epsilon
        paid[charge.label, "delta"] += charge.budget.delta
    for label, kind in {**planned, **paid}:
        got, due = paid[label, kind], planned.get((label, kind), Fraction(0))
        if got != due:
            yield "plan", f"{label!r} is charged {kind} {float(got):g} where the plan says {float(due):g}"
    for kind, whole in (("epsilon", granted.epsilon), ("delta", granted.delta)):
        spent = sum((amount for (_, which), amount in paid.items() if which == kind), Fraction(0))
        if spent != whole:
            yield "spent", f"{kind} {float(spent):g} was spent of {float(whole):g}"


def _planned(charges: tuple[Charge, ...], plan: Plan) -> dict[tuple[str, str], Fraction]:
    """By stage; a stage that there turned out to be nothing for leaves its share to the last one."""
    made = {charge.label for charge in charges}
    planned: dict[tuple[str, str], Fraction] = {}
    for stage in plan.stages:
        label = plan.stages[-1].label if stage.optional and stage.label not in made else stage.label
        for kind, amount in (("epsilon", stage.epsilon), ("delta", stage.delta)):
            planned[label, kind] = planned.get((label, kind), Fraction(0)) + amount
    return planned
