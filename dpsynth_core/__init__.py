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

from dpsynth_core.diagnostics import DIAGNOSTICS
from dpsynth_core.diagnostics.evaluation import Evaluation, evaluate
from dpsynth_core.errors import BudgetError, DPSynthError, IntakeError, LedgerError, ParameterError, SchemaError
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget, Guarantee
from dpsynth_core.runs.synthesize import Release, synthesize
from dpsynth_core.table.column import Column
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
    "estimate_bounds",
    "evaluate",
    "read_table",
    "suggest_schema",
    "synthesize",
]
