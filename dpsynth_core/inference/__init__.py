"""How reliable a p-value is: the Mann-Whitney family (ordinary, private, calibrated), how often each is wrong, and the
false-discovery risk of a release."""

from __future__ import annotations

from dpsynth_core.inference.calibrated import CalibratedMannWhitney, calibrated_mann_whitney
from dpsynth_core.inference.dp_mann_whitney import DPMannWhitney, dp_mann_whitney
from dpsynth_core.inference.experiments import ErrorRates, error_rates
from dpsynth_core.inference.mann_whitney import GroupsError, MannWhitney, mann_whitney, mann_whitney_counts

__all__ = [
    "CalibratedMannWhitney",
    "DPMannWhitney",
    "ErrorRates",
    "GroupsError",
    "MannWhitney",
    "calibrated_mann_whitney",
    "dp_mann_whitney",
    "error_rates",
    "mann_whitney",
    "mann_whitney_counts",
]
