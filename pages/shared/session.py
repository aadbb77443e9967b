"""Everything the app remembers about one visitor.

It lives in Streamlit's session state: in the server's memory, for one browser session, shared with nobody.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.people import ONE_PERSON, Person
from dpsynth_core.privacy.budget import STATUS_MEANING, Budget, Guarantee
from dpsynth_core.review import Thresholds
from dpsynth_core.runs.configuration import RunConfig
from dpsynth_core.runs.opening import OpenedSource
from dpsynth_core.table.private_table import read_as_declared
from dpsynth_core.table.schema import Schema
from pages.shared.downloads import PATH, Download, Downloads
from pages.shared.mechanism.settings import MechanismSettings
from pages.shared.memory import COOKIE, MEMORY, PRESENCE, DropReason, browser_of, tab_is_connected
from pages.shared.room import ROOM
from pages.shared.table_work import Mode, RunRecord, TableWork
from pages.shared.tasks import Tasks
from pages.shared.tradeoffs.state import Tradeoffs


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A table that the server has removed from its memory."""

    title: str
    """As it was called. Untrusted text."""
    paid: bool
    """Whether results that epsilon was spent on went with it."""
    reason: DropReason


Source: TypeAlias = Literal["example", "file", "server"]
Door: TypeAlias = Literal["This table", "Submissions", "Approved bundles"]
"""A part of the Release page."""
MAX_EARLIER = 4
"""Tables that can be gone back to."""
MAX_EARLIER_BYTES = 256 * 2**20
"""Memory that they may take together; the latest one is kept whatever it takes."""
_KEY = "dpsynth"
_TOKEN = "s"  # noqa: S105  the name of the address's parameter, not a secret


