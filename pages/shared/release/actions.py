"""What the Release page does: gather evidence, pack the bundle, record decisions."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from dpsynth_core.diagnostics.mann_whitney import default_pair
from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.paid_comparison import PaidComparison
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.submissions import Submission
from dpsynth_core.review import (
    Bundle,
    Checklist,
    Decision,
    Evidence,
    Publication,
    approval,
    checklist,
    decide,
    release_bundle,
    review_report,
)
from dpsynth_core.review.decision import Choice
from dpsynth_core.review.evidence import EvidenceRequest, gather
from dpsynth_core.review.publication import PRIVATE_DIAGNOSTICS, PUBLIC_FACTS, ChosenBy
from dpsynth_core.review.report import ReviewSubject
from dpsynth_core.review.submission import chosen_by as chosen_by_others
from dpsynth_core.review.submission import releases_made as count_releases
from dpsynth_core.review.submission import submit
from dpsynth_core.runs.configuration import RunResult
from dpsynth_core.runs.jobs import on_private_table
from pages.shared.accounts import account_of, decision_store, open_ledger, remember_look
from pages.shared.comparison.actions import results
from pages.shared.diagnostics.actions import configured, target_of
from pages.shared.session import Session
from pages.shared.sign_in import visitor
from pages.shared.table_work import RunRecord, TableWork
from pages.shared.tasks import Task

EVIDENCE = "evidence"


def checks(session: Session, run: RunRecord, account: Account | None = None) -> Checklist:
    """The checklist of a release, as far as evidence has been gathered."""
    account = account or account_of(session)
    charge = next((entry for entry in account.entries if entry.id == run.charge), None) if account else None
    return checklist(
        _signed(session, run),
        session.work.n,
        session.thresholds,
        evidence=known_evidence(run),
        account=account,
        charge=charge,
        public=session.mode == "teaching",
        public_only=session.work.public_review,
    )


def _signed(session: Session, run: RunRecord) -> RunResult:
    """A release with the name of whoever declared its facts: if nobody was named then, whoever declares them now.

    Naming somebody must not need another run, which would cost epsilon; it counts only for the very same facts.
    """
    if run.result.schema.declared_by or session.schema is None or session.schema != run.result.schema:
        return run.outcome
    return replace(run.outcome, schema=session.schema)


def known_evidence(run: RunRecord) -> Evidence | None:
    """What is known about a release: what was gathered for a review, and what Diagnostics has found, computed once."""
    evaluation, evidence = run.evaluations.get(run.result.schema.names), run.evidence
    if evidence is None:
        if evaluation is None:
            return None
        return Evidence(evaluation=evaluation, nearest=None, discoveries=None, pair=None, complete=False)
    # Diagnostics may have refined the risk since: both pages show the finer figure.
    risk = None if evidence.pair is None else run.risks.get((*evidence.pair, None))
    if risk is not None and (evidence.discoveries is None or risk.simulations >= evidence.discoveries.simulations):
        evidence = replace(evidence, discoveries=risk)
    return evidence if evaluation is None else replace(evidence, evaluation=evaluation)


def gather_evidence(work: TableWork, run: RunRecord) -> Task:
    """Gather evidence in a worker; it spends nothing, because its result never leaves the session."""
    if work.public_review:
        raise DPSynthError("This review is on public facts only. Switch that off before you gather private evidence.")
    result, names = run.result, run.result.schema.names
    pair = default_pair(result.schema)
    known = None if pair is None else run.risks.get((*pair, None))
    search = EvidenceRequest(
        outcome=result,
        diagnostics=configured(result, target_of(work, names)),
        evaluation=run.evaluations.get(names),
        discoveries=None if known is None or known.is_rough else known,
    )

    def store(evidence: Evidence) -> None:
        run.evidence = evidence
        run.evaluations.setdefault(names, evidence.evaluation)  # the Diagnostics page needs the same
        risk, known = evidence.discoveries, None if pair is None else run.risks.get((*pair, None))
        if pair is not None and risk is not None and risk.simulations > (0 if known is None else known.simulations):
            # Diagnostics goes on from there: a review stops refining earlier, and asks for no advice.
            run.risks[(*pair, None)] = replace(risk, last=False)

    return work.tasks.start(
        EVIDENCE,
        "The search for evidence",
        on_private_table,
        gather,
        work.data.sampled(visitor()),
        result.schema,
        search,
        about=run,
        store=store,
    )


def bundle_of(work: TableWork, run: RunRecord, publication: Publication | None = None) -> Bundle:
    """The release bundle with the words as they are now, or with those that were approved."""
    words = publication or publication_now(work)
    if run.bundle is None or run.bundle[:2] != (words, run.published_tests):
        run.bundle = words, run.published_tests, release_bundle(run.outcome, words)
    return run.bundle[2]


def publishable_tests(session: Session, run: RunRecord) -> tuple[PaidComparison, ...]:
    """Private tests that can share one statement with a release: made with the same facts, and private."""
    schema = run.result.schema
    return tuple(
        test
        for test in results(session)
        if test.guarantee.status not in ("void", "none")
        and set(test.schema.names) <= set(schema.names)
        and schema.select(test.schema.names).unsigned() == test.schema
    )


def publication_now(work: TableWork) -> Publication:
    """What would be said about the table if it were published today."""
    return replace(
        work.publication,
        original_rows=work.n,
        published=datetime.now(UTC).date(),
        chosen_by=chosen_by(work),
        chosen_from=releases_made(work),
    )


def chosen_by(work: TableWork) -> ChosenBy:
    """What a decision made now could rest on: what was seen here, or by anybody of this data set before."""
    remember_look(work)
    if work.examined:
        return PRIVATE_DIAGNOSTICS
    return PUBLIC_FACTS if work.data.fingerprint is None else chosen_by_others(decision_store(), work.data.fingerprint)


def releases_made(work: TableWork) -> int:
    """How many releases of this data set there are to choose from."""
    if work.data.fingerprint is None:
        return max(1, len(work.runs))
    return count_releases(open_ledger().account(work.data.fingerprint))


def _recorded(name: str | None) -> tuple[Decision, ...]:
    """What the ledger's database holds on releases of a data set, oldest first."""
    return () if name is None else tuple(Decision.from_row(row) for row in decision_store().history(name))


