"""How far a synthetic table is from the original. Anything computed from private rows is itself private.

A new diagnostic is one file and one line here; its panel, its pictures, its place in the report and its contract tests
follow from the registry.
"""

from __future__ import annotations

from dpsynth_core.diagnostics.base import Diagnostic, Measure, Result, TablePair, Verdict
from dpsynth_core.mechanisms.registry import Registry

DIAGNOSTICS: Registry[Diagnostic] = Registry(
    "dpsynth_core.diagnostics",
    {
        "marginals": "marginals:MarginalsDiagnostic",
        "pairs": "pairs:PairsDiagnostic",
        "pmse": "pmse.diagnostic:PMSEDiagnostic",
        "mmd": "mmd.diagnostic:MMDDiagnostic",
        "mann_whitney": "mann_whitney:MannWhitneyDiagnostic",
        "regression": "regression:RegressionDiagnostic",
        "classification": "classification:ClassificationDiagnostic",
    },
)

__all__ = ["DIAGNOSTICS", "Diagnostic", "Measure", "Result", "TablePair", "Verdict"]
