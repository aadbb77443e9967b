from __future__ import annotations

import uuid
from pathlib import Path

import pandas as pd
import pytest

from dpsynth_core.errors import BudgetError, DPSynthError, IntakeError, LedgerError, ParameterError, SchemaError
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.runs.configuration import RunConfig, execute
from dpsynth_core.table.column import Column
from dpsynth_core.table.estimate import NothingFoundError
from dpsynth_core.table.examples import EXAMPLES
from pages.shared.accounts import account_of, open_ledger
from pages.shared.data.actions import (
    adopt_account_terms,
    choose_mode,
    declare_all_public,
    edit_draft,
    load_example,
    load_schema,
    load_upload,
    open_account,
    sign,
)
from pages.shared.data.estimate_actions import estimate
from pages.shared.data.schema_rows import mark_public
from pages.shared.session import Session

PEOPLE = pd.DataFrame(
    {
        "age": [20 + i % 60 for i in range(400)],
        "income": [20_000.5 + i % 100 for i in range(400)],
        "height": [1.5 + i % 50 / 100 for i in range(400)],
        "town": ["north" if i % 3 else "south" for i in range(400)],
        "grade": [i % 2 + 1 for i in range(400)],
        "joined": [f"20{10 + i % 9}-01-{1 + i % 28:02}" for i in range(400)],
        "code": [f"p{i:04}" for i in range(400)],
    }
)
CSV = PEOPLE.to_csv(index=False).encode()
PLENTY = Budget.of(5)


@pytest.fixture
def teaching() -> Session:
    session = Session()
    load_upload(session, "people.csv", CSV)
    return session


@pytest.fixture
def unopened() -> Session:
    """Release mode, before the total budget is set."""
    session = Session(mode="release")
    load_upload(session, "people.csv", CSV)
    return session


@pytest.fixture
def release(unopened: Session) -> Session:
    open_account(unopened, 10, "1e-5")
    return unopened


def account_in(session: Session) -> Account:
    account = account_of(session)
    assert account is not None
    return account


def run(session: Session, name: str, budget: Budget = PLENTY, run_id: str = "") -> None:
    estimate(session, name, budget, run_id=run_id or uuid.uuid4().hex, others_public=True)


def covers(column: Column, low: float, high: float) -> bool:
    """Whether the range spans these values; once in a hundred estimates, noise makes it wider than need be."""
    assert isinstance(column.lower, int | float)
    assert isinstance(column.upper, int | float)
    return column.lower <= low < high <= column.upper


def status(session: Session) -> str | None:
    return None if session.guarantee is None else session.guarantee.status


# Loading


@pytest.mark.parametrize("key", EXAMPLES)
def test_an_example_comes_with_its_public_schema(key: str) -> None:
    session = Session()
    load_example(session, key)
    assert session.schema == EXAMPLES[key].schema
    data = session.work.data
    assert (data.title, data.uploaded, data.fingerprint) == (EXAMPLES[key].title, False, None)
    assert status(session) == "proven"
    assert session.missing == []


def test_a_simulated_example_has_as_many_rows_as_asked() -> None:
    session = Session()
    load_example(session, "mixture", rows=37)
    assert len(session.work.data.table) == 37


def test_nothing_about_an_uploaded_file_is_public(teaching: Session) -> None:
    assert teaching.schema is not None
    assert teaching.schema.not_public == teaching.schema.names == ("age", "income", "height", "town", "grade", "joined")
    assert status(teaching) == "void"
    assert teaching.work.data.uploaded


def test_columns_that_name_people_are_left_out_with_the_reason(teaching: Session) -> None:
    assert "all different" in teaching.work.left_out["code"]
    load_example(teaching, "wine")
    assert teaching.work.left_out == {}


def test_a_file_that_is_no_table_leaves_everything_as_it_was(teaching: Session) -> None:
    before = teaching.schema
    with pytest.raises(IntakeError, match="PNG image"):
        load_upload(teaching, "data.csv", b"\x89PNG\r\n\x1a\n" + bytes(100))
    assert teaching.schema is before
    assert teaching.work.data.title == "people.csv"


def test_a_new_table_forgets_the_old_one(teaching: Session) -> None:
    teaching.work.editor_base = teaching.work.draft
    version = teaching.draft_version
    load_example(teaching, "wine")
    assert teaching.schema == EXAMPLES["wine"].schema
    assert teaching.work.editor_base is None
    assert teaching.draft_version > version


