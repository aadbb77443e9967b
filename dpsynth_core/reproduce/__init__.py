"""The papers' tables and figures again: ``python -m dpsynth_core.reproduce NAME``.

A new experiment is one file with a function from a ``Setup`` to ``Table``s, and one line here.
"""

from __future__ import annotations

from dpsynth_core.reproduce.balog import balog
from dpsynth_core.reproduce.base import Experiment
from dpsynth_core.reproduce.discoveries import discoveries
from dpsynth_core.reproduce.regression import regression

REPRODUCE: dict[str, Experiment] = {"balog": balog, "discoveries": discoveries, "regression": regression}
REPETITIONS: dict[str, int] = {"discoveries": 1000}
"""Where an experiment needs another number of repetitions than most: shares need many."""

__all__ = ["REPETITIONS", "REPRODUCE"]
