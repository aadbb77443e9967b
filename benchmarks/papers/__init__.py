"""The papers' tables and figures again: ``python -m benchmarks.papers NAME``.

A new experiment is one file with a function from a ``Setup`` to ``Table``s, and one line here.
"""

from __future__ import annotations

from benchmarks.papers.balog import balog
from benchmarks.papers.base import Experiment
from benchmarks.papers.discoveries import discoveries
from benchmarks.papers.mixed import mixed
from benchmarks.papers.regression import regression
from benchmarks.papers.table1 import table1
from benchmarks.papers.table2 import table2
from benchmarks.papers.utility import utility

REPRODUCE: dict[str, Experiment] = {
    "balog": balog, "discoveries": discoveries, "table1": table1, "table2": table2, "regression": regression,
    "utility": utility, "mixed": mixed,
}  # fmt: skip
REPETITIONS: dict[str, int] = {"discoveries": 1000, "table1": 100, "utility": 3, "mixed": 5}
"""Where an experiment needs another number of repetitions than most: shares need many."""

__all__ = ["REPETITIONS", "REPRODUCE"]
