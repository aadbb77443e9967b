"""Reviewing a release and deciding on it, without a widget in sight."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.review import (
    Bundle,
    Checklist,
    Decision,
    Docket,
    Evidence,
    Publication,
    approval,
    checklist,
    decide,
    release_bundle,
    release_digest,
    review_report,
)
from dpsynth_core.review.decision import Choice
from dpsynth_core.review.evidence import EvidenceRequest, gather
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.runs.jobs import on_private_table
from dpsynth_core.table.private_table import PrivateTable
from pages.shared.data.actions import account_of
from pages.shared.diagnostics.actions import configured
from pages.shared.session import Session
from pages.shared.synthesize.actions import cancel, runner


def _data_set(session: Session) -> tuple[str | None, int]:
    """The account's name, and the rows of the original."""
    if session.data is None:
        raise DPSynthError("There is no table. Choose one on the Data page.")
    return session.data.fingerprint, len(session.data.table)


def checks(session: Session, place: int, account: Account | None = None) -> Checklist:
    """The checklist of a release, as far as evidence has been gathered."""
    account = account or account_of(session)
    number = session.paid.get(place)
    charge = next((entry for entry in account.entries if entry.id == number), None) if account else None
    return checklist(
        _signed(session, place), _data_set(session)[1], session.thresholds, evidence=session.evidence.get(place),
        account=account, charge=charge, public=session.mode == "teaching",
    )  # fmt: skip


def _signed(session: Session, place: int) -> RunResult:
    """A release with the name of who declared its facts: if nobody was named then, whoever answers for them now.

    Naming somebody must not need another run, which would cost epsilon; it counts only for the very same facts.
    """
    outcome = session.outcomes[place]
    if outcome.schema.declared_by or session.schema is None or session.schema != outcome.schema:
        return outcome
    return replace(outcome, schema=session.schema)


def search(session: Session, place: int) -> None:
    """Hand the gathering of evidence to a worker; it spends nothing, because its result never leaves the session."""
    if session.data is None:
        raise DPSynthError("There is no table. Choose one on the Data page.")
    if session.search is not None and session.search.active:
        cancel(session.search)
    outcome = session.outcomes[place]
    wanted = EvidenceRequest(
        outcome=outcome, diagnostics=configured(outcome), evaluation=session.found.get((place, outcome.schema.names))
    )
    session.searched = place
    session.search = runner().submit("Review", on_private_table, gather, session.data.table, outcome.schema, wanted)


def collect_search(session: Session) -> None:
    """Keep evidence that has arrived, for the Diagnostics page too; and see that the next decision has a ticket."""
    session.ticket = session.ticket or uuid.uuid4().hex
    job, place = session.search, session.searched
    if job is not None and place is not None and isinstance(job.result, Evidence):
        session.evidence[place] = job.result
        session.found.setdefault((place, session.outcomes[place].schema.names), job.result.evaluation)
        job.result = None


def bundle_of(session: Session, place: int, said: Publication | None = None) -> Bundle:
    """The release bundle with the words as they stand, or with those that were approved."""
    words = said or publication(session)
    kept = session.bundles.get(place)
    if kept is None or kept[0] != words:
        kept = words, release_bundle(session.outcomes[place], words)
        session.bundles[place] = kept
    return kept[1]


def publication(session: Session) -> Publication:
    """What would be said about the table if it were published today."""
    return replace(session.said, original_rows=_data_set(session)[1], published=datetime.now(UTC).date())


def digest_of(session: Session, place: int) -> str:
    """SHA-256 of a release, worked out once."""
    if place not in session.digests:
        session.digests[place] = release_digest(session.outcomes[place])
    return session.digests[place]


def docket() -> Docket:
    """This installation's decisions."""
    return Docket(Settings.from_environment().ledger_url)


def history(session: Session) -> tuple[Decision, ...]:
    """Every decision on releases of this data set, oldest first; in teaching mode, those of this session."""
    name, _ = _data_set(session)
    return tuple(session.decisions) if name is None or account_of(session) is None else docket().history(name)


def last_decision(session: Session, place: int, decisions: tuple[Decision, ...]) -> Decision | None:
    """The decision that stands for a release, if any, out of the data set's."""
    about = digest_of(session, place)
    return next((decision for decision in reversed(decisions) if decision.release == about), None)


def standing(session: Session, place: int, decisions: tuple[Decision, ...]) -> Decision | None:
    """The approval that stands for a release, if any, out of the data set's decisions."""
    return approval(decisions, digest_of(session, place))


def record(session: Session, place: int, choice: Choice, *, reviewer: str, note: str) -> Decision:
    """Record a decision; in release mode in the ledger's database, for good. The same ticket is recorded once."""
    bundle = bundle_of(session, place) if choice == "approve" else None
    decision = decide(
        checks(session, place), choice, reviewer=reviewer, note=note, thresholds=session.thresholds,
        release=digest_of(session, place), bundle=bundle.sha256 if bundle else "",
        publication=publication(session) if bundle else None,
    )  # fmt: skip
    name, _ = _data_set(session)
    if name is None:
        session.decisions.append(decision)
    else:
        docket().record(name, decision, ticket=session.ticket or uuid.uuid4().hex)
    session.ticket = uuid.uuid4().hex
    return decision


def approved_archive(session: Session, place: int, decision: Decision) -> bytes:
    """The archive that was approved, byte for byte; refused where it can no longer be made."""
    bundle = bundle_of(session, place, decision.publication)
    if bundle.sha256 != decision.bundle:
        raise DPSynthError(
            "The archive is no longer the one that was approved: the program that packs it has changed. Review the "
            "release and decide again."
        )
    return bundle.archive


def report_of(session: Session, place: int) -> Callable[[], bytes]:
    """Writes the internal review report when it is asked for."""

    def write() -> bytes:
        outcome, evidence = _signed(session, place), session.evidence[place]
        if session.data is None:
            raise DPSynthError("There is no table. Choose one on the Data page.")
        # With the facts of the release: those on the Data page may have changed since.
        private = PrivateTable(session.data.table, outcome.schema)
        account, about = account_of(session), digest_of(session, place)
        decisions = tuple(decision for decision in history(session) if decision.release == about)
        return review_report(
            private, outcome.tables[0], evidence.evaluation, outcome=outcome, account=account,
            decision=decisions[-1] if decisions else None, checks=checks(session, place), earlier=decisions[:-1],
        )  # fmt: skip

    return write


def outcome_words(outcome: RunResult) -> str:
    """What is under review, in a line."""
    rows = " + ".join(f"{len(table):,}" for table in outcome.tables)
    return f"{rows} synthetic rows, {len(outcome.schema.names)} columns, by {outcome.config.mechanism.title}"
