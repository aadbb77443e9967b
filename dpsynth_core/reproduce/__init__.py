"""The papers' tables and figures again: ``python -m dpsynth_core.reproduce NAME``.

A new experiment is one file with a function from a ``Setup`` to ``Table``s, and one line here.
"""

from __future__ import annotations

from dpsynth_core.reproduce.balog import balog
from dpsynth_core.reproduce.base import Experiment
from dpsynth_core.reproduce.discoveries import discoveries
from dpsynth_core.reproduce.mixed import mixed
from dpsynth_core.reproduce.regression import regression
from dpsynth_core.reproduce.table1 import table1
from dpsynth_core.reproduce.table2 import table2
from dpsynth_core.reproduce.utility import utility

REPRODUCE: dict[str, Experiment] = {
    "balog": balog, "discoveries": discoveries, "table1": table1, "table2": table2, "regression": regression,
    "utility": utility, "mixed": mixed,
}  # fmt: skip
REPETITIONS: dict[str, int] = {"discoveries": 1000, "table1": 100, "utility": 3, "mixed": 5}
"""Where an experiment needs another number of repetitions than most: shares need many."""

__all__ = ["REPETITIONS", "REPRODUCE"]
