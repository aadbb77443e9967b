"""Mechanisms over a grid of epsilon, for teaching: public or simulated tables only."""

from dpsynth_core.teaching.sweep.analysts import Panel
from dpsynth_core.teaching.sweep.aspects import ASPECTS, Aspect
from dpsynth_core.teaching.sweep.found import Band, Spot, Sweep
from dpsynth_core.teaching.sweep.needed import Needed, needed
from dpsynth_core.teaching.sweep.order import EPSILONS, MECHANISM_KEYS, MOST_ANALYSTS, SweepOrder
from dpsynth_core.teaching.sweep.run import KEPT_ROWS, sweep
from dpsynth_core.teaching.sweep.sizes import Sizes, SizesOrder, sweep_sizes

__all__ = [
    "ASPECTS",
    "EPSILONS",
    "KEPT_ROWS",
    "MECHANISM_KEYS",
    "MOST_ANALYSTS",
    "Aspect",
    "Band",
    "Needed",
    "Panel",
    "Sizes",
    "SizesOrder",
    "Spot",
    "Sweep",
    "SweepOrder",
    "needed",
    "sweep",
    "sweep_sizes",
]