# Modes


def test_leaving_release_mode_forgets_an_uploaded_file(release: Session) -> None:
    choose_mode(release, "teaching")
    assert release.mode == "teaching"
    assert release.current is None
    assert release.missing == ["Choose an example or upload a file."]


def test_leaving_release_mode_keeps_an_example() -> None:
    session = Session(mode="release")
    load_example(session, "wine")
    choose_mode(session, "teaching")
    assert session.work.data.fingerprint is None
    assert session.schema == EXAMPLES["wine"].schema


def test_choosing_the_same_mode_changes_nothing(release: Session) -> None:
    before = release.work.data
    choose_mode(release, "release")
    assert release.work.data is before


def test_entering_release_mode_finds_the_data_sets_account(teaching: Session, release: Session) -> None:
    assert account_of(teaching) is None
    choose_mode(teaching, "release")
    assert account_of(teaching) == account_of(release)


def test_an_estimate_that_nobody_paid_for_does_not_count_in_release_mode(teaching: Session) -> None:
    declare_all_public(teaching, public=True)
    run(teaching, "age")
    assert status(teaching) == "proven"
    choose_mode(teaching, "release")
    assert teaching.schema is not None
    assert teaching.schema.not_public == ("age",)
    assert status(teaching) == "void"


def test_without_a_usable_key_there_is_no_release_mode(teaching: Session, home: Path) -> None:
    home.mkdir()
    (home / "installation.key").write_bytes(b"short")
    with pytest.raises(DPSynthError, match="installation key"):
        choose_mode(teaching, "release")
    assert teaching.mode == "teaching"
    assert teaching.schema is not None


# Accounts


def test_a_data_set_has_no_account_until_one_is_opened(unopened: Session) -> None:
    assert unopened.work.data.fingerprint is not None
    assert account_of(unopened) is None
    open_account(unopened, 2, "1e-6")
    account = account_in(unopened)
    assert (account.total, account.label, account.rows_per_person) == (Budget.of(2, "1e-6"), "people.csv", 1)


def test_the_same_file_under_another_name_has_the_same_account(release: Session) -> None:
    run(release, "age")
    other = Session(mode="release")
    load_upload(other, "renamed.csv", CSV)
    assert account_of(other) == account_of(release)
    assert account_in(other).spent.epsilon == 5


def test_another_file_has_another_account(release: Session) -> None:
    other = Session(mode="release")
    load_upload(other, "people.csv", PEOPLE.iloc[1:].to_csv(index=False).encode())
    assert account_of(other) is None


def test_a_total_cannot_be_raised(release: Session) -> None:
    with pytest.raises(LedgerError, match="Neither can be changed"):
        open_account(release, 11, "1e-5")
    assert account_in(release).total == Budget.of(10, "1e-5")


def test_a_total_that_is_no_number_opens_nothing(unopened: Session) -> None:
    with pytest.raises(DPSynthError):
        open_account(unopened, 1, "tiny")
    assert account_of(unopened) is None


def test_an_accounts_unit_of_protection_holds_wherever_its_data_turns_up(unopened: Session) -> None:
    unopened.work.rows_per_person = 4
    open_account(unopened, 10, "1e-5")
    for later in (Session(mode="release"), Session()):
        load_upload(later, "again.csv", CSV)
        choose_mode(later, "release")
        assert later.work.rows_per_person == 4
        assert later.schema is not None
        assert later.schema.rows_per_person == 4


def test_an_account_opened_elsewhere_meanwhile_sets_the_unit(unopened: Session) -> None:
    elsewhere = Session(mode="release")
    load_upload(elsewhere, "people.csv", CSV)
    elsewhere.work.rows_per_person = 3
    open_account(elsewhere, 10, "1e-5")
    assert unopened.work.rows_per_person == 1
    assert adopt_account_terms(unopened) == account_of(elsewhere)
    assert unopened.work.rows_per_person == 3


# Estimates


