"""Everything the app remembers about one visitor, in typed objects.

They live in Streamlit's session state: in the server's memory, for one browser session, shared with nobody. A
:class:`Session` is the visitor, a :class:`TableWork` everything that belongs to the table in use, and a
:class:`RunRecord` everything about one of its runs.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import pandas as pd
import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.errors import DPSynthError
from dpsynth_core.inference.reliability_question import ReliabilityAnswer
from dpsynth_core.privacy.budget import Budget, Guarantee, format_amount
from dpsynth_core.review import Bundle, Decision, Evidence, Publication, Thresholds, release_digest
from dpsynth_core.runs.configuration import RunConfig, RunResult
from dpsynth_core.table.private_table import PrivateTable
from dpsynth_core.table.schema import Schema
from dpsynth_core.teaching.false_discovery import FalseDiscoveryReplay
from pages.shared.mechanism.settings import Choices
from pages.shared.memory import MEMORY, PRESENCE, browser_of
from pages.shared.tasks import Tasks

Mode: TypeAlias = Literal["teaching", "release"]
_KEY = "dpsynth"
_TOKEN = "s"  # noqa: S105  the name of the address's parameter, not a secret


@dataclass(frozen=True, kw_only=True, eq=False)
class DataSet:
    """The table in use."""

    title: str
    """The example's title or the file's name. Untrusted text."""
    table: pd.DataFrame
    uploaded: bool
    """Whether it came from a person's file."""
    fingerprint: str | None = None
    """Its account in the ledger; None in teaching mode, where nothing is charged."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Preview:
    """What a mechanism makes of simulated rows."""

    config: RunConfig
    simulated: pd.DataFrame
    synthetic: pd.DataFrame


@dataclass(kw_only=True, eq=False)
class RunRecord:
    """One run on the table, and everything learned about it since. Private: it never leaves the session."""

    number: int
    """Its number in the history, from 1."""
    result: RunResult
    charge: int | None = None
    """The ledger's number of its charge; None in teaching mode."""
    evaluations: dict[tuple[str, ...], Evaluation] = field(default_factory=dict)
    """By the columns that were compared with the original."""
    answers: dict[tuple[str, str], ReliabilityAnswer] = field(default_factory=dict)
    """How reliable a p-value is, by value column and group column."""
    evidence: Evidence | None = None
    """Gathered for a review."""
    bundle: tuple[Publication, Bundle] | None = None
    """As it was last packed, with the words in it."""
    decisions: list[Decision] = field(default_factory=list)
    """In teaching mode, where there is no ledger: oldest first."""

    @property
    def config(self) -> RunConfig:
        """What was asked for."""
        return self.result.config

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the release."""
        return release_digest(self.result)

    @property
    def name(self) -> str:
        """What it is called on screen."""
        return f"{self.number}: {self.config.mechanism.title}, ε {format_amount(self.config.each.epsilon)}"


@dataclass(kw_only=True, eq=False)
class TableWork:
    """Everything that belongs to the table in use; another table gets a new one."""

    data: DataSet
    draft: pd.DataFrame
    """The schema as the visitor is editing it, one row per column of the table."""
    editor_base: pd.DataFrame | None = None
    """The rows that the editor on screen was given."""
    rows_per_person: int = 1
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
    preview: Preview | None = None
    runs: list[RunRecord] = field(default_factory=list)
    """Finished runs, oldest first."""
    compared: list[int] = field(default_factory=list)
    """Numbers of the runs that are being compared."""
    columns: tuple[str, ...] = ()
    """Columns that are being compared with the original; none means all."""
    replay: FalseDiscoveryReplay | None = None
    """The last false discovery drawn from nothing."""
    publication: Publication = field(default_factory=Publication)
    """What the reviewer says about the table when publishing it."""
    ticket: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Of the next decision: handed in twice, it is recorded once."""
    tasks: Tasks = field(default_factory=Tasks)
    _private: PrivateTable | None = None

    @property
    def n(self) -> int:
        """Rows of the table."""
        return len(self.data.table)

    @property
    def private(self) -> PrivateTable | None:
        """The encoded table, made anew only when the schema has changed; None while there is no valid schema."""
        if self.schema is None:
            return None
        if self._private is None or self._private.schema != self.schema:
            self._private = PrivateTable(self.data.table, self.schema)
        return self._private

    def add_run(self, result: RunResult, charge: int | None = None) -> RunRecord:
        """Take a finished run into the history."""
        self.runs.append(RunRecord(number=len(self.runs) + 1, result=result, charge=charge))
        return self.runs[-1]

    def run(self, at: int) -> RunRecord:
        """A run by its number."""
        return self.runs[at - 1]

    def close(self) -> None:
        """Cancel whatever is running on this table: nobody will be able to see it any more."""
        self.tasks.close()


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """Where a visitor is in the lessons: all that a link needs to bring another one to the same point."""

    number: int = 1
    epsilon: str = "1"
    """At which its picture is drawn."""
    seed: int = 1
    """Of the simulated noise in its picture."""
    answer: int | None = None
    """The index of the answer given; None before the question is answered."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """The result of work on a public or simulated table."""

    table_id: object
    order: Any
    """What was asked for, as plain values."""
    result: Any


@dataclass(kw_only=True, eq=False)
class Tradeoffs:
    """What the Trade-offs page shows."""

    section: str = "lessons"
    lesson: Lesson = field(default_factory=Lesson)
    table: str = ""
    """The public table that is looked at; empty before one is chosen."""
    findings: dict[str, Finding] = field(default_factory=dict)
    """Results on that table, by kind of work."""
    choices: dict[str, Any] = field(default_factory=dict)
    """What was chosen on that page, by widget."""
    noise_seed: int = 1
    """Of the noise to be looked at; another one draws it again."""
    tasks: Tasks = field(default_factory=Tasks)

    def forget_table(self) -> None:
        """Another table is in use, or none: what was found on the old one no longer counts."""
        self.tasks.close()
        self.table = ""
        self.findings.clear()


@dataclass(kw_only=True, eq=False)
class Session:
    """One visitor."""

    mode: Mode = "teaching"
    """Teaching: public or simulated data, free. Release: private data, every look is paid for."""
    current: TableWork | None = None
    """The work on the table in use; None before one is chosen."""
    draft_version: int = 0
    """Counts the changes made other than by typing, so that the schema editor starts afresh from the draft."""
    choices: Choices = field(default_factory=Choices)
    """Mechanism, epsilon and parameters."""
    tradeoffs: Tradeoffs = field(default_factory=Tradeoffs)
    thresholds: Thresholds = field(default_factory=Thresholds)
    """What the reviewer asks."""
    reviewer: str = ""
    token: str = ""
    """Under which a reload finds this session again."""

    @property
    def work(self) -> TableWork:
        """The work on the table in use; refused where there is none."""
        if self.current is None:
            raise DPSynthError("There is no table. Choose one on the Data page.")
        return self.current

    @property
    def schema(self) -> Schema | None:
        """The schema of the table in use; None without a table, or while something is wrong with its facts."""
        return None if self.current is None else self.current.schema

    @property
    def runs(self) -> list[RunRecord]:
        """The runs on the table in use."""
        return [] if self.current is None else self.current.runs

    @property
    def guarantee(self) -> Guarantee | None:
        """What a release made now could at best claim; None before there is a schema."""
        if self.schema is None:
            return None
        return self.schema.judge(
            Guarantee(status="proven", budget=Budget.of(1), rows_per_person=self.schema.rows_per_person)
        )

    def use(self, work: TableWork | None) -> None:
        """Go on with another table, or none; whatever runs on the old one is cancelled."""
        if self.current is not None:
            self.current.close()
        self.tradeoffs.forget_table()
        self.current = work
        self.draft_version += 1

    @property
    def tasks(self) -> Iterator[Tasks]:
        """All background work of this visitor."""
        if self.current is not None:
            yield self.current.tasks
        yield self.tradeoffs.tasks

    def collect(self) -> None:
        """Store every result that has arrived."""
        for tasks in self.tasks:
            tasks.collect()

    def abandon(self) -> None:
        """The visitor has gone: cancel what nobody has paid for."""
        for tasks in self.tasks:
            tasks.abandon()

    @property
    def missing(self) -> list[str]:
        """What is still to be done on the Data page before a mechanism can be chosen."""
        if self.current is None:
            return ["Choose an example or upload a file."]
        return [] if self.current.schema is not None else ["Correct the public facts listed in red."]

    @property
    def runs_missing(self) -> list[str]:
        """What is still to be done before there is a synthetic table to look at."""
        return [] if self.runs else ["Make a synthetic table: press Synthesize above."]


def current_session() -> Session:
    """This visitor's session: the one at hand, the one kept over a reload, or a new one."""
    if _KEY not in st.session_state:
        st.session_state[_KEY] = _restored() or Session()
    session: Session = st.session_state[_KEY]
    browser = _browser()
    if browser:
        session.token = session.token or MEMORY.keep(session, browser)
        st.query_params[_TOKEN] = session.token
    context = get_script_run_ctx()
    if context is not None:
        PRESENCE.seen(session, context.session_id)
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