def history(session: Session) -> tuple[Decision, ...]:
    """Every decision on releases of this data set, oldest first; in teaching mode, those of this session."""
    name = session.work.data.fingerprint
    if name is not None and account_of(session) is not None:
        return _recorded(name)
    return tuple(sorted((each for run in session.runs for each in run.decisions), key=lambda each: each.decided))


def last_decision(run: RunRecord, decisions: tuple[Decision, ...]) -> Decision | None:
    """The latest decision on a release, if any, out of the data set's."""
    return next((decision for decision in reversed(decisions) if decision.release == run.digest), None)


def current_approval(run: RunRecord, decisions: tuple[Decision, ...]) -> Decision | None:
    """The approval that applies to a release, if any, out of the data set's decisions."""
    return approval(decisions, run.digest)


def record(
    session: Session, run: RunRecord, choice: Choice, *, reviewer: str, note: str, after: int | None = None
) -> Decision:
    """Record a decision; in release mode in the ledger's database, for good. The same ticket is recorded once.

    Args:
        session: The visitor.
        run: The release.
        choice: Approve, or hold.
        reviewer: Who decides.
        note: Why.
        after: Number of the latest decision on it that the page has shown; None: not checked.
    """
    work = session.work
    words = publication_now(work)
    bundle = bundle_of(work, run, words) if choice == "approve" else None
    decision = decide(
        checks(session, run),
        choice,
        reviewer=reviewer,
        note=note,
        thresholds=session.thresholds,
        release=run.digest,
        bundle=bundle.sha256 if bundle else "",
        publication=words if bundle else None,
        chosen_by=words.chosen_by or PRIVATE_DIAGNOSTICS,
    )
    if work.data.fingerprint is None:
        run.decisions.append(decision)
    else:
        if bundle is not None:
            # Any later version can then hand out these very bytes.
            Settings.from_environment().release_store.put(bundle.archive)
        decision_store().record(work.data.fingerprint, decision.to_row(), ticket=work.ticket, after=after)
    work.ticket = uuid.uuid4().hex
    return decision


