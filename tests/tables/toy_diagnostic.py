"""A diagnostic outside the core: one file, and one line that registers it."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from dpsynth_core.diagnostics import DIAGNOSTICS, Diagnostic, Result, TablePair
from dpsynth_core.diagnostics.base import Scale
from dpsynth_core.diagnostics.total_variation import coarse, variation_measure
from dpsynth_core.progress import Progress, no_progress


@dataclass(frozen=True, kw_only=True)
class ToyDiagnostic(Diagnostic):
    """Total variation of the first column, in at most five cells."""

    key: ClassVar[str] = "toy"
    title: ClassVar[str] = "A toy for the tests"
    question: ClassVar[str] = "Does the first column keep its shape?"
    method: ClassVar[str] = "Rows are counted in at most five cells of the first column; the shares are compared. " * 2
    scale: ClassVar[Scale] = Scale(name="toy distance", low=0.0, high=1.0, better="lower", good="0")

    def examine(self, pair: TablePair, rng: np.random.Generator, progress: Progress = no_progress) -> Result:
        """Compare the two tables."""
        progress("Playing", 0.0)
        name = pair.names[0]
        (counts,) = pair.counts([[coarse(pair.original.schema[name], 5)]])
        measure = variation_measure(name, (name,), *counts, rng, draws=50)
        return self.result([measure])


def registered() -> AbstractContextManager[None]:
    """The one line."""
    return DIAGNOSTICS.register(ToyDiagnostic.key, ToyDiagnostic)


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin, register it before any test is collected."""
    registration = ExitStack()
    registration.enter_context(registered())
    config.add_cleanup(registration.close)
