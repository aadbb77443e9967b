"""The only place where randomness is drawn.

A :class:`Noise` is made for one run with one budget. Every draw that looks at private values declares its
sensitivity and its share of the budget and is refused, before anything is drawn, once the budget is used up.
Everything that is drawn passes through one funnel (``_perform``), so that a run can be recorded, its charges
added up and the same run replayed on a neighbouring table.

Two sources share the interface. :class:`SecureNoise` draws from OpenDP's exact integer samplers, and what OpenDP
has no sampler for from a cryptographic generator keyed by the operating system; it cannot be seeded.
:class:`SeededNoise` is for simulation, teaching and tests, runs at NumPy speed, and its releases are never private.
"""

from __future__ import annotations

import math
import os
import secrets
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import BudgetError, ParameterError
from dpsynth_core.privacy import primitives, samplers
from dpsynth_core.privacy.accounting import (
    MAX_MOVED,
    GaussianDraw,
    SampledDraw,
    SelectionDraw,
    affordable_cost,
    sampled_delta,
)
from dpsynth_core.privacy.budget import Amount, Budget, Guarantee, exact, float_up
from dpsynth_core.privacy.laplace import HISTOGRAM_SENSITIVITY
from dpsynth_core.privacy.prefetch import PrefetchedLaplace, PrefetchedUniform
from dpsynth_core.privacy.primitives import Call, Charge, Output, Pick, ScoredCall, SparseNoisy, Walk

MAX_PREFETCHED = 16_000_000
"""Uniform numbers that may wait to be used: 128 megabytes."""


