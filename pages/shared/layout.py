"""What surrounds every page: navigation, badges, the budget, the way on, and errors in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

import streamlit as st

from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.people import ROLES, Person, Role
from dpsynth_core.privacy.budget import Guarantee, Status, format_amount
from dpsynth_core.table.schema import Schema
from pages.shared.accounts import account_of, open_stored_releases, remember_look
from pages.shared.buttons import clicked
from pages.shared.data.server_actions import check_offered
from pages.shared.late_requests import refuse_requests
from pages.shared.memory import MEMORY
from pages.shared.presentation import begin_presentation, follow_theme, presenting
from pages.shared.session import Dropped, Session, current_session
from pages.shared.sign_in import ask_to_sign_in, is_set_up, show_visitor, visitor
from pages.shared.table_work import RunRecord
from pages.shared.tasks import RUN, Task

ROOT = Path(__file__).parents[2]
NOT_MONEY = (
    "No money is involved. Every result that depends on private rows lets something through about the people in them; "
    "epsilon (ε) and delta (δ) limit how much. The account of a data set adds up what all its results have used of a "
    "total that somebody has set. Once that is used up, the app makes no more results from these rows."
)
"""What budget, account, spending and charges mean here."""
WORKERS: tuple[Role, ...] = ("steward", "analyst")
"""Roles that work with tables."""
LOOK_AT_RUN_EVERY = 1.0
"""Seconds between two looks at a run from another page than its own."""
Colour = Literal["green", "orange", "red", "gray", "blue"]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A step of the journey, on a page of its own."""

    path: str
    """The page's file."""
    title: str
    """Its name in the navigation."""
    icon: str
    """From the icon font that Streamlit carries; nothing is fetched."""
    purpose: str
    """What happens there, in a sentence."""

    @property
    def exists(self) -> bool:
        """Whether the page is part of this version."""
        return (ROOT / self.path).exists()


def _stages(*facts: tuple[str, str, str, str]) -> tuple[Stage, ...]:
    stages = (
        Stage(path=f"pages/{file}.py", title=title, icon=f":material/{icon}:", purpose=purpose)
        for file, title, icon, purpose in facts
    )
    return tuple(stage for stage in stages if stage.exists)


HOME = Stage(path="app.py", title="Home", icon=":material/home:", purpose="What this is and where you are.")
STAGES = _stages(
    ("1_Data", "Data", "table", "Choose a table and state what is publicly known about its columns."),
    ("2_Mechanism", "Mechanism", "tune", "Choose how the stand-in is made, and how private it is."),
    (
        "3_Synthesize",
        "Synthesize",
        "casino",
        "Make the synthetic table, within the privacy budget.",
    ),
    ("4_Diagnostics", "Diagnostics", "search_insights", "See how far the synthetic table can be trusted."),
    ("5_Tradeoffs", "Trade-offs", "balance", "See what epsilon costs and what it buys."),
    ("6_Release", "Release", "inventory_2", "Review the evidence and decide on a release."),
)

BADGE: dict[Status, tuple[str, Colour, str]] = {
    "proven": ("Guarantee: proven", "green", ":material/verified:"),
    "asymptotic": ("Guarantee: only in the limit", "orange", ":material/warning:"),
    "heuristic": ("Guarantee: heuristic", "orange", ":material/warning:"),
    "void": ("Guarantee: void", "red", ":material/block:"),
    "none": ("Not private", "red", ":material/block:"),
}


def lay_out(path: str) -> Session:
    """Navigation and badges around a page that has its heading. Returns the visitor's session, with what has arrived.

    Args:
        path: The page's file.
    """
    person = _admitted(path)
    session = current_session(person)
    session.collect()
    try:
        check_offered(session)
    except DPSynthError as error:
        show_error("The table that you were using cannot be used any more.", error)
        if session.current is not None:  # the list is being changed; nothing is lost, and nothing is shown meanwhile
            st.stop()
    with errors_shown("The ledger cannot be used."):
        remember_look(session.current)
        open_stored_releases(session)
    follow_theme()
    if presenting():
        begin_presentation()
        return session
    with st.sidebar:
        st.markdown("**DPSynth**")
        for stage in (HOME, *STAGES):
            if person.may(*roles_for(stage.path)):
                st.page_link(stage.path, label=stage.title, icon=stage.icon)
        if person.may(*WORKERS):
            st.divider()
            _sidebar_budget(session)
        show_visitor(person)
    with st.container(horizontal=True, vertical_alignment="center"):
        for step, stage in enumerate(STAGES, start=1):
            if stage.path == path:
                st.badge(f"Step {step}", color="gray")
        if person.may(*WORKERS):
            st.badge("Teaching mode" if session.mode == "teaching" else "Release mode", color="blue")
            _header_badge(session)
    if session.dropped is not None:
        _say_dropped(session.dropped)
    return session


