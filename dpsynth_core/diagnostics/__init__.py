"""How far a synthetic table is from the original. What is computed against private rows is itself private.

A new diagnostic is one file and one line in ``DIAGNOSTICS``; its panel and its contract tests follow from the registry.
"""

from __future__ import annotations

from dpsynth_core.diagnostics.base import Comparison, Diagnostic, Measure, Result, Verdict
from dpsynth_core.diagnostics.mann_whitney import GroupDifferences
from dpsynth_core.diagnostics.marginals import Marginals
from dpsynth_core.diagnostics.mmd.diagnostic import KernelDistance
from dpsynth_core.diagnostics.pairs import Pairs
from dpsynth_core.diagnostics.pmse.diagnostic import PropensityScore
from dpsynth_core.diagnostics.regression import Regression

DIAGNOSTICS: dict[str, type[Diagnostic]] = {
    diagnostic.key: diagnostic
    for diagnostic in (Marginals, Pairs, PropensityScore, KernelDistance, GroupDifferences, Regression)
}

__all__ = ["DIAGNOSTICS", "Comparison", "Diagnostic", "Measure", "Result", "Verdict"]
