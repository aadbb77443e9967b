"""Everything the app remembers about one visitor, in one typed object.

It lives in Streamlit's session state: in the server's memory, for one browser session, shared with nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import pandas as pd
import streamlit as st

from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.reliability_question import ReliabilityAnswer
from dpsynth_core.privacy.budget import Budget, Guarantee
from dpsynth_core.review import Bundle, Decision, Evidence, Publication, Thresholds
from dpsynth_core.runs.configuration import RunConfig, RunResult
from dpsynth_core.runs.jobs import Job
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.false_discovery import FalseDiscoveryReplay
from pages.shared.mechanism.settings import Choices
from pages.shared.memory import MEMORY, browser_of

Mode: TypeAlias = Literal["teaching", "release"]
Subject: TypeAlias = tuple[int, tuple[str, ...]]
"""What is examined: a release's place in the history, and the columns looked at."""
Question: TypeAlias = tuple[int, str, str]
"""What a p-value is asked about: a release's place, a value column and a group column."""
_KEY = "dpsynth"
_TOKEN = "s"  # noqa: S105  the name of the address's parameter, not a secret


@dataclass(frozen=True, kw_only=True, eq=False)
class DataSet:
    """The table in use."""

    title: str
    """What it is called on screen: the example's title or the file's name. Untrusted text."""
    table: pd.DataFrame
    """The rows as they came."""
    uploaded: bool
    """Whether it came from a person's file."""
    fingerprint: str | None = None
    """Its account in the ledger; None in teaching mode, where nothing is charged."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Preview:
    """What a mechanism makes of simulated rows."""

    order: RunConfig
    """What was asked for."""
    simulated: pd.DataFrame
    """The rows it was given."""
    job: Job
    """The run."""


@dataclass(kw_only=True, eq=False)
class Trial:
    """Work on a public or simulated table: a sweep over epsilon, or runs with and without a person."""

    mark: object
    """Which table."""
    order: Any
    """What was asked for, as plain values."""
    job: Job | None
    """The work; None where its result was known already."""
    result: Any = None
    """What was found; None until then."""


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """Where a visitor is in the lessons: all that a link needs to bring another one to the same place."""

    number: int = 1
    """Which lesson."""
    epsilon: str = "1"
    """At which its picture is drawn."""
    seed: int = 1
    """Of the simulated noise in its picture."""
    answer: int | None = None
    """The answer given, by its place; None before the question is answered."""


@dataclass(kw_only=True)
class Session:
    """One visitor's work."""

    mode: Mode = "teaching"
    """Teaching: public or simulated data, free. Release: private data, every look is paid for."""
    data: DataSet | None = None
    """The table in use."""
    draft: pd.DataFrame | None = None
    """The schema as the visitor is editing it, one row per column of the table."""
    draft_version: int = 0
    """Counts the changes made other than by typing, so that the editor starts afresh from the draft."""
    editor_base: pd.DataFrame | None = None
    """The rows that the editor on screen was given."""
    rows_per_person: int = 1
    """The most rows one person owns."""
    declared_by: str = ""
    """Who states that the facts are public, in their own words."""
    signed: Schema | None = None
    """The facts that this name came with in a file; None where it was typed here, by whoever edits them."""
    signature_lapsed: bool = False
    """Whether such a name was dropped because the facts were changed."""
    schema: Schema | None = None
    """The draft as a valid schema; None while something is wrong with it."""
    problems: list[DPSynthError] = field(default_factory=list)
    """What is wrong with the draft."""
    estimate_problem: DPSynthError | None = None
    """Why the last private estimate declared nothing."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns that the suggestion leaves out, each with the reason."""
    choices: Choices = field(default_factory=Choices)
    """Mechanism, epsilon and parameters."""
    job: Job | None = None
    """The run at work, or the last one."""
    job_data: DataSet | None = None
    """The table that run was given."""
    expected: float | None = None
    """Seconds that the run was expected to take."""
    cost: str = ""
    """What the run was announced to cost."""
    preview: Preview | None = None
    """The last preview on simulated rows."""
    outcomes: list[RunResult] = field(default_factory=list)
    """What this visitor's runs on this table have made, oldest first."""
    reservation: int | None = None
    """The ledger's number of the charge for the run at work, or the last one."""
    paid: dict[int, int] = field(default_factory=dict)
    """The ledger's number of the charge for each release, by its place in the history."""
    evidence: dict[int, Evidence] = field(default_factory=dict)
    """What was gathered for a review, by the release's place. Private: internal to the session."""
    search: Job | None = None
    """The gathering at work, or the last one."""
    searched: int | None = None
    """The release that it is about."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    """What the reviewer asks."""
    said: Publication = field(default_factory=Publication)
    """What the reviewer says about the table when publishing it."""
    bundles: dict[int, tuple[Publication, Bundle]] = field(default_factory=dict)
    """The bundle of each release, as it was last packed."""
    digests: dict[int, str] = field(default_factory=dict)
    """SHA-256 of each release."""
    decisions: list[Decision] = field(default_factory=list)
    """In teaching mode, where there is no ledger: what was decided, oldest first."""
    reviewer: str = ""
    """Who decides."""
    ticket: str = ""
    """Of the next decision: handed in twice, it is recorded once."""
    compared: list[int] = field(default_factory=list)
    """Places of the releases that are being compared."""
    examined: tuple[str, ...] = ()
    """Columns that are being looked at; none means all."""
    found: dict[Subject, Evaluation] = field(default_factory=dict)
    """What releases were found to be worth. Private: internal to the session."""
    examination: Job | None = None
    """The examination at work, or the last one."""
    subject: Subject | None = None
    """What it examines."""
    answers: dict[Question, ReliabilityAnswer] = field(default_factory=dict)
    """What p-values were found to be worth."""
    enquiry: Job | None = None
    """The enquiry at work, or the last one."""
    question: Question | None = None
    """What it asks."""
    replay: FalseDiscoveryReplay | None = None
    """The last false discovery drawn from nothing."""
    section: str = "lessons"
    """What the Trade-offs page shows."""
    specimen: str = ""
    """The public table that it is shown on; empty before one is chosen."""
    trials: dict[str, Trial] = field(default_factory=dict)
    """Work on that table, by kind."""
    kept: dict[str, Any] = field(default_factory=dict)
    """What was chosen on that page, by widget."""
    noise_seed: int = 1
    """Of the noise to be looked at; another one draws it again."""
    lesson: Lesson = field(default_factory=Lesson)
    """Where the visitor is in the lessons."""
    token: str = ""
    """Under which a reload finds this session again."""
    _private: PrivateTable | None = None

    @property
    def guarantee(self) -> Guarantee | None:
        """What a release made now could at best claim; None before there is a schema."""
        if self.schema is None:
            return None
        return self.schema.judge(
            Guarantee(status="proven", budget=Budget.of(1), rows_per_person=self.schema.rows_per_person)
        )

    def private(self) -> PrivateTable | None:
        """The table behind its two doors, made anew only when the schema has changed."""
        if self.data is None or self.schema is None:
            return None
        if self._private is None or self._private.schema != self.schema:
            self._private = PrivateTable(self.data.table, self.schema)
        return self._private

    def forget_data(self) -> None:
        """Drop the table and everything that came from it."""
        self.data = self.draft = self.editor_base = self.schema = self._private = None
        self.problems, self.left_out, self.estimate_problem = [], {}, None
        self.rows_per_person, self.declared_by, self.signed, self.signature_lapsed = 1, "", None, False
        self.draft_version += 1
        self.outcomes, self.preview = [], None
        self.paid, self.evidence, self.bundles, self.digests, self.decisions = {}, {}, {}, {}, []
        self.search = self.searched = None
        self.said = Publication()
        self.compared, self.examined, self.found = [], (), {}
        self.examination = self.subject = None
        self.answers, self.enquiry, self.question, self.replay = {}, None, None, None
        self.specimen, self.trials = "", {}

    @property
    def missing(self) -> list[str]:
        """What is still to be done on the Data page before a mechanism can be chosen."""
        steps = []
        if self.data is None:
            steps.append("Choose an example or upload a file.")
        elif self.schema is None:
            steps.append("Correct the public facts listed in red.")
        return steps

    @property
    def outcomes_missing(self) -> list[str]:
        """What is still to be done before there is a synthetic table to look at."""
        return [] if self.outcomes else ["Make a synthetic table: press Synthesize above."]


def current() -> Session:
    """This visitor's session: the one at hand, the one kept over a reload, or a new one."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = _restored() or Session()
    session: Session = st.session_state[_KEY]
    browser = _browser()
    if browser:
        session.token = session.token or MEMORY.keep(session, browser)
        st.query_params[_TOKEN] = session.token
    return session


def _restored() -> Session | None:
    token, browser = st.query_params.get(_TOKEN), _browser()
    if not token or not browser:
        return None
    kept: Session | None = MEMORY.find(token, browser)
    if kept is not None:
        # The editor's own state is gone with the old page; it starts afresh from the draft.
        kept.draft_version += 1
        kept.choices.version += 1
    return kept


def _browser() -> str:
    cookie = st.context.cookies.get("_streamlit_xsrf")
    return browser_of(cookie) if isinstance(cookie, str) else ""
