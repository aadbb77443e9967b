"""The Diagnostics page's parts: what to compare, the verdict, and one panel for each diagnostic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from dpsynth_core.charts.diagnostics import overview, pictures_of
from dpsynth_core.charts.theme import Chart
from dpsynth_core.diagnostics import DIAGNOSTICS, Measure, Result, Verdict
from dpsynth_core.diagnostics.evaluation import Evaluation
from dpsynth_core.diagnostics.purposes import MODEL, PURPOSES, Fitness, FitnessLine, changes, fitness_lines, overall
from dpsynth_core.diagnostics.wording import VERDICT_WORDS, largest_elsewhere, measured, score, statement
from dpsynth_core.inference.regression.design import can_be_outcome
from dpsynth_core.table.schema import Schema
from pages.shared.buttons import clicked
from pages.shared.diagnostics.actions import (
    EXAMINATION,
    MAX_COMPARED,
    choose_target,
    examine,
    next_missing,
    ready_parts,
)
from pages.shared.diagnostics.advice_view import show_why
from pages.shared.diagnostics.classification_view import show_classification
from pages.shared.diagnostics.groups_view import show_groups
from pages.shared.diagnostics.propensity_view import show_propensity
from pages.shared.diagnostics.questions_view import show_questions
from pages.shared.diagnostics.regression_view import show_regression
from pages.shared.layout import Colour, errors_shown, guarantee_badge
from pages.shared.session import Session
from pages.shared.table_work import RunRecord
from pages.shared.widgets import begin_with, plain_list, say_basis, show_internal_chart, show_task

VERDICT: dict[Verdict, tuple[Colour, str]] = {
    "excellent": ("green", ":material/check_circle:"),
    "good": ("green", ":material/check:"),
    "fair": ("orange", ":material/warning:"),
    "poor": ("red", ":material/cancel:"),
    "unknown": ("gray", ":material/help:"),
}
FIT: dict[Fitness, tuple[Colour, str]] = {
    "good": ("green", ":material/check_circle:"),
    "care": ("orange", ":material/warning:"),
    "unknown": ("gray", ":material/help:"),
    "not": ("red", ":material/cancel:"),
}
DETAIL_WIDTH = 300
"""Pixels of a picture that stands beside others."""
AT_ONCE, QUICK = 1.5, 2
"""Seconds that the page waits for the first two diagnostics, so that they are there when it is drawn."""
WORST = 5
"""Items named under a panel's headline."""


def show_mark(session: Session, what: str = "Everything below is") -> None:
    """Say what on this page depends on private rows and must stay inside."""
    if session.mode == "release":
        st.warning(
            f"For internal review, not for release. {what} computed from the private rows. Choosing between "
            "releases by these numbers reveals something about the rows too: choose one before you look.",
            icon=":material/visibility_lock:",
        )
    else:
        st.caption(
            f"With private data, this would be **for internal review, not for release**: {what[0].lower()}{what[1:]} "
            "computed from the original rows."
        )
    say_basis(session.work)


def ask_runs(session: Session) -> list[RunRecord]:
    """Which runs to look at, the first of them in detail."""
    work, numbers = session.work, [run.number for run in session.runs]
    if len(numbers) == 1:
        st.text(f"Release {work.runs[0].name}")
        return list(work.runs)
    before = [number for number in work.compared if number in numbers]
    begin_with(session, "compared", before or numbers[-1:])
    work.compared = st.multiselect(
        "Releases to compare (the first one in detail)",
        numbers[::-1],
        key="compared",
        format_func=lambda number: work.run(number).name,
        max_selections=MAX_COMPARED,
    )
    return [work.run(number) for number in work.compared]


def ask_columns(session: Session, names: tuple[str, ...]) -> tuple[str, ...]:
    """Which columns to look at; all of them unless some are chosen."""
    work = session.work
    with st.expander(f"Columns: {len(work.columns or names)} of {len(names)}", icon=":material/view_column:"):
        chosen = st.multiselect(
            "Columns to look at",
            names,
            default=[name for name in work.columns if name in names],
            key="examined",
            placeholder="All columns",
            help="Fewer columns are quicker to compare, and the verdict is about those columns only.",
        )
    work.columns = tuple(chosen)
    return tuple(name for name in names if name in chosen) or names


