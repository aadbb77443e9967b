from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth_core.errors import DPSynthError, ParameterError, shown
from dpsynth_core.privacy.budget import (
    STATUS_ORDER,
    Amount,
    Budget,
    Guarantee,
    compose,
    exact,
    float_up,
    format_amount,
    sequential,
    stated,
)

fractions = st.fractions(min_value=Fraction(1, 10**6), max_value=100)
deltas = st.fractions(min_value=0, max_value=Fraction(1, 100))
budgets = st.builds(lambda e, d: Budget(epsilon=e, delta=d), fractions, deltas)
weights = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8)


def test_a_budget_is_the_decimal_that_was_typed() -> None:
    assert Budget.of(0.1).epsilon == Budget.of("0.1").epsilon == Budget.of(Decimal("0.1")).epsilon == Fraction(1, 10)
    assert sequential([Budget.of(0.1)] * 10) == Budget.of(1)


@given(budgets, weights)
def test_shares_add_up_to_exactly_the_whole(budget: Budget, parts: list[float]) -> None:
    assert sequential(budget.split(*parts)) == budget


@given(st.lists(budgets, min_size=1, max_size=6))
def test_losses_on_the_same_rows_add_up(parts: list[Budget]) -> None:
    total = sequential(parts)
    assert total.epsilon == sum(part.epsilon for part in parts)
    assert total.delta == sum(part.delta for part in parts)
    assert all(total.covers(part) for part in parts)


@given(fractions)
def test_what_is_stated_is_never_less_than_what_was_spent(value: Fraction) -> None:
    assert Fraction(float_up(value)) >= value
    assert Fraction(math.nextafter(float_up(value), 0)) < value
    assert exact(stated(value), parameter="value") >= value
    assert stated(value) == pytest.approx(float(value), rel=1e-15)


@given(budgets, st.integers(1, 20))
def test_group_privacy_never_promises_more_than_the_person_was_promised(budget: Budget, k: int) -> None:
    row = budget.per_row(k)
    assert row.epsilon * k == budget.epsilon
    # (e, d) per row is (k e, sum_{i<k} exp(i e) d) for k rows.
    inflated = sum(math.exp(i * float(row.epsilon)) for i in range(k)) * float(row.delta)
    assert inflated <= float(budget.delta) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "much", None, "1/0"])
