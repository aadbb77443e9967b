"""Example data without a download. A new one is one file and one line here."""

from __future__ import annotations

from dpsynth_core.table.examples.base import Example
from dpsynth_core.table.examples.bivariate import BIVARIATE_NORMAL
from dpsynth_core.table.examples.blood_pressure import BLOOD_PRESSURE
from dpsynth_core.table.examples.breast_cancer import BREAST_CANCER
from dpsynth_core.table.examples.diabetes import DIABETES
from dpsynth_core.table.examples.mixture import MIXTURE
from dpsynth_core.table.examples.two_groups import TWO_GROUPS_NO_SIGNAL, TWO_GROUPS_SIGNAL
from dpsynth_core.table.examples.wine import WINE

EXAMPLES: dict[str, Example] = {
    example.key: example
    for example in (
        BLOOD_PRESSURE,
        BREAST_CANCER,
        DIABETES,
        WINE,
        TWO_GROUPS_SIGNAL,
        TWO_GROUPS_NO_SIGNAL,
        BIVARIATE_NORMAL,
        MIXTURE,
    )
}
FIRST = next(iter(EXAMPLES))
"""The example to begin with."""

__all__ = ["EXAMPLES", "FIRST", "Example"]