def test_an_estimated_range_is_declared_and_charged_once(release: Session) -> None:
    run(release, "age", run_id="first")
    assert release.schema is not None
    age = release.schema["age"]
    assert (age.kind, age.public, age.origin) == ("integer", True, "estimated privately")
    assert covers(age, 20, 79)
    account = account_in(release)
    assert account.spent.epsilon == 5
    assert [(e.run_id, e.state, e.budget) for e in account.entries] == [("first", "committed", PLENTY)]


def test_a_run_is_charged_and_drawn_once(release: Session) -> None:
    run(release, "age", run_id="first")
    declared = release.schema
    with pytest.raises(LedgerError, match="charged before"):
        run(release, "age", run_id="first")
    assert account_in(release).spent.epsilon == 5
    assert release.schema == declared


def test_an_estimate_that_exceeds_the_budget_changes_nothing(release: Session) -> None:
    before, draft, ledger = release.schema, release.work.draft, account_of(release)
    with pytest.raises(BudgetError, match="Nothing was drawn"):
        run(release, "age", Budget.of(11))
    assert release.schema is before
    assert release.work.draft is draft
    assert account_of(release) == ledger


def test_an_estimate_without_an_account_is_refused(unopened: Session) -> None:
    with pytest.raises(LedgerError):
        run(unopened, "age")
    assert unopened.schema is not None
    assert not unopened.schema["age"].public


def test_an_estimate_that_finds_nothing_is_spent_and_declares_nothing(release: Session) -> None:
    rows = release.work.draft.copy()
    code = rows["name"] == "code"  # every row has its own
    rows.loc[code, "keep"], rows.loc[code, "categories"] = True, pd.Series([["p"]] * len(rows), index=rows.index)[code]
    edit_draft(release, rows)
    before = release.schema
    with pytest.raises(NothingFoundError, match="is spent"):
        run(release, "code", Budget.of(5, "1e-6"))
    assert release.schema == before
    assert account_in(release).spent.epsilon == 5


def test_a_hopeless_estimate_is_refused_before_anything_is_charged(release: Session) -> None:
    before = release.schema
    for name, budget in (("age", Budget.of("0.1")), ("town", Budget.of("0.1", "1e-7"))):
        with pytest.raises(ParameterError, match="Spend at least epsilon"):
            run(release, name, budget)
    assert release.schema == before
    assert account_in(release).spent.epsilon == 0
    assert not account_in(release).entries


def test_an_estimate_says_what_it_may_have_missed_and_can_add_a_label_for_the_rest(release: Session) -> None:
    declare_all_public(release, public=True)
    run(release, "age")
    found, missed, ticked = release.work.estimate_note
    assert "age: the range is estimated as" in found
    assert "Values there count as the nearest end" in missed
    assert "ticked Public" in ticked
    estimate(release, "town", Budget.of(1, "1e-6"), run_id="other", others_public=True, other="other")
    assert release.schema is not None
    assert release.schema["town"].other == "other"
    assert status(release) == "proven"
    found, missed, _ = release.work.estimate_note
    assert found == "town: 2 labels were found."
    assert "count as other" in missed


def test_teaching_estimates_charge_nothing(teaching: Session, home: Path) -> None:
    run(teaching, "height")
    assert teaching.schema is not None
    assert teaching.schema["height"].origin == "estimated privately"
    assert covers(teaching.schema["height"], 1.5, 1.99)
    assert not (home / "ledger.db").exists()


def test_categories_that_many_share_are_discovered(release: Session) -> None:
    run(release, "town", Budget.of(5, "1e-6"))
    assert release.schema is not None
    town = release.schema["town"]
    assert (town.categories, town.public, town.origin) == (("north", "south"), True, "estimated privately")
    assert account_in(release).spent.delta == Budget.of(5, "1e-6").delta


def test_discovered_labels_of_a_numeric_column_are_numbers(release: Session) -> None:
    run(release, "grade", Budget.of(5, "1e-6"))
    assert release.schema is not None
    assert release.schema["grade"].categories == (1, 2)


def test_discovering_categories_needs_a_delta(release: Session) -> None:
    with pytest.raises(DPSynthError, match="delta"):
        run(release, "town", Budget.of(5))
    assert account_in(release).spent.epsilon == 0, "refunded: nothing was drawn"


def test_a_date_is_refused_before_anything_is_charged(release: Session) -> None:
    with pytest.raises(DPSynthError, match="no private estimate for a date"):
        run(release, "joined")
    assert account_in(release).entries == ()


