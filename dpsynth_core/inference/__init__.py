"""What a p-value is worth: the Mann-Whitney family (ordinary, private, calibrated) and how often each is wrong."""

from __future__ import annotations

from dpsynth_core.inference.calibrated import CalibratedMannWhitney, calibrated_mann_whitney
from dpsynth_core.inference.comparison import Comparison
from dpsynth_core.inference.dp_mann_whitney import DPMannWhitney, dp_mann_whitney
from dpsynth_core.inference.experiments import ErrorRates, error_rates
from dpsynth_core.inference.mann_whitney import CountTests, GroupsError, MannWhitney, mann_whitney, mann_whitney_counts
from dpsynth_core.inference.pairs import AllPairs, Pair, all_pairs
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.worth import Worth, verdict, what_is_it_worth

__all__ = [
    "AllPairs",
    "CalibratedMannWhitney",
    "Comparison",
    "CountTests",
    "DPMannWhitney",
    "ErrorRates",
    "GroupsError",
    "MannWhitney",
    "Pair",
    "Proportion",
    "Worth",
    "all_pairs",
    "calibrated_mann_whitney",
    "dp_mann_whitney",
    "error_rates",
    "mann_whitney",
    "mann_whitney_counts",
    "verdict",
    "what_is_it_worth",
]
