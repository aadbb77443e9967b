"""Privacy-loss arithmetic and the statement that a release carries.

Budgets are exact fractions. A budget typed as ``0.1`` is one tenth, not the nearest binary number, so shares
that are split off never add up to more than the whole, and no rounding is ever in the spender's favour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Literal, TypeAlias

from dpsynth_core.errors import BudgetError, ParameterError

Amount: TypeAlias = int | float | str | Decimal | Fraction
"""What a person may write for an epsilon or a delta."""

Status: TypeAlias = Literal["proven", "asymptotic", "heuristic", "void", "none"]

STATUS_ORDER: tuple[Status, ...] = ("proven", "asymptotic", "heuristic", "void", "none")
"""From the strongest to the weakest; a composition is as weak as its weakest part."""

STATUS_MEANING: dict[Status, str] = {
    "proven": "The guarantee is proven for what actually ran.",
    "asymptotic": "The guarantee holds only in the limit of infinitely many steps; this run was finite.",
    "heuristic": "The bound behind this guarantee is known to be violated sometimes.",
    "void": "A fact that should be public was read from the private data, so the guarantee does not hold.",
    "none": "Not private: a reference for comparison, not for release.",
}


UNNAMED_PART = "Everything together"

MAX_EXPONENT = 100
"""Amounts that a person writes lie between 1e-100 and 1e100, or are zero."""
MAX_TEXT = 100
"""Characters of an amount that a person writes."""


def exact(value: Amount, *, parameter: str) -> Fraction:
    """Read a number as the decimal that a person wrote.

    Example:
        >>> exact(0.1, parameter="epsilon")
        Fraction(1, 10)
    """
    try:
        if isinstance(value, float):
            # repr of a float is the shortest decimal that denotes it: what was typed.
            return Fraction(repr(float(value)))
        if isinstance(value, str | Decimal):
            _check_short(str(value))
        return Fraction(value)
    except (ValueError, OverflowError, TypeError, ZeroDivisionError):
        allowed = (
            f"a finite number of up to {MAX_TEXT} characters, with an exponent from -{MAX_EXPONENT} to {MAX_EXPONENT}"
        )
        raise ParameterError(parameter, value, allowed=allowed) from None


def _check_short(text: str) -> None:
    """Refuse a text before it becomes a number: 1e-99999999 is short, and a fraction of a hundred million digits."""
    if len(text) > MAX_TEXT:
        raise ValueError
    _, _, exponent = text.lower().partition("e")
    if exponent and abs(int(exponent)) > MAX_EXPONENT:
        raise ValueError


def format_amount(value: Amount, *, up: bool = True) -> str:
    """An epsilon or delta for people: exact where that is short, otherwise about, to four digits.

    Rounding up never understates a loss; with ``up=False`` what is left is not overstated.

    Example:
        >>> format_amount(Fraction(1, 10)), format_amount("1e-6"), format_amount(1000)
        ('0.1', '1e-6', '1000')
        >>> format_amount(Fraction(2, 3)), format_amount(Fraction(2, 3), up=False)
        ('2/3 (about 0.6667)', '2/3 (about 0.6666)')
        >>> format_amount(Fraction(1, 3**40))
        'about 8.226e-20'
    """
    amount = exact(value, parameter="amount")
    numerator, denominator = amount.as_integer_ratio()
    with localcontext(prec=10):
        decimal = Decimal(numerator) / Decimal(denominator)
    if Fraction(decimal) == amount:
        return _digits(decimal)
    with localcontext(prec=4, rounding=ROUND_CEILING if up else ROUND_FLOOR):
        about = f"about {_digits(Decimal(numerator) / Decimal(denominator))}"
    return f"{amount} ({about})" if max(abs(numerator), denominator) < 10**6 else about


def _digits(decimal: Decimal) -> str:
    shortest = decimal.normalize()
    return f"{shortest:f}" if -4 <= shortest.adjusted() < 10 else f"{shortest:e}"


def _text(value: Fraction) -> str:
    """An amount as it was written, where that is short; Python spells out no number of any length."""
    sizes = (value.numerator.bit_length(), value.denominator.bit_length())
    return str(value) if max(sizes) < 4 * MAX_TEXT else "a fraction of very many digits"


def float_up(value: Fraction) -> float:
    """The smallest float whose binary value is not below ``value``: for samplers, which take floats at that."""
    rounded = float(value)
    return rounded if Fraction(rounded) >= value else math.nextafter(rounded, math.inf)


def stated(value: Fraction) -> float:
    """The nearest float that, read as a decimal, is not below ``value``: a claim is never less than the cost."""
    rounded = float(value)
    return rounded if exact(rounded, parameter="value") >= value else math.nextafter(rounded, math.inf)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """An amount of privacy loss, exact.

    Example:
        >>> whole = Budget.of(1)
        >>> third, rest = whole.split(1, 2)
        >>> third + rest == whole
        True
    """

    epsilon: Fraction
    """Greater than zero."""
    delta: Fraction = Fraction(0)
    """At least zero and below one; zero is pure differential privacy."""

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= 10**MAX_EXPONENT:
            allowed = f"greater than 0 and at most 1e{MAX_EXPONENT}"
            raise ParameterError("epsilon", _text(self.epsilon), allowed=allowed, remedy="Choose for instance 1.")
        if not 0 <= self.delta < 1:
            remedy = "Choose for instance 1e-6."
            raise ParameterError("delta", _text(self.delta), allowed="at least 0 and below 1", remedy=remedy)

    @classmethod
    def of(cls, epsilon: Amount, delta: Amount = 0) -> Budget:
        """A budget from numbers as people write them."""
        return cls(epsilon=exact(epsilon, parameter="epsilon"), delta=exact(delta, parameter="delta"))

    def __add__(self, other: Budget) -> Budget:
        """Sequential composition: losses on the same rows add up."""
        return Budget(epsilon=self.epsilon + other.epsilon, delta=self.delta + other.delta)

    def times(self, count: int) -> Budget:
        """Sequential composition of ``count`` equal releases."""
        if count < 1:
            raise ParameterError("count", count, allowed="at least 1")
        return Budget(epsilon=self.epsilon * count, delta=self.delta * count)

    def split(self, *weights: Amount) -> tuple[Budget, ...]:
        """Shares proportional to ``weights`` that add up to exactly this budget."""
        shares = [exact(weight, parameter="weight") for weight in weights]
        if not shares or any(share <= 0 for share in shares):
            raise ParameterError("weights", weights, allowed="one or more numbers greater than 0")
        total = sum(shares)
        return tuple(Budget(epsilon=self.epsilon * s / total, delta=self.delta * s / total) for s in shares)

    def covers(self, other: Budget) -> bool:
        """Whether ``other`` fits into this budget."""
        return other.epsilon <= self.epsilon and other.delta <= self.delta

    def per_row(self, rows_per_person: int) -> Budget:
        """What a mechanism may spend on rows so that a person who owns several is protected by this budget.

        Group privacy: a mechanism that is (e, d)-private for one row is (k e, k exp((k-1) e) d)-private for k
        rows (Dwork & Roth 2014, Theorem 2.2, with the delta term summed). So e = epsilon / k and
        d = delta / (k exp((k-1) e)), rounded down.
        """
        k = rows_per_person
        if k < 1:
            raise ParameterError(
                "rows_per_person",
                k,
                allowed="a whole number, at least 1",
                remedy="State the most rows that one person can own.",
            )
        epsilon = self.epsilon / k
        if not self.delta or k == 1:
            return Budget(epsilon=epsilon, delta=self.delta)
        # A hair above the true factor, so that the float exponential can only lower delta.
        growth = Fraction(math.exp(min(float_up((k - 1) * epsilon), 700.0))) * (1 + Fraction(1, 10**12))
        if (k - 1) * epsilon > 700:
            raise BudgetError(
                f"With {k} rows per person at epsilon {float(self.epsilon):g}, no delta can be kept. "
                "Lower epsilon or choose a mechanism without delta."
            )
        return Budget(epsilon=epsilon, delta=self.delta / (k * growth))


def sequential(budgets: Iterable[Budget]) -> Budget:
    """Total loss of releases that all look at the same rows: the sum."""
    parts = list(budgets)
    if not parts:
        raise ParameterError("budgets", parts, allowed="at least one budget")
    return sum(parts[1:], start=parts[0])


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one published part of a release costs, such as its rows or the estimated range of a column."""

    label: str
    """What was paid for, as the beginning of a line: "Synthetic rows"."""
    budget: Budget


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What a release may claim, for what actually ran.

    Example:
        >>> g = Guarantee(status="proven", budget=Budget.of(1))
        >>> g.epsilon, g.delta, g.kind
        (1.0, 0.0, 'pure')
        >>> age = Guarantee(status="proven", parts=(Cost(label="Range of column 'age'", budget=Budget.of("0.1")),))
        >>> compose([g, age]).epsilon
        1.1
    """

    status: Status
    """How far the claim can be trusted; see ``STATUS_MEANING``."""
    budget: Budget | None = None
    """The loss claimed for the unit of protection, or that a simulation played; None where nothing was. It is the sum
    of the parts, and may be left out where they are given."""
    parts: tuple[Cost, ...] = ()
    """What each published part costs. Where none is named, the whole is one part."""
    rows_per_person: int = 1
    """The unit of protection: one person owns at most this many rows."""
    caveats: tuple[str, ...] = ()
    """What a reader must know, in sentences."""

    neighbours: str = "replace-one, number of rows public"
    """Which tables count as neighbours."""

    def __post_init__(self) -> None:
        if self.status not in STATUS_ORDER:
            raise ParameterError("status", self.status, allowed=", ".join(STATUS_ORDER))
        if self.parts and self.budget is None:
            object.__setattr__(self, "budget", sequential(part.budget for part in self.parts))
        if self.budget is None:
            if self.status != "none":
                raise ParameterError("budget", None, allowed="a budget, unless status is 'none'")
        elif not self.parts:
            object.__setattr__(self, "parts", (Cost(label=UNNAMED_PART, budget=self.budget),))
        elif self.budget != sequential(part.budget for part in self.parts):
            raise ParameterError("budget", str(self.budget), allowed="the sum of what the parts cost")

    @property
    def epsilon(self) -> float:
        """The claimed epsilon; infinite where there is none."""
        return math.inf if self.budget is None else stated(self.budget.epsilon)

    @property
    def delta(self) -> float:
        """The claimed delta; zero for pure differential privacy, one where there is no privacy."""
        return 1.0 if self.budget is None else stated(self.budget.delta)

    @property
    def kind(self) -> Literal["pure", "approximate", "none"]:
        """Pure (delta is zero), approximate, or none."""
        if self.budget is None:
            return "none"
        return "pure" if self.budget.delta == 0 else "approximate"

    @property
    def meaning(self) -> str:
        """One sentence for the status."""
        return STATUS_MEANING[self.status]

    def weakened(self, status: Status, caveat: str) -> Guarantee:
        """The same claim at no better than ``status``, with the reason attached."""
        worst = max(self.status, status, key=STATUS_ORDER.index)
        return replace(self.with_caveat(caveat), status=worst)

    def limited_to(self, *parts: Cost) -> Guarantee:
        """The same claim for these parts only."""
        return replace(self, parts=parts, budget=None)

    def with_caveat(self, caveat: str) -> Guarantee:
        """The same claim with one more thing a reader must know."""
        return replace(self, caveats=(*self.caveats, caveat))


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """The guarantee of several releases from the same data set together: losses add, the weakest wins."""
    parts = list(guarantees)
    if not parts:
        raise ParameterError("guarantees", parts, allowed="at least one guarantee")
    units = {g.rows_per_person for g in parts}
    if len(units) > 1:
        allowed, remedy = "the same for every part", "State each release for the same unit before adding them up."
        raise ParameterError("rows_per_person", sorted(units), allowed=allowed, remedy=remedy)
    status = max((g.status for g in parts), key=STATUS_ORDER.index)
    # One part without privacy leaves none to state.
    costs = () if any(g.budget is None for g in parts) else tuple(cost for g in parts for cost in g.parts)
    return Guarantee(
        status=status,
        parts=costs,
        rows_per_person=units.pop(),
        caveats=tuple(dict.fromkeys(caveat for g in parts for caveat in g.caveats)),
    )
