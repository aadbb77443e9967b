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
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray
from randomgen import AESCounter

from dpsynth_core.arrays import FloatArray, IntArray
from dpsynth_core.errors import BudgetError, ParameterError
from dpsynth_core.privacy.accounting import GaussianDraw, SampledDraw, composed_delta, sampled_delta
from dpsynth_core.privacy.budget import Amount, Budget, Guarantee, exact, float_up
from dpsynth_core.privacy.free_draws import FreeDraws
from dpsynth_core.privacy.prefetch import Reserve
from dpsynth_core.privacy.primitives import Call, Charge, Pick, Primitive, SparseNoisy, Walk
from dpsynth_core.privacy.samplers import (
    NORMAL,
    ROWS_PER_THREAD,
    decided,
    opendp_gaussian,
    opendp_laplace,
    opendp_selection,
    over_cores,
    sample_free,
    seeded_gaussian,
    smoothed_cells,
    walked,
    with_empty_cells,
)


class Noise(FreeDraws):
    """A source of randomness for one run, with a budget that it will not exceed."""

    secure: ClassVar[bool]
    """Whether a release drawn from this source can be private."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._charges: list[Charge] = []
        self._spent: Budget | None = None
        self._planned: dict[Charge, Counter[GaussianDraw | SampledDraw]] = {}
        self.watch: Callable[[Charge], None] | None = None
        """Told of every charge before anything is drawn under it."""

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

    # ------------------------------------------------------------- draws on private values, paid for

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
        given = np.asarray(values)
        if given.dtype.kind not in "iub":
            raise ParameterError("values", str(given.dtype), allowed="integers")
        charge = self._charge("laplace", label, sensitivity, epsilon, delta)
        scale = _scale(charge.sensitivity, charge.budget.epsilon)
        call = Call(primitive="laplace", private=given.astype(np.int64), parameters=(scale,), charge=charge)
        return cast("IntArray", self._perform(call))

    def prefetch_laplace(self, size: int, *, sensitivity: Amount, epsilon: Amount) -> None:
        """Say that about so many values will get Laplace noise at this price: a slow source may begin at once.

        It is not charged, no law depends on it, and a source may ignore it.
        """

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
        charge = self._charge("sparse_laplace", label, sensitivity, epsilon, 0)
        scale = _scale(charge.sensitivity, charge.budget.epsilon)
        return self._sparse(keys, values, zeros=zeros, threshold=threshold, pick=pick, scale=scale, charge=charge)

    def open_charge(self, label: str, *, sensitivity: Amount, epsilon: Amount) -> Charge:
        """Pay once for a sequence of draws whose joint cost is proven elsewhere; pass it to each of them."""
        return self._charge("decisions", label, sensitivity, epsilon, 0)

    def open_gaussian(self, draws: Sequence[GaussianDraw], *, epsilon: Amount, delta: Amount, label: str) -> Charge:
        """Pay once for draws of Gaussian noise that are planned beforehand; pass the charge to each of them.

        Their joint cost is computed here, from the scales that will be used, and must stay within epsilon and delta.
        """
        granted = Budget.of(epsilon, delta)
        needed = composed_delta(draws, granted.epsilon)
        return self._planned_charge("gaussian", Counter(draws), needed, granted, label)

    def open_sampled(self, draw: SampledDraw, times: int, *, epsilon: Amount, delta: Amount, label: str) -> Charge:
        """Pay once for so many draws on a few parts of the rows, chosen afresh for each; see ``accounting``.

        Which parts are chosen must come from this source, and must not be told to anybody.
        """
        granted = Budget.of(epsilon, delta)
        needed = sampled_delta(draw, times, granted.epsilon)
        return self._planned_charge("sampled_gaussian", Counter({draw: times}), needed, granted, label)

    def _planned_charge(
        self, primitive: Primitive, draws: Counter[Any], needed: float, granted: Budget, label: str
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
        given = np.asarray(values)
        if given.dtype.kind not in "iub":
            raise ParameterError("values", str(given.dtype), allowed="integers")
        left = self._planned.get(charge, Counter())
        if left[draw] < 1:
            raise BudgetError(f"The draws {charge.label!r} do not include another one of scale {draw.scale:g}.")
        left[draw] -= 1
        rest = (draw.shift, draw.values) if isinstance(draw, GaussianDraw) else (draw.squared, draw.chosen, draw.parts)
        call = Call(
            primitive=charge.primitive, private=given.astype(np.int64), parameters=(draw.scale, *rest), charge=charge
        )
        return cast("IntArray", self._perform(call))

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
        noisy = self._sparse(keys, values, zeros=zeros, threshold=threshold, pick=pick, scale=scale, charge=charge)
        return noisy.values >= threshold, noisy.extra_keys

    def _sparse(
        self,
        keys: NDArray[Any],
        values: NDArray[Any],
        *,
        zeros: int,
        threshold: int,
        pick: Pick,
        scale: float,
        charge: Charge,
    ) -> SparseNoisy:
        if zeros < 0 or (zeros and threshold < 1):
            # Below one, most of the empty cells would pass, and the domain may be larger than memory.
            raise ParameterError("threshold", threshold, allowed="at least 1 where there are empty cells")
        call = Call(
            primitive=charge.primitive, private=np.asarray(values, dtype=np.int64), keys=np.asarray(keys), pick=pick,
            parameters=(scale, zeros, threshold), charge=charge,
        )  # fmt: skip
        return cast("SparseNoisy", self._perform(call))

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
        charge = self._charge("smoothed", label, 2, epsilon, 0)
        call = Call(
            primitive="smoothed", private=np.asarray(counts, dtype=np.int64), keys=np.asarray(cells),
            parameters=(draws, alpha.numerator, alpha.denominator, *shape), charge=charge,
        )  # fmt: skip
        return cast("IntArray", self._perform(call))

    def exponential(self, scores: NDArray[Any], *, sensitivity: Amount, epsilon: Amount, label: str) -> int:
        """Index drawn by the exponential mechanism: P(i) proportional to exp(epsilon u_i / (2 sensitivity))."""
        return self._select("exponential", scores, sensitivity, epsilon, label)

    def permute_and_flip(self, scores: NDArray[Any], *, sensitivity: Amount, epsilon: Amount, label: str) -> int:
        """Index drawn by permute-and-flip (McKenna & Sheldon 2020): never worse than the exponential mechanism."""
        return self._select("permute_and_flip", scores, sensitivity, epsilon, label)

    def metropolis(
        self, walk: Walk, scores: NDArray[Any], *, sensitivity: Amount, epsilon: Amount, label: str
    ) -> Any:  # fmt: skip
        """A random walk whose law tends to the exponential mechanism's, exp(epsilon u / (2 sensitivity)).

        It reaches that law in the limit only, so whoever calls this may not claim more than "asymptotic".

        Args:
            walk: Walks with the randomness and at the scale that it is given.
            scores: The scores where it starts: recorded, so that their sensitivity can be measured.
            sensitivity: Most that one replaced row can change any score.
            epsilon: This draw's share of the budget.
            label: What the draw is for.
        """
        charge = self._charge("metropolis", label, sensitivity, epsilon, 0)
        scale = _scale(2 * charge.sensitivity, charge.budget.epsilon)
        given = np.asarray(scores, dtype=np.float64)
        return self._perform(Call(primitive="metropolis", private=given, parameters=(scale,), charge=charge, walk=walk))

    def _select(
        self,
        primitive: Literal["exponential", "permute_and_flip"],
        scores: NDArray[Any],
        sensitivity: Amount,
        epsilon: Amount,
        label: str,
    ) -> int:
        given = np.asarray(scores, dtype=np.float64)
        if given.ndim != 1 or not len(given):
            raise ParameterError("scores", f"shape {given.shape}", allowed="a list of one or more scores")
        if not np.isfinite(given).all():
            # Which score it was could depend on a row, so it is not said.
            raise ParameterError("scores", "not finite", allowed="finite numbers")
        charge = self._charge(primitive, label, sensitivity, epsilon, 0)
        scale = _scale(2 * charge.sensitivity, charge.budget.epsilon)
        return int(self._perform(Call(primitive=primitive, private=given, parameters=(scale,), charge=charge)))

    def _charge(self, primitive: Primitive, label: str, sensitivity: Amount, epsilon: Amount, delta: Amount) -> Charge:
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


def _scale(sensitivity: Amount, epsilon: Amount) -> float:
    return float_up(exact(sensitivity, parameter="sensitivity") / exact(epsilon, parameter="epsilon"))


class SecureNoise(Noise):
    """Noise for releases: exact, from the operating system's randomness, impossible to seed or repeat."""

    secure = True

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget)
        # The key itself, not a seed that a weaker generator would stretch.
        self._generator = np.random.Generator(AESCounter(key=secrets.randbits(128)))
        self._reserve: Reserve | None = None

    def _perform(self, call: Call) -> Any:  # noqa: PLR0911  one line for each primitive
        if call.private is None:
            return sample_free(self._generator, call)
        if call.primitive in NORMAL:
            return over_cores(opendp_gaussian(call.parameters[0]), call.private)
        if call.primitive == "laplace":
            return self._laplace(call.private, call.parameters[0])
        if call.primitive == "sparse_laplace":
            return with_empty_cells(self._generator, call, self._laplace(call.private, call.parameters[0]))
        if call.primitive == "decisions":
            return with_empty_cells(self._generator, call, decided(self._generator, call))
        if call.primitive == "smoothed":
            return smoothed_cells(self._generator, call)
        if call.primitive == "metropolis":
            return walked(self._generator, call)
        return opendp_selection(call.primitive, call.parameters[0])(call.private.tolist())

    def prefetch_laplace(self, size: int, *, sensitivity: Amount, epsilon: Amount) -> None:
        """Draw in the background what will be added later."""
        if size >= ROWS_PER_THREAD:
            self._reserve = Reserve(_scale(sensitivity, epsilon), size)

    def _laplace(self, values: IntArray, scale: float) -> IntArray:
        if self._reserve is None or self._reserve.scale != scale:
            return over_cores(opendp_laplace(scale), values)
        reserve, self._reserve = self._reserve, None
        return reserve.add_to(values)


