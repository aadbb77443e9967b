"""Two groups that differ, and two that do not: the Gaussian data of Montoya Perez et al., section 4.1."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth_core.table.examples.base import Example, labelled, numeric

GROUPS = ["control", "case"]


def simulate_groups(
    rows: int, rng: np.random.Generator, *, effect: float, std: float, ratio: float = 0.5
) -> pd.DataFrame:
    """A control group around 50 and a case group ``effect`` standard deviations above it."""
    cases = round(rows * ratio)
    group = np.repeat(GROUPS, [rows - cases, cases])
    value = rng.normal(50.0 + effect * std * (group == "case"), std)
    order = rng.permutation(rows)
    return pd.DataFrame({"group": group[order], "value": value[order]}).astype({"group": "str"})


def simulate_signal(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Means one standard deviation apart (51 and 50, sd 1)."""
    return simulate_groups(rows, rng, effect=1.0, std=1.0)


def simulate_no_signal(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Both groups from N(50, sd 2)."""
    return simulate_groups(rows, rng, effect=0.0, std=2.0)


# One hundred bins whose centres are the whole numbers from 1 to 100, as in the paper.
_FACTS = {
    "columns": [
        labelled("group", GROUPS, origin="public knowledge"),
        numeric("value", 0.5, 100.5, bins=100, origin="public knowledge"),
    ]
}
_SOURCE = "Simulated as in Montoya Perez et al. (2024), section 4.1."

TWO_GROUPS_SIGNAL = Example(
    key="two_groups_signal",
    title="Two groups that differ",
    summary="Cases lie one standard deviation above controls. A good synthetic table lets a test find it.",
    source=_SOURCE,
    facts=_FACTS,
    default_rows=500,
    simulate=simulate_signal,
)
TWO_GROUPS_NO_SIGNAL = Example(
    key="two_groups_no_signal",
    title="Two groups that do not differ",
    summary="Cases and controls come from the same distribution. A difference found here is a false discovery.",
    source=_SOURCE,
    facts=_FACTS,
    default_rows=500,
    simulate=simulate_no_signal,
)
