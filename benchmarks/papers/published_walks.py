"""The pMSE mechanism as published, walked once for each table, depth and epsilon: Table 2 and Figures 2 and 4 share it.

The paper draws l = 10 parameters, each at a tenth of epsilon, and makes a table of each. Ten walks end in ten such
draws. It does not say how long it walked, nor whether walks agreed; here both are recorded, and nothing is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from benchmarks.papers.base import RunOptions
from dpsynth_core.arrays import FloatArray
from dpsynth_core.mechanisms.pmse.metropolis import MAX_RHAT
from dpsynth_core.mechanisms.pmse.published import FLAT_TAIL, PublishedWalks, normal_rows, standard_normal
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.privacy.noise import SecureNoise, SeededNoise
from dpsynth_core.table.examples.base import numeric
from dpsynth_core.table.examples.bivariate import simulate_bivariate
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.trees.cart import MAX_DEPTH

DEPTHS = {1: "depth 1", 2: "depth 2", 5: "depth 5", MAX_DEPTH: "any depth"}
"""The trees of Figures 2 and 4."""
COPIES = 10
"""Tables of the paper, each at an equal share of epsilon (l), one for each walk."""
STEPS = 1_000
"""Of every walk, half of them to warm up."""
MIN_STEPS = 200
"""For a quick look."""
TRUTH = (2.0, 10.0, -2.5, 0.5, 3.0)
"""The parameters that the rows are simulated with. Nobody has them for rows of their own: the best start there is."""
Start: TypeAlias = Literal["truth", "bounds"]
"""Where walks begin: at the parameters of the simulation, or anywhere within the declared bounds."""


@dataclass(frozen=True, kw_only=True)
class PublishedDraws:
    """The l parameters of one run."""

    thetas: FloatArray
    """One line each: intercept and deviation of x1; intercept, slope and deviation of x2."""
    scores: FloatArray
    """Of each line, on the fixed draws of the walk."""
    rhat: float

    @property
    def agree(self) -> bool:
        """Whether the walks had met."""
        return self.rhat <= MAX_RHAT

    @property
    def left(self) -> int:
        """Walks that had left for the flat tail of the prior, where rows share next to nothing with the original."""
        return int((self.scores > FLAT_TAIL).sum())


def published_draws(
    table: PrivateTable, rep: int, *, depth: int, epsilon: float, start: Start, options: RunOptions
) -> PublishedDraws:
    """The paper's l draws, each at ``epsilon``, from the store if they are there."""

    steps = max(MIN_STEPS, STEPS // options.shrink)

    def compute() -> dict[str, Any]:
        options.report(f"Walking, repetition {rep + 1}: depth {depth}, epsilon {epsilon:g} for each table")
        walks = PublishedWalks(depth=depth, chains=COPIES, steps=steps, attempts=1)
        budget = Budget.of(str(epsilon))
        noise = SecureNoise(budget) if options.secure else SeededNoise(budget, 7_000 + rep)
        begin_at = np.array(TRUTH) if start == "truth" else None
        ends = walks.ends(table, noise, lambda *_: None, begin_at=begin_at)
        # JSON has no word for infinity, which is what walks that never moved have.
        rhat = ends.chains.rhat if np.isfinite(ends.chains.rhat) else 1e9
        return {"thetas": ends.chains.states.tolist(), "scores": ends.scores.tolist(), "rhat": rhat}

    key = f"walks: depth {depth}, epsilon {epsilon:g}, {steps} steps from {start}, {table.n} rows, repetition {rep}"
    stored = options.once(key, compute)
    return PublishedDraws(
        thetas=np.array(stored["thetas"]), scores=np.array(stored["scores"]), rhat=float(stored["rhat"])
    )


def simulated_table(rows: int, rep: int) -> PrivateTable:
    """The rows of sections 5 to 7, with bounds of four standard deviations: walks that begin there need some."""
    facts = [
        numeric(name, centre - 4 * std, centre + 4 * std, bins=32, origin="public knowledge")
        for name, centre, std in (("x1", 2.0, 10.0), ("x2", -1.5, 34.0**0.5))
    ]
    frame = simulate_bivariate(rows, np.random.default_rng([2018, rep]))
    return PrivateTable(frame, Schema.from_dict({"columns": facts}))


def synthetic_tables(draws: PublishedDraws, rows: int, rep: int) -> list[pd.DataFrame]:
    """A table of each of the l draws."""
    noise = SeededNoise(Budget.of(1), 9_000 + rep)
    made = (normal_rows(theta, standard_normal(noise, (2, rows))) for theta in draws.thetas)
    return [pd.DataFrame(dict(zip(("x1", "x2"), each, strict=True))) for each in made]