def approved_archive(work: TableWork, run: RunRecord, decision: Decision) -> bytes:
    """The archive that was approved, byte for byte: as it was kept, or packed again if an older version kept none."""
    store = Settings.from_environment().release_store
    if work.data.fingerprint is not None and store.has(decision.bundle):
        return store.get(decision.bundle)
    bundle = bundle_of(work, run, decision.publication)
    if bundle.sha256 != decision.bundle:
        raise DPSynthError(
            "The archive is no longer the one that was approved: the program that packs it has changed. Review the "
            "release and decide again."
        )
    return bundle.archive


def approved_file(session: Session, run: RunRecord) -> Callable[[], bytes]:
    """Hands over the approved archive, if it is still approved when it is asked for."""

    def write() -> bytes:
        approved = current_approval(run, history(session))
        if approved is None:
            raise DPSynthError("A reviewer has withdrawn the approval. Ask the reviewer, or see the Release page.")
        return approved_archive(session.work, run, approved)

    return write


def report_of(session: Session, run: RunRecord) -> Callable[[], bytes]:
    """Writes the internal review report when it is asked for."""

    def write() -> bytes:
        evidence = known_evidence(run)
        if run.evidence is None or evidence is None or session.work.public_review:
            raise DPSynthError("No evidence has been gathered yet. Gather it on the Release page.")
        result = _signed(session, run)
        decisions = tuple(decision for decision in history(session) if decision.release == run.digest)
        return review_report(
            # With the facts of the release: those on the Data page may have changed since.
            session.work.data.encoded(result.schema),
            result.tables[0],
            evidence.evaluation,
            outcome=run.outcome,
            account=account_of(session),
            decision=decisions[-1] if decisions else None,
            checks=checks(session, run),
            earlier=decisions[:-1],
            subject=ReviewSubject(
                data_set=session.work.data.title,
                fingerprint=session.work.data.fingerprint,
                release=run.digest,
                bundle=_bundle_hash(session.work, run),
            ),
        )

    return write


def _bundle_hash(work: TableWork, run: RunRecord) -> str:
    try:
        return bundle_of(work, run).sha256
    except DPSynthError as error:
        return f"There is no bundle. {error}"


def describe(run: RunRecord) -> str:
    """What is under review, in a line."""
    rows = " + ".join(f"{len(table):,}" for table in run.result.tables)
    return f"{rows} synthetic rows, {len(run.result.schema.names)} columns, by {run.config.mechanism.title}"


def submit_release(session: Session, run: RunRecord, message: str) -> Submission:
    """Hand in a release for review, with the evidence on it as it is now."""
    work = session.work
    if work.data.fingerprint is None or run.charge is None:
        raise DPSynthError("Only a release that was paid for can be submitted. Make one in release mode.")
    made = submit(
        open_ledger(),
        Settings.from_environment(),
        work.data.fingerprint,
        run.charge,
        checks=checks(session, run),
        thresholds=session.thresholds,
        publication=publication_now(work),
        ticket=work.ticket,
        report=None if run.evidence is None or work.public_review else report_of(session, run)(),
        comparisons=run.published_tests,
        declared_by=_signed(session, run).schema.declared_by,
        message=message,
    )
    work.ticket = uuid.uuid4().hex
    return made
