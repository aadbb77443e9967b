"""The papers' tables and figures again: ``python -m benchmarks.papers NAME``.

A new experiment is one file with a function from ``RunOptions`` to ``ResultTable``s, and one line here.
"""

from __future__ import annotations

from benchmarks.papers.base import Experiment
from benchmarks.papers.false_discoveries import false_discoveries
from benchmarks.papers.gaussian_mixtures import gaussian_mixtures
from benchmarks.papers.mixed_columns import mixed_columns
from benchmarks.papers.regression_coefficients import regression_coefficients
from benchmarks.papers.release_pmse import release_pmse
from benchmarks.papers.tree_sensitivity import tree_sensitivity
from benchmarks.papers.utility import utility

EXPERIMENTS: dict[str, Experiment] = {
    "false_discoveries": false_discoveries,
    "gaussian_mixtures": gaussian_mixtures,
    "mixed_columns": mixed_columns,
    "regression_coefficients": regression_coefficients,
    "release_pmse": release_pmse,
    "tree_sensitivity": tree_sensitivity,
    "utility": utility,
}
DEFAULT_REPS: dict[str, int] = {"false_discoveries": 1000, "tree_sensitivity": 100, "utility": 3, "mixed_columns": 5}
"""Where an experiment needs another number of repetitions than most: shares need many."""

__all__ = ["DEFAULT_REPS", "EXPERIMENTS"]