def roles_for(path: str) -> tuple[Role, ...]:
    """The roles that a page is for; each of them is enough."""
    if path in (HOME.path, "pages/6_Release.py"):
        return ROLES
    return (*WORKERS, "reviewer") if path == "pages/5_Tradeoffs.py" else WORKERS


def _admitted(path: str) -> Person:
    """Whoever looks at this page, if they may; otherwise the page ends with what to do."""
    try:
        person = visitor()
        signed_out = is_set_up() and not person.signed_in
    except DPSynthError as error:
        show_error("Nobody can sign in here.", error)
        st.stop()
    if signed_out:
        ask_to_sign_in()
        st.stop()
    if not person.may(*roles_for(path)):
        with st.sidebar:
            show_visitor(person)
        own = ", ".join(role for role in ROLES if role in person.roles)
        st.info(f"This page is for: {', '.join(roles_for(path))}. Your roles: {own or 'none'}.", icon=":material/lock:")
        if person.roles:
            st.page_link("pages/6_Release.py", label="Go to Release", icon=":material/inventory_2:")
        else:
            st.markdown("Whoever runs this server gives roles through the groups of the identity provider.")
        st.stop()
    return person


def _say_dropped(dropped: Dropped) -> None:
    """Which table is gone, why, what went with it, and how to go on."""
    why = {
        "minutes": f"no tab of yours was open for {MEMORY.minutes(paid=dropped.paid):g} minutes",
        "bytes": "no tab of yours was open and the server needed the memory",
    }[dropped.reason]
    with st.container(border=True):
        st.warning("Your table is no longer in the server's memory.", icon=":material/memory:")
        lines = [f"{dropped.title}: the app dropped it and the results on it, because {why}."]
        if dropped.paid:
            lines.append("That includes a paid release that could not be stored. The ledger still counts what it cost.")
        lines.append(
            "To go on, choose the table or upload the file again. In release mode its account is still there, with "
            "the releases that were stored."
        )
        st.text("\n".join(lines))
        st.page_link("pages/1_Data.py", label="Go to Data", icon=":material/table:")


def needs_schema(session: Session) -> tuple[Schema, int]:
    """The schema and the number of rows; without them the page ends with what is missing and a way there."""
    work = session.current
    if work is None or work.schema is None:
        st.info("This page needs a table with complete public facts.", icon=":material/info:")
        for step in session.missing:
            st.markdown(f"- {step}")
        st.page_link("pages/1_Data.py", label="Go to Data", icon=":material/table:")
        st.stop()
    return work.schema, work.n


def needs_run(session: Session) -> RunRecord:
    """The newest run; without one the page ends with what is missing and a way there."""
    task = None if session.current is None else session.current.tasks.get(RUN)
    at_work = task if task is not None and task.active else None
    if at_work is not None:
        _await_run(at_work, first=not session.runs)
    if not session.runs:
        if at_work is None:
            st.info("This page needs a synthetic table.", icon=":material/info:")
            for step in session.missing or ["Make one on the Synthesize page."]:
                st.markdown(f"- {step}")
        target = "pages/1_Data.py" if session.missing else "pages/3_Synthesize.py"
        label = "Go there" if at_work is None else "Watch it on the Synthesize page"
        st.page_link(target, label=label, icon=":material/arrow_back:")
        st.stop()
    return session.runs[-1]


