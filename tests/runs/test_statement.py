"""One statement for everything that is published: rows, copies, and the private estimates behind public facts.

The attacker here is a schema that says "estimated privately" without having paid for what it states.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import dpsynth_core as dp
from dpsynth_core.errors import ParameterError
from dpsynth_core.ledger.accounts import ESTIMATE
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.privacy.budget import Budget, Cost, Guarantee, compose
from dpsynth_core.privacy.noise import SecureNoise
from dpsynth_core.runs.configuration import RunConfig, execute
from dpsynth_core.table.file_layout import FileLayout
from dpsynth_core.table.paid_estimate import PaidEstimate, paid
from dpsynth_core.table.schema import Schema

ROWS = pd.DataFrame(
    {"age": [20.25, 35.5, 61.75, 44.0] * 500, "height": [150, 172, 181, 166] * 500, "town": ["north", "south"] * 1000}
)
SUGGESTED = dp.suggest_schema(ROWS)
"""Everything in it was read from the rows."""
TENTH = Budget.of("0.1")
WITH_DELTA = Budget.of("0.1", "1e-7")


def age_estimate() -> PaidEstimate:
    return dp.estimate_bounds(ROWS["age"], epsilon=TENTH.epsilon, noise=SecureNoise(TENTH))


def town_estimate() -> PaidEstimate:
    noise = SecureNoise(WITH_DELTA)
    return dp.discover_categories(ROWS["town"], epsilon=WITH_DELTA.epsilon, delta=WITH_DELTA.delta, noise=noise)


def declared(*estimates: PaidEstimate) -> Schema:
    """A schema whose columns these estimates declare; the others are public knowledge."""
    by_name = {each.column: each for each in estimates}
    columns = (
        by_name[c.name].declare(c, others_public=True) if c.name in by_name else replace(c, origin="public knowledge")
        for c in SUGGESTED
    )
    return Schema(columns=tuple(columns))


def claim(schema: Schema, estimates: tuple[PaidEstimate, ...]) -> Guarantee:
    config = RunConfig(mechanism=dp.MECHANISMS["kd_tree"](), epsilon="1")
    return execute(ROWS, schema, config, estimates).guarantee


# One statement


def test_estimates_and_rows_add_up_to_one_statement() -> None:
    estimates = age_estimate(), town_estimate()
    private = dp.PrivateTable(ROWS, declared(*estimates))
    guarantee = dp.synthesize(private, dp.MECHANISMS["kd_tree"](), epsilon=1, estimates=estimates).guarantee
    assert (guarantee.status, guarantee.epsilon, guarantee.delta) == ("proven", 1.2, 1e-7)
    assert guarantee.parts == (
        Cost(label="Synthetic rows", budget=Budget.of(1)),
        Cost(label="Range of column 'age'", budget=TENTH),
        Cost(label="Categories of column 'town'", budget=WITH_DELTA),
    )


def test_each_copy_is_paid_for_and_an_estimate_once() -> None:
    estimate = age_estimate()
    config = RunConfig(mechanism=dp.MECHANISMS["kd_tree"](), epsilon="0.5", copies=3)
    result = execute(ROWS, declared(estimate), config, [estimate])
    assert result.guarantee.budget == Budget.of("1.6")
    assert result.guarantee.parts[0].label == "Synthetic rows, 3 tables at epsilon 0.5 each"
    assert len(result.guarantee.parts) == 2
    assert result.estimates == (estimate,)


def test_a_release_is_simulated_again_at_what_its_rows_were_granted() -> None:
    estimate = age_estimate()
    config = RunConfig(mechanism=dp.MECHANISMS["kd_tree"](), epsilon="0.5", copies=3)
    first = execute(ROWS, declared(estimate), config, [estimate]).release(len(ROWS))
    assert first.budget == first.guarantee.budget == Budget.of("0.5")


def test_the_parts_of_a_guarantee_are_its_sum() -> None:
    whole = compose([Guarantee(status="proven", budget=Budget.of(1)), paid("age", TENTH)])
    assert whole.budget == Budget.of("1.1")
    with pytest.raises(ParameterError, match="sum of what the parts cost"):
        replace(whole, budget=Budget.of(1))


# The attacker


def test_an_origin_that_nobody_paid_for_is_void() -> None:
    forged = declared(age_estimate())
    guarantee = claim(Schema.from_json(forged.to_json()), ())
    assert guarantee.status == "void"
    assert "no charge for this estimate is on record for this table" in guarantee.caveats[0]
    assert guarantee.budget == Budget.of(1)


def test_an_estimate_of_another_column_backs_nothing() -> None:
    estimate = age_estimate()
    other = replace(estimate, column="height")
    assert claim(declared(estimate), (other,)).status == "void"


@pytest.mark.parametrize("change", [{"upper": 61.75}, {"lower": 20.25}, {"upper": 101}])
def test_a_bound_that_was_changed_afterwards_is_not_the_one_that_was_paid_for(change: dict[str, float]) -> None:
    estimate = age_estimate()
    schema = declared(estimate)
    assert claim(schema.with_column(replace(schema["age"], **change)), (estimate,)).status == "void"


def test_categories_that_were_changed_afterwards_are_not_those_that_were_paid_for() -> None:
    estimate = town_estimate()
    schema = declared(estimate)
    for labels in (("north",), ("south", "north"), ("north", "south", "west")):
        changed = schema.with_column(replace(schema["town"], categories=labels))
        assert claim(changed, (estimate,)).status == "void"


def test_an_estimate_for_another_unit_of_protection_backs_nothing() -> None:
    estimate = age_estimate()
    assert claim(replace(declared(estimate), rows_per_person=2), (estimate,)).status == "void"


def test_an_estimate_of_a_file_that_was_read_in_another_way_backs_nothing() -> None:
    estimate = replace(age_estimate(), layout=FileLayout(delimiter=";"))
    schema = declared(estimate)
    assert claim(schema, (estimate,)).status == "void"
    proven = Guarantee(status="proven", budget=Budget.of(1))
    assert replace(schema, file=FileLayout(delimiter=";")).judge(proven, (estimate,)).status == "proven"


def test_a_seeded_estimate_leaves_no_guarantee() -> None:
    estimate = replace(age_estimate(), guarantee=paid("age", TENTH, status="none"))
    assert claim(declared(estimate), (estimate,)).status == "none"


def test_of_two_estimates_the_one_whose_values_are_used_is_stated() -> None:
    first = age_estimate()
    second = replace(first, upper=200.0)
    guarantee = claim(declared(first), (first, second))
    assert (guarantee.status, guarantee.budget) == ("proven", Budget.of("1.1"))
    assert "another estimate was paid for and is not used" in guarantee.caveats[-1]


def test_two_estimates_with_the_same_values_are_both_stated() -> None:
    first = age_estimate()
    assert claim(declared(first), (first, replace(first))).budget == Budget.of("1.2")


def test_bounds_of_two_estimates_cannot_be_mixed() -> None:
    first = PaidEstimate(column="age", lower=0.0, upper=100.0, guarantee=paid("age", TENTH))
    second = replace(first, lower=10.0, upper=50.0)
    mixed = replace(declared(first)["age"], lower=10.0)
    assert claim(declared(first).with_column(mixed), (first, second)).status == "void"


# What an estimate may set


def test_a_column_after_an_estimate_holds_nothing_that_was_read_from_the_rows() -> None:
    read = replace(SUGGESTED["age"], bins=17, decimals=2, unit="read")
    estimate = age_estimate()
    column = estimate.declare(read, others_public=True)
    stated = {"name": "age", "kind": read.kind, "public": True, "origin": "estimated privately"}
    assert column.to_dict() == {**stated, "lower": estimate.lower, "upper": estimate.upper}
    town = town_estimate().declare(replace(SUGGESTED["town"], other="east"), others_public=True)
    assert (town.other, town.categories) == (None, ("north", "south"))


def test_what_was_declared_public_before_an_estimate_stays() -> None:
    before = replace(SUGGESTED["age"], bins=17, decimals=1, unit="years", origin="codebook")
    after = age_estimate().declare(before, others_public=True)
    assert (after.bins, after.decimals, after.unit) == (17, 1, "years")


def test_an_estimate_needs_a_statement_about_everything_else() -> None:
    with pytest.raises(ParameterError, match="others_public"):
        age_estimate().declare(SUGGESTED["age"], others_public=False)


# The account


def opened(tmp_path: Path, *names: str) -> Ledger:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    for name in names:
        ledger.open_account(name, total=Budget.of(5, "1e-6"))
    return ledger


def charged(ledger: Ledger, name: str, estimate: PaidEstimate) -> PaidEstimate:
    assert estimate.guarantee.budget is not None
    with ledger.charge(name, estimate.guarantee.budget, purpose="Estimate") as charge:
        charge.drawn()
        charge.commit(result={ESTIMATE: estimate.to_dict()})
    return estimate


def test_the_ledger_keeps_what_an_estimate_has_found(tmp_path: Path) -> None:
    ledger = opened(tmp_path, "mine")
    age, town = charged(ledger, "mine", age_estimate()), charged(ledger, "mine", town_estimate())
    kept = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").estimates("mine")
    assert [(e.column, e.lower, e.upper, e.categories, e.guarantee) for e in kept] == [
        (e.column, e.lower, e.upper, e.categories, e.guarantee) for e in (age, town)
    ]
    assert claim(declared(age, town), kept).budget == Budget.of("1.2", "1e-7")


def test_an_estimate_is_paid_once_and_stated_in_every_release(tmp_path: Path) -> None:
    ledger = opened(tmp_path, "mine")
    age = charged(ledger, "mine", age_estimate())
    for _ in range(2):
        assert claim(declared(age), ledger.estimates("mine")).budget == Budget.of("1.1")
    account = ledger.account("mine")
    assert account is not None
    assert account.spent.epsilon == TENTH.epsilon


def test_an_estimate_paid_under_another_tables_account_backs_nothing(tmp_path: Path) -> None:
    ledger = opened(tmp_path, "mine", "another")
    age = charged(ledger, "another", age_estimate())
    assert claim(declared(age), ledger.estimates("mine")).status == "void"


def test_a_charge_that_was_not_committed_backs_nothing(tmp_path: Path) -> None:
    ledger = opened(tmp_path, "mine")
    age = age_estimate()
    details = {ESTIMATE: age.to_dict()}
    reserved = ledger.reserve("mine", TENTH, purpose="Estimate", details=details)
    assert ledger.estimates("mine") == ()
    ledger.refund(reserved.id, "Nothing was drawn")
    assert ledger.estimates("mine") == ()
    assert claim(declared(age), ledger.estimates("mine")).status == "void"


def test_an_estimate_made_for_free_and_loaded_for_a_release_is_void(tmp_path: Path) -> None:
    saved = declared(age_estimate()).to_json()  # in teaching mode: no ledger has heard of it
    ledger = opened(tmp_path, "mine")
    guarantee = claim(Schema.from_json(saved), ledger.estimates("mine"))
    assert guarantee.status == "void"
