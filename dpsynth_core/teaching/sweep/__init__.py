"""Mechanisms over a grid of epsilon, for teaching: public or simulated tables only."""

from dpsynth_core.teaching.sweep.analysts import AnalystPanel
from dpsynth_core.teaching.sweep.aspects import ASPECTS, Aspect
from dpsynth_core.teaching.sweep.config import EPSILONS, MAX_ANALYSTS, MECHANISM_KEYS, SweepConfig
from dpsynth_core.teaching.sweep.epsilon_needed import EpsilonNeeded, epsilon_needed
from dpsynth_core.teaching.sweep.results import Band, SweepPoint, SweepResult
from dpsynth_core.teaching.sweep.run import MAX_TABLE_ROWS, sweep
from dpsynth_core.teaching.sweep.sizes import SizeSweepConfig, SizeSweepResult, sweep_sizes

__all__ = [
    "ASPECTS",
    "EPSILONS",
    "MAX_ANALYSTS",
    "MAX_TABLE_ROWS",
    "MECHANISM_KEYS",
    "AnalystPanel",
    "Aspect",
    "Band",
    "EpsilonNeeded",
    "SizeSweepConfig",
    "SizeSweepResult",
    "SweepConfig",
    "SweepPoint",
    "SweepResult",
    "epsilon_needed",
    "sweep",
    "sweep_sizes",
]
