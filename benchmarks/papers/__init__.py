"""The papers' tables and figures again: ``python -m benchmarks.papers NAME``.

A new experiment is one file with a function from ``RunOptions`` to ``ResultTable``s, and one line here.
"""

from __future__ import annotations

from benchmarks.papers.antigen_level import antigen_level
from benchmarks.papers.base import Experiment
from benchmarks.papers.body_mass_index import body_mass_index
from benchmarks.papers.classification_task import classification_task
from benchmarks.papers.false_discoveries import false_discoveries
from benchmarks.papers.gan_discoveries import gan_discoveries
from benchmarks.papers.gaussian_mixtures import gaussian_mixtures
from benchmarks.papers.mean_embeddings import mean_embeddings
from benchmarks.papers.mixed_columns import mixed_columns
from benchmarks.papers.number_of_bins import number_of_bins
from benchmarks.papers.regression_coefficients import regression_coefficients
from benchmarks.papers.release_pmse import release_pmse
from benchmarks.papers.tree_sensitivity import tree_sensitivity
from benchmarks.papers.utility import utility

EXPERIMENTS: dict[str, Experiment] = {
    "antigen_level": antigen_level,
    "body_mass_index": body_mass_index,
    "classification_task": classification_task,
    "false_discoveries": false_discoveries,
    "gan_discoveries": gan_discoveries,
    "gaussian_mixtures": gaussian_mixtures,
    "mean_embeddings": mean_embeddings,
    "mixed_columns": mixed_columns,
    "number_of_bins": number_of_bins,
    "regression_coefficients": regression_coefficients,
    "release_pmse": release_pmse,
    "tree_sensitivity": tree_sensitivity,
    "utility": utility,
}
DEFAULT_REPS: dict[str, int] = {
    "antigen_level": 1000,
    "body_mass_index": 1000,
    "classification_task": 3,
    "false_discoveries": 1000,
    "gan_discoveries": 20,
    "mixed_columns": 5,
    "number_of_bins": 1000,
    "tree_sensitivity": 100,
    "utility": 3,
}
"""Where an experiment needs another number of repetitions than most: shares need many."""

__all__ = ["DEFAULT_REPS", "EXPERIMENTS"]