def test_what_was_paid_for_is_declared_even_if_it_contradicts_what_was_typed(release: Session) -> None:
    rows = release.work.draft.copy()
    rows.loc[rows["name"] == "income", ["from", "to", "decimals"]] = ["0.0001", "0.0002", 12]
    rows.loc[rows["name"] == "town", "other"] = "elsewhere"
    edit_draft(release, mark_public(rows, public=True))
    assert release.work.problems == []
    run(release, "income", Budget.of(4))
    run(release, "town", Budget.of(4, "1e-6"))
    assert release.schema is not None
    income = release.schema["income"]
    assert covers(income, 20_000.5, 20_099.5)
    assert income.decimals is None
    assert release.schema["town"].labels == ("north", "south", "elsewhere")


def test_without_a_statement_about_the_rest_nothing_is_charged(release: Session) -> None:
    before = release.schema
    with pytest.raises(ParameterError, match="others_public"):
        estimate(release, "age", PLENTY, run_id="first", others_public=False)
    assert account_in(release).entries == ()
    assert release.schema is before


def test_the_schema_after_an_estimate_holds_nothing_that_was_read_from_the_rows(release: Session) -> None:
    assert release.schema is not None
    assert release.schema["income"].decimals is not None, "the suggestion reads it from the rows"
    run(release, "income")
    income = release.schema["income"].to_dict()
    assert set(income) == {"name", "kind", "lower", "upper", "public", "origin"}


def test_the_account_remembers_what_an_estimate_has_found(release: Session) -> None:
    declare_all_public(release, public=True)
    run(release, "age")
    run(release, "town", Budget.of("1", "1e-6"))
    assert release.schema is not None
    first, second = open_ledger().estimates(account_in(release).fingerprint)
    assert (first.column, second.column, second.categories) == ("age", "town", ("north", "south"))
    assert release.schema["age"].lower == first.lower
    assert status(release) == "proven"
    assert release.guarantee is not None
    assert release.guarantee.budget == Budget.of("7", "1e-6")
    again = Session(mode="release")
    load_upload(again, "people.csv", CSV)
    load_schema(again, release.schema.to_json().encode())
    assert status(again) == "proven"


def test_runs_together_cost_their_sum_and_each_estimate_once(release: Session) -> None:
    declare_all_public(release, public=True)
    run(release, "town", Budget.of("1", "1e-6"))
    assert release.schema is not None
    estimates = open_ledger().estimates(account_in(release).fingerprint)
    for epsilon in ("1", "0.25"):
        config = RunConfig(mechanism=MECHANISMS["kd_tree"](), epsilon=epsilon)
        release.work.add_run(execute(release.work.data.table, release.schema, config, estimates))
    assert release.work.spent == Budget.of("2.25", "1e-6")


@pytest.mark.parametrize("labels", [("1", "2"), ("01", "02")])
def test_labels_that_are_declared_as_numbers_stay_those_that_were_paid_for(labels: tuple[str, ...]) -> None:
    session = Session(mode="release")
    load_upload(session, "grades.csv", ("grade\n" + "\n".join(labels * 200)).encode())
    open_account(session, 10, "1e-5")
    rows = session.work.draft.copy()
    rows["kind"], rows["categories"], rows["labels are numbers"] = "categorical", [["1", "2"]], True
    edit_draft(session, mark_public(rows, public=True))
    declare_all_public(session, public=True)
    run(session, "grade", Budget.of(4, "1e-6"))
    assert session.schema is not None
    assert [str(label) for label in session.schema["grade"].labels] == list(labels)
    assert isinstance(session.schema["grade"].labels[0], int) == (labels[0] == "1")
    assert status(session) == "proven"


def test_an_estimate_that_was_edited_afterwards_is_void(release: Session) -> None:
    declare_all_public(release, public=True)
    run(release, "age")
    rows = release.work.draft.copy()
    rows.loc[rows["name"] == "age", "to"] = "79"
    edit_draft(release, rows)
    assert status(release) == "void"


