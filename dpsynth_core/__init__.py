"""DPSynth: differentially private synthetic tables, with an honest account of what they are worth.

Example:
    >>> import dpsynth_core as dp
    >>> example = dp.EXAMPLES["breast_cancer"]
    >>> private = dp.PrivateTable(example.load(), example.schema)
    >>> release = dp.synthesize(private, dp.MECHANISMS["kd_tree"](), epsilon=1)
    >>> release.guarantee.status
    'proven'
    >>> len(release.sample())
    569
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsynth_core.diagnostics import DIAGNOSTICS
    from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate
    from dpsynth_core.errors import (
        BudgetError,
        DPSynthError,
        EngineError,
        IntakeError,
        LedgerError,
        ParameterError,
        SchemaError,
    )
    from dpsynth_core.inference.discovery_risk import DiscoveryRisk, discovery_risk
    from dpsynth_core.mechanisms import MECHANISMS
    from dpsynth_core.privacy.budget import Budget, Guarantee
    from dpsynth_core.review.export import write_rows
    from dpsynth_core.runs.selection import select_release
    from dpsynth_core.runs.synthesize import Release, synthesize
    from dpsynth_core.table.column import Column
    from dpsynth_core.table.engines.open import open_table
    from dpsynth_core.table.estimate import discover_categories, estimate_bounds
    from dpsynth_core.table.examples import EXAMPLES
    from dpsynth_core.table.private_table import PrivateTable
    from dpsynth_core.table.readers.read import read_table
    from dpsynth_core.table.schema import Schema
    from dpsynth_core.table.suggest import suggest_schema

__version__ = "0.1.0"

__all__ = [
    "DIAGNOSTICS",
    "EXAMPLES",
    "MECHANISMS",
    "Budget",
    "BudgetError",
    "Column",
    "DPSynthError",
    "DiscoveryRisk",
    "EngineError",
    "Evaluation",
    "Guarantee",
    "IntakeError",
    "LedgerError",
    "ParameterError",
    "PrivateTable",
    "Release",
    "Schema",
    "SchemaError",
    "discover_categories",
    "discovery_risk",
    "estimate_bounds",
    "evaluate",
    "open_table",
    "read_table",
    "select_release",
    "suggest_schema",
    "synthesize",
    "write_rows",
]

# Where each name lives. It is imported when it is first asked for, so that a process loads only what it uses.
_MODULES = {
    "DIAGNOSTICS": "diagnostics",
    "EXAMPLES": "table.examples",
    "EngineError": "errors",
    "MECHANISMS": "mechanisms",
    "Budget": "privacy.budget",
    "BudgetError": "errors",
    "Column": "table.column",
    "DPSynthError": "errors",
    "DiscoveryRisk": "inference.discovery_risk",
    "Evaluation": "diagnostics.evaluation",
    "Guarantee": "privacy.budget",
    "IntakeError": "errors",
    "LedgerError": "errors",
    "ParameterError": "errors",
    "PrivateTable": "table.private_table",
    "Release": "runs.synthesize",
    "Schema": "table.schema",
    "SchemaError": "errors",
    "discover_categories": "table.estimate",
    "discovery_risk": "inference.discovery_risk",
    "estimate_bounds": "table.estimate",
    "evaluate": "diagnostics.evaluation",
    "open_table": "table.engines.open",
    "read_table": "table.readers.read",
    "select_release": "runs.selection",
    "suggest_schema": "table.suggest",
    "synthesize": "runs.synthesize",
    "write_rows": "review.export",
}

if not TYPE_CHECKING:  # else a misspelt name would pass the type checker

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
