"""A question about a release that an analyst would answer with an ordinary test."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import pandas as pd

from dpsynth_core.inference.null_simulation import NullTest


@dataclass(frozen=True, kw_only=True)
class OrdinaryFinding:
    """What an ordinary test finds, taking the rows for real ones."""

    text: str
    """The estimate in a sentence; it holds names from a file."""
    pvalue: float


class Question(NullTest):
    """Two columns and an ordinary test of whether they are related, with an estimate to go with it."""

    max_cells = 32  # both columns may be numbers

    @abstractmethod
    def finding(self, table: pd.DataFrame) -> OrdinaryFinding | None:
        """In a table; None where there is nothing to test."""
