"""What the reviewers' door does: list submissions, open them, decide, and hand out what was approved."""

from __future__ import annotations

import io
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.decisions import DecisionStore
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.ledger.submissions import Submission, SubmissionStore
from dpsynth_core.review import Decision
from dpsynth_core.review.decision import Choice
from dpsynth_core.review.submission import (
    ApprovedBundle,
    ReviewCase,
    approved_bundles,
    approved_bytes,
    decide_case,
    open_case,
)
from pages.shared.accounts import open_ledger
from pages.shared.session import Session

CARD = "data_card.md"


@dataclass(frozen=True, kw_only=True)
class ListedSubmission:
    """A submission and what was decided on its release so far."""

    submission: Submission
    decisions: tuple[Decision, ...] = field(default=())
    """On the same release, oldest first."""

    @property
    def state(self) -> str:
        """Open until somebody has decided on this bundle or held it back since."""
        since = [each for each in self.decisions if each.decided >= self.submission.submitted]
        if not since:
            return "open"
        last = since[-1]
        if last.choice == "hold":
            return "on hold"
        return "approved" if last.bundle == self.submission.bundle else "replaced"

    @property
    def name(self) -> str:
        """What it is called on screen. Untrusted text."""
        about, one = self.submission.details, self.submission
        return f"{one.number}: {about.get('title', '')}, {about.get('mechanism', '')}, ε {about.get('epsilon', '')}"


def submissions(session: Session) -> tuple[ListedSubmission, ...]:
    """What this visitor may see: a reviewer everything, an analyst their own; newest first."""
    ledger = open_ledger()
    mine = SubmissionStore(ledger).all()
    if not session.person.may("reviewer"):
        mine = tuple(each for each in mine if each.by.subject == session.person.subject)
    history = {name: _history(DecisionStore(ledger), name) for name in {each.fingerprint for each in mine}}
    return tuple(
        ListedSubmission(
            submission=each,
            decisions=tuple(one for one in history[each.fingerprint] if one.release == each.release),
        )
        for each in mine
    )


def _history(store: DecisionStore, fingerprint: str) -> tuple[Decision, ...]:
    return tuple(Decision.from_row(row) for row in store.history(fingerprint))


def opened(submission: Submission) -> tuple[ReviewCase, Account]:
    """A submission with everything that was handed in, and its account as it is now."""
    ledger = open_ledger()
    account = ledger.account(submission.fingerprint)
    if account is None:
        raise DPSynthError("The account of this submission is missing.")
    return open_case(ledger, Settings.from_environment(), submission), account


def own_work(session: Session, case: ReviewCase, account: Account) -> bool:
    """Whether the visitor made or submitted it; the ledger asks again when a decision is recorded."""
    charge = next((entry for entry in account.entries if entry.id == case.submission.charge), None)
    subjects = {case.submission.by.subject, "" if charge is None else charge.by.subject}
    return session.person.signed_in and session.person.subject in subjects


def record_decision(session: Session, case: ReviewCase, listed: ListedSubmission, choice: Choice, note: str) -> None:
    """Record a decision on a submission, by whoever looks at the page."""
    after = listed.decisions[-1].number if listed.decisions else 0
    settings = Settings.from_environment()
    decide_case(open_ledger(), settings, case, choice, note=note, ticket=session.review_ticket, after=after)
    session.review_ticket = uuid.uuid4().hex


def bundle_contents(case: ReviewCase) -> tuple[list[tuple[str, int]], str]:
    """Names and sizes of the files that would leave, and the words of the data card."""
    archive = Settings.from_environment().release_store.get(case.submission.bundle)
    with zipfile.ZipFile(io.BytesIO(archive)) as bundle:
        files = [(member.filename, member.file_size) for member in bundle.infolist()]
        return files, bundle.read(CARD).decode()


def approved() -> tuple[ApprovedBundle, ...]:
    """Every bundle that may leave, newest first; none before this installation has a ledger."""
    return approved_bundles(open_ledger()) if Settings.from_environment().key_file.exists() else ()


def approved_download(bundle: str) -> Callable[[], bytes]:
    """Hands over an approved archive, if it is still approved when it is asked for."""
    ledger, settings = open_ledger(), Settings.from_environment()
    return lambda: approved_bytes(ledger, settings, bundle)
