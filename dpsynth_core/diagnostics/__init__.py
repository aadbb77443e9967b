"""How far a synthetic table is from the original. What is computed against private rows is itself private.

A new diagnostic is one file and one line in ``DIAGNOSTICS``; its panel and its contract tests follow from the registry.
"""

from __future__ import annotations

from dpsynth_core.diagnostics.base import Diagnostic, Measure, Result, TablePair, Verdict
from dpsynth_core.diagnostics.mann_whitney import MannWhitneyDiagnostic
from dpsynth_core.diagnostics.marginals import MarginalsDiagnostic
from dpsynth_core.diagnostics.mmd.diagnostic import MMDDiagnostic
from dpsynth_core.diagnostics.pairs import PairsDiagnostic
from dpsynth_core.diagnostics.pmse.diagnostic import PMSEDiagnostic
from dpsynth_core.diagnostics.regression import RegressionDiagnostic

DIAGNOSTICS: dict[str, type[Diagnostic]] = {
    diagnostic.key: diagnostic
    for diagnostic in (
        MarginalsDiagnostic,
        PairsDiagnostic,
        PMSEDiagnostic,
        MMDDiagnostic,
        MannWhitneyDiagnostic,
        RegressionDiagnostic,
    )
}

__all__ = ["DIAGNOSTICS", "Diagnostic", "Measure", "Result", "TablePair", "Verdict"]