class Noise(ABC):
    """A source of randomness for one run, with a budget that it will not exceed."""

    secure: ClassVar[bool]
    """Whether a release drawn from this source can be private."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._charges: list[Charge] = []
        self._spent: Budget | None = None
        self._planned: dict[Charge, Counter[SampledDraw]] = {}
        self._shared: dict[Charge, list[GaussianDraw | SelectionDraw]] = {}
        self.watch: Callable[[Charge], None] | None = None
        """Called with every charge before anything is drawn under it."""

    @abstractmethod
    def _perform(self, call: Call[Output]) -> Output:
        """Draw. The funnel: whatever is random in a run comes through here."""

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Every charge so far, in order."""
        return tuple(self._charges)

    @property
    def spent(self) -> Budget | None:
        """The sum of all charges; None before the first."""
        return self._spent

    def judge(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee that remains once the source of the noise is taken into account."""
        if self.secure:
            return guarantee
        return guarantee.weakened(
            "none", "Simulated with seeded noise, which anybody can repeat and subtract: not private."
        )

    def _charge(self, primitive: str, label: str, sensitivity: Amount, epsilon: Amount, delta: Amount) -> Charge:
        """Put a charge on the account, or refuse it: before anything is drawn under it."""
        charge = Charge(
            label=label,
            primitive=primitive,
            sensitivity=exact(sensitivity, parameter="sensitivity"),
            budget=Budget.of(epsilon, delta),
        )
        if charge.sensitivity <= 0:
            raise ParameterError("sensitivity", sensitivity, allowed="greater than 0")
        after = charge.budget if self._spent is None else self._spent + charge.budget
        if not self.budget.covers(after):
            raise BudgetError(
                f"The draw {label!r} would bring this run to epsilon {float(after.epsilon):g}, "
                f"delta {float(after.delta):g}; it was given epsilon {float(self.budget.epsilon):g}, "
                f"delta {float(self.budget.delta):g}. Nothing was drawn."
            )
        if self.watch is not None:
            self.watch(charge)
        self._charges.append(charge)
        self._spent = after
        return charge

    # ------------------------------------------------------------------------------------------- noise on every value

    def laplace(
        self, values: NDArray[Any], *, sensitivity: int, epsilon: Amount, label: str, delta: Amount = 0
    ) -> IntArray:
        """Each value plus discrete Laplace noise, P(k) proportional to exp(-|k| epsilon / sensitivity).

        Args:
            values: Integers.
            sensitivity: Most that one replaced row can change ``values``, in L1 (2 for a histogram).
            epsilon: This draw's share of the budget.
            label: What the draw is for.
            delta: Probability that the caller gives away by what it does next (a threshold on unknown keys).
        """
        given = _integers(values)
        charge = self._charge(primitives.Laplace.name, label, sensitivity, epsilon, delta)
        return self._perform(primitives.Laplace(values=given, scale=_laplace_scale(charge), charge=charge))

    def prefetch_laplace(self, size: int, *, sensitivity: Amount, epsilon: Amount) -> None:  # noqa: B027  optional
        """Say that about so many values will get Laplace noise at this price: a slow source may begin at once.

        It is not charged, no law depends on it, and a source may ignore it.
        """

    def prefetch_uniform(self, size: int, times: int) -> None:  # noqa: B027  optional
        """Say that about so many times so many uniform numbers will be asked for; the same holds."""

    def open_gaussian(self, *, epsilon: Amount, delta: Amount, label: str) -> Charge:
        """Pay once for draws of Gaussian noise and selections that follow; pass the charge to each of them.

        They may depend on each other's outcomes. A draw that would bring their joint cost above what epsilon and delta
        allow is refused.
        """
        granted = Budget.of(epsilon, delta)
        affordable_cost(granted.epsilon, granted.delta)  # refuses what no Gaussian noise can keep
        charge = self._charge(primitives.Gaussian.name, label, 1, granted.epsilon, granted.delta)
        self._shared[charge] = []
        return charge

    def _share(self, draw: GaussianDraw | SelectionDraw, charge: Charge) -> None:
        """Put a draw on a charge's account, or refuse it: before anything is drawn."""
        if charge not in self._shared:
            raise BudgetError(f"The draw {charge.label!r} was not paid for. Open its charge first.")
        after = [*self._shared[charge], draw]
        allowed = affordable_cost(charge.budget.epsilon, charge.budget.delta)
        moved = sum(each.values for each in after if isinstance(each, GaussianDraw))
        if math.fsum(each.cost for each in after) > allowed or moved > MAX_MOVED:
            raise BudgetError(
                f"The draws {charge.label!r} would cost more than epsilon {float(charge.budget.epsilon):g}, "
                f"delta {float(charge.budget.delta):g} together. Nothing was drawn."
            )
        self._shared[charge] = after

    def open_sampled(self, draw: SampledDraw, times: int, *, epsilon: Amount, delta: Amount, label: str) -> Charge:
        """Pay once for so many draws on a few parts of the rows, chosen afresh for each; see ``accounting``.

        Which parts are chosen must come from this source, and nobody may learn it.
        """
        granted = Budget.of(epsilon, delta)
        needed = sampled_delta(draw, times, granted.epsilon)
        return self._planned_charge(primitives.SampledGaussian.name, Counter({draw: times}), needed, granted, label)

    def _planned_charge(
        self, primitive: str, draws: Counter[Any], needed: float, granted: Budget, label: str
    ) -> Charge:
        if not draws.total() or needed > granted.delta:
            raise BudgetError(
                f"The draws {label!r} together need delta {needed:.3g} at epsilon {float(granted.epsilon):g}; "
                f"they were given {float(granted.delta):g}. Nothing was drawn."
            )
        charge = self._charge(primitive, label, 1, granted.epsilon, granted.delta)
        self._planned[charge] = draws
        return charge

    def gaussian(self, values: NDArray[Any], draw: GaussianDraw | SampledDraw, charge: Charge) -> IntArray:
        """Each value plus discrete Gaussian noise, as one of the draws that a charge was opened for."""
        given = _integers(values)
        if isinstance(draw, GaussianDraw):
            self._share(draw, charge)
            return self._perform(primitives.Gaussian(values=given, draw=draw, charge=charge))
        left = self._planned.get(charge, Counter())
        if left[draw] < 1:
            raise BudgetError(f"The draws {charge.label!r} do not include another one of scale {draw.scale:g}.")
        left[draw] -= 1
        return self._perform(primitives.SampledGaussian(values=given, draw=draw, charge=charge))

    def shared_exponential(self, scores: NDArray[Any], draw: SelectionDraw, charge: Charge) -> int:
        """Index drawn by the exponential mechanism, as one of the draws that a Gaussian charge was opened for."""
        given = _finite(scores)
        self._share(draw, charge)
        call = primitives.SharedExponential(scores=given, scale=draw.scale, draw=draw, charge=charge)
        return int(self._perform(call))

    # ------------------------------------------------------------- counts of which only the occupied cells are listed

    def sparse_laplace(
        self,
        keys: NDArray[Any],
        values: NDArray[Any],
        *,
        zeros: int,
        threshold: int,
        pick: Pick,
        sensitivity: int,
        epsilon: Amount,
        label: str,
    ) -> SparseNoisy:
        """Discrete Laplace noise on every cell of a domain of which only ``len(keys)`` cells hold rows.

        The law is that of adding noise to all ``len(keys) + zeros`` cells and keeping those that reach
        ``threshold``: how many of the empty ones do is binomial, which ones is uniform, and by how much they exceed
        it is geometric (Kreačić et al., Algorithm 5, exact for integers).
        """
        keys, values = np.asarray(keys), np.asarray(values, dtype=np.int64)
        charge = self._charge(primitives.SparseLaplace.name, label, sensitivity, epsilon, 0)
        scale = _laplace_scale(charge)
        return self._perform(
            primitives.SparseLaplace(
                keys=keys, values=values, zeros=zeros, threshold=threshold, pick=pick, scale=scale, charge=charge
            )
        )

    def open_charge(self, label: str, *, sensitivity: Amount, epsilon: Amount) -> Charge:
        """Pay once for a sequence of draws whose joint cost is proven elsewhere; pass it to each of them."""
        return self._charge(primitives.Decisions.name, label, sensitivity, epsilon, 0)

    def decisions(
        self,
        keys: NDArray[Any],
        values: NDArray[Any],
        *,
        zeros: int,
        threshold: int,
        pick: Pick,
        scale: float,
        charge: Charge,
    ) -> tuple[NDArray[np.bool_], NDArray[Any]]:
        """Which cells reach the threshold after noise, under a charge that was opened before.

        The proof behind such a charge covers the decisions only, so the noisy values are not handed out: returned are
        whether each listed cell passes, and the keys of the empty ones that do.
        """
        if charge not in self._charges:
            raise BudgetError(f"The draw {charge.label!r} was not paid for. Open its charge first.")
        keys, values = np.asarray(keys), np.asarray(values, dtype=np.int64)
        noisy = self._perform(
            primitives.Decisions(
                keys=keys, values=values, zeros=zeros, threshold=threshold, pick=pick, scale=scale, charge=charge
            )
        )
        return noisy.values >= threshold, noisy.extra_keys

    def smoothed(
        self,
        cells: IntArray,
        counts: IntArray,
        *,
        shape: tuple[int, ...],
        draws: int,
        alpha: Fraction,
        epsilon: Amount,
        label: str,
    ) -> IntArray:
        """Cells drawn with probability proportional to count + ``alpha``, over the whole domain of ``shape``.

        Every draw costs at most ln(1 + 1/alpha); the caller states their sum. Integers decide, never floats: see
        ``docs/proofs.md``, section 7.
        """
        if alpha <= 0 or draws < 1:
            raise ParameterError("alpha", str(alpha), allowed="greater than 0, with at least one draw")
        keys, values = np.asarray(cells), np.asarray(counts, dtype=np.int64)
        charge = self._charge(primitives.Smoothed.name, label, HISTOGRAM_SENSITIVITY, epsilon, 0)
        return self._perform(
            primitives.Smoothed(keys=keys, values=values, shape=shape, draws=draws, alpha=alpha, charge=charge)
        )

    # ----------------------------------------------------------------------------------------------------- selections

    def exponential(self, scores: NDArray[Any], *, sensitivity: Amount, epsilon: Amount, label: str) -> int:
        """Index drawn by the exponential mechanism: P(i) proportional to exp(epsilon u_i / (2 sensitivity))."""
        given = _finite(scores)
        charge = self._charge(primitives.Exponential.name, label, sensitivity, epsilon, 0)
        return int(self._perform(primitives.Exponential(scores=given, scale=_selection_scale(charge), charge=charge)))

    def permute_and_flip(self, scores: NDArray[Any], *, sensitivity: Amount, epsilon: Amount, label: str) -> int:
        """Index drawn by permute-and-flip (McKenna & Sheldon 2020): never worse than the exponential mechanism."""
        given = _finite(scores)
        charge = self._charge(primitives.PermuteAndFlip.name, label, sensitivity, epsilon, 0)
        return int(
            self._perform(primitives.PermuteAndFlip(scores=given, scale=_selection_scale(charge), charge=charge))
        )

    def metropolis(self, walk: Walk, scores: NDArray[Any], *, sensitivity: Amount, epsilon: Amount, label: str) -> Any:
        """A random walk whose law tends to the exponential mechanism's, exp(epsilon u / (2 sensitivity)).

        It reaches that law in the limit only, so whoever calls this may not claim more than "asymptotic".

        Args:
            walk: Walks with the randomness and at the scale that it is given.
            scores: The scores where it starts: recorded, so that their sensitivity can be measured.
            sensitivity: Most that one replaced row can change any score.
            epsilon: This draw's share of the budget.
            label: What the draw is for.
        """
        given = np.asarray(scores, dtype=np.float64)
        charge = self._charge(primitives.Metropolis.name, label, sensitivity, epsilon, 0)
        return self._perform(
            primitives.Metropolis(scores=given, scale=_selection_scale(charge), walk=walk, charge=charge)
        )

    # ------------------------------------------------------------------ randomness that no private value touches, free

    def integers(self, below: int, size: int) -> NDArray[Any]:
        """Uniform integers from 0 to ``below - 1``; an object array of Python ints beyond 63 bits."""
        if below < 1:
            raise ParameterError("below", below, allowed="at least 1")
        return self._perform(primitives.UniformIntegers(below=below, size=size))

    def distinct(self, below: int, size: int) -> NDArray[Any]:
        """That many different uniform integers from 0 to ``below - 1``, without listing them all."""
        if not 0 <= size <= below:
            raise ParameterError("size", size, allowed=f"from 0 to {below}")
        return self._perform(primitives.DistinctIntegers(below=below, size=size))

    def uniform(self, size: int) -> FloatArray:
        """Uniform numbers from [0, 1)."""
        return self._perform(primitives.UniformFloats(size=size))


def _integers(values: NDArray[Any]) -> IntArray:
    given = np.asarray(values)
    if given.dtype.kind not in "iub":
        raise ParameterError("values", str(given.dtype), allowed="integers")
    return given.astype(np.int64)


def _finite(scores: NDArray[Any]) -> FloatArray:
    given = np.asarray(scores, dtype=np.float64)
    if given.ndim != 1 or not len(given):
        raise ParameterError("scores", f"shape {given.shape}", allowed="a list of one or more scores")
    if not np.isfinite(given).all():
        # Which score it was could depend on a row, so it is not said.
        raise ParameterError("scores", "not finite", allowed="finite numbers")
    return given


def _laplace_scale(charge: Charge) -> float:
    """Sensitivity over epsilon, rounded up."""
    return float_up(charge.sensitivity / charge.budget.epsilon)


def _selection_scale(charge: Charge) -> float:
    """Twice that: a row may raise one score and lower another."""
    return float_up(2 * charge.sensitivity / charge.budget.epsilon)


class SamplingNoise(Noise):
    """A source that draws, from a generator of its own and what its kind adds to it."""

    _generator: np.random.Generator

    def _perform(self, call: Call[Any]) -> Any:
        match call:
            case primitives.Laplace():
                return self._add_laplace(call.values, call.scale)
            case primitives.Gaussian() | primitives.SampledGaussian():
                return self._add_gaussian(call.values, call.draw.scale)
            case primitives.SparseLaplace():
                return samplers.with_empty_cells(self._generator, call, self._add_laplace(call.values, call.scale))
            case primitives.Exponential() | primitives.SharedExponential() | primitives.PermuteAndFlip():
                return self._select(call)
            case primitives.UniformFloats():
                return self._uniform(call.size)
        return samplers.sample(self._generator, call)

    @abstractmethod
    def _add_laplace(self, values: IntArray, scale: float) -> IntArray: ...

    @abstractmethod
    def _add_gaussian(self, values: IntArray, scale: float) -> IntArray: ...

    def _uniform(self, size: int) -> FloatArray:
        return self._generator.random(size)

    @abstractmethod
    def _select(self, call: ScoredCall[int]) -> int: ...


def _keyed_generator() -> np.random.Generator:
    # The key itself, not a seed that a weaker generator would stretch.
    return np.random.Generator(AESCounter(key=secrets.randbits(128)))


class SecureNoise(SamplingNoise):
    """Noise for releases: exact, from the operating system's randomness, impossible to seed or repeat."""

    secure = True

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget)
        self._generators = [_keyed_generator() for _ in range(os.cpu_count() or 1)]
        self._generator = self._generators[0]
        self._prefetched: PrefetchedLaplace | None = None
        self._uniforms: PrefetchedUniform | None = None

    def prefetch_laplace(self, size: int, *, sensitivity: Amount, epsilon: Amount) -> None:
        """Draw in the background what will be added later."""
        if size >= samplers.VALUES_PER_THREAD:
            scale = exact(sensitivity, parameter="sensitivity") / exact(epsilon, parameter="epsilon")
            self._prefetched = PrefetchedLaplace(float_up(scale), size)

    def prefetch_uniform(self, size: int, times: int) -> None:
        """Draw in the background what will be asked for later."""
        if size >= samplers.FLOATS_PER_THREAD:
            self._uniforms = PrefetchedUniform(_keyed_generator(), size, min(times, MAX_PREFETCHED // size))

    def _add_laplace(self, values: IntArray, scale: float) -> IntArray:
        if self._prefetched is None or self._prefetched.scale != scale:
            return samplers.over_cores(samplers.opendp_laplace(scale), values)
        prefetched, self._prefetched = self._prefetched, None
        return prefetched.add_to(values)

    def _add_gaussian(self, values: IntArray, scale: float) -> IntArray:
        return samplers.over_cores(samplers.opendp_gaussian(scale), values)

    def _uniform(self, size: int) -> FloatArray:
        ready = self._uniforms.take() if self._uniforms is not None and self._uniforms.size == size else None
        return samplers.uniform(self._generators, size) if ready is None else ready

    def _select(self, call: ScoredCall[int]) -> int:
        exponential = not isinstance(call, primitives.PermuteAndFlip)
        measurement = samplers.opendp_selection(call.scale, exponential=exponential)
        return int(measurement(call.scores.tolist()))


class SeededNoise(SamplingNoise):
    """Noise for simulation, teaching and tests: fast and repeatable, therefore never private."""

    secure = False

    def __init__(self, budget: Budget, seed: int | np.random.SeedSequence) -> None:
        super().__init__(budget)
        self._generator = np.random.default_rng(seed)

    def _add_laplace(self, values: IntArray, scale: float) -> IntArray:
        return values + samplers.seeded_laplace(self._generator, scale, values.shape)

    def _add_gaussian(self, values: IntArray, scale: float) -> IntArray:
        return values + samplers.seeded_gaussian(self._generator, scale, values.shape)

    def _select(self, call: ScoredCall[int]) -> int:
        # The largest of scores plus Gumbel noise is the exponential mechanism; with exponential noise it is
        # permute-and-flip (Ding et al. 2021).
        flips = isinstance(call, primitives.PermuteAndFlip)
        draw = self._generator.exponential if flips else self._generator.gumbel
        return int(np.argmax(call.scores / call.scale + draw(size=len(call.scores))))
