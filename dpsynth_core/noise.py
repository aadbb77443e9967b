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
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain  # not opendp.prelude, which takes seconds to import
from opendp.measurements import make_laplace, make_noisy_max
from opendp.measures import max_divergence, zero_concentrated_divergence
from opendp.metrics import l1_distance, linf_distance
from opendp.mod import enable_features
from randomgen import ChaCha

from dpsynth_core.budget import Amount, Budget, Guarantee, exact, float_up
from dpsynth_core.errors import BudgetError, ParameterError

enable_features("contrib")

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
Primitive: TypeAlias = Literal[
    "laplace", "exponential", "permute_and_flip", "integers", "uniform", "binomial", "geometric", "distinct"
]


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What one draw on private values costs."""

    label: str
    """What the draw was for, in the mechanism's words."""
    primitive: Primitive
    """Which sampler."""
    sensitivity: Fraction
    """The most that one replaced row can change the input: L1 for laplace, per score for a selection."""
    budget: Budget
    """Its share."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One draw, as it reaches the sampler."""

    primitive: Primitive
    """Which sampler."""
    private: NDArray[Any] | None
    """The private values that enter, or None for randomness that no private value touches."""
    parameters: tuple[int | float, ...]
    """What else the sampler needs: a scale, a size, a probability."""
    charge: Charge | None
    """What the draw costs; None where ``private`` is None."""


class Noise(ABC):
    """A source of randomness for one run, with a budget that it will not exceed."""

    secure: ClassVar[bool]
    """Whether a release drawn from this source can be private."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._charges: list[Charge] = []
        self._spent: Budget | None = None

    @abstractmethod
    def _perform(self, call: Call) -> Any:
        """Draw."""

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
        scale = float_up(charge.sensitivity / charge.budget.epsilon)
        call = Call(primitive="laplace", private=given.astype(np.int64), parameters=(scale,), charge=charge)
        return cast("IntArray", self._perform(call))

    def exponential(self, scores: NDArray[Any], *, sensitivity: Amount, epsilon: Amount, label: str) -> int:
        """Index drawn by the exponential mechanism: P(i) proportional to exp(epsilon u_i / (2 sensitivity))."""
        return self._select("exponential", scores, sensitivity, epsilon, label)

    def permute_and_flip(self, scores: NDArray[Any], *, sensitivity: Amount, epsilon: Amount, label: str) -> int:
        """Index drawn by permute-and-flip (McKenna & Sheldon 2020): never worse than the exponential mechanism."""
        return self._select("permute_and_flip", scores, sensitivity, epsilon, label)

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
        scale = float_up(2 * charge.sensitivity / charge.budget.epsilon)
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
        self._charges.append(charge)
        self._spent = after
        return charge

    # ------------------------------------------- randomness that no private value touches, free of charge

    def integers(self, below: int, size: int) -> NDArray[Any]:
        """Uniform whole numbers from 0 to ``below - 1``; an object array of Python ints beyond 63 bits."""
        if below < 1:
            raise ParameterError("below", below, allowed="at least 1")
        return cast("NDArray[Any]", self._free("integers", below, size))

    def distinct(self, below: int, size: int) -> NDArray[Any]:
        """That many different uniform whole numbers from 0 to ``below - 1``, without listing them all."""
        if not 0 <= size <= below:
            raise ParameterError("size", size, allowed=f"from 0 to {below}")
        return cast("NDArray[Any]", self._free("distinct", below, size))

    def uniform(self, size: int) -> FloatArray:
        """Uniform numbers from [0, 1)."""
        return cast("FloatArray", self._free("uniform", size))

    def binomial(self, trials: int, probability: float) -> int:
        """Number of successes in that many independent trials."""
        if trials < 0 or not 0 <= probability <= 1:
            raise ParameterError("probability", probability, allowed="from 0 to 1, with at least 0 trials")
        return int(self._free("binomial", trials, probability))

    def geometric(self, probability: float, size: int) -> IntArray:
        """Failures before the first success (from 0): the tail of discrete Laplace noise above any threshold."""
        if not 0 < probability <= 1:
            raise ParameterError("probability", probability, allowed="greater than 0, at most 1")
        return cast("IntArray", self._free("geometric", probability, size))

    def _free(self, primitive: Primitive, *parameters: int | float) -> Any:
        return self._perform(Call(primitive=primitive, private=None, parameters=parameters, charge=None))


class SecureNoise(Noise):
    """Noise for releases: exact, from the operating system's randomness, impossible to seed or repeat."""

    secure = True

    def __init__(self, budget: Budget) -> None:
        super().__init__(budget)
        # The key itself, not a seed that a weaker generator would stretch.
        self._generator = np.random.Generator(ChaCha(key=secrets.randbits(256), rounds=20))

    def _perform(self, call: Call) -> Any:
        if call.primitive == "laplace":
            assert call.private is not None  # noqa: S101
            if not call.private.size:
                return call.private.copy()
            noisy = _opendp_laplace(call.parameters[0])(call.private.ravel().tolist())
            return np.array(noisy, dtype=np.int64).reshape(call.private.shape)
        if call.primitive in ("exponential", "permute_and_flip"):
            assert call.private is not None  # noqa: S101
            return _opendp_selection(call.primitive, call.parameters[0])(call.private.tolist())
        return _sample(self._generator, call)


