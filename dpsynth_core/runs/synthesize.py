"""Running a mechanism, and what comes out: a release that carries its own guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pandas as pd

from dpsynth_core.errors import ParameterError
from dpsynth_core.mechanisms.base import Mechanism, Model
from dpsynth_core.privacy.budget import Amount, Budget, Cost, Guarantee
from dpsynth_core.privacy.noise import Noise, SecureNoise, SeededNoise
from dpsynth_core.privacy.primitives import Charge
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.originals import ReadingProgress
from dpsynth_core.table.paid_estimate import PaidEstimate
from dpsynth_core.table.private_rows import PrivateRows
from dpsynth_core.table.schema import Schema

ROWS = "Synthetic rows"
"""What the rows' part of a guarantee is called."""
BATCH_ROWS = 1_000_000
"""Synthetic rows that are drawn at a time where they are not all held."""
MIN_EPSILON, MAX_EPSILON = Fraction(1, 10**6), 10**6


@dataclass(frozen=True, kw_only=True)
class Release:
    """What a mechanism has made of a private table. Nothing in it depends on the rows except through paid draws."""

    mechanism: Mechanism
    """How it was made."""
    schema: Schema
    """The public facts it was made with."""
    guarantee: Guarantee
    """What may be claimed for it, with the private estimates behind its public facts."""
    budget: Budget | None
    """What the mechanism was granted for the rows; None for a reference, which keeps to no epsilon."""
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

    def sample_batches(self, n: int | None = None, size: int = BATCH_ROWS) -> Iterator[pd.DataFrame]:
        """As ``sample``, ``size`` rows at a time, so that any number of them can be written without being held.

        Each batch is a sample of its own (docs/long-tables.md says what that means for all of them together). A single
        batch holds the rows that ``sample`` would.
        """
        rows = (self.mechanism.rows or self.n) if n is None else n
        for name, value in (("n", rows), ("size", size)):
            if value < 1:
                raise ParameterError(name, value, allowed="at least 1")
        return (self.sample(min(size, rows - start)) for start in range(0, rows, size))


def synthesize(
    private: PrivateRows,
    mechanism: Mechanism,
    *,
    epsilon: Amount,
    delta: Amount = 0,
    seed: int | None = None,
    estimates: Iterable[PaidEstimate] = (),
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
        estimates: Private estimates that were paid for on this table. What those cost that the schema uses is part of
            the guarantee; without them it is void for a column that was estimated privately.
        progress: Told about stages; raises to cancel.
        watch: Told of every charge before anything is drawn under it.
    """
    release = run_mechanism(private, mechanism, Budget.of(epsilon, delta), seed=seed, progress=progress, watch=watch)
    return replace(release, guarantee=private.judge(release.guarantee, estimates))


def run_mechanism(
    private: PrivateRows,
    mechanism: Mechanism,
    granted: Budget,
    *,
    seed: int | None = None,
    progress: Progress = no_progress,
    watch: Callable[[Charge], None] | None = None,
) -> Release:
    """The same, with a claim for the rows alone: nobody has looked yet at where the public facts come from."""
    check_granted(granted)
    per_row = granted.per_row(private.schema.rows_per_person)
    noise: Noise = SecureNoise(per_row) if seed is None else SeededNoise(per_row, seed)
    noise.watch = watch
    reading = ReadingProgress(progress)
    model = mechanism.fit(private.watched(reading.read), noise, reading)
    # A reference without privacy has not kept to any epsilon, so none is stated.
    budget = None if mechanism.status == "none" else granted
    parts = () if budget is None else (Cost(label=ROWS, budget=budget),)
    claim = Guarantee(status=mechanism.status, parts=parts, rows_per_person=private.schema.rows_per_person)
    return Release(
        mechanism=mechanism,
        schema=private.schema,
        guarantee=mechanism.state_sample(noise.judge(mechanism.judge(claim)), private.n),
        budget=budget,
        charges=noise.charges,
        model=model,
        n=private.n,
        noise=noise,
    )


def check_granted(granted: Budget) -> None:
    """Refuse a budget for rows that makes no sense."""
    if not MIN_EPSILON <= granted.epsilon <= MAX_EPSILON:
        raise ParameterError(
            "epsilon",
            str(float(granted.epsilon)),
            allowed=f"from {float(MIN_EPSILON):g} to {MAX_EPSILON:,}",
            remedy="Beyond that there is nothing but noise, or no privacy to speak of.",
        )
