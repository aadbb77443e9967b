"""What a reviewer is told, and what a reviewer cannot do."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

import dpsynth_core as dp
from dpsynth_core.diagnostics.base import Measure, Result, Scale
from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.diagnostics.mann_whitney import default_pair
from dpsynth_core.errors import DPSynthError, LedgerError, ParameterError
from dpsynth_core.inference.discovery_risk import DiscoveryRisk
from dpsynth_core.inference.stated_risk import RiskVerdict
from dpsynth_core.ledger.accounts import ESTIMATE, Account, Entry
from dpsynth_core.ledger.decisions import DecisionStore
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import STATUS_ORDER, Budget, Cost, Guarantee, compose
from dpsynth_core.review import (
    Checklist,
    Decision,
    Evidence,
    Publication,
    Thresholds,
    approval,
    checklist,
    decide,
    gather,
    release_bundle,
    release_digest,
)
from dpsynth_core.review.decision import missing_for
from dpsynth_core.review.evidence import EvidenceRequest
from dpsynth_core.review.thresholds import LIMITS
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.table.paid_estimate import PaidEstimate
from tests.tables.releases import mixed_outcome, outcome_of
from tests.tables.schemas import mixed_schema, mixed_table

N = 300
SAID = Publication(title="Clinic", published=date(2026, 1, 2))
SCALE = Scale(name="x", low=0, high=1, better="lower", good="0")


@cache
def outcome() -> RunResult:
    return mixed_outcome()


def measure(value: float | None, low: float | None = None, high: float | None = None) -> Measure:
    return Measure(name="age", columns=("age",), value=value, low=low, high=high, reading="So it is.")


def evidence(value: float | None = 0.01, low: float | None = None, high: float | None = None, **rest: Any) -> Evidence:
    """The same number for every diagnostic."""
    noise = {"scores": pd.DataFrame({"score": ["pure noise"], "value": [1.0]})}
    results = tuple(
        Result(key=key, title=key, scale=SCALE, headline=measure(value, low, high), tables=noise)
        for key in ("marginals", "pairs", "pmse", "mmd")
    )
    risk = DiscoveryRisk(
        value="age",
        group="sex",
        levels=("f", "m"),
        low=0.04,
        high=0.06,
        verdict="sound",
        ordinary=None,
        calibrated=None,
        simulations=2000,
    )
    given = {"nearest": None, "discoveries": risk, "pair": ("age", "sex"), **rest}
    return Evidence(evaluation=Evaluation(results=results), **given)


def paid(total: str = "3", path: Path | None = None) -> tuple[Account, Entry]:
    assert path is not None
    ledger = Ledger(f"sqlite:///{path}/ledger.db")
    ledger.open_account("x", total=Budget.of(total))
    ledger.reserve("x", outcome().config.total, purpose="Synthesize").commit()
    account = ledger.account("x")
    assert account is not None
    return account, account.entries[0]


def good(**change: Any) -> Checklist:
    return checklist(outcome(), N, Thresholds(), **{"evidence": evidence(), "public": True, **change})


# ------------------------------------------------------------------ privacy


@pytest.mark.parametrize("status", STATUS_ORDER)
def test_the_guarantee_is_told_as_it_is(status: Any) -> None:
    made = replace(outcome(), guarantee=outcome().guarantee.weakened(status, "Because."))
    check = checklist(made, N, Thresholds(), evidence=evidence(), public=True)["guarantee"]
    assert check.measured == status
    assert check.state == {"proven": "pass", "asymptotic": "warn", "heuristic": "warn"}.get(status, "fail")
    assert "Because." in check.details


def test_a_seeded_run_cannot_be_released_whatever_its_guarantee_says() -> None:
    made = replace(outcome(), config=replace(outcome().config, seed=1))
    found = checklist(made, N, Thresholds(), evidence=evidence(), public=True)
    assert found["guarantee"].state == "fail"
    assert "seeded" in found["guarantee"].evidence


def test_a_fact_read_from_the_data_follows_here_by_name() -> None:
    column = replace(outcome().schema["age"], origin="read from the data")
    made = replace(outcome(), schema=outcome().schema.with_column(column))
    found = checklist(made, N, Thresholds(), evidence=evidence(), public=True)
    assert found["facts"].state == "fail"
    assert "age" in found["facts"].evidence
    assert any(line.startswith("read from the data: age") for line in found["facts"].details)
    assert found["guarantee"].state == "fail"
    assert "No." in found.answer


@pytest.mark.parametrize(
    ("name", "said"),
    [("Ada,\n<b>steward</b>", "; declared by Ada, <b>steward</b>"), (" ", "; nobody is named as having declared them")],
)
@pytest.mark.parametrize("public", [True, False])
def test_who_declared_the_facts_is_told(name: str, said: str, public: bool) -> None:
    schema = replace(outcome().schema, declared_by=name)
    if not public:
        schema = schema.with_column(replace(schema["age"], origin="read from the data"))
    found = checklist(replace(outcome(), schema=schema), N, Thresholds(), evidence=evidence(), public=True)
    assert found["facts"].measured.endswith(f"columns{said}")
    assert found["facts"].state == ("pass" if public else "fail")


def test_the_ledger_must_have_charged_this_very_run(tmp_path: Path) -> None:
    account, charge = paid(path=tmp_path)
    assert good(public=False)["ledger"].state == "fail"
    assert good(public=False, account=account)["ledger"].state == "fail"
    assert good(public=False, account=account, charge=replace(charge, state="reserved"))["ledger"].state == "fail"
    assert good(public=False, account=account, charge=replace(charge, budget=Budget.of(2)))["ledger"].state == "fail"
    check = good(public=False, account=account, charge=charge)["ledger"]
    assert check.state == "pass"
    assert "2 of 3 left" in check.measured
    assert "Synthesize, epsilon 1" in check.details[0]


def test_the_ledger_must_have_charged_the_estimates_that_a_run_uses(tmp_path: Path) -> None:
    account, charge = paid(path=tmp_path)
    cost = Guarantee(status="proven", parts=(Cost(label="Range of column 'age'", budget=Budget.of("0.1")),))
    age = PaidEstimate(column="age", lower=0.0, upper=100.0, guarantee=cost)
    made = replace(outcome(), estimates=(age,), guarantee=compose([outcome().guarantee, cost]))
    before = checklist(made, N, Thresholds(), account=account, charge=charge)
    assert before["ledger"].state == "fail"
    assert "private estimate of age" in before["ledger"].evidence
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    estimated = ledger.reserve("x", Budget.of("0.1"), purpose="Estimate")
    ledger.commit(estimated.id, result={ESTIMATE: age.to_dict()})
    after = checklist(made, N, Thresholds(epsilon="1.05"), account=ledger.account("x"), charge=charge)
    assert after["ledger"].state == "pass"
    assert (after["epsilon"].state, after["epsilon"].measured) == ("fail", "epsilon 1.1")
    alone = checklist(made, N, Thresholds(epsilon="1.05"), public=True)
    assert alone["epsilon"].measured == "epsilon 1.1", "also where no account counts"


def test_a_decision_keeps_what_it_was_made_by(tmp_path: Path) -> None:
    paid(path=tmp_path)
    store = DecisionStore(Ledger(f"sqlite:///{tmp_path}/ledger.db"))
    store.record("x", replace(ruled(good()), chosen_by="public facts only").to_row(), ticket="1")
    assert Decision.from_row(store.history("x")[0]).chosen_by == "public facts only"
    row = ruled(good()).to_row()
    older = replace(row, details={name: value for name, value in row.details.items() if name != "chosen_by"})
    assert Decision.from_row(older).chosen_by == "private diagnostics"


def test_a_bundle_that_hides_what_it_was_chosen_by_is_not_approved() -> None:
    hidden = replace(SAID, chosen_by="public facts only")
    with pytest.raises(DPSynthError, match="chosen by"):
        decide(
            good(),
            "approve",
            reviewer="Ada",
            note="ok",
            thresholds=Thresholds(),
            release="r",
            bundle="b",
            publication=hidden,
            chosen_by="private diagnostics",
        )


@pytest.mark.parametrize(("policy", "state"), [("1", "pass"), ("0.9999", "fail"), ("3", "pass")])
def test_epsilon_is_held_against_the_policy(policy: str, state: str) -> None:
    check = checklist(outcome(), N, Thresholds(epsilon=policy), public=True)["epsilon"]
    assert (check.state, check.value) == (state, 1.0)
    assert not check.final


def test_the_policy_is_on_all_that_was_taken_from_the_data_set(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.open_account("x", total=Budget.of(3))
    for purpose in ("one", "two"):
        ledger.reserve("x", Budget.of(1), purpose=purpose).commit()
    check = good(account=ledger.account("x"))["epsilon"]
    assert check.value == 2.0
    assert check.state == "fail"


def with_delta(delta: str) -> RunResult:
    config = replace(outcome().config, delta=delta)
    return replace(outcome(), config=config, guarantee=outcome().guarantee.limited_to(config.cost))


@pytest.mark.parametrize(("delta", "state"), [("0", "pass"), ("1e-6", "pass"), ("1e-5", "fail")])
def test_delta_is_held_against_the_policy(delta: str, state: str) -> None:
    made = with_delta(delta)
    assert checklist(made, N, Thresholds(), public=True)["delta"].state == state


def test_a_delta_as_large_as_one_row_is_a_warning() -> None:
    made = with_delta("1/300")
    assert checklist(made, N, Thresholds(delta="0.1"), public=True)["delta"].state == "warn"


@pytest.mark.parametrize("key", MECHANISMS)
def test_every_mechanism_says_what_to_beware_of(key: str) -> None:
    assert len(MECHANISMS[key].beware) > 20
    assert MECHANISMS[key].beware.endswith(".")


# ------------------------------------------------------------------ quality


def test_nothing_is_taken_for_granted_while_nobody_has_looked() -> None:
    found = good(evidence=None)
    assert {check.key for check in found.of("open")} == {*LIMITS, "nearest"}
    assert "Not yet" in found.answer


@pytest.mark.parametrize(
    ("value", "low", "high", "state"),
    [
        (0.09, 0.01, 0.2, "pass"),
        (0.11, 0.09, 0.2, "warn"),
        (0.2, 0.11, 0.3, "fail"),
        (0.2, None, None, "fail"),
        (None, None, None, "fail"),
    ],
)
def test_a_score_fails_where_its_whole_interval_is_beyond(value: Any, low: Any, high: Any, state: str) -> None:
    check = good(evidence=evidence(value, low, high))["columns"]
    assert check.state == state
    assert not check.final


@given(st.floats(0.001, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_stricter_threshold_never_helps(limit: float, value: float, share: float) -> None:
    def rank(asked: float) -> int:
        found = checklist(outcome(), N, Thresholds(columns=asked), evidence=evidence(value, value * share), public=True)
        return ("pass", "warn", "fail").index(found["columns"].state)

    assert rank(max(limit / 2, 1e-4)) >= rank(limit)


@pytest.mark.parametrize(
    ("high", "verdict", "state"), [(0.06, "sound", "pass"), (0.2, "unknown", "warn"), (0.4, "inflated", "fail")]
)
def test_false_discoveries_count_by_the_bad_end(high: float, verdict: RiskVerdict, state: str) -> None:
    risk = evidence().discoveries
    assert risk is not None
    own = replace(risk, low=0.045, high=0.055, releasable=False)
    given = evidence(discoveries=replace(risk, high=high, verdict=verdict), own_discoveries=own)
    check = good(evidence=given)["false_discovery"]
    assert check.state == state
    assert f"between 4 and {round(100 * high)} would report one" in check.evidence
    assert any("of the original itself (private)" in line for line in check.details)


@pytest.mark.parametrize(("low", "simulations", "state"), [(0.02, 8, "warn"), (0.5, 8, "fail"), (0.02, 300, "fail")])
def test_a_rough_range_fails_only_where_its_good_end_does(low: float, simulations: int, state: str) -> None:
    risk = evidence().discoveries
    assert risk is not None
    given = replace(risk, low=low, high=0.7, verdict="inflated", simulations=simulations)
    check = good(evidence=evidence(discoveries=given))["false_discovery"]
    assert check.state == state
    assert ("refine it on Diagnostics" in check.evidence) == (state == "warn")


def test_a_risk_that_was_not_simulated_is_a_warning() -> None:
    risk = evidence().discoveries
    assert risk is not None
    unknown = replace(risk, low=0.0, high=1.0, verdict="unknown", simulations=0, problem="It takes too long.")
    check = good(evidence=evidence(discoveries=unknown))["false_discovery"]
    assert (check.state, check.measured) == ("warn", "not known")
    assert "It takes too long." in check.evidence


def test_what_cannot_be_simulated_is_a_warning_with_its_reason() -> None:
    check = good(evidence=evidence(discoveries=None, problems={"discoveries": "No groups."}))["false_discovery"]
    assert check.state == "warn"
    assert "No groups." in check.evidence


def test_evidence_is_gathered_from_a_release() -> None:
    example = dp.EXAMPLES["two_groups_signal"]
    table = example.load(400)
    made = outcome_of(table, example.schema, "perturbed_histogram")
    stages: list[float] = []
    found = gather(
        dp.PrivateTable(table, example.schema),
        EvidenceRequest(outcome=made, diagnostics=("marginals", "pairs")),
        progress=lambda stage, done, /, *points: stages.append(done),
    )
    assert stages == sorted(stages)
    assert found.nearest is not None
    assert found.discoveries is not None
    assert found.discoveries.releasable
    assert found.own_discoveries is not None
    assert not found.own_discoveries.releasable
    assert found.pair == default_pair(example.schema)
    checks = checklist(made, 400, Thresholds(), evidence=found, public=True)
    assert {check.key for check in checks.of("open")} == {"pmse", "mmd"}
    again = gather(dp.PrivateTable(table, example.schema), EvidenceRequest(outcome=made, evaluation=found.evaluation))
    assert again.evaluation is found.evaluation


def test_a_table_without_groups_says_so() -> None:
    schema = dp.Schema.from_dict(
        {"columns": [{"name": "a", "kind": "integer", "lower": 0, "upper": 9, "public": True}]}
    )
    table = pd.DataFrame({"a": list(range(10)) * 4})
    made = outcome_of(table, schema)
    found = gather(dp.PrivateTable(table, schema), EvidenceRequest(outcome=made, diagnostics=("marginals",)))
    assert found.discoveries is None
    assert "two levels" in found.problems["discoveries"]


# ------------------------------------------------------------------ thresholds


@pytest.mark.parametrize("change", [{"epsilon": "0"}, {"delta": "1"}, {"columns": 0.0}, {"mmd": 2.0}, {"pairs": True}])
def test_thresholds_make_sense(change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Thresholds(**change)


def test_thresholds_come_back_as_they_were() -> None:
    asked = Thresholds(epsilon="1/3", pairs=0.5)
    assert Thresholds.from_dict(asked.to_dict()) == asked
    with pytest.raises(ParameterError, match="allowed: columns"):
        Thresholds.from_dict({"magic": 1})
    assert set(LIMITS) == {part.name for part in fields(Thresholds)} - {"epsilon", "delta", "pmse_ratio"}


def test_a_decision_that_asked_for_a_ratio_can_still_be_read_and_says_what_it_asked() -> None:
    asked = {"epsilon": "1", "delta": "1e-6", "columns": 0.1, "pairs": 0.2, "pmse_ratio": 10.0, "mmd": 0.3}
    before = Thresholds.from_dict({**asked, "false_discovery": 0.08})
    assert before.to_dict() == {**asked, "false_discovery": 0.08}, "nothing is added to the record"
    assert before.pmse == Thresholds().pmse, "a review today asks today's default"


# ------------------------------------------------------------------ decisions


def ruled(checks: Checklist, choice: Any = "approve", **change: Any) -> Any:
    terms = {"reviewer": "Ada", "note": "", "thresholds": Thresholds(), "release": "r", "bundle": "b"}
    return decide(checks, choice, **{**terms, "publication": SAID, **change})


def test_what_passes_can_be_approved_and_carries_its_grounds() -> None:
    decision = ruled(good(evidence=evidence(nearest=None)))
    assert decision.thresholds == Thresholds()
    assert decision.states["columns"] == "pass"
    assert decision.measured["epsilon"] == "epsilon 1"


def test_a_void_guarantee_cannot_be_approved_for_any_reason() -> None:
    made = replace(outcome(), guarantee=outcome().guarantee.weakened("void", "Read."))
    checks = checklist(made, N, Thresholds(), evidence=evidence(), public=True)
    with pytest.raises(DPSynthError, match="cannot be overruled"):
        ruled(checks, note="I want it.")
    assert ruled(checks, "hold").choice == "hold"
    with pytest.raises(DPSynthError):
        release_bundle(made)


def test_nothing_open_can_be_approved() -> None:
    with pytest.raises(DPSynthError, match="evidence is missing"):
        ruled(good(evidence=None), note="In a hurry.")


def test_a_failed_threshold_needs_a_reason() -> None:
    checks = good(evidence=evidence(0.9, 0.8, 1.0))
    with pytest.raises(DPSynthError, match="Say in the note why"):
        ruled(checks)
    assert ruled(checks, note="For teaching only.").note == "For teaching only."


def test_there_must_be_a_bundle_to_approve() -> None:
    with pytest.raises(DPSynthError, match="no release bundle"):
        ruled(good(), bundle="")


def test_what_is_missing_shrinks() -> None:
    checks = good(evidence=evidence(0.9, 0.8, 1.0))
    lengths = [
        len(missing_for(checks, *given)) for given in ((None, "", ""), ("approve", "", ""), ("approve", "A", ""))
    ]
    assert lengths == [2, 2, 1]
    assert missing_for(checks, "approve", "A", "Because.") == []
    assert missing_for(checks, "hold", "A", "") == []


def test_a_digest_is_of_rows_facts_and_configuration() -> None:
    made = outcome()
    assert release_digest(made) == release_digest(replace(made, seconds=9.0))
    assert release_digest(made) != release_digest(mixed_outcome())
    assert release_digest(made) != release_digest(replace(made, config=replace(made.config, epsilon="2")))


@pytest.fixture
def books(tmp_path: Path) -> tuple[Ledger, DecisionStore]:
    url = f"sqlite:///{tmp_path}/ledger.db"
    ledger = Ledger(url)
    ledger.open_account("x", total=Budget.of(3))
    return ledger, DecisionStore(Ledger(url))


def decisions(store: DecisionStore) -> tuple[Decision, ...]:
    return tuple(Decision.from_row(row) for row in store.history("x"))


def test_decisions_are_kept_and_never_overwritten(books: tuple[Ledger, DecisionStore]) -> None:
    store = books[1]
    first, second = ruled(good()), ruled(good(evidence=None), "hold", note="Wait.")
    store.record("x", first.to_row(), ticket="1")
    assert approval(decisions(store), "r") == first
    store.record("x", second.to_row(), ticket="2")
    assert decisions(store) == (first, second)
    assert approval(decisions(store), "r") is None
    assert approval(decisions(store), "another") is None


def test_a_ticket_is_recorded_once(books: tuple[Ledger, DecisionStore]) -> None:
    for reviewer in ("Ada", "Ada", "Bob"):
        books[1].record("x", ruled(good(), reviewer=reviewer).to_row(), ticket="same")
    assert [decision.reviewer for decision in books[1].history("x")] == ["Ada"]


def test_a_decision_needs_an_account(books: tuple[Ledger, DecisionStore]) -> None:
    with pytest.raises(LedgerError, match="no account"):
        books[1].record("unknown", ruled(good()).to_row(), ticket="1")
    assert books[1].history("unknown") == ()


def test_a_ledger_from_before_decisions_learns_to_keep_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    Ledger(url).open_account("x", total=Budget.of(3))
    with sa.create_engine(url).begin() as connection:
        connection.execute(sa.text("drop table if exists dpsynth_decisions"))
    store = DecisionStore(Ledger(url))
    store.record("x", ruled(good()).to_row(), ticket="1")
    assert len(store.history("x")) == 1


@pytest.mark.parametrize(
    "thing", [evidence(), good(), good()["columns"], ruled(good())], ids=lambda x: type(x).__name__
)
def test_nothing_of_a_review_enters_a_bundle(thing: Any) -> None:
    assert thing.releasable is False
    with pytest.raises(DPSynthError, match="not made for publication"):
        release_bundle(outcome(), thing)


def test_the_checklist_shows_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsynth_core.review.evidence.MAX_SECONDS", 1.0)
    private = dp.PrivateTable(mixed_table(), mixed_schema())
    found = gather(private, EvidenceRequest(outcome=outcome(), diagnostics=("marginals",)))
    checks = checklist(outcome(), N, Thresholds(), evidence=found, public=True)
    text = " ".join((checks["nearest"].evidence, *checks["nearest"].details))
    assert "not a proof of privacy" in text
    assert not any(str(label) in text.split() for label in mixed_schema()["sex"].labels)
