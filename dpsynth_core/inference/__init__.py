"""How reliable a p-value is: the Mann-Whitney family (ordinary, private, calibrated) and how often each is wrong."""

from __future__ import annotations

from dpsynth_core.inference.calibrated import CalibratedMannWhitney, calibrated_mann_whitney
from dpsynth_core.inference.dp_mann_whitney import DPMannWhitney, dp_mann_whitney
from dpsynth_core.inference.experiments import ErrorRates, error_rates
from dpsynth_core.inference.group_comparison import GroupComparison
from dpsynth_core.inference.mann_whitney import CountTests, GroupsError, MannWhitney, mann_whitney, mann_whitney_counts
from dpsynth_core.inference.pair_tests import AllPairTests, PairTest, all_pairs
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.inference.reliability import Reliability, p_value_reliability, verdict

__all__ = [
    "AllPairTests",
    "CalibratedMannWhitney",
    "CountTests",
    "DPMannWhitney",
    "ErrorRates",
    "GroupComparison",
    "GroupsError",
    "MannWhitney",
    "PairTest",
    "Proportion",
    "Reliability",
    "all_pairs",
    "calibrated_mann_whitney",
    "dp_mann_whitney",
    "error_rates",
    "mann_whitney",
    "mann_whitney_counts",
    "p_value_reliability",
    "verdict",
]
