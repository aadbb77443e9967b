"""How reliable a low p-value on a release is: the chances of a false and of a missed discovery in one's own setting.

Computed from the mechanism, its epsilon and the groups' sizes alone, by simulation: no private row is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpsynth_core.errors import ParameterError, check_int
from dpsynth_core.inference.dp_mann_whitney import DELTA, dp_pvalues
from dpsynth_core.inference.experiments import ALPHA, ErrorRates, TestKind, doubled_us, error_rates
from dpsynth_core.inference.histograms import HISTOGRAMS
from dpsynth_core.inference.populations import populations
from dpsynth_core.inference.proportions import Proportion
from dpsynth_core.mechanisms.base import Mechanism
from dpsynth_core.privacy.budget import Amount, exact
from dpsynth_core.progress import Progress, no_progress
from dpsynth_core.runs.workers import part_of

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """Errors of each test over epsilon. Not private: nothing of the table is in it but public sizes."""

    ordinary: tuple[ErrorRates, ...]
    calibrated: tuple[ErrorRates, ...]
    """The calibrated test on the release; empty where it was not asked for."""
    reference: tuple[ErrorRates, ...]
    """The private test on the original: what can be had at this epsilon without a synthetic table."""
    today: float | None
    """The epsilon to be marked."""

    def at_today(self, curve: Sequence[ErrorRates]) -> ErrorRates | None:
        return next((rates for rates in curve if rates.epsilon == self.today), None)

    @property
    def sound(self) -> bool | None:
        """Whether today's Type I error is compatible with the level: a low p-value means what it says."""
        rates = self.at_today(self.ordinary)
        return None if rates is None else rates.type_one.low <= rates.alpha

    @property
    def verdict(self) -> str:
        """The plain reading of today's setting; empty without one."""
        rates = self.at_today(self.ordinary)
        if rates is None:
            return ""
        calibrated = self.at_today(self.calibrated)
        return verdict(rates) if calibrated is None else f"{verdict(rates)} {calibrated_verdict(calibrated)}"


def verdict(rates: ErrorRates) -> str:
    """What an analyst must know before trusting a p-value from this release.

    Example:
        >>> shares = {"type_one": Proportion(count=470, reps=1000), "type_two": Proportion(count=520, reps=1000)}
        >>> print(verdict(ErrorRates(test="ordinary", epsilon=0.1, n1=250, n2=250, effect=1.0, alpha=0.05,
        ...     undefined=0, **shares)))
        Of 100 analysts testing a difference that does not exist, about 47 would report one; 5 would be acceptable. Of
        100 testing a difference of 1 standard deviation, about 52 would miss it.
    """
    false, allowed = _of_100(rates.type_one), f"{100 * rates.alpha:g}"
    sound = rates.type_one.low <= rates.alpha
    judged = f"as it should be, at most {allowed}" if sound else f"{allowed} would be acceptable"
    missed, unit = _of_100(rates.type_two), "standard deviation" if rates.effect == 1 else "standard deviations"
    return (
        f"Of 100 analysts testing a difference that does not exist, {false} would report one; {judged}. "
        f"Of 100 testing a difference of {rates.effect:g} {unit}, {missed} would miss it."
    )


def calibrated_verdict(rates: ErrorRates) -> str:
    return (
        f"With the calibrated test, {_of_100(rates.type_one)} would report a difference that does not exist and "
        f"{_of_100(rates.type_two)} would miss the one that does."
    )


def _of_100(share: Proportion) -> str:
    """A share as people of a hundred; never a bare 0 or 100 unless all repetitions agree."""
    rounded = round(100 * share.estimate)
    if rounded == 0 and share.count:
        return "fewer than 1"
    return "more than 99" if rounded == 100 and share.count < share.reps else f"about {rounded}"


def p_value_reliability(
    mechanism: Mechanism,
    n1: int,
    n2: int,
    *,
    effect: float = 1.0,
    bins: int = 100,
    epsilons: Sequence[Amount] = EPSILONS,
    today: Amount | None = None,
    reps: int = 300,
    delta: Amount | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
    workers: int | None = None,
) -> Reliability:
    """The chances of a false and of a missed discovery over epsilon, for this mechanism and these group sizes.

    The sizes are public, or estimated from the release. ``today`` is the epsilon in use, added to ``epsilons`` if it
    is not among them. The calibrated test is followed too where counts suffice, so that it takes seconds. The rest is
    as in :func:`~dpsynth_core.inference.experiments.error_rates`.
    """
    check_int("n1", n1, 1, 10**7)
    check_int("n2", n2, 1, 10**7)
    marked = None if today is None else float(exact(today, parameter="today"))
    grid = sorted({*(float(exact(e, parameter="epsilons")) for e in epsilons), *([] if marked is None else [marked])})
    if not grid or grid[0] <= 0:
        raise ParameterError("epsilons", grid, allowed="one or more numbers greater than 0")
    tests: tuple[TestKind, ...] = ("ordinary",)
    if isinstance(mechanism, HISTOGRAMS):
        tests = ("ordinary", "calibrated")
    steps = len(grid) * len(tests) + 1
    curves: dict[TestKind, tuple[ErrorRates, ...]] = {}
    for i, test in enumerate(tests):
        curves[test] = tuple(
            error_rates(
                mechanism,
                epsilon=epsilon,
                n=n1 + n2,
                ratio=n1 / (n1 + n2),
                effect=effect,
                bins=bins,
                reps=reps,
                test=test,
                delta=delta,
                seed=seed,
                workers=workers,
                progress=part_of(progress, i * len(grid) + j, steps),
            )
            for j, epsilon in enumerate(grid)
        )
    # The private test on the original: U does not depend on epsilon, so one set of tables serves the whole curve.
    rng, rest = np.random.default_rng([seed, 2]), part_of(progress, steps - 1, steps)
    both = populations(n1=n1, n2=n2, effect=effect)
    doubled = [doubled_us(population, reps, rng, part_of(rest, i, 2)) for i, population in enumerate(both)]
    reference = []
    for epsilon in grid:
        pvalues = [dp_pvalues(u, n1, n1 + n2, epsilon=epsilon, delta=DELTA, rng=rng) for u in doubled]
        rates = ErrorRates.of(pvalues, test="dp", epsilon=epsilon, groups=both[0], effect=effect, alpha=ALPHA)
        reference.append(rates)
    return Reliability(
        ordinary=curves["ordinary"],
        calibrated=curves.get("calibrated", ()),
        reference=tuple(reference),
        today=marked,
    )