@st.fragment(run_every=LOOK_AT_RUN_EVERY)
def _await_run(task: Task, *, first: bool) -> None:
    """Say that there will be a newer run; the page begins again with it as soon as it is there."""
    if not task.active:
        st.rerun()
    shown = "The first synthetic table is" if first else "This page shows an earlier run; a newer one is"
    st.info(f"{shown} being made. Once it is there, this page shows it.", icon=":material/hourglass_top:")


def next_step(
    path: str,
    label: str,
    missing: list[str],
    *,
    skip: tuple[str, Callable[[], None]] | None = None,
    prepare: Callable[[], None] | None = None,
) -> None:
    """The button that leads on; while something is missing it is disabled and says what.

    Args:
        path: The next page.
        label: What happens there.
        missing: What must be done first.
        skip: What skipping means, and what it does, for those in a hurry.
        prepare: What to do before going on.
    """
    if not (ROOT / path).exists() or presenting():
        return
    st.divider()
    with st.container(horizontal=True):
        if clicked(label, type="primary", icon=":material/arrow_forward:", disabled=bool(missing), key="next"):
            if prepare is not None:
                prepare()
            leave_for(path)
        if skip and clicked(skip[0], icon=":material/fast_forward:", disabled=bool(missing), key="skip"):
            skip[1]()
    for step in missing:
        st.markdown(f"- {step}")


def leave_for(path: str) -> NoReturn:
    """Switch to another page, so that no request of this one comes after it."""
    refuse_requests()
    st.switch_page(path)


def guarantee_badge(guarantee: Guarantee) -> None:
    """The badge of a release, which cannot be missed."""
    label, colour, icon = BADGE[guarantee.status]
    st.badge(label, icon=icon, color=colour)


def prospect_badge(guarantee: Guarantee | None) -> None:
    """What a release made now could claim: nothing has run yet, so nothing is proven yet."""
    if guarantee is None:
        st.badge("Guarantee: nothing declared yet", icon=":material/help:", color="gray")
    elif guarantee.status == "proven":
        st.badge("Guarantee: possible", icon=":material/verified:", color="green")
    else:
        guarantee_badge(guarantee)


def _header_badge(session: Session) -> None:
    """What another release could claim, in words that cannot be taken for those of a release that claims more."""
    guarantee = session.guarantee
    if guarantee is None or all(run.result.guarantee.status == guarantee.status for run in session.runs):
        prospect_badge(guarantee)
    elif guarantee.status != "proven":
        label, colour, icon = BADGE[guarantee.status]
        st.badge(f"Another release now: {label[0].lower()}{label[1:]}", icon=icon, color=colour)
    else:
        st.badge("Another release now: guarantee: possible", icon=":material/verified:", color="green")


def _sidebar_budget(session: Session) -> None:
    st.markdown("**Privacy budget**", help=NOT_MONEY)
    if session.mode == "teaching":
        st.caption("Teaching mode: the data is public or simulated, so nothing is charged.")
        return
    if session.current is None:
        st.caption("You have not chosen a data set yet.")
        return
    with errors_shown("The ledger cannot be used."):
        account = account_of(session)
        if account is None:
            st.caption("This data set has no account yet. Set its total budget on the Data page.")
            return
        show_budget(account)


def show_budget(account: Account) -> None:
    """What was spent and what is left."""
    spent, total, left = account.spent, account.total, account.left
    text = f"ε spent: {format_amount(spent.epsilon)} of {format_amount(total.epsilon)}"
    st.progress(float(spent.epsilon / total.epsilon), text=text)
    epsilon, delta = (format_amount(amount, up=False) for amount in (left.epsilon, left.delta))
    st.caption(f"ε left: {epsilon} · δ left: {delta} of {format_amount(total.delta)}")


def show_error(heading: str, *errors: DPSynthError) -> None:
    """Problems in words. The text may name a column, so it is shown literally, never as markup."""
    with st.container(border=True):
        st.error(heading, icon=":material/error:")
        st.text("\n".join(str(error) for error in errors))


@contextmanager
def errors_shown(heading: str) -> Iterator[None]:
    """Whatever is refused inside is shown as a problem in words, and the page goes on."""
    try:
        yield
    except DPSynthError as error:
        show_error(heading, error)
