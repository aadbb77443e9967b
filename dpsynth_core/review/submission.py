"""Handing in a release for review, and reviewing what others have handed in.

What is handed in is everything that a decision needs: the release as it is stored, the bundle as it would leave, the
checklist with its thresholds, and the internal report. The evidence is private and stays beside the ledger. The bundle
that is approved is the one that was submitted, byte for byte, so any later version can hand it out.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any, Literal

from dpsynth_core.errors import DPSynthError, LedgerError
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.decisions import DecisionStore
from dpsynth_core.ledger.declarations import DeclarationStore
from dpsynth_core.ledger.ledger import Ledger
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.submissions import Submission, SubmissionStore
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.bundle import release_bundle, release_digest
from dpsynth_core.review.checklist import Checklist, ChecklistItem
from dpsynth_core.review.decision import Choice, Decision, decide
from dpsynth_core.review.privacy_checks import privacy_checks
from dpsynth_core.review.publication import PRIVATE_DIAGNOSTICS, PUBLIC_FACTS, ChosenBy, Publication
from dpsynth_core.review.thresholds import Thresholds
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.runs.stored_run import load_release
from dpsynth_core.table.json_text import read_json
from dpsynth_core.table.schema import Schema

MAX_MESSAGE = 2_000
"""Characters of what an analyst writes to the reviewers."""
_CASE, _REPORT = "case.json", "report.html"
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class ReviewCase:
    """A submission with everything that was handed in. Private: for internal review."""

    submission: Submission
    outcome: RunResult
    """The release as it is stored, with the private tests that would be published with it."""
    publication: Publication
    thresholds: Thresholds
    submitted: Checklist
    """As the analyst saw it."""
    message: str
    report: bytes | None
    """The internal report as an HTML page; None where the review is on public facts only."""
    releasable: Literal[False] = False

    def checks(self, account: Account) -> Checklist:
        """The checklist now: what is claimed about privacy is checked anew, with what was charged since."""
        charge = next((entry for entry in account.entries if entry.id == self.submission.charge), None)
        rows = self.publication.original_rows or 1
        privacy = privacy_checks(self.outcome, rows, self.thresholds, account, charge, public=False)
        rest = tuple(check for check in self.submitted.checks if check.group != "Privacy")
        return replace(self.submitted, checks=(*privacy, *rest))


def submit(
    ledger: Ledger,
    settings: Settings,
    fingerprint: str,
    charge: int,
    *,
    checks: Checklist,
    thresholds: Thresholds,
    publication: Publication,
    ticket: str,
    report: bytes | None = None,
    comparisons: Iterable[PaidComparison] = (),
    declared_by: str = "",
    message: str = "",
) -> Submission:
    """Hand in a stored release for review.

    Args:
        ledger: Of whoever submits it.
        settings: Where files are stored.
        fingerprint: Of the data set.
        charge: The ledger's number of the charge that paid for the release.
        checks: Its checklist, with all evidence.
        thresholds: What was asked.
        publication: What the bundle is to say. It cannot name the day of its publication, which is still to come.
        ticket: It is handed in once.
        report: The internal review report.
        comparisons: Private tests that are to be published with it.
        declared_by: Who answers for the public facts where the ledger does not say.
        message: To the reviewers.

    Raises:
        DPSynthError: It is not stored, not private, or evidence is missing.
    """
    if checks.final or checks.of("open"):
        raise DPSynthError(f"This cannot be submitted. {checks.answer}")
    if len(message) > MAX_MESSAGE:
        raise DPSynthError(f"The message is too long: up to {MAX_MESSAGE:,} characters are allowed.")
    publication, tests = replace(publication, published=None), tuple(comparisons)
    account = _account(ledger, fingerprint)
    outcome = _outcome(account, charge, settings, tests, declared_by)
    declared_by = _declarer(ledger, account.fingerprint, outcome.schema) or declared_by
    outcome = replace(outcome, schema=replace(outcome.schema, declared_by=declared_by))
    bundle = release_bundle(outcome, publication)
    case = {
        "checks": [asdict(check) for check in checks.checks],
        "public_only": checks.public_only,
        "unanswered": list(checks.unanswered),
        "thresholds": thresholds.to_dict(),
        "publication": asdict(publication),
        "comparisons": [test.to_dict() for test in tests],
        "declared_by": declared_by,
        "message": message,
    }
    guarantee = outcome.guarantee
    made = Submission(
        fingerprint=fingerprint,
        charge=charge,
        release=release_digest(outcome),
        bundle=settings.release_store.put(bundle.archive),
        evidence=settings.evidence_store.put(_packed(case, report)),
        details={
            "title": publication.title,
            "mechanism": outcome.config.mechanism.title,
            "epsilon": format_amount(guarantee.epsilon),
            "delta": format_amount(guarantee.delta),
            "status": guarantee.status,
            "rows": [len(table) for table in outcome.tables],
            "columns": len(outcome.schema.names),
        },
    )
    return SubmissionStore(ledger).record(made, ticket=ticket)


def open_case(ledger: Ledger, settings: Settings, submission: Submission) -> ReviewCase:
    """What was handed in, for somebody who may review it or has submitted it.

    Raises:
        DPSynthError: A file is missing or was changed, or this version does not understand it.
    """
    if ledger.by.subject != submission.by.subject or not ledger.by.signed_in:
        ledger.by.require("reviewer", action="look at what others have submitted")
    content = settings.evidence_store.get(submission.evidence)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            case = read_json(archive.read(_CASE))
            report = archive.read(_REPORT) if _REPORT in archive.namelist() else None
        tests = tuple(PaidComparison.from_dict(test) for test in case["comparisons"])
        account = _account(ledger, submission.fingerprint)
        return ReviewCase(
            submission=submission,
            outcome=_outcome(account, submission.charge, settings, tests, case["declared_by"]),
            publication=_publication(case["publication"]),
            thresholds=Thresholds.from_dict(case["thresholds"]),
            submitted=Checklist(
                checks=tuple(_item(check) for check in case["checks"]),
                public_only=bool(case["public_only"]),
                unanswered=tuple(case["unanswered"]),
            ),
            message=str(case["message"]),
            report=report,
        )
    except (ValueError, TypeError, KeyError, zipfile.BadZipFile) as error:
        raise DPSynthError(
            f"This submission was written by another version of the program ({type(error).__name__}). Ask for it to be "
            "submitted again."
        ) from error


def decide_case(
    ledger: Ledger, settings: Settings, case: ReviewCase, choice: Choice, *, note: str, ticket: str, after: int
) -> Decision:
    """Record a decision on a submission, by whoever the ledger is opened for.

    Args:
        ledger: Of the reviewer.
        settings: Where files are stored.
        case: What was submitted.
        choice: Approve, or hold.
        note: Why.
        ticket: It is recorded once.
        after: Number of the latest decision on this release that the reviewer has seen; 0 for none.
    """
    submission, store = case.submission, DecisionStore(ledger)
    account = _account(ledger, submission.fingerprint)
    if choice == "approve":
        settings.release_store.get(submission.bundle)  # what cannot be handed out is not approved
        if case.publication.chosen_from != releases_made(account):
            raise DPSynthError(
                "More releases of this table were made since this one was submitted, and its data card says how many "
                "it was chosen from. Ask for it to be submitted again."
            )
    decision = decide(
        case.checks(account),
        choice,
        reviewer=str(ledger.by),
        note=note,
        thresholds=case.thresholds,
        release=submission.release,
        bundle=submission.bundle,
        publication=case.publication,
        chosen_by=chosen_by(store, submission.fingerprint),
    )
    store.record(submission.fingerprint, decision.to_row(), ticket=ticket, after=after)
    return decision


@dataclass(frozen=True, kw_only=True)
class ApprovedBundle:
    """A bundle that may leave the building, as everybody may know it."""

    fingerprint: str
    title: str
    decision: Decision

    @property
    def file_name(self) -> str:
        """Under which it is handed out."""
        return f"approved_{self.decision.release[:12]}.zip"


def approved_bundles(ledger: Ledger) -> tuple[ApprovedBundle, ...]:
    """Every release whose latest decision is an approval, newest first."""
    latest = DecisionStore(ledger).latest()
    made = [(fingerprint, Decision.from_row(row)) for (fingerprint, _), row in latest.items()]
    found = [
        ApprovedBundle(fingerprint=fingerprint, title=decision.publication.title, decision=decision)
        for fingerprint, decision in made
        if decision.choice == "approve" and decision.publication is not None
    ]
    return tuple(sorted(found, key=lambda each: each.decision.decided, reverse=True))


def approved_bytes(ledger: Ledger, settings: Settings, bundle: str) -> bytes:
    """The approved archive with this SHA-256, exactly as it was approved, whatever made it; refused once withdrawn."""
    ledger.by.require("reader", "reviewer", "analyst", "steward", action="download an approved bundle")
    if bundle not in {each.decision.bundle for each in approved_bundles(ledger)}:
        raise LedgerError("A reviewer has withdrawn the approval. Ask the reviewer, or see the Release page.")
    return settings.release_store.get(bundle)


def chosen_by(store: DecisionStore, fingerprint: str) -> ChosenBy:
    """What a decision made now could rest on: what anybody has seen of this data set."""
    history = (Decision.from_row(row) for row in store.history(fingerprint))
    seen = store.looked(fingerprint) or any(decision.chosen_by == PRIVATE_DIAGNOSTICS for decision in history)
    return PRIVATE_DIAGNOSTICS if seen else PUBLIC_FACTS


def releases_made(account: Account | None) -> int:
    """How many releases of a data set there are to choose from."""
    entries = () if account is None else account.entries
    return max(1, sum(entry.state == "committed" and "mechanism" in entry.details for entry in entries))


def _account(ledger: Ledger, fingerprint: str) -> Account:
    account = ledger.account(fingerprint)
    if account is None:
        raise LedgerError("This data set has no account. Open one with its total budget first.")
    return account


def _outcome(
    account: Account, charge: int, settings: Settings, tests: tuple[PaidComparison, ...], declared_by: str
) -> RunResult:
    """The release as it is stored: not as anybody's session has it."""
    stored = next((each for each in account.releases if each.charge == charge), None)
    if stored is None:
        raise LedgerError("The ledger has no stored release for this charge. Make the table again in release mode.")
    made = load_release(stored, settings)
    made = replace(made, schema=replace(made.schema, declared_by=declared_by))
    return made.with_comparisons(tests) if tests else made


def _declarer(ledger: Ledger, fingerprint: str, schema: Schema) -> str:
    """Who has put these facts on record; empty where people do not sign in."""
    known = DeclarationStore(ledger).facts(fingerprint) if ledger.by.signed_in else None
    if known is None or not set(schema.names) <= set(known.schema.names):
        return ""
    return known.by.name if known.schema.select(schema.names) == schema.unsigned() else ""


def _packed(case: Mapping[str, Any], report: bytes | None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(_CASE, date_time=_EPOCH), json.dumps(case, allow_nan=False).encode())
        if report is not None:
            member = zipfile.ZipInfo(_REPORT, date_time=_EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, report)
    return buffer.getvalue()


def _item(saved: Mapping[str, Any]) -> ChecklistItem:
    return ChecklistItem(**{**saved, "details": tuple(saved["details"])})


def _publication(saved: Mapping[str, Any]) -> Publication:
    published = saved.get("published")
    return Publication(**{**saved, "published": None if published is None else date.fromisoformat(published)})