def ask_purposes(session: Session, schema: Schema) -> None:
    """What the table is for, and what a model is to explain: public facts, declared once."""
    work = session.work
    left, right = st.columns([2, 1])
    chosen = left.multiselect(
        "What is the table for?",
        list(PURPOSES),
        default=list(work.purposes),
        key="purposes",
        format_func=lambda key: PURPOSES[key].title.capitalize(),
        placeholder="Anything: all purposes are judged",
        help=" ".join(f"{each.title.capitalize()}: {each.needs}" for each in PURPOSES.values()),
    )
    work.purposes = tuple(chosen)
    if chosen and MODEL not in chosen:
        return
    names = [column.name for column in schema if can_be_outcome(column)]
    target = right.selectbox(
        "Target of a model",
        names,
        index=names.index(work.target) if work.target in names else None,
        key="target",
        placeholder="The column that is explained best",
        help="The regression below explains this column, and the classifiers predict it if it has labels.",
    )
    with errors_shown("This column cannot be explained."):
        choose_target(work, target or "")


def examined(session: Session, runs: list[RunRecord], columns: tuple[str, ...]) -> dict[RunRecord, Evaluation]:
    """What is known about these runs; the others are compared one after the other while the page is open."""
    missing = next_missing(runs, columns)
    if missing is not None:
        _examine(session, missing, columns)
    return {run: run.evaluations[columns] for run in runs if columns in run.evaluations}


def show_ready(session: Session, runs: list[RunRecord], columns: tuple[str, ...]) -> None:
    """The panels of a comparison that is still at work, as far as they are there; what asks for more comes later."""
    ready = ready_parts(session.work, runs[0], columns)
    if ready is None:
        return
    left = [kind.title for key, kind in DIAGNOSTICS.items() if key not in ready]
    st.caption(f"Ready so far. Still to come: {', '.join(left)}.")
    for key in DIAGNOSTICS:
        show_panel(session, key, {runs[0]: ready}, complete=False)


def _examine(session: Session, run: RunRecord, columns: tuple[str, ...]) -> None:
    """Begun by itself in teaching mode, on demand in release mode and after it was cancelled."""
    task = session.work.tasks.get(EXAMINATION)
    mine = task if task is not None and task.about == (run, columns) else None
    if mine is not None:
        show_task(mine, key=EXAMINATION)
        if not mine.ended_early:
            return
    if mine is not None or session.mode == "release":
        label = f"Compare {run.name} with the original"
        if not clicked(label, type="primary", icon=":material/search_insights:", key="examine"):
            return
    with errors_shown("The comparison was not started."):
        examine(session.work, run, columns).wait(AT_ONCE, parts=QUICK)
        st.rerun()


def verdict_badge(verdict: Verdict) -> None:
    """A verdict in a word, with a colour and a sign."""
    colour, icon = VERDICT[verdict]
    st.badge(VERDICT_WORDS[verdict], icon=icon, color=colour)


def show_verdict(session: Session, found: Mapping[RunRecord, Evaluation]) -> None:
    """What every release is good for, side by side, and the verdicts behind it."""
    purposes = session.work.purposes
    for slot, (run, evaluation) in zip(st.columns(len(found)), found.items(), strict=True):
        with slot.container(border=True):
            st.text(run.name)
            with st.container(horizontal=True):
                if not purposes:
                    verdict_badge(evaluation.verdict)
                guarantee_badge(run.result.guarantee)
            show_fitness(fitness_lines(evaluation, purposes))
            with st.expander("Every diagnostic's verdict", icon=":material/list:", expanded=not purposes):
                st.markdown(evaluation.summary)
                for result in evaluation.culprits:
                    with st.container(horizontal=True, vertical_alignment="center"):
                        verdict_badge(result.verdict)
                        known = result.headline.value is not None
                        st.text(f"{result.title}: {score(result) if known else result.headline.reading}")


def show_fitness(lines: Sequence[FitnessLine]) -> None:
    """What a release is good for: in one sentence, and by which figure in a line each."""
    st.markdown(f"**{overall(lines)}**")
    for line in lines:
        colour, icon = FIT[line.fitness]
        with st.container(horizontal=True, vertical_alignment="center"):
            st.badge(line.answer, icon=icon, color=colour)
            st.text(line.sentence)


def show_changes(session: Session, found: Mapping[RunRecord, Evaluation], columns: tuple[str, ...]) -> None:
    """Every measure in the releases that are compared, or in this one and the one before, and what became better."""
    compared = dict(found)
    if len(compared) == 1:
        latest = next(iter(compared))
        before = [run for run in session.runs if run.number < latest.number and columns in run.evaluations]
        if before:
            compared[before[-1]] = before[-1].evaluations[columns]
    if len(compared) < 2:
        return
    ordered = sorted(compared, key=lambda run: run.number)
    rows = changes({run.name: compared[run] for run in ordered})
    st.markdown(f"**What has changed from release {ordered[0].number} to release {ordered[-1].number}?**")
    st.dataframe(rows, hide_index=True, alt="Every measure in each release, and whether it became better")
    st.caption("Lower is better. A change is called better or worse where the two 95% intervals do not meet.")


