"""Compile every loop to machine code, once for this installation: ``python -m dpsynth_core.runs.warm_up``.

The app does it in the background as it starts. Processes that begin together would each do it by themselves.
"""

from __future__ import annotations

from dpsynth_core.mechanisms.partition import loops
from dpsynth_core.mechanisms.pmse import objective
from dpsynth_core.table import cell_loops
from dpsynth_core.trees import cart, optimal


def warm_up() -> None:
    """Compile what an earlier process has not compiled already; later ones load it from disk."""
    for module in (cell_loops, loops, cart, optimal, objective):
        module.warm_up()


if __name__ == "__main__":
    warm_up()
