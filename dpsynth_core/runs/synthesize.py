"""Running a mechanism, and what comes out: a release that carries its own guarantee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import pandas as pd

from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.base import Mechanism, Model
from dpsynth_core.privacy.budget import Amount, Budget, Guarantee
from dpsynth_core.privacy.noise import Noise, SecureNoise, SeededNoise
from dpsynth_core.privacy.primitives import Charge
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema

MIN_EPSILON, MAX_EPSILON = Fraction(1, 10**6), 10**6


@dataclass(frozen=True, kw_only=True)
class Release:
    """What a mechanism has made of a private table. Nothing in it depends on the rows except through paid draws."""

    mechanism: Mechanism
    """How it was made."""
    schema: Schema
    """The public facts it was made with."""
    guarantee: Guarantee
    """What may be claimed for it."""
    charges: tuple[Charge, ...]
    """What each stage spent, per row of the table."""
    model: Model
    """What was learned; partition mechanisms show their boxes with ``model.leaves()``."""
    n: int
    """Rows of the original, which are public."""
    noise: Noise = field(repr=False, compare=False)
    """The source that sampling draws from: the run's own, so that a seeded run repeats."""

    def sample(self, n: int | None = None) -> pd.DataFrame:
        """Synthetic rows with the schema's columns, order and types; as many as the mechanism says by default."""
        rows = (self.mechanism.rows or self.n) if n is None else n
        if rows < 1:
            raise ParameterError("n", n, allowed="at least 1")
        return self.model.sample(rows, self.noise)


def synthesize(
    private: PrivateTable,
    mechanism: Mechanism,
    *,
    epsilon: Amount,
    delta: Amount = 0,
    seed: int | None = None,
    progress: Progress = no_progress,
    watch: Callable[[Charge], None] | None = None,
) -> Release:
    """Run a mechanism on a private table.

    Args:
        private: The table and its public facts.
        mechanism: What to run.
        epsilon: The loss granted, for the unit of protection that the schema declares.
        delta: The probability of failure granted; zero for pure differential privacy.
        seed: For simulation and teaching only: the release can be repeated, and is therefore not private.
        progress: Told about stages; raises to cancel.
        watch: Told of every charge before anything is drawn under it.
    """
    granted = Budget.of(epsilon, delta)
    if not MIN_EPSILON <= granted.epsilon <= MAX_EPSILON:
        raise ParameterError(
            "epsilon",
            str(epsilon),
            allowed=f"from {float(MIN_EPSILON):g} to {MAX_EPSILON:,}",
            remedy="Beyond that there is nothing but noise, or no privacy to speak of.",
        )
    per_row = granted.per_row(private.schema.rows_per_person)
    noise: Noise = SecureNoise(per_row) if seed is None else SeededNoise(per_row, seed)
    noise.watch = watch
    model = mechanism.fit(private, noise, progress)
    # A reference without privacy has not kept to any epsilon, so none is stated.
    budget = None if mechanism.status == "none" else granted
    claim = Guarantee(status=mechanism.status, budget=budget, rows_per_person=private.schema.rows_per_person)
    return Release(
        mechanism=mechanism,
        schema=private.schema,
        guarantee=private.judge(noise.judge(mechanism.judge(claim))),
        charges=noise.charges,
        model=model,
        n=private.n,
        noise=noise,
    )
