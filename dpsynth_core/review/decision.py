"""What a reviewer has decided, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from typing import Literal, TypeAlias, cast

from dpsynth_core.errors import DPSynthError, ParameterError
from dpsynth_core.ledger.decisions import TWO_PEOPLE, DecisionRow
from dpsynth_core.ledger.people import NOBODY, Person
from dpsynth_core.review.checklist import Checklist
from dpsynth_core.review.publication import PRIVATE_DIAGNOSTICS, ChosenBy, Publication
from dpsynth_core.review.thresholds import Thresholds

Choice: TypeAlias = Literal["approve", "hold"]
MAX_CHARACTERS = {"reviewer": 200, "note": 10_000}
MEANING: dict[Choice, str] = {
    "approve": "Approved: this very bundle may leave the building. A later hold withdraws it for anyone who "
    "has not downloaded it yet.",
    "hold": "On hold: the bundle is not offered. Nothing is deleted, the budget stays spent, and a later decision can "
    "approve it.",
}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Whether a release may leave the building, who says so, and why. Internal: a note may speak of what was seen."""

    choice: Choice
    reviewer: str
    note: str = ""
    """Why, in their own words."""
    decided: datetime
    """In UTC."""
    release: str = ""
    """SHA-256 of the release it is about: rows, public facts, configuration."""
    bundle: str = ""
    """SHA-256 of the archive that was approved; empty for a hold."""
    publication: Publication | None = None
    """What the approved archive says about the table."""
    chosen_by: ChosenBy = PRIVATE_DIAGNOSTICS
    """What whoever decided had seen of this data set's releases. The choice itself is not covered by their epsilon if
    private diagnostics led to it."""
    public_only: bool = False
    """Whether the checklist held public facts and synthetic rows only."""
    thresholds: Thresholds | None = None
    """What was asked."""
    states: Mapping[str, str] = field(default_factory=dict)
    """What followed: each check's state, by its name."""
    measured: Mapping[str, str] = field(default_factory=dict)
    """What was found, by the same names."""
    number: int = field(default=0, compare=False)
    """Its place in the ledger; 0 where it is not recorded there."""
    by: Person = NOBODY
    """Whoever was signed in; unknown without sign-in."""
    two_people: bool = False
    """Whether it is on record that an approval came from somebody who neither made nor submitted the release."""
    releasable: Literal[False] = False

    def __post_init__(self) -> None:
        if self.choice not in ("approve", "hold"):
            raise ParameterError("choice", self.choice, allowed="approve, hold")
        if not self.reviewer.strip():
            raise ParameterError("reviewer", self.reviewer, allowed="a name", remedy="Say who decides.")
        for name, limit in MAX_CHARACTERS.items():
            if len(getattr(self, name)) > limit:
                raise ParameterError(name, "too long", allowed=f"text of up to {limit:,} characters")

    def to_row(self) -> DecisionRow:
        """What the ledger stores: plain JSON values."""
        publication = None
        if self.publication is not None:
            published = self.publication.published
            publication = asdict(self.publication) | {"published": published and published.isoformat()}
        details = {
            "bundle": self.bundle,
            "chosen_by": self.chosen_by,
            "public_only": self.public_only,
            "publication": publication,
            "states": dict(self.states),
            "measured": dict(self.measured),
            "thresholds": None if self.thresholds is None else self.thresholds.to_dict(),
        }
        return DecisionRow(
            release=self.release,
            choice=self.choice,
            reviewer=self.reviewer,
            note=self.note,
            decided=self.decided,
            details=details,
        )

    @classmethod
    def from_row(cls, row: DecisionRow) -> Decision:
        """A decision as the ledger has stored it."""
        details, publication = row.details, row.details.get("publication")
        if publication is not None and publication.get("published") is not None:
            publication = {**publication, "published": date.fromisoformat(publication["published"])}
        thresholds = details.get("thresholds")
        return cls(
            choice=cast("Choice", row.choice),
            reviewer=row.reviewer,
            note=row.note,
            decided=row.decided,
            release=row.release,
            bundle=details.get("bundle", ""),
            chosen_by=details.get("chosen_by", PRIVATE_DIAGNOSTICS),
            public_only=bool(details.get("public_only", False)),
            publication=None if publication is None else Publication(**publication),
            thresholds=None if thresholds is None else Thresholds.from_dict(thresholds),
            states=details.get("states", {}),
            measured=details.get("measured", {}),
            number=row.number,
            by=Person.from_record(details.get("by")),
            two_people=bool(details.get(TWO_PEOPLE, False)),
        )

    @property
    def people(self) -> str:
        """What is known about who approved whose work, in a sentence; empty for a hold."""
        if self.choice != "approve":
            return ""
        if self.two_people:
            return "The two-person rule was in force: whoever approved this neither made nor submitted it."
        if self.by.signed_in:
            return (
                "The two-person rule was in force for the submission only: who made this release is not on record, "
                "because nobody was signed in then."
            )
        return (
            "The two-person rule was not in force: people do not sign in here, so whoever made this release could "
            "approve it."
        )


def missing_for(checks: Checklist, choice: Choice | None, reviewer: str, note: str) -> list[str]:
    """What prevents a decision, one line each; empty if it can be recorded."""
    missing = []
    if choice is None:
        missing.append("Choose approve or hold.")
    if choice == "approve":
        missing += [f"{check.title}: this cannot be overruled." for check in checks.final]
        if not checks.final:
            missing += [f"{check.title}: evidence is missing." for check in checks.of("open")]
        if checks.overrulable and not note.strip():
            failed = ", ".join(check.title.lower() for check in checks.overrulable)
            missing.append(f"Say in the note why it may be released although a check failed: {failed}.")
    if not reviewer.strip():
        missing.append("Give the reviewer's name.")
    return missing


def decide(
    checks: Checklist,
    choice: Choice,
    *,
    reviewer: str,
    note: str,
    thresholds: Thresholds,
    release: str,
    bundle: str = "",
    publication: Publication | None = None,
    chosen_by: ChosenBy = PRIVATE_DIAGNOSTICS,
) -> Decision:
    """A decision now, with the evidence for it. An approval that the checklist does not allow is refused.

    Args:
        checks: The checklist that the reviewer has seen.
        choice: Approve, or hold.
        reviewer: Who decides.
        note: Why.
        thresholds: What was asked.
        release: SHA-256 of the release.
        bundle: SHA-256 of the archive, to be approved.
        publication: What that archive says.
        chosen_by: What whoever decides has seen of this data set's releases.
    """
    missing = missing_for(checks, choice, reviewer, note)
    if missing:
        raise DPSynthError(" ".join(missing))
    approved = choice == "approve"
    if approved and not (bundle and publication):
        raise DPSynthError("There is no release bundle to approve.")
    if approved and publication is not None and publication.chosen_by not in (None, chosen_by):
        raise DPSynthError("The bundle and the decision differ in what the release was chosen by. Pack it again.")
    return Decision(
        choice=choice,
        reviewer=reviewer.strip(),
        note=note.strip(),
        decided=datetime.now(UTC),
        release=release,
        bundle=bundle if approved else "",
        publication=publication if approved else None,
        thresholds=thresholds,
        chosen_by=chosen_by,
        public_only=checks.public_only,
        states={check.key: check.state for check in checks.checks},
        measured={check.key: check.measured for check in checks.checks},
    )


def approval(history: tuple[Decision, ...], release: str) -> Decision | None:
    """The approval that applies to a release: its latest decision, if that is one."""
    about = [decision for decision in history if decision.release == release]
    return about[-1] if about and about[-1].choice == "approve" else None
