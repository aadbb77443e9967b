"""Mechanisms. A new one is one file and one line here; its form, contract tests and audit follow from the registry."""

from __future__ import annotations

from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.mechanisms.dp_gan.mechanism import DPGAN
from dpsynth_core.mechanisms.kd_grid import KDGrid
from dpsynth_core.mechanisms.kd_tree.mechanism import KDTree
from dpsynth_core.mechanisms.mwem.mechanism import MWEM
from dpsynth_core.mechanisms.noisy_bayes.mechanism import Bayes, NoisyBayes
from dpsynth_core.mechanisms.perturbed_histogram import PerturbedHistogram
from dpsynth_core.mechanisms.pmse.mechanism import PMSE
from dpsynth_core.mechanisms.private_pgm.mechanism import PrivatePGM
from dpsynth_core.mechanisms.smoothed_histogram import SmoothedHistogram

MECHANISMS: dict[str, type[Mechanism]] = {
    mechanism.key: mechanism
    for mechanism in (
        KDTree,
        PrivatePGM,
        KDGrid,
        PerturbedHistogram,
        SmoothedHistogram,
        MWEM,
        DPGAN,
        PMSE,
        NoisyBayes,
        Bayes,
    )
}

__all__ = ["MECHANISMS", "Mechanism"]
