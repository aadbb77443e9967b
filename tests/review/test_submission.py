"""Nobody approves their own work, what was approved is kept, and what was submitted cannot be changed."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dpsynth_core.errors import DPSynthError, LedgerError, RoleError
from dpsynth_core.ledger.decisions import DecisionStore
from dpsynth_core.ledger.declarations import DeclarationStore
from dpsynth_core.ledger.ledger import installed_ledger
from dpsynth_core.ledger.people import NOBODY, ONE_PERSON, ROLES, Person, Role, at_the_shell
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.submissions import Submission, SubmissionStore
from dpsynth_core.privacy.budget import Budget
from dpsynth_core.review import Decision, Publication, Thresholds, checklist, decide
from dpsynth_core.review.decision import Choice
from dpsynth_core.review.submission import (
    approved_bundles,
    approved_bytes,
    chosen_by,
    decide_case,
    open_case,
    releases_made,
    submit,
)
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.runs.stored_run import StoreOrder, store_release
from tests.tables.releases import mixed_outcome

TABLE = "table"
N = 300


def person(subject: str, *roles: Role, name: str = "") -> Person:
    return Person(subject=f"https://id.example.org {subject}", name=name or subject, roles=frozenset(roles))


STEWARD = person("sue", "steward")
ANA = person("ana", "analyst", "reviewer")
"""Who may review the work of others, but not her own."""
REVIEWER = person("rob", "reviewer")
READER = person("rea", "reader")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("DPSYNTH_HOME", str(tmp_path / "home"))
    return Settings.from_environment()


@cache
def outcome() -> RunResult:
    return mixed_outcome()


def made(settings: Settings, by: Person = ANA, *, opened_by: Person = STEWARD) -> int:
    """A stored release of somebody; its charge."""
    installed_ledger(settings, by=opened_by).open_account(TABLE, total=Budget.of(10), label="Survey")
    details = {"mechanism": "kd_tree"}
    charge = installed_ledger(settings, by=by).reserve(TABLE, Budget.of(1), purpose="Synthesize", details=details)
    store_release(outcome(), StoreOrder(settings=settings, charge=charge.id))
    return charge.id


def submitted(
    settings: Settings, charge: int, by: Person = ANA, *, title: str = "Clinic", ticket: str = "t"
) -> Submission:
    ledger = installed_ledger(settings, by=by)
    account = ledger.account(TABLE)
    assert account is not None
    entry = next(entry for entry in account.entries if entry.id == charge)
    thresholds = Thresholds(epsilon="20")
    return submit(
        ledger,
        settings,
        TABLE,
        charge,
        checks=checklist(outcome(), N, thresholds, account=account, charge=entry, public_only=True),
        thresholds=thresholds,
        publication=Publication(
            title=title,
            original_rows=N,
            chosen_by=chosen_by(DecisionStore(ledger), TABLE),
            chosen_from=releases_made(account),
        ),
        ticket=ticket,
        report=b"<html>private</html>",
        message="Please look",
    )


def decided(settings: Settings, one: Submission, by: Person, choice: Choice = "approve", **how: Any) -> Decision:
    ledger = installed_ledger(settings, by=by)
    ticket, after = how.pop("ticket", f"{by.subject} {choice}"), how.pop("after", 0)
    return decide_case(
        ledger, settings, open_case(ledger, settings, one), choice, note="fine", ticket=ticket, after=after
    )


def history(settings: Settings) -> list[Decision]:
    return [Decision.from_row(row) for row in DecisionStore(installed_ledger(settings)).history(TABLE)]


def test_a_submission_comes_back_as_it_was_handed_in_and_its_evidence_stays_private(settings: Settings) -> None:
    one = submitted(settings, made(settings))
    ledger = installed_ledger(settings, by=REVIEWER)
    assert SubmissionStore(ledger).all() == (one,)
    case = open_case(ledger, settings, one)
    assert (case.report, case.message, case.publication.title) == (b"<html>private</html>", "Please look", "Clinic")
    account = ledger.account(TABLE)
    assert account is not None
    assert case.checks(account).checks[1:] == case.submitted.checks[1:]
    assert case.outcome.guarantee == outcome().guarantee
    (evidence,) = settings.evidence_store.folder.iterdir()
    assert evidence.name == f"{one.evidence}.evidence"
    assert evidence.stat().st_mode & 0o777 == 0o600
    assert b"private</html>" not in b"".join(file.read_bytes() for file in settings.release_store.folder.iterdir())
    assert submitted(settings, one.charge).number == one.number, "the same ticket hands it in once"


def test_whoever_made_or_submitted_a_release_cannot_approve_it(settings: Settings) -> None:
    charge = made(settings, ANA)
    colleague = person("bob", "analyst", "reviewer")
    one = submitted(settings, charge, colleague)
    for own in (ANA, colleague, replace(ANA, name="Somebody else entirely"), replace(ANA, roles=frozenset(ROLES))):
        with pytest.raises(RoleError, match="somebody else must approve"):
            decided(settings, one, own)
    assert history(settings) == []
    decided(settings, one, ANA, "hold")  # whoever made it may take it back
    decided(settings, one, REVIEWER, after=history(settings)[-1].number)
    held, approved = history(settings)
    assert (held.two_people, held.people) == (False, "")
    assert approved.two_people
    assert "was in force: whoever approved" in approved.people
    assert (approved.reviewer, approved.by.subject) == ("rob", REVIEWER.subject)


def test_submitting_the_same_rows_with_other_words_makes_nobody_else_the_submitter(settings: Settings) -> None:
    charge = made(settings, STEWARD, opened_by=STEWARD)
    first = person("ann", "analyst", "reviewer")
    submitted(settings, charge, first)
    again = submitted(settings, charge, person("zoe", "analyst"), title="Other words", ticket="2")
    with pytest.raises(RoleError, match="somebody else must approve"):
        decided(settings, again, first)


def test_an_approval_needs_a_submission_of_this_very_bundle(settings: Settings) -> None:
    one = submitted(settings, made(settings))
    ledger = installed_ledger(settings, by=REVIEWER)
    case = open_case(ledger, settings, one)
    other = replace(case, submission=replace(one, bundle=settings.release_store.put(b"another archive")))
    with pytest.raises(LedgerError, match="Nobody has submitted this very bundle"):
        decide_case(ledger, settings, other, "approve", note="", ticket="x", after=0)


@pytest.mark.parametrize(
    ("by", "what"), [(READER, "look at"), (person("sam", "analyst"), "look at"), (NOBODY, "look at")]
)
def test_only_reviewers_look_at_what_others_submitted(settings: Settings, by: Person, what: str) -> None:
    one = submitted(settings, made(settings))
    with pytest.raises(RoleError, match=what):
        decided(settings, one, by)


@pytest.mark.parametrize("by", [REVIEWER, READER, person("eve")])
def test_roles_decide_who_opens_accounts_and_who_spends(settings: Settings, by: Person) -> None:
    made(settings)
    with pytest.raises(RoleError, match="open an account"):
        installed_ledger(settings, by=by).open_account("another", total=Budget.of(1))
    with pytest.raises(RoleError, match="spend"):
        installed_ledger(settings, by=by).reserve(TABLE, Budget.of(1), purpose="run")
    with pytest.raises(RoleError, match="submit"):
        SubmissionStore(installed_ledger(settings, by=by)).record(
            Submission(fingerprint=TABLE, charge=1, release="r", bundle="b", evidence="e"), ticket="t"
        )
    ledger = installed_ledger(settings)
    ledger.check()
    assert ledger.account("another") is None


def test_every_charge_and_account_records_who(settings: Settings) -> None:
    made(settings)
    account = installed_ledger(settings).account(TABLE)
    assert account is not None
    assert [entry.by for entry in account.entries] == [replace(ANA, roles=frozenset())]
    with sqlite3.connect(settings.home / "ledger.db") as connection:
        rows = connection.execute("SELECT kind, subject FROM dpsynth_declarations ORDER BY id").fetchall()
    assert rows == [("sign-in", STEWARD.subject), ("account", STEWARD.subject)]


def test_once_people_sign_in_nobody_acts_without(settings: Settings) -> None:
    """Somebody who removes the settings of sign-in does not become everybody."""
    one = submitted(settings, made(settings))
    anonymous = installed_ledger(settings, by=ONE_PERSON)
    with pytest.raises(RoleError, match="nobody has signed in"):
        anonymous.reserve(TABLE, Budget.of(1), purpose="run")
    with pytest.raises(RoleError, match="nobody has signed in"):
        anonymous.open_account("another", total=Budget.of(1))
    with pytest.raises(RoleError, match="nobody has signed in"):
        decided(settings, one, ONE_PERSON)
    charge = installed_ledger(settings, by=at_the_shell()).reserve(TABLE, Budget.of(1), purpose="run")
    assert "command line" in str(charge.entry.by)


def test_without_sign_in_one_person_does_everything_and_the_decision_says_so(settings: Settings) -> None:
    charge = made(settings, ONE_PERSON, opened_by=ONE_PERSON)
    ledger = installed_ledger(settings)
    account = ledger.account(TABLE)
    assert account is not None
    said = Publication(title="Clinic", chosen_by="public facts only")
    decision = decide(
        checklist(outcome(), N, Thresholds(), account=account, charge=account.entries[charge - 1], public_only=True),
        "approve",
        reviewer="Ada",
        note="",
        thresholds=Thresholds(),
        release="r",
        bundle=settings.release_store.put(b"archive"),
        publication=said,
        chosen_by="public facts only",
    )
    DecisionStore(ledger).record(TABLE, decision.to_row(), ticket="1")
    (found,) = history(settings)
    assert (found.reviewer, found.two_people) == ("Ada", False)
    assert "not in force" in found.people


def test_a_release_from_before_sign_in_says_that_its_maker_is_not_on_record(settings: Settings) -> None:
    charge = made(settings, ONE_PERSON, opened_by=ONE_PERSON)
    one = submitted(settings, charge)
    decided(settings, one, REVIEWER)
    (found,) = history(settings)
    assert not found.two_people
    assert "who made this release is not on record" in found.people


def test_of_two_decisions_at_once_the_second_must_look_again(settings: Settings) -> None:
    one = submitted(settings, made(settings))
    done, refused = [], []

    def decide_as(by: Person, choice: Choice) -> None:
        try:
            done.append(decided(settings, one, by, choice))
        except LedgerError as error:
            refused.append(str(error))

    people = [(person(f"reviewer {i}", "reviewer"), ("approve", "hold")[i % 2]) for i in range(6)]
    threads = [threading.Thread(target=decide_as, args=each) for each in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(done), len(refused)) == (1, 5)
    assert all("decided on this release meanwhile" in text for text in refused)
    assert len(history(settings)) == 1


def test_approved_bytes_are_kept_and_handed_out_until_they_are_withdrawn(settings: Settings) -> None:
    one = submitted(settings, made(settings))
    reading = installed_ledger(settings, by=READER)
    assert approved_bundles(reading) == ()
    with pytest.raises(LedgerError, match="withdrawn"):
        approved_bytes(reading, settings, one.bundle)
    decided(settings, one, REVIEWER)
    (approved,) = approved_bundles(reading)
    assert (approved.title, approved.decision.bundle) == ("Clinic", one.bundle)
    archive = approved_bytes(reading, settings, one.bundle)
    # Nothing is packed anew: the run's own file is not needed any more.
    account = reading.account(TABLE)
    assert account is not None
    (settings.release_store.folder / f"{account.releases[0].sha256}.release").unlink()
    assert approved_bytes(reading, settings, one.bundle) == archive
    with pytest.raises(RoleError, match="download"):
        approved_bytes(installed_ledger(settings, by=NOBODY), settings, one.bundle)
    for file in settings.release_store.folder.iterdir():
        file.write_bytes(b"something else")
    with pytest.raises(LedgerError, match="was changed"):
        approved_bytes(reading, settings, one.bundle)


def test_a_later_hold_withdraws_an_approved_bundle(settings: Settings) -> None:
    one = submitted(settings, made(settings))
    decided(settings, one, REVIEWER)
    decided(settings, one, REVIEWER, "hold", after=history(settings)[-1].number)
    with pytest.raises(LedgerError, match="withdrawn"):
        approved_bytes(installed_ledger(settings, by=READER), settings, one.bundle)


def test_what_was_chosen_from_must_still_be_true(settings: Settings) -> None:
    one = submitted(settings, made(settings))
    made(settings)
    with pytest.raises(DPSynthError, match="More releases"):
        decided(settings, one, REVIEWER)
    decided(settings, one, REVIEWER, "hold")


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE dpsynth_submissions SET subject = 'https://id.example.org nobody'",
        "UPDATE dpsynth_submissions SET bundle = evidence",
        "UPDATE dpsynth_submissions SET charge = 1, details = '{}'",
        "DELETE FROM dpsynth_submissions",
        "UPDATE dpsynth_declarations SET subject = ''",
        "UPDATE dpsynth_decisions SET details = replace(details, 'false', 'true')",
        "INSERT INTO dpsynth_declarations SELECT 99, fingerprint, 'facts', about, details, subject, name, declared "
        "FROM dpsynth_declarations LIMIT 1",
    ],
)
def test_an_edited_row_is_noticed(settings: Settings, edit: str) -> None:
    one = submitted(settings, made(settings))
    decided(settings, one, REVIEWER, "hold")
    connection = sqlite3.connect(settings.home / "ledger.db")
    with connection:
        connection.execute(edit)
    connection.close()
    ledger = installed_ledger(settings)
    for read in (SubmissionStore(ledger).all, ledger.check):
        with pytest.raises(LedgerError, match=r"changed|missing|nobody has entered"):
            read()


def test_a_release_with_missing_evidence_cannot_be_submitted(settings: Settings) -> None:
    ledger = installed_ledger(settings, by=ANA)
    charge = made(settings)
    account = ledger.account(TABLE)
    checks = checklist(outcome(), N, Thresholds(epsilon="20"), account=account, charge=account and account.entries[0])
    with pytest.raises(DPSynthError, match="Evidence is missing"):
        submit(
            ledger,
            settings,
            TABLE,
            charge,
            checks=checks,
            thresholds=Thresholds(),
            publication=Publication(),
            ticket="t",
        )


def test_reviewers_are_told_which_steward_has_declared_the_facts(settings: Settings) -> None:
    """Not what the analyst typed: the ledger knows."""
    charge = made(settings)
    DeclarationStore(installed_ledger(settings, by=STEWARD)).declare_facts(TABLE, outcome().schema)
    one = submitted(settings, charge)
    case = open_case(installed_ledger(settings, by=REVIEWER), settings, one)
    assert case.outcome.schema.declared_by == "sue"
    other = replace(outcome().schema, rows_per_person=3)
    DeclarationStore(installed_ledger(settings, by=STEWARD)).declare_facts(TABLE, other)
    later = submitted(settings, charge, title="Clinic, again", ticket="u")
    case = open_case(installed_ledger(settings, by=REVIEWER), settings, later)
    assert case.outcome.schema.declared_by == "", "these are not the facts on record any more"


def test_analysts_use_the_facts_that_a_steward_has_declared(settings: Settings) -> None:
    made(settings)
    schema = outcome().schema
    mine = DeclarationStore(installed_ledger(settings, by=ANA))
    with pytest.raises(RoleError, match="No steward has declared"):
        mine.check_facts(TABLE, schema)
    with pytest.raises(RoleError, match="declare public facts"):
        mine.declare_facts(TABLE, schema)
    theirs = DeclarationStore(installed_ledger(settings, by=STEWARD))
    theirs.check_facts(TABLE, schema)  # spending on them declares them
    theirs.declare_facts(TABLE, schema)
    mine.check_facts(TABLE, schema)
    mine.check_facts(TABLE, schema.select(schema.names[:2]))
    with pytest.raises(RoleError, match="not the ones"):
        mine.check_facts(TABLE, replace(schema, rows_per_person=2))
    known = mine.facts(TABLE)
    assert known is not None
    assert (known.schema, known.by.subject) == (schema, STEWARD.subject)
    DeclarationStore(installed_ledger(settings)).check_facts(TABLE, schema.select(schema.names[:1]))  # without sign-in