@dataclass(kw_only=True, eq=False)
class Session:
    """One visitor."""

    mode: Mode = "teaching"
    """Teaching: public or simulated data, free. Release: private data, every result for the public is charged."""
    source: Source = "example"
    """Where tables are chosen from on the Data page."""
    example: str = ""
    """The example that is chosen there, by its key; empty: the first."""
    server_table: str = ""
    """The table on this server that is chosen there, by its name; empty: the first."""
    opening: Tasks = field(default_factory=Tasks)
    """The work of opening one."""
    opened: OpenedSource | None = None
    """One that is open and not in use yet."""
    current: TableWork | None = None
    """The work on the table in use; None before one is chosen."""
    earlier: list[TableWork] = field(default_factory=list)
    """Work on tables that were in use before, the latest first, for the way back."""
    draft_version: int = 0
    """Counts the changes made other than by typing, so that the schema editor starts afresh from the draft."""
    tables_used: int = 0
    """Counts the tables; with each, the page's uploader begins afresh and lets go of the file before."""
    settings: MechanismSettings = field(default_factory=MechanismSettings)
    """Mechanism, epsilon and parameters."""
    tradeoffs: Tradeoffs = field(default_factory=Tradeoffs)
    thresholds: Thresholds = field(default_factory=Thresholds)
    """What the reviewer asks."""
    reviewer: str = ""
    token: str = ""
    """Under which a reload finds this session again."""
    downloads: Downloads = field(default_factory=Downloads)
    """The files that its pages offer."""
    review_ticket: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Of the next decision on a submission: handed in twice, it is recorded once."""
    door: Door | None = None
    """The part of the Release page that is shown; None: the first for this visitor."""
    person: Person = ONE_PERSON
    """Whoever it belongs to: nobody else gets it, in the same browser either."""
    dropped: Dropped | None = None
    """The table that the server has removed from its memory, until another one is chosen."""

    def __post_init__(self) -> None:
        ROOM.admit(self)

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
        best = Guarantee(status="proven", budget=Budget.of(1), rows_per_person=self.schema.rows_per_person)
        judged = self.schema.judge(best, self.work.estimates)
        if read_as_declared(self.work.data.table, self.schema):
            return judged
        return judged.weakened("void", "How the file is laid out was read from the data, not declared public.")

    def prospect(self, config: RunConfig) -> Guarantee | None:
        """What a release by this configuration could at best claim; None before there is a schema."""
        judged = self.guarantee
        if judged is None:
            return None
        mechanisms = (config.mechanism,) if config.selection is None else config.selection.candidates
        for mechanism in mechanisms:
            judged = mechanism.judge(judged)
            if mechanism.status != "proven":
                judged = judged.weakened(mechanism.status, f"{mechanism.title}: {STATUS_MEANING[mechanism.status]}")
        return judged

    def use(self, work: TableWork | None) -> None:
        """Go on with another table, or none. Work on the old one is kept for the way back; a paid run on it goes on."""
        self.stop_opening()
        if self.current is not None:
            self.current.leave()
            if self.current.begun:
                self.earlier.insert(0, self.current)
        self.earlier = [each for each in self.earlier if each is not work][:MAX_EARLIER]
        while len(self.earlier) > 1 and sum(each.nbytes for each in self.earlier) > MAX_EARLIER_BYTES:
            self.earlier.pop()
        self.tradeoffs.forget_table()
        self.downloads.clear()
        self.current, self.dropped = work, None
        self.draft_version += 1
        self.tables_used += 1

    def stop_opening(self) -> None:
        """Give up on a table on this server that is being opened."""
        for task in self.opening:
            task.cancel()
        self.opening, self.opened = Tasks(), None

    @property
    def tasks(self) -> Iterator[Tasks]:
        """All background work of this visitor."""
        yield self.opening
        for work in self.works:
            yield work.tasks
        yield self.tradeoffs.tasks

    @property
    def works(self) -> list[TableWork]:
        """The work on the table in use, and on earlier ones."""
        return [*([] if self.current is None else [self.current]), *self.earlier]

    def collect(self) -> None:
        """Store every result that has arrived."""
        for tasks in self.tasks:
            tasks.collect()

    @property
    def nbytes(self) -> int:
        """Memory that tables and their results take, about."""
        opened = 0 if self.opened is None else int(self.opened.sample.memory_usage(deep=True).sum())
        return opened + sum(work.nbytes for work in self.works)

    @property
    def paid(self) -> bool:
        """Whether it holds results that epsilon was spent on and that nothing else holds."""
        return any(work.paid for work in self.works)

    @property
    def busy(self) -> bool:
        """Whether background work is under way or waiting to be looked at."""
        return any(task.active for tasks in self.tasks for task in tasks)

    def drop_table(self, reason: DropReason) -> None:
        """Remove tables and results from memory; the next page says so. Stored releases are not touched."""
        self.stop_opening()
        if self.works:
            dropped = Dropped(title=self.works[0].data.title, paid=self.paid, reason=reason)
            self.use(None)
            self.earlier, self.dropped = [], dropped

    def abandon(self) -> None:
        """The visitor has gone: cancel what nobody has paid for."""
        for tasks in self.tasks:
            tasks.abandon()

    @property
    def missing(self) -> list[str]:
        """What is still to be done on the Data page before a mechanism can be chosen."""
        if self.current is None:
            server = self.source == "server"
            return ["Choose a table and press Use this table." if server else "Choose an example or upload a file."]
        return [] if self.current.schema is not None else ["Correct the public facts listed in red."]

    @property
    def runs_missing(self) -> list[str]:
        """What is still to be done before there is a synthetic table to look at."""
        return [] if self.runs else ["Make a synthetic table: press Synthesize above."]


def current_session(person: Person = ONE_PERSON) -> Session:
    """This visitor's session: the one at hand, the one from before a reload, or a new one.

    Args:
        person: Whoever looks at the page now. A session of anybody else is not touched.
    """
    known: Session | None = st.session_state.get(_KEY)
    if known is None or known.person.subject != person.subject:
        st.session_state[_KEY] = _restored(person) or Session(person=person)
    session: Session = st.session_state[_KEY]
    session.person = person  # roles may have changed with a new sign-in
    browser = _browser()
    if browser:
        session.token = session.token or MEMORY.keep(session, browser)
        st.query_params[_TOKEN] = session.token
    context = get_script_run_ctx()
    if context is not None:
        PRESENCE.seen(session, context.session_id)
        session.downloads.begin(context.session_id, tab_is_connected)
    return session


def offered(key: str, download: Download) -> str:
    """Where this visitor's browser can fetch a file, relative to the page; empty for a browser without cookies."""
    session: Session = st.session_state[_KEY]
    context = get_script_run_ctx()
    if context is None or not session.token:
        return ""
    return f"{PATH}/{session.token}/{session.downloads.offer(context.session_id, key, download)}"


def _restored(person: Person) -> Session | None:
    token, browser = st.query_params.get(_TOKEN), _browser()
    if not browser:
        return None
    # A page that was just changed has no token in its address yet: a reload comes back without one.
    before: Session | None = MEMORY.find(token, browser) if token else MEMORY.left_by(browser, PRESENCE.left)
    if before is not None and before.person.subject != person.subject:
        return None
    if before is not None:
        # The editor's own state is gone with the old page; it starts afresh from the draft.
        before.draft_version += 1
        before.settings.version += 1
    return before


def _browser() -> str:
    cookie = st.context.cookies.get(COOKIE)
    return browser_of(cookie) if isinstance(cookie, str) else ""
