"""A mechanism, sampler or release that is broken on purpose: the audit must catch it.

The broken ones themselves live with the tests, so that nothing in the package is less private than it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from dpsynth_core.audit.checks import AuditCheck, Layer, Size

LayerChecks: TypeAlias = dict[Layer, Callable[[Size, int], Iterator[AuditCheck]]]


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """Something broken, and the layers that may catch it."""

    name: str
    mistake: str
    """What is wrong with it, in a sentence."""
    layers: LayerChecks
    """Those that audit the original, cheapest first."""

    def caught_by(self, size: Size, root: int, *, every: bool = False) -> tuple[Layer, ...]:
        """The layers that catch it; only the first one unless ``every`` is asked. None: it survives."""
        caught: list[Layer] = []
        for layer, ask in self.layers.items():
            if any(check.verdict == "failed" for check in ask(size, root)):
                caught.append(layer)
                if not every:
                    break
        return tuple(caught)
