"""What several pages put on the screen: charts, their files, lists, choices that are remembered, work in progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dpsynth_core.charts.runs import series_chart
from dpsynth_core.charts.theme import Chart
from dpsynth_core.diagnostics.base import INTERNAL
from dpsynth_core.errors import DPSynthError
from dpsynth_core.review.export import marked_csv, marked_html
from dpsynth_core.runs.jobs import MAX_RUNNING
from pages.shared.buttons import clicked
from pages.shared.downloads import Download
from pages.shared.formatting import elapsed
from pages.shared.layout import show_error
from pages.shared.mechanism.settings import EPSILONS
from pages.shared.presentation import as_shown
from pages.shared.session import Session, offered
from pages.shared.table_work import RunRecord, TableWork
from pages.shared.tasks import Task

LOOK_EVERY = 0.5
"""Seconds between two looks at a run."""
LOOK_AT_QUEUE_EVERY = 2.0
"""Seconds between two looks at the queue, where most of many visitors are: each look costs the server a moment."""
Option = TypeVar("Option")


def show_chart(chart: Chart, *, key: str, as_table: bool = False) -> None:
    """A figure with its alternative text, or the same numbers as a table."""
    if as_table:
        st.dataframe(chart.table, hide_index=True, key=f"{key}_table")
        return
    st.plotly_chart(as_shown(chart.figure), key=key, alt=chart.alt, config={"displayModeBar": False})


def show_internal_chart(chart: Chart, *, key: str, as_table: bool) -> None:
    """A chart drawn from private rows, and its files, which are marked as not for release."""
    show_chart(chart, key=key, as_table=as_table)
    with st.container(horizontal=True):
        for label, kind, content in (
            ("Figure", "html", lambda: marked_html(chart, INTERNAL)),
            ("Table", "csv", lambda: marked_csv(chart.table, INTERNAL)),
        ):
            offer_download(label, content, f"internal_review_{key}.{kind}", f"text/{kind}", look="tertiary")


def offer_download(
    label: str,
    content: Callable[[], bytes],
    name: str,
    media_type: str,
    *,
    look: Literal["primary", "secondary", "tertiary"] = "secondary",
) -> None:
    """A link to a file, which is made when somebody follows it.

    Args:
        label: What the link says.
        content: Makes the file.
        name: Of the file; a page offers one file of each name.
        media_type: What kind of file it is.
        look: As a button.
    """
    address = offered(name, Download(name=name, media_type=media_type, content=content))
    hint = None if address else "Downloads need a cookie. Allow cookies for this site and reload the page."
    st.link_button(label, address, type=look, icon=":material/download:", disabled=not address, help=hint)


def plain_list(lines: Iterable[str]) -> None:
    """One line each, shown literally: what comes from a file is never read as markup."""
    text = "\n".join(f"• {line}" for line in lines)
    if text:
        st.text(text)


def say_basis(work: TableWork) -> None:
    """Of a long table: on how many of its rows the figures on the page were computed."""
    if work.data.basis:
        st.caption(
            f"Of the original, whatever needs rows is {work.data.basis}, drawn at random by position; shares of values "
            "and of pairs of values on Diagnostics are counted over all rows."
        )


def ask_one(
    session: Session, ask: Callable[..., Any], label: str, options: Sequence[Option], *, key: str, **more: Any
) -> Option:
    """One of several options, by a select box or a radio; the one chosen before, as long as it is still offered.

    Args:
        session: Where the choice is remembered.
        ask: The widget, for instance ``st.selectbox``.
        label: Its label.
        options: What can be chosen; the first one to begin with.
        key: Its key, and the choice's name.
        more: Anything else for the widget.
    """
    before = session.tradeoffs.choices.get(key)
    chosen: Option = ask(label, options, index=options.index(before) if before in options else 0, key=key, **more)
    session.tradeoffs.choices[key] = chosen
    return chosen


def begin_with(session: Session, key: str, chosen: object) -> None:
    """Give a choice among runs its value: what is remembered, and the newest run once there is a new one.

    The browser's tab holds on to what was chosen in it, so a run that was made since would not be seen.

    Args:
        session: Whose runs they are.
        key: Of the widget, which is drawn next and gets no value of its own.
        chosen: What the session remembers.
    """
    runs, known = (session.tables_used, len(session.runs)), f"{key}_among"
    if key not in st.session_state or st.session_state.get(known) != runs:
        st.session_state[key], st.session_state[known] = chosen, runs


def ask_run_to_show(session: Session, label: str, *, key: str, describe: Callable[[RunRecord], str]) -> RunRecord:
    """One of the runs on the table, the newest first; the same on every page, until there is a new one."""
    work = session.work
    begin_with(session, key, work.shown or len(work.runs))
    numbers = range(len(work.runs), 0, -1)
    chosen: int = st.selectbox(label, numbers, key=key, format_func=lambda number: describe(work.run(number)))
    work.shown = chosen
    return work.run(chosen)


def ask_epsilon(session: Session, *, key: str, first: str) -> str:
    """An epsilon from the slider, with both ends named."""
    chosen: str = st.select_slider("Epsilon (ε)", EPSILONS, value=session.tradeoffs.choices.get(key, first), key=key)
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        st.markdown("← more private", width="content")
        st.markdown("more accurate →", width="content")
    session.tradeoffs.choices[key] = chosen
    return chosen


def show_task(task: Task, *, key: str, private: bool = False) -> None:
    """Any background work: its queue, progress and Cancel while it runs, and how it ended if it did not finish.

    Args:
        task: The work.
        key: Of its widgets.
        private: Whether the lines it draws depend on private rows, so that they are shown on demand only.
    """
    if task.active and task.queue:
        _wait_in_queue(task, key=key)
    elif task.active:
        _watch(task, key=key, private=private, parts=len(task.job.parts))
    elif task.uncollected:
        st.rerun()  # it ended while this page was being drawn, and the page begins by collecting
    else:
        _show_end(task)


def _show_end(task: Task) -> None:
    """How work ended that did not finish."""
    if task.job.state == "cancelled":
        st.info(f"{task.title} was cancelled.", icon=":material/cancel:")
        if task.abandoned:
            st.text("This page was closed or lost its connection, so the app stopped the work.")
        st.text(task.charge_sentence)
    elif task.job.state == "failed":
        show_error(f"{task.title} failed.", DPSynthError(f"{task.job.problem}\n{task.charge_sentence}"))


@st.fragment(run_every=LOOK_EVERY)
def _watch(task: Task, *, key: str, private: bool, parts: int) -> None:
    """How far it is, and a way to stop it; the page begins again when it has ended or another part is there."""
    job = task.job
    if not task.active or len(job.parts) > parts:
        st.rerun()
    shown = st.empty()
    with shown.container(border=True):
        st.progress(job.done, text=f"{job.stage} · {job.done:.0%}")
        st.caption(elapsed(job.seconds, task.expected))
        cancelled = offer_cancel(task, key=key)
        if not cancelled:
            show_series(task, key=key, private=private)
    if cancelled:
        _say_at_once(task, shown)


@st.fragment(run_every=LOOK_AT_QUEUE_EVERY)
def _wait_in_queue(task: Task, *, key: str) -> None:
    """What is ahead of it, and a way to give up; the page begins again when its turn has come."""
    queue = task.queue
    if not queue:
        st.rerun()
    shown = st.empty()
    with shown.container(border=True):
        st.info(queue, icon=":material/hourglass_top:")
        note = " If you cancel now, nothing is charged." if task.paid else ""
        st.caption(f"This server runs at most {MAX_RUNNING} at once; yours starts when its turn comes.{note}")
        cancelled = offer_cancel(task, key=key)
    if cancelled:
        _say_at_once(task, shown)


def offer_cancel(task: Task, *, key: str) -> bool:
    """A button that stops background work; whether it was pressed."""
    pressed = clicked("Cancel", key=f"cancel_{key}", icon=":material/cancel:")
    if pressed:
        task.cancel()
        task.wait(LOOK_EVERY)
    return pressed


def _say_at_once(task: Task, shown: DeltaGenerator) -> None:
    """That it has ended, in the place of its progress: a page with many figures takes seconds to be drawn again, which
    the next look asks for."""
    if not task.active:
        with shown.container():
            _show_end(task)


def show_series(task: Task, *, key: str, private: bool) -> None:
    """The lines that a mechanism draws while it runs; those that depend on private rows on demand only."""
    lines = [line for line in task.job.series.values() if line.points]
    hidden = [line for line in lines if private and not line.releasable]
    note = "Show its progress in detail (not for release: it depends on private rows)"
    if hidden and not st.toggle(note, key=f"series_private_{key}"):
        lines = [line for line in lines if line.releasable]
    if not lines:
        return
    as_table = st.toggle("Show as tables", key=f"series_table_{key}")
    for i, line in enumerate(lines):
        show_chart(series_chart(line), key=f"series_{key}_{i}", as_table=as_table)