class SeededNoise(Noise):
    """Noise for simulation, teaching and tests: fast and repeatable, therefore never private."""

    secure = False

    def __init__(self, budget: Budget, seed: int | np.random.SeedSequence) -> None:
        super().__init__(budget)
        self._generator = np.random.default_rng(seed)

    def _perform(self, call: Call) -> Any:  # noqa: PLR0911  one line for each primitive
        if call.private is None:
            return sample_free(self._generator, call)
        if call.primitive in ("laplace", *NORMAL):
            return self._add(call.private, call.parameters[0], gaussian=call.primitive in NORMAL)
        if call.primitive == "sparse_laplace":
            return with_empty_cells(self._generator, call, self._add(call.private, call.parameters[0]))
        if call.primitive == "decisions":
            return with_empty_cells(self._generator, call, decided(self._generator, call))
        if call.primitive == "smoothed":
            return smoothed_cells(self._generator, call)
        if call.primitive == "metropolis":
            return walked(self._generator, call)
        return self._choose(call.private / call.parameters[0], call.primitive)

    def _choose(self, scores: FloatArray, primitive: Primitive) -> int:
        # The largest of scores plus Gumbel noise is the exponential mechanism; with exponential noise it is
        # permute-and-flip (Ding et al. 2021).
        draw = self._generator.gumbel if primitive == "exponential" else self._generator.exponential
        return int(np.argmax(scores + draw(size=len(scores))))

    def _add(self, values: IntArray, scale: float, *, gaussian: bool = False) -> IntArray:
        if gaussian:
            return values + seeded_gaussian(self._generator, scale, values.shape)
        # The difference of two geometric variables is two-sided geometric.
        first, second = self._generator.geometric(-math.expm1(-1 / scale), size=(2, *values.shape))
        noisy: IntArray = values + (first - second)
        return noisy