class SeededNoise(Noise):
    """Noise for simulation, teaching and tests: fast and repeatable, therefore never private."""

    secure = False

    def __init__(self, budget: Budget, seed: int | np.random.SeedSequence) -> None:
        super().__init__(budget)
        self._generator = np.random.default_rng(seed)

    def _perform(self, call: Call) -> Any:
        if call.private is None:
            return _sample(self._generator, call)
        scale = call.parameters[0]
        if call.primitive == "laplace":
            # The difference of two geometric variables is two-sided geometric.
            success = -math.expm1(-1 / scale)
            first, second = self._generator.geometric(success, size=(2, *call.private.shape))
            return call.private + (first - second)
        if call.primitive == "exponential":
            # Gumbel-max: the largest of score/scale plus Gumbel noise is the exponential mechanism.
            return np.argmax(call.private / scale + self._generator.gumbel(size=len(call.private)))
        # Report-noisy-max with exponential noise is permute-and-flip (Ding et al. 2021).
        return np.argmax(call.private / scale + self._generator.exponential(size=len(call.private)))


@lru_cache(maxsize=256)
def _opendp_laplace(scale: float) -> Any:
    space = vector_domain(atom_domain(T="i64")), l1_distance(T="i64")
    return make_laplace(*space, scale=scale)


@lru_cache(maxsize=256)
def _opendp_selection(primitive: str, scale: float) -> Any:
    # OpenDP picks the noise by the measure: under max-divergence make_noisy_max is permute-and-flip; under
    # zero-concentrated divergence it is Gumbel noise, which is the exponential mechanism, here charged as pure.
    exponential = primitive == "exponential"
    measure = zero_concentrated_divergence() if exponential else max_divergence()
    space = vector_domain(atom_domain(T="f64", nan=False)), linf_distance(T="f64")
    return make_noisy_max(*space, measure, scale=scale)


def _sample(generator: np.random.Generator, call: Call) -> Any:
    """Randomness that no private value touches, the same way for both sources."""
    primitive, parameters = call.primitive, call.parameters
    if primitive == "uniform":
        return generator.random(int(parameters[0]))
    if primitive == "binomial":
        return generator.binomial(int(parameters[0]), parameters[1])
    if primitive == "geometric":
        return generator.geometric(parameters[0], size=int(parameters[1])) - 1
    below, size = int(parameters[0]), int(parameters[1])
    if below <= 2**63 - 1:
        if primitive == "integers":
            return generator.integers(0, below, size=size)
        return generator.choice(below, size=size, replace=False)
    draws: dict[int, None] | list[int]
    if primitive == "integers":
        draws = [_big_integer(generator, below) for _ in range(size)]
    else:
        draws = {}
        while len(draws) < size:
            draws[_big_integer(generator, below)] = None
    return np.array([*draws, None], dtype=object)[:-1]


def _big_integer(generator: np.random.Generator, below: int) -> int:
    """A uniform Python int of any size, by rejection."""
    bits = (below - 1).bit_length()
    while True:
        draw = int.from_bytes(generator.bytes(-(-bits // 8)), "little") >> (-bits % 8)
        if draw < below:
            return draw