def test_an_impossible_epsilon_is_refused_by_name(epsilon: object) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        Budget.of(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("delta", [-0.1, 1, 2])
def test_an_impossible_delta_is_refused_by_name(delta: float) -> None:
    with pytest.raises(ParameterError, match="delta"):
        Budget.of(1, delta)


def test_impossible_arithmetic_is_refused() -> None:
    for attempt in (
        lambda: Budget.of(1).split(),
        lambda: Budget.of(1).split(1, 0),
        lambda: Budget.of(1).times(0),
        lambda: Budget.of(1).per_row(0),
        lambda: Budget.of(10_000, 0.1).per_row(2),
        lambda: sequential([]),
        lambda: compose([]),
        lambda: Guarantee(status="proven", budget=None),
        lambda: Guarantee(status="sure", budget=Budget.of(1)),  # type: ignore[arg-type]
        lambda: exact("x", parameter="epsilon"),
    ):
        with pytest.raises(DPSynthError):
            attempt()


def test_a_guarantee_speaks_in_floats_and_names_its_kind() -> None:
    pure = Guarantee(status="proven", budget=Budget.of(0.1))
    assert (pure.epsilon, pure.delta, pure.kind) == (0.1, 0.0, "pure")
    assert Guarantee(status="proven", budget=Budget.of(1, 1e-6)).kind == "approximate"
    nothing = Guarantee(status="none", budget=None)
    assert (nothing.epsilon, nothing.delta, nothing.kind) == (math.inf, 1.0, "none")


@given(st.lists(st.sampled_from(STATUS_ORDER), min_size=1, max_size=5))
def test_a_composition_is_as_weak_as_its_weakest_part(statuses: list[str]) -> None:
    parts = [Guarantee(status=s, budget=Budget.of(1), caveats=(s,)) for s in statuses]  # type: ignore[arg-type]
    whole = compose(parts)
    assert whole.status == max(statuses, key=STATUS_ORDER.index)
    assert whole.epsilon == len(statuses)
    assert set(whole.caveats) == set(statuses)


def test_composition_with_a_reference_has_no_privacy_left() -> None:
    assert (
        compose([Guarantee(status="proven", budget=Budget.of(1)), Guarantee(status="none", budget=None)]).epsilon
        == math.inf
    )


def test_guarantees_for_different_units_do_not_add_up() -> None:
    with pytest.raises(DPSynthError, match="unit"):
        compose([Guarantee(status="proven", budget=Budget.of(1), rows_per_person=k) for k in (1, 2)])


def test_weakening_never_strengthens() -> None:
    void = Guarantee(status="void", budget=Budget.of(1))
    assert void.weakened("heuristic", "because").status == "void"
    assert void.weakened("heuristic", "because").caveats == ("because",)


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (0, "0", "0"),
        (100, "100", "100"),
        (0.1, "0.1", "0.1"),
        ("0.123456", "0.123456", "0.123456"),
        ("1e-6", "1e-6", "1e-6"),
        ("1e-7", "1e-7", "1e-7"),
        (Fraction(2, 3), "2/3 (about 0.6667)", "2/3 (about 0.6666)"),
        (Fraction(-1, 3), "-1/3 (about -0.3333)", "-1/3 (about -0.3334)"),
        (Fraction(10**9, 3), "about 333400000", "about 333300000"),
        (Fraction("1e400"), "1e+400", "1e+400"),
    ],
)
def test_an_amount_is_exact_where_that_is_short_and_never_understates_a_loss(value: Amount, up: str, down: str) -> None:
    assert format_amount(value) == up
    assert format_amount(value, up=False) == down


HUGE = ["1e-9999999", "1E+9999999", "1e" + "9" * 90, "9" * 10**6, "1/" + "3" * 10**6, "0." + "0" * 10**6 + "1"]


@pytest.mark.parametrize("text", HUGE, ids=lambda text: f"{text[:12]}, {len(text)} characters")
@pytest.mark.parametrize("field", ["epsilon", "delta"])
def test_a_short_text_cannot_ask_for_a_number_of_a_hundred_million_digits(field: str, text: str) -> None:
    with pytest.raises(
        ParameterError, match=f"{field} is .* up to 100 characters, with an exponent from -100 to 100"
    ) as refused:
        Budget.of(**{"epsilon": "1", field: text})
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("value", [Decimal("1e-9999999"), Decimal("1e9999999"), Decimal("Infinity"), Decimal("NaN")])
def test_a_decimal_is_bounded_like_a_text(value: Decimal) -> None:
    with pytest.raises(ParameterError, match="a finite number"):
        Budget.of(value)


@pytest.mark.parametrize("epsilon", [10**101, 10**400, 10**5000, "1e100"], ids=shown)
def test_every_epsilon_that_is_accepted_can_be_stated_as_a_float(epsilon: Amount) -> None:
    if epsilon == "1e100":
        assert Guarantee(status="proven", budget=Budget.of(epsilon)).epsilon == 1e100
        return
    with pytest.raises(ParameterError, match="at most 1e100"):
        Budget.of(epsilon)


@given(text=st.text(alphabet="0123456789eE+-./_ infa", max_size=30))
def test_whatever_is_typed_is_an_amount_or_a_refusal(text: str) -> None:
    try:
        amount = exact(text, parameter="epsilon")
    except ParameterError:
        return
    assert amount == Fraction(text)
    assert max(amount.numerator.bit_length(), amount.denominator.bit_length()) < 1_000
