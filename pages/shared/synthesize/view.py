"""The Synthesize page's parts: summary, confirmation, progress, result, history."""

from __future__ import annotations

from functools import partial
from typing import Literal

import streamlit as st

from dpsynth_core.charts.columns import compare_chart
from dpsynth_core.charts.runs import spending_chart
from dpsynth_core.errors import DPSynthError
from dpsynth_core.ledger.accounts import Account
from dpsynth_core.ledger.settings import Settings
from dpsynth_core.mechanisms import MECHANISMS
from dpsynth_core.privacy.budget import format_amount
from dpsynth_core.review.export import parquet, safe_csv
from dpsynth_core.review.wording import ERROR_UNIT, costs, error_lines, share
from dpsynth_core.runs.configuration import MAX_COPIES, MAX_ROWS_HELD, RunConfig, RunResult
from dpsynth_core.runs.expected_error import NOT_COVERED
from dpsynth_core.runs.forecast import light_of
from dpsynth_core.runs.selection import MAX_RUNS, RUNS_PER_CANDIDATE
from dpsynth_core.table.schema import Schema
from pages.shared.accounts import account_of, open_stored_releases, remember_look
from pages.shared.buttons import clicked
from pages.shared.formatting import delta_badge, duration, format_loss
from pages.shared.layout import errors_shown, guarantee_badge, show_error
from pages.shared.mechanism.plans_view import LIGHTS
from pages.shared.session import Session
from pages.shared.spending import Offer, ask_to_spend, shortages, show_price, warn_of_void
from pages.shared.synthesize.actions import start
from pages.shared.table_work import RunRecord
from pages.shared.tasks import RUN
from pages.shared.widgets import (
    ask_run_to_show,
    offer_download,
    plain_list,
    say_basis,
    show_chart,
    show_series,
    show_task,
)

PREVIEW_ROWS = 100
PICTURES_IN_A_ROW = 3
MAX_SEED = 10**9


def ask_options(session: Session, schema: Schema, n: int) -> None:
    """How many tables, how many rows, and in teaching mode a seed."""
    settings = session.settings
    left, middle, right = st.columns(3)
    settings.copies = left.number_input(
        "Synthetic tables",
        1,
        MAX_COPIES,
        settings.copies,
        help="Several tables show how much varies by chance. Each one costs epsilon.",
    )
    rows = settings.mechanism(schema, n).rows
    given = middle.number_input(
        "Rows in each",
        1,
        MAX_ROWS_HELD,
        rows,
        placeholder=f"{n:,}",
        help="Left empty: as many as the original has. With most mechanisms, more rows cost nothing extra: they are "
        "drawn from a model that is already paid for.",
        key=f"rows_{settings.key}_{settings.version}",
    )
    if given != rows:
        settings.set(schema, n, "rows", given)
    if session.mode == "teaching":
        settings.seed = right.number_input(
            "Seed (optional)",
            0,
            MAX_SEED,
            settings.seed,
            placeholder="none",
            help="Left empty: real noise. With a seed, the run can be repeated exactly, so it is not private. For "
            "teaching only.",
        )


def show_summary(session: Session, config: RunConfig, schema: Schema, n: int) -> list[str]:
    """What will be made and what it costs; returns what must be done first."""
    total, missing = config.total, []
    delta = f", δ = {format_amount(total.delta)}" if total.delta else ""
    rows = config.mechanism.rows or n
    with st.container(border=True):
        if config.copies == 1:
            st.markdown(f"**{config.mechanism.title}** makes one synthetic table of {rows:,} rows.")
            st.markdown(f"Privacy loss: **ε = {format_amount(total.epsilon)}**{delta}.")
        else:
            st.markdown(
                f"**{config.mechanism.title}** makes {config.copies} synthetic tables of {rows:,} rows, "
                f"at ε = {config.epsilon} each."
            )
            st.markdown(f"Privacy loss of all tables together: **ε = {format_amount(total.epsilon)}**{delta}.")
        try:
            st.caption(f"Expected time: {duration(config.seconds(schema, n))}.")
        except DPSynthError:
            missing.append("Choose a mechanism that fits this table.")
    if session.mode == "release":
        missing += _budget_problems(session, config)
    return missing


def _budget_problems(session: Session, config: RunConfig) -> list[str]:
    account = account_of(session)
    if account is None:
        return ["Open the data set's account on the Data page."]
    return shortages(account.left, config.total, fewer=" or the number of tables" if config.copies > 1 else "")


def ask_to_run(session: Session, config: RunConfig, missing: list[str]) -> None:
    """The button; in release mode it leads to a confirmation that states the charge."""
    _ask_start(session, config, missing, label="Synthesize", icon=":material/casino:", key="synthesize", primary=True)