def show_panel(session: Session, key: str, found: Mapping[RunRecord, Evaluation], *, complete: bool = True) -> None:
    """One diagnostic: question, number, reading, pictures, what else can be asked, and how it is computed."""
    results = {run: evaluation[key] for run, evaluation in found.items() if key in evaluation}
    if not results:
        return
    kind, first = DIAGNOSTICS[key], next(iter(results.values()))
    st.header(kind.title, anchor=False)
    st.markdown(f"*{kind.question}*")
    with st.container(horizontal=True, vertical_alignment="center"):
        verdict_badge(first.verdict)
        st.text(statement(first))
    st.text(f"{first.headline.reading} {largest_elsewhere(first)}".rstrip())
    with errors_shown("The reasons cannot be worked out."):
        show_why(session, next(iter(found)), first, next(iter(found.values())))
    named = {run.name: result for run, result in results.items()}
    as_table = st.toggle("Show as tables", key=f"table_{key}")
    _pictures(session, next(iter(found)), named, as_table, complete=complete)
    if key in EXTRAS and complete:
        EXTRAS[key](session, next(iter(found)), named, as_table)
    with st.expander("How is this computed?", icon=":material/function:"):
        st.markdown(kind.method)
        direction = "Lower is better" if kind.scale.better == "lower" else "Higher is better"
        st.markdown(f"{direction}; a good value is {kind.scale.good}.")
        plain_list(first.notes)


def _pictures(session: Session, run: RunRecord, named: Mapping[str, Result], as_table: bool, *, complete: bool) -> None:
    """The diagnostic's own pictures; where its measures can be drawn in full, the one that the reader chooses."""
    result, outcome, private = next(iter(named.values())), run.result, session.work.private
    if complete:
        run.pictures.clear()  # drawn again now and then; while parts are still to come, at each of them
    results = tuple(named.values())
    charts = _drawn(run, (result.key, *named), results, lambda: overview(named, outcome.schema))
    chosen = pictures_of(result.key)
    for number, chart in enumerate(charts):
        show_internal_chart(chart, key=f"{result.key}_{number}", as_table=as_table)
    if not charts or chosen.detail is None or private is None:
        return
    items, key = result.items, f"detail_{result.key}"
    choice = st.selectbox(
        chosen.item, range(len(items)), format_func=lambda i: items[i].name, key=key, help="The worst is at the top."
    )
    item, draw = items[choice], chosen.detail
    about = f"detail of {result.key}", item.name
    detail = _drawn(run, about, (result, private), lambda: draw(item, private, outcome.tables[0]))
    if complete:
        run.pictures.clear()
    # As many in a row as are wide enough for their titles.
    with st.container(horizontal=True):
        for number, chart in enumerate(detail):
            with st.container(width=DETAIL_WIDTH if len(detail) > 1 else "stretch"):
                show_internal_chart(chart, key=f"{key}_{number}", as_table=as_table)


def _drawn(
    run: RunRecord, key: tuple[str, ...], shown: tuple[object, ...], draw: Callable[[], Sequence[Chart]]
) -> Sequence[Chart]:
    """Charts of these very things from the last time that the page was drawn: a click has to wait until it is."""
    known = run.pictures.get(key)
    if known is None or any(one is not other for one, other in zip(known[0], shown, strict=True)):
        known = run.pictures[key] = shown, draw()
    return known[1]


def _worst_pairs(session: Session, run: RunRecord, named: Mapping[str, Result], as_table: bool) -> None:  # noqa: ARG001
    items = next(iter(named.values())).items[:WORST]
    if items:
        st.markdown(
            "**Worst pairs**, each beside what a fresh sample shows. Pairs are compared in coarser ranges than single "
            "columns."
        )
        plain_list(_pair_line(item) for item in items)


def _pair_line(item: Measure) -> str:
    if item.value is None:
        return f"{item.name}: could not be computed"
    chance = "" if item.reference_high is None else f" (a fresh sample: up to {measured(item.reference_high)})"
    return f"{item.name}: {measured(item.value)}{chance}"


def _tests(session: Session, run: RunRecord, named: Mapping[str, Result], as_table: bool) -> None:
    show_groups(session, run, named, as_table)
    show_questions(session, run)


EXTRAS: dict[str, Callable[[Session, RunRecord, Mapping[str, Result], bool], None]] = {
    "pairs": _worst_pairs,
    "pmse": show_propensity,
    "mann_whitney": _tests,
    "regression": show_regression,
    "classification": show_classification,
}
"""What some panels show or ask below their pictures."""