def test_an_estimate_keeps_what_was_typed_for_other_columns(teaching: Session) -> None:
    rows = teaching.work.draft.copy()
    rows.loc[rows["name"] == "height", ["keep", "to"]] = [False, "2.75"]
    edit_draft(teaching, rows)
    run(teaching, "age")
    assert teaching.work.draft.loc[teaching.work.draft["name"] == "height", "to"].item() == "2.75"
    assert teaching.schema is not None
    assert "height" not in teaching.schema.names


# Drafts and saved schemas


def test_the_bulk_action_starts_the_editor_afresh(teaching: Session) -> None:
    version = teaching.draft_version
    declare_all_public(teaching, public=True)
    assert status(teaching) == "proven"
    assert teaching.draft_version == version + 1
    declare_all_public(teaching, public=False)
    assert status(teaching) == "void"


def test_typing_does_not_start_the_editor_afresh(teaching: Session) -> None:
    version = teaching.draft_version
    edit_draft(teaching, teaching.work.draft.assign(keep=False))
    assert teaching.draft_version == version
    assert teaching.schema is None
    assert teaching.guarantee is None
    assert teaching.missing == ["Correct the public facts listed in red."]


def test_a_saved_schema_is_used_for_the_table_at_hand(teaching: Session) -> None:
    assert teaching.schema is not None
    saved = teaching.schema.select(["town", "age"]).to_json().encode()
    load_schema(teaching, saved)
    assert teaching.schema.names == ("town", "age")
    assert sorted(teaching.work.draft["name"]) == sorted(PEOPLE.columns)


def test_who_declared_the_facts_comes_and_goes_with_them(teaching: Session) -> None:
    sign(teaching, "  Ada, steward ")
    assert teaching.schema is not None
    assert teaching.schema.declared_by == "Ada, steward"
    declare_all_public(teaching, public=True)
    assert teaching.schema.declared_by == "Ada, steward"
    saved = teaching.schema.to_json().encode()
    sign(teaching, "Bob")
    load_schema(teaching, saved)
    assert teaching.work.declared_by == teaching.schema.declared_by == "Ada, steward"
    # The file's facts were not declared by whoever stood there before.
    load_schema(teaching, teaching.schema.unsigned().to_json().encode())
    assert teaching.work.declared_by == ""
    sign(teaching, "Ada")
    load_example(teaching, "wine")
    assert teaching.work.declared_by == ""


def test_a_name_from_a_file_stands_only_for_the_facts_it_came_with(teaching: Session) -> None:
    declare_all_public(teaching, public=True)
    sign(teaching, "Ada, steward")
    assert teaching.schema is not None
    saved = teaching.schema.to_json().encode()
    load_schema(teaching, saved)
    edit_draft(teaching, teaching.work.draft)
    assert teaching.schema.declared_by == "Ada, steward"
    declare_all_public(teaching, public=False)
    assert teaching.work.declared_by == teaching.schema.declared_by == ""
    assert teaching.work.signature_lapsed
    # Nor does it come back with the old facts.
    declare_all_public(teaching, public=True)
    assert teaching.work.declared_by == ""
    sign(teaching, "Bob")
    declare_all_public(teaching, public=False)
    assert teaching.schema.declared_by == "Bob"
    assert not teaching.work.signature_lapsed


def test_a_schema_with_a_foreign_column_is_refused(teaching: Session) -> None:
    before = teaching.work.draft
    with pytest.raises(DPSynthError, match="column 'diagnosis' that this table does not have"):
        load_schema(teaching, EXAMPLES["breast_cancer"].schema.to_json().encode())
    assert teaching.work.draft is before


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"columns": [1]}', b'{"columns": []}'])
def test_a_file_that_is_no_schema_is_refused_in_words(teaching: Session, text: bytes) -> None:
    before = teaching.work.draft
    with pytest.raises(SchemaError):
        load_schema(teaching, text)
    assert teaching.work.draft is before


def test_a_saved_schema_cannot_change_an_accounts_unit(release: Session) -> None:
    assert release.schema is not None
    saved = release.schema.to_json().replace('"rows_per_person": 1', '"rows_per_person": 9').encode()
    load_schema(release, saved)
    assert release.work.rows_per_person == 1
    assert release.schema.rows_per_person == 1


def test_the_table_is_encoded_anew_only_when_the_schema_changes(teaching: Session) -> None:
    first = teaching.work.private
    assert teaching.work.private is first
    declare_all_public(teaching, public=True)
    assert teaching.work.private is not first