def _ask_start(
    session: Session, config: RunConfig, missing: list[str], *, label: str, icon: str, key: str, primary: bool = False
) -> None:
    task = session.work.tasks.get(RUN)
    busy = task is not None and task.active
    offer = Offer(
        name="run",
        price=lambda asked: asked.total,
        explain=partial(_explain_price, session),
        confirm="Spend it and run",
        make=lambda asked, _: _begin(session, asked),
    )
    kind: Literal["primary", "secondary"] = "primary" if primary else "secondary"
    ask_to_spend(session, offer, label, config, key=key, disabled=bool(missing) or busy, type=kind, icon=icon)
    if missing and not busy:
        st.markdown("**Before this can run:**")
        plain_list(missing)


def ask_selection(session: Session, schema: Schema, n: int) -> None:
    """The best of several runs, chosen privately, for one total."""
    settings = session.settings
    with st.expander("Pick the best of several, privately", icon=":material/emoji_events:"):
        st.markdown(
            "If you compare releases with the original and keep the best, your choice itself reveals something. Here "
            "the app makes the choice with noise, and the stated epsilon covers it: you get one release and see none "
            "of the others."
        )
        if session.work.data.server is not None:
            st.caption("Scoring the runs needs all rows in memory, so this is not offered for a table on the server.")
            return
        offered = [key for key, kind in MECHANISMS.items() if not kind.needs_delta and kind.status != "none"]
        left, right = st.columns([2, 1])
        settings.candidates = left.multiselect(
            "Candidates",
            offered,
            default=settings.candidates or [settings.key] * (settings.key in offered),
            format_func=lambda key: MECHANISMS[key].title,
            key="candidates",
            help="Mechanisms with pure differential privacy, each with its parameters from the Mechanism page.",
        )
        given = right.number_input(
            "Runs at most",
            2,
            MAX_RUNS,
            settings.max_runs,
            placeholder=f"{RUNS_PER_CANDIDATE * max(1, len(settings.candidates))}, {RUNS_PER_CANDIDATE} per candidate",
            key="max_runs",
            help="More runs take longer and cost no more. Each run takes one of the candidates at random.",
        )
        settings.max_runs = given
        if not settings.candidates:
            st.markdown("Choose at least one mechanism.")
            return
        with errors_shown("These candidates cannot be used."):
            config = settings.selection_config(schema, n, teaching=session.mode == "teaching")
            _show_selection(session, config, schema, n)


def _show_selection(session: Session, config: RunConfig, schema: Schema, n: int) -> None:
    assert config.selection is not None  # noqa: S101  made by selection_config
    fit, score = (format_amount(share.epsilon) for share in config.selection.shares(config.total))
    st.markdown(
        f"**Total cost: ε = {format_amount(config.total.epsilon)}**, however many runs there are. Each run gets "
        f"ε = {fit} for its table and {score} for a noisy score: how well pairs of columns agree with the original."
    )
    st.markdown(
        f"The app makes {config.selection.max_runs} runs. How many of them count is drawn at random and stays secret; "
        "the best of those is kept and the others are deleted unseen."
    )
    st.caption(f"Expected time: {duration(config.seconds(schema, n))}.")
    missing = _budget_problems(session, config) if session.mode == "release" else []
    _ask_start(session, config, missing, label="Pick the best", icon=":material/emoji_events:", key="pick_best")


def _explain_price(session: Session, account: Account, config: RunConfig) -> bool:
    enough = show_price(account, config.total, "This run")
    if Settings.from_environment().release_store.full:
        st.warning(
            "The store of releases is full, so this one would be kept in this session only. Ask whoever runs this "
            "installation to make room, or download it at once.",
            icon=":material/inventory_2:",
        )
    warn_of_void(session.prospect(config))
    return enough


def _begin(session: Session, config: RunConfig) -> None:
    with errors_shown("The run was not started."):
        start(session, config)
        st.rerun()


def show_run(session: Session) -> None:
    """The run at work; or how the last one ended, where it did not finish, and what it cost."""
    task, private = session.work.tasks.get(RUN), session.mode == "release"
    if task is None:
        return
    show_task(task, key=RUN, private=private)
    if task.job.state == "finished" and task.job.series:
        with st.expander("Progress of the run"):
            show_series(task, key="ended", private=private)


def say_if_earlier(session: Session) -> None:
    """While a run is at work, what is shown below it is not what it makes."""
    task = session.work.tasks.get(RUN)
    if task is not None and task.active:
        st.info(
            "This is from an earlier run. The one at work takes its place once it has ended.",
            icon=":material/hourglass_top:",
        )


