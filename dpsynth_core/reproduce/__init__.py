"""The papers' tables and figures again: ``python -m dpsynth_core.reproduce NAME``.

A new experiment is one file with a function from a ``Setup`` to ``Table``s, and one line here.
"""

from __future__ import annotations

from dpsynth_core.reproduce.balog import balog
from dpsynth_core.reproduce.base import Experiment

REPRODUCE: dict[str, Experiment] = {"balog": balog}

__all__ = ["REPRODUCE"]
