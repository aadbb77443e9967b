"""Mechanisms. A new one is one file and one line here; its form, contract tests and audit follow from the registry."""

from __future__ import annotations

from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.registry import Registry

MECHANISMS: Registry[Mechanism] = Registry(
    "dpsynth_core.mechanisms",
    {
        "kd_tree": "kd_tree:KDTree",
        "private_pgm": "private_pgm:PrivatePGM",
        "kd_grid": "kd_grid:KDGrid",
        "perturbed_histogram": "perturbed_histogram:PerturbedHistogram",
        "smoothed_histogram": "smoothed_histogram:SmoothedHistogram",
        "mwem": "mwem:MWEM",
        "dp_gan": "dp_gan:DPGAN",
        "pmse": "pmse:PMSE",
        "noisy_bayes": "noisy_bayes:NoisyBayes",
        "bayes": "noisy_bayes:Bayes",
        "balog_points": "mean_embedding.balog_points:BalogPoints",
        "balog_features": "mean_embedding.balog_features:BalogFeatures",
        "dp_merf": "mean_embedding.dp_merf:DPMERF",
    },
)

__all__ = ["MECHANISMS", "Mechanism"]