def show_result(session: Session, run: RunRecord) -> None:
    """The synthetic table, its badge, and its files."""
    result = run.result
    if run.store_problem:
        show_error(
            "This release was paid for, but it is kept only in this session: download it now.",
            DPSynthError(run.store_problem),
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        guarantee_badge(result.guarantee)
        st.badge(f"ε = {format_amount(result.guarantee.epsilon)}", color="gray")
        st.badge(delta_badge(result.guarantee), color="gray")
    st.caption(result.guarantee.meaning)
    plain_list((*costs(result.guarantee), *result.guarantee.caveats))
    show_expected_error(result)
    which = 0
    if len(result.tables) > 1:
        tables, key = range(len(result.tables)), f"which_{run.number}"
        which = st.segmented_control("Table", tables, default=0, format_func=lambda i: f"Table {i + 1}", key=key) or 0
    table = result.tables[which]
    st.dataframe(table.head(PREVIEW_ROWS), height=245, hide_index=True, alt="The first rows of the synthetic table")
    name = f"synthetic_{run.number}_{which + 1}"
    with st.container(horizontal=True):
        offer_download("Download CSV", lambda: safe_csv(table), f"{name}.csv", "text/csv")
        parquet_type = "application/vnd.apache.parquet"
        offer_download("Download Parquet", lambda: parquet(table), f"{name}.parquet", parquet_type)
    _compare(session, run, which)


def show_expected_error(result: RunResult) -> None:
    """What the release says about its own error."""
    found = result.expected_error
    if found is None:
        return
    # Only bad news is certain here: the estimate does not see what the release has lost.
    if light_of(found.mean_column, found.mean_pair) == "red":
        pairs = "" if found.mean_pair is None else f" and **{share(found.mean_pair)}** in a pair of columns"
        st.markdown(
            f"{LIGHTS['red']} **Far off:** noise is estimated to put about **{share(found.mean_column)}** "
            f"of the rows in a wrong cell in a single column{pairs}, on average."
        )
    with st.expander("How accurate is it? An estimate without the private rows", icon=":material/straighten:"):
        plain_list(error_lines(found))
        st.caption(
            "The app took the synthetic rows for an original and released them again with simulated noise, by the same "
            f"mechanism at the same epsilon. No private row was used, so you may publish these figures: the data card "
            f"has them. {ERROR_UNIT} {NOT_COVERED} In our tests with Private-PGM, the true error was 0.6 to 3.2 times "
            "such an estimate, most where pairs had not been measured."
        )


def _compare(session: Session, run: RunRecord, which: int) -> None:
    """A first look beside the original: private, so in release mode only on demand."""
    teaching, result, at = session.mode == "teaching", run.result, run.number
    names = result.schema.names
    note = "Compare with the original" if teaching else "Compare with the original (not for release: private data)"
    if not st.toggle(note, value=teaching, key=f"compare_{at}"):
        return
    session.work.compared_with_original = True
    remember_look(session.work)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = st.multiselect("Columns", names, default=names[:PICTURES_IN_A_ROW], key=f"compared_{at}")
        as_table = st.toggle("Show as tables", key=f"compare_as_tables_{at}")
    say_basis(session.work)
    for first in range(0, len(shown), PICTURES_IN_A_ROW):
        for slot, name in zip(st.columns(PICTURES_IN_A_ROW), shown[first : first + PICTURES_IN_A_ROW], strict=False):
            with slot:
                chart = compare_chart(session.work.data.table, result.tables[which], result.schema, name)
                show_chart(chart, key=f"compare_{at}_{names.index(name)}", as_table=as_table)


def show_history(session: Session) -> None:
    """The runs on this table, newest first, and what they cost together."""
    runs = session.runs
    if len(runs) < 2:
        return
    rows = [
        {
            "run": run.number,
            "made (UTC)": f"{run.made:%Y-%m-%d %H:%M}",
            "mechanism": run.config.mechanism.title,
            "epsilon": format_amount(run.config.total.epsilon),
            "delta": format_amount(run.config.total.delta),
            "tables": run.config.copies,
            "guarantee": run.result.guarantee.status,
            "seconds": f"{run.result.seconds:.1f}" if run.result.seconds else "",
        }
        for run in reversed(runs)
    ]
    spent = session.work.spent
    st.markdown(
        "**History.** Together, these runs and the private estimates they use reveal at most as much as a single run "
        f"at {format_loss(spent.epsilon, spent.delta)}."
    )
    st.dataframe(rows, hide_index=True, alt="The runs on this table")
    show_result(session, ask_run_to_show(session, "Look at run", key="history", describe=lambda run: run.dated_name))


def show_unopened(session: Session) -> None:
    """Stored releases of this data set that cannot be shown, each with the reason."""
    work = session.work
    if not work.unopened:
        return
    with st.container(border=True):
        st.warning("Some stored releases of this data set are not shown.", icon=":material/inventory_2:")
        plain_list(f"Charge {charge}: {why}" for charge, why in work.unopened.items())
        if clicked("Open them now", icon=":material/folder_open:", key="open_stored"):
            with errors_shown("They cannot be opened."), st.spinner("Reading stored releases"):
                open_stored_releases(session, every=True)
            st.rerun()


def show_spending(session: Session) -> None:
    """What the data set has spent so far, step by step."""
    with errors_shown("The ledger cannot be read."):
        account = account_of(session)
        if account is not None and account.spent.epsilon:
            st.header("Budget spent", anchor=False)
            as_table = st.toggle("Show as table", key="spending_table")
            show_chart(spending_chart(account), key="spending", as_table=as_table)
